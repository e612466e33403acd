"""An adapter over an SDK of the common generator (openai, groq, together and their like), told by a few facts.

Decides how such a client is built: the key is found and trimmed, the timeouts are alike for all vendors, and the SDK's
own retries are off.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from .._retry import RetryPolicy
from ..errors import ConfigError
from ._credentials import find_api_key
from ._dialect import Dialect
from ._provider import OpenAICompatibleProvider
from ._stream import Limits
from ._transport import Transport

__all__ = ["CONNECT_TIMEOUT", "READ_TIMEOUT", "SdkProvider"]

READ_TIMEOUT = 600.0
"""Seconds to wait for each next piece of an answer, unless told otherwise: a reasoning model may think for minutes."""
CONNECT_TIMEOUT = 5.0
"""Seconds to wait for a connection: an address where nobody answers is no slow model."""


class SdkProvider(OpenAICompatibleProvider):
    """Base of an adapter: a subclass says which SDK, which key and which dialect.

    Args:
        client: a client of one's own, async or not, in place of the options below. It stays open.
        api_key: the key; by default that of the environment variable `key_variable`.
        base_url: the address, as the SDK takes it; by default the SDK's own, or that of its environment variable.
        timeout: how long to wait for any bytes of an answer (seconds).
        first_chunk_timeout, idle_timeout: how long a stream may take to begin, and to stay silent then (seconds).
        retry, max_retries: when a failed request is sent again; the SDK's own retries are off.
        think_tags: whether reasoning is taken out of the text between `<think>` tags; None: for models that write them.
        headers: sent with every request.
        dialect: how the server differs from the common wire, where it is not the vendor's own.
        name: what the provider is called in completions and errors.

    Raises:
        ConfigError: no key, or both a client and options for one.
    """

    vendor: ClassVar[str]
    sdk_client: ClassVar[str]
    """Module and class of the SDK's async client, such as `groq:AsyncGroq`; imported when a provider is built."""
    key_variable: ClassVar[str]
    default_base_url: ClassVar[str | None] = None
    dialect_class: ClassVar[type[Dialect]] = Dialect

    def __init__(
        self,
        client: Any = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        first_chunk_timeout: float | None = None,
        idle_timeout: float | None = None,
        retry: RetryPolicy | None = None,
        max_retries: int | None = None,
        think_tags: bool | None = None,
        headers: Mapping[str, str] | None = None,
        dialect: Dialect | None = None,
        name: str | None = None,
    ) -> None:
        self._owned: Any = None
        Limits.checked(timeout, first_chunk_timeout, idle_timeout)
        if base_url and not base_url.strip().startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, got {base_url!r}")
        if client is None:
            client = self._owned = self._client(api_key, base_url, timeout, headers)
            timeout = None  # the client has it, with a shorter wait for the connection
        elif api_key or base_url or headers:
            raise ConfigError("pass either a client or api_key, base_url and headers: a client brings its own")
        name = name or self.vendor
        super().__init__(
            client,
            name=name,
            dialect=dialect or self.dialect_for(client),
            transport=self.transport_over(client, name=name, headers=headers or {}),
            think_tags=think_tags,
            retry=retry,
            max_retries=max_retries,
            timeout=timeout,
            first_chunk_timeout=first_chunk_timeout,
            idle_timeout=idle_timeout,
        )

    def dialect_for(self, client: Any) -> Dialect:
        """Choose the dialect for a client: the vendor's own, whatever the address, unless a subclass looks at it."""
        return self.dialect_class()

    def transport_over(self, client: Any, *, name: str, headers: Mapping[str, str]) -> Transport | None:
        """Choose what sends through a client; None for what the SDKs of the common generator share."""
        return None

    async def aclose(self) -> None:
        """Close the client that this provider made. One that was passed in stays open."""
        if self._owned is not None:
            self._closed = True
            await self._owned.close()

    def _client(
        self, api_key: str | None, base_url: str | None, timeout: float | None, headers: Mapping[str, str] | None
    ) -> Any:
        key = find_api_key(self.vendor, self.key_variable, api_key)
        module_name, _, class_name = self.sdk_client.partition(":")
        sdk = import_module(module_name)
        return getattr(sdk, class_name)(
            api_key=key,
            base_url=(base_url or "").strip() or self.default_base_url,
            timeout=sdk.Timeout(timeout or READ_TIMEOUT, connect=CONNECT_TIMEOUT),
            max_retries=0,
            default_headers=dict(headers or {}),
        )
