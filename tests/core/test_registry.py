"""Providers by name: what is installed, what is broken, and what a person is told about it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_core import Model, errors, installed_providers, load_model, load_provider
from agent_core_openai import OpenAIProvider

Install = Callable[..., None]

GOOD = """
    class Provider:
        name = "good"
        def __init__(self, *, api_key=None, base_url=None):
            self.options = {"api_key": api_key, "base_url": base_url}
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a made-up distribution: a module with this source, and an entry point for each name."""
    monkeypatch.syspath_prepend(tmp_path)
    modules: list[str] = []

    def install(module: str, source: str, *, requires: tuple[str, ...] = (), dist: str = "", **names: str) -> None:
        (tmp_path / f"{module}.py").write_text(dedent(source))
        info = tmp_path / f"{(dist or module).replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {dist or module}", "Version: 1.2"]
        lines += [f"Requires-Dist: {line}" for line in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        points = names or {module: "Provider"}
        text = "".join(f"{name} = {module}:{attribute}\n" for name, attribute in points.items())
        (info / "entry_points.txt").write_text(f"[agent_core.providers]\n{text}")
        modules.append(module)
        importlib.invalidate_caches()

    yield install
    for module in modules:
        sys.modules.pop(module, None)


def told(name: str, **options: Any) -> str:
    """What a person is told who loads a provider in vain."""
    with pytest.raises(errors.ConfigError) as caught:
        load_provider(name, **options)
    return str(caught.value)


def test_a_strangers_provider_is_found_and_given_its_options(install: Install) -> None:
    """By the name of its entry point."""
    install("good", GOOD)
    provider: Any = load_provider("good", api_key="k", base_url="u")
    assert provider.options == {"api_key": "k", "base_url": "u"}


def test_a_function_may_build_a_provider(install: Install) -> None:
    """An entry point may name any callable; one that takes everything is given everything."""
    install("made", "def build(**options):\n    return options", made="build")
    made: Any = load_provider("made", api_key="k", odd=1)
    assert made == {"api_key": "k", "odd": 1}


def test_listing_imports_nothing(install: Install) -> None:
    """It reads metadata only, so a broken adapter is listed too."""
    install("broken", "raise RuntimeError('imported')")
    listed = installed_providers()
    assert {"broken", "openai"} <= set(listed)
    assert listed["broken"].value == "broken:Provider"
    assert "broken" not in sys.modules


def test_a_broken_adapter_disturbs_no_other(install: Install) -> None:
    """Nor do two that claim one name."""
    install("broken", "raise RuntimeError('no')")
    install("one", GOOD, twice="Provider")
    install("two", GOOD, twice="Provider")
    install("good", GOOD)
    assert load_provider("good").name == "good"
    assert isinstance(load_provider("openai", api_key="unused"), OpenAIProvider)
    assert {"broken", "twice", "good"} <= set(installed_providers())


def test_two_claims_of_one_name_are_told_with_their_distributions(install: Install) -> None:
    """Which of them would be built is nobody's guess."""
    install("one", GOOD, dist="dist-one", twice="Provider")
    install("two", GOOD, dist="dist-two", twice="Provider")
    text = told("twice")
    assert "provider 'twice' is claimed by " in text
    assert "dist-one 1.2 (one:Provider)" in text
    assert "dist-two 1.2 (two:Provider)" in text


def test_one_provider_found_twice_is_one(install: Install) -> None:
    """As where a distribution is installed in two places."""
    install("good", GOOD)
    install("good", GOOD, dist="good-again", good="Provider")
    assert load_provider("good").name == "good"


BROKEN: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "an import that fails": (
        "import nosuch_sdk",
        {"requires": ("nosuch-sdk<3,>=2",)},
        [
            "provider 'broken' of broken 1.2 is broken: ModuleNotFoundError: No module named 'nosuch_sdk'",
            "nosuch-sdk: found none, tested with <3,>=2",
            "pip install nosuch-sdk",
        ],
    ),
    "a name that the sdk no longer has": (
        "from pydantic import NoSuchName",
        {"requires": ("agent-core==1.2", "pydantic>=1,<2", "pytest; extra == 'test'")},
        ["is broken: ImportError: cannot import name 'NoSuchName'", "(pydantic: found 2", ", tested with >=1,<2)"],
    ),
    "a syntax error": ("def", {}, ["provider 'broken' of broken 1.2 is broken: SyntaxError"]),
    "no such class": ("x = 1", {}, ["is broken: AttributeError", "Provider"]),
    "no class at all": ("Provider = 5", {}, ["is broken: TypeError: 5 is not a callable object"]),
    "an sdk that is imported when it is built": (
        """
        class Provider:
            def __init__(self):
                import nosuch_sdk
        """,
        {"requires": ("nosuch_sdk (>=2)",)},
        ["ModuleNotFoundError", "nosuch_sdk: found none, tested with >=2"],
    ),
    "a class that raises": (
        """
        class Provider:
            def __init__(self):
                raise OSError("no disk")
        """,
        {},
        ["is broken: OSError: no disk"],
    ),
}


@pytest.mark.parametrize(("source", "more", "facts"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_adapter_is_told_in_one_error(
    install: Install, source: str, more: dict[str, Any], facts: list[str]
) -> None:
    """It names the distribution, the SDK that was found and the range that was tested; what happened is chained."""
    install("broken", source, **more)
    with pytest.raises(errors.ConfigError) as caught:
        load_provider("broken")
    for fact in facts:
        assert fact in str(caught.value)
    assert caught.value.__cause__ is not None
    assert "agent-core" not in str(caught.value)


def test_another_import_error_is_not_called_a_missing_sdk(install: Install) -> None:
    """The SDK is there; something else is wrong."""
    install("broken", "from pydantic import NoSuchName", requires=("pydantic>=1,<2",))
    text = told("broken")
    assert "found none" not in text
    assert "pip install" not in text


def test_a_config_error_of_an_adapter_stays_as_it_is(install: Install) -> None:
    """It says what to do."""
    install(
        "picky",
        "from agent_core.errors import ConfigError\ndef build():\n    raise ConfigError('no key')",
        picky="build",
    )
    assert told("picky") == "no key"


def test_an_option_that_is_not_taken_is_named_with_those_that_are(install: Install) -> None:
    """Before anything is built."""
    install("good", GOOD)
    assert told("good", api_kee="k", odd=1) == (
        "provider 'good' takes no option api_kee, odd. Did you mean 'api_key'? It takes: api_key, base_url"
    )
    assert "takes no option modle" in told("openai", api_key="unused", modle="m")
    assert "load_model(spec, {'temperature': ...})" in told("openai", api_key="unused", temperature=0.1)


@pytest.mark.parametrize(
    "options",
    [{"api_key": "my-own-key-1234"}, {"access_token": "my-own-key-1234"}, {"headers": {"x": "my-own-key-1234"}}],
)
def test_an_adapter_that_shows_the_key_is_told_without_it(install: Install, options: dict[str, Any]) -> None:
    """Neither in the message nor in what it is raised from."""
    install(
        "chatty",
        "def build(**options):\n    raise ValueError(f'illegal header: {options}')",
        chatty="build",
    )
    with pytest.raises(errors.ConfigError) as caught:
        load_provider("chatty", **options)
    assert "illegal header" in str(caught.value)
    assert "my-own-key-1234" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Leaves only these of the installed providers."""

    def only(*names: str) -> None:
        kept = {name: [point] for name, point in installed_providers().items() if name in names}
        monkeypatch.setattr("agent_core._registry._claims", lambda: kept)

    return only


UNKNOWN: dict[str, tuple[str, str]] = {
    "an adapter that is not installed": ("groq", "Install it with: pip install 'agent-core[groq]'"),
    "a package's name": ("mistralai", "It is called 'mistral': pip install 'agent-core[mistral]'"),
    "a slip of an installed one": ("opnai", "Did you mean 'openai'?"),
    "another case": ("OpenAI", "Did you mean 'openai'?"),
    "a slip of one that is not installed": ("togeter", "Did you mean 'together'? pip install 'agent-core[together]'"),
    "a model": ("openai:gpt-5.1", "For 'provider:model' use load_model"),
    "a model after a slash": ("openai/gpt-5.1", "Write a colon after the provider: 'openai:gpt-5.1"),
    "something else": ("xyzzy", "Adapters: pip install 'agent-core[NAME]' with NAME one of openai, groq, mistral"),
    "nothing": ("", "Adapters: pip install"),
}


@pytest.mark.parametrize(("name", "hint"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_an_unknown_name_lists_what_is_installed_and_what_to_do(
    only: Callable[..., None], name: str, hint: str
) -> None:
    """In one sentence each."""
    only("openai", "local")
    text = told(name)
    assert text.startswith(f"no provider named {name!r}; installed: local, openai.")
    assert hint in text


def test_without_any_adapter_that_is_said(only: Callable[..., None]) -> None:
    """Rather than an empty list."""
    only()
    assert "installed: none." in told("openai")


def test_a_name_that_is_no_text_is_unknown() -> None:
    """As any other."""
    wrong: Any = None
    assert "no provider named 'None'" in told(wrong)


def test_a_model_is_split_at_the_first_colon() -> None:
    """What follows may hold more of them, and slashes."""
    for spec, name in {
        "openai:gpt-5.1": "gpt-5.1",
        "openai:ft:gpt:org::id": "ft:gpt:org::id",
        "openai:meta/llama:free": "meta/llama:free",
        " openai:gpt-5.1\n": "gpt-5.1",
    }.items():
        model = load_model(spec, {"temperature": 0.0}, api_key="unused")
        assert isinstance(model, Model)
        assert (model.name, model.provider.name, model.settings) == (name, "openai", {"temperature": 0.0})
        assert repr(model) == f"<Model openai:{name}>"


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("gpt-5.1", "write it as 'provider:model', such as 'openai:gpt-5.1'; got 'gpt-5.1'"),
        ("openai", "write it as 'provider:model'"),
        ("openai:", "write it as 'provider:model'"),
        ("", "write it as 'provider:model'"),
        ("openai/gpt-5.1", "write a colon after the provider: 'openai:gpt-5.1' instead of 'openai/gpt-5.1'"),
        ("groq/llama3:8b", "Write a colon after the provider: 'groq:llama3"),
    ],
)
def test_a_model_without_a_colon_gets_a_hint(spec: str, hint: str) -> None:
    """With the right spelling."""
    with pytest.raises(errors.ConfigError) as caught:
        load_model(spec)
    assert hint in str(caught.value)


@pytest.mark.parametrize("given", [None, "", "  \n"])
def test_a_missing_key_names_its_variable(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank ones count as missing, also in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert "OPENAI_API_KEY" in told("openai", api_key=given)


def test_a_key_from_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the newline at its end."""
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment\n")
    provider: Any = load_provider("openai")
    assert provider._owned.api_key == "from-environment"


@pytest.mark.parametrize("key", ["two words", "clé", "line\nbreak", "tab\tin"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    """The HTTP library would show it in its error."""
    text = told("openai", api_key=key)
    assert "holds a blank or a character that no key has" in text
    assert key not in text


def test_a_key_that_is_no_text_is_refused_by_its_type() -> None:
    """It is not the adapter that is broken."""
    assert told("openai", api_key=b"bytes") == "api_key for 'openai' must be a text, not bytes"


def test_a_key_beside_a_client_is_refused() -> None:
    """The client brings its own."""
    import openai

    assert "pass either a client or api_key" in told("openai", client=openai.AsyncOpenAI(api_key="x"), api_key="y")
