"""The suite itself: what it refuses to let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.testing import Cassette, Interaction, ProviderContract
from agent_core.testing._cassettes import credentials_in

pytest_plugins = ["pytester"]

CASSETTES = Path(__file__).parents[2] / "cassettes"

ADAPTER = """
from pathlib import Path
from agent_core.testing import ProviderContract
from agent_core_openai import OpenAIDialect, OpenAIProvider

class TestAcme(ProviderContract):
    vendor = "acme"
    cassettes = Path({folder!r})
    capabilities = frozenset({capabilities!r})
    model = "gpt-5.1"

    def provider(self, base_url, **options):
        return OpenAIProvider(api_key="unused", base_url=base_url, dialect=OpenAIDialect(), **options)
"""


@pytest.fixture
def acme(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of a stranger, with the cassettes that need no capability."""
    folder = pytester.mkdir("cassettes")
    for name in ("text", "unicode", "length-cut"):
        (folder / f"{name}.yaml").write_bytes((CASSETTES / "openai" / f"{name}.yaml").read_bytes())
    pytester.makepyfile(test_acme=ADAPTER.format(folder=str(folder), capabilities=[]))
    return pytester


def test_a_stranger_inherits_it_in_a_dozen_lines(acme: pytest.Pytester) -> None:
    """A contract outside this repository passes, and prints its scorecard."""
    result = acme.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*acme*", "*red: 0"])


def test_an_undeclared_cassette_fails(acme: pytest.Pytester) -> None:
    """What was recorded has to be declared."""
    (acme.path / "cassettes" / "refusal.yaml").write_bytes((CASSETTES / "openai" / "refusal.yaml").read_bytes())
    result = acme.runpytest_inprocess("-q", "-k", "capabilities")
    result.stdout.fnmatch_lines(["*recorded but not declared: *refusal*"])


def test_a_missing_cassette_fails(acme: pytest.Pytester) -> None:
    """What is declared has to be recorded."""
    (acme.path / "cassettes" / "text.yaml").unlink()
    result = acme.runpytest_inprocess("-q", "-k", "capabilities")
    result.stdout.fnmatch_lines(["*declared but not recorded: *text*"])


def test_an_exchange_that_is_never_played_fails(acme: pytest.Pytester) -> None:
    """A cassette holds nothing that no test looks at."""
    path = acme.path / "cassettes" / "text.yaml"
    cassette = Cassette.load(path)
    extra = cassette.interactions[0]
    cassette.interactions.append(
        Interaction(extra.method, extra.uri, {"other": 1}, extra.status, extra.headers, extra.body)
    )
    cassette.save()
    result = acme.runpytest_inprocess("-q")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*played by no test: cassettes/text.yaml: exchange 3"])


def test_a_wrong_word_fails(acme: pytest.Pytester) -> None:
    """The words that come out are compared with those that were said."""
    path = acme.path / "cassettes" / "text.yaml"
    path.write_text(path.read_text("utf-8").replace("Hello!", "Hallo!").replace("Hello", "Hallo"), "utf-8")
    result = acme.runpytest_inprocess("-q", "-k", "test_text")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*instead of 'Hello! How can I help you today?'*"])


def test_an_unknown_request_says_what_differs(acme: pytest.Pytester) -> None:
    """A request that was not recorded fails, and its difference is told."""
    path = acme.path / "cassettes" / "text.yaml"
    path.write_text(path.read_text("utf-8").replace('"temperature": 0.2', '"temperature": 0.3'), "utf-8")
    result = acme.runpytest_inprocess("-q", "-k", "test_text and loopback")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*nearest differs in: temperature (0.3 instead of 0.2)*"])


def test_a_standard_test_cannot_be_deleted() -> None:
    """Setting a standard test to None is an error when the class is made."""
    with pytest.raises(TypeError, match="test_text"):
        type("Sly", (ProviderContract,), {"test_text": None})


def test_a_standard_test_cannot_be_changed() -> None:
    """A replacement that would pass is an error too."""
    with pytest.raises(TypeError, match="strict=True"):
        type("Sly", (ProviderContract,), {"test_text": lambda self: None})


def test_a_standard_test_can_be_excused() -> None:
    """A strict xfail with a reason stands for a known defect of the vendor."""

    @pytest.mark.xfail(strict=True, reason="the vendor sends no usage")
    def test_text(self: ProviderContract) -> None:
        raise AssertionError

    assert issubclass(type("Honest", (ProviderContract,), {"test_text": test_text}), ProviderContract)


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abcdefgh12345",
        "authorization: x",
        "sk-abcdefghijklmnop",
        "gsk_abcdefghijkl",
        "api-key: 1",
        "Cookie: a",
    ],
)
def test_credentials_are_seen(text: str) -> None:
    """What looks like a credential keeps a cassette from being written."""
    assert credentials_in(text)


@pytest.mark.parametrize("path", sorted(CASSETTES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_cassettes_hold_no_credential(path: Path) -> None:
    """No cassette in this repository holds anything like a credential, and each says where it is from."""
    assert credentials_in(path.read_text("utf-8")) == []
    header = Cassette.load(path).header
    assert {"scenario", "vendor", "recorded_from", "sdk", "date", "base_url"} <= header.keys()
    assert header["scenario"] == path.stem
