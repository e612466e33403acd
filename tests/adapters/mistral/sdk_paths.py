"""The two ways through the mistralai SDK, so that a test can run on either.

The library takes its own request methods where they are as it knows them, and its documented calls where they are not;
a keyword that no release knows makes them look changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent_core_mistral import MistralProvider, _transport

__all__ = ["PATHS", "providers_take", "way_of"]

PATHS = ("request methods", "documented calls")


@contextmanager
def providers_take(path: str) -> Iterator[None]:
    """Let every provider that is made inside the block send this way."""
    with pytest.MonkeyPatch.context() as patch:
        if path == "documented calls":
            patch.setitem(_transport._REQUEST, "a_keyword_of_another_release", None)
        yield


def way_of(provider: MistralProvider) -> str:
    """Tell which way a provider sends."""
    transport = provider._transport
    assert isinstance(transport, _transport.MistralTransport)
    return PATHS[0] if transport._context is not None else PATHS[1]
