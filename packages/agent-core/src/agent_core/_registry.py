"""Providers by name. An adapter is found through the entry point group `agent_core.providers`.

Decides what a name means and what a broken or missing adapter says. Listing reads metadata only; an adapter and its
SDK are imported when a provider of it is built, and one that is broken disturbs no other.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._completion import CompletionRequest
from ._model import Model
from ._provider import Provider
from .errors import AgentCoreError, ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["installed_providers", "load_model", "load_provider"]

_GROUP = "agent_core.providers"
_EXTRAS = ("openai", "groq", "mistral", "together", "local")  # adapters that an extra of agent-core installs


def installed_providers() -> dict[str, EntryPoint]:
    """Give the installed providers by name, without importing any. Of a name that two claim, the first one is given."""
    return {name: points[0] for name, points in _claims().items()}


def _claims() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # slow to import, and not needed by who builds providers by hand

    claims: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=_GROUP):
        known = claims.setdefault(point.name, [])
        if all(point.value != other.value for other in known):  # one distribution may be found twice
            known.append(point)
    return claims


def load_provider(name: str, /, **options: Any) -> Provider:
    """Build a provider by name, such as `"groq"`.

    Args:
        name: name of an installed provider.
        options: the same for every adapter: api_key, base_url, timeout (seconds), retry, max_retries, client,
            think_tags, name (what it is called); an adapter may take more.

    Raises:
        ConfigError: no such provider, or two of that name; a broken adapter, an option it does not take, or a missing
            key.
    """
    claims = _claims()
    if name not in claims:
        raise ConfigError(_unknown(str(name), list(claims)))
    point, *others = claims[name]
    if others:
        both = " and ".join(f"{_distribution(one)} ({one.value})" for one in (point, *others))
        raise ConfigError(f"provider {name!r} is claimed by {both}: uninstall all but one of them")
    failure: Exception
    try:
        factory = point.load()
        _check_options(name, factory, options)
        provider: Provider = factory(**options)
        return provider
    except AgentCoreError:
        raise
    except Exception as error:  # a stranger's code: whatever it raises is told as one error about its distribution
        failure = error
    told = _broken(name, point, failure)
    if secrets := [secret for secret in _secrets(options) if secret in f"{told}{failure!r}"]:
        for secret in secrets:
            told = told.replace(secret, "***")
        raise ConfigError(told)  # alone: what it was raised from shows the key
    raise ConfigError(told) from failure


def load_model(spec: str, settings: Mapping[str, Any] | None = None, **options: Any) -> Model:
    """Build a model from `"provider:model"`, split at the first colon.

    Args:
        spec: such as `"openai:gpt-5.1"` or `"local:/path/to/model.gguf"`.
        settings: fields of `CompletionRequest` for every request, such as temperature; other keys are vendor fields.
        options: options of the provider, see `load_provider`.

    Raises:
        ConfigError: no such provider, no model named, or what `load_provider` raises.
    """
    provider, colon, model = spec.strip().partition(":")
    if not colon or not model:
        hint = f"write it as 'provider:model', such as 'openai:gpt-5.1'; got {spec!r}"
        if "/" in provider:
            hint = f"write a colon after the provider: {provider.replace('/', ':', 1)!r} instead of {spec!r}"
        raise ConfigError(f"the model is not named: {hint}")
    return Model(load_provider(provider, **options), model, settings)


def _secrets(options: Mapping[str, Any]) -> list[str]:
    """Give the options that may be credentials: by their name, and what goes into headers."""
    named = [value for name, value in options.items() if any(word in name for word in ("key", "token", "secret"))]
    headers = options.get("headers")
    values = [*named, *(headers.values() if isinstance(headers, Mapping) else ())]
    return [value for value in values if isinstance(value, str) and len(value) > 3]


def _unknown(name: str, installed: list[str]) -> str:
    from difflib import get_close_matches

    text = f"no provider named {name!r}; installed: {', '.join(sorted(installed)) or 'none'}."
    if name in _EXTRAS:
        return f"{text} Install it with: pip install 'agent-core[{name}]'"
    if name == "mistralai":
        return f"{text} It is called 'mistral': pip install 'agent-core[mistral]'"
    if ":" in name:
        return f"{text} For 'provider:model' use load_model"
    provider, slash, model = name.partition("/")
    if slash and provider in (*installed, *_EXTRAS):
        return f"{text} Write a colon after the provider: '{provider}:{model}...'"
    near = get_close_matches(name.lower(), [*installed, *_EXTRAS], n=1)
    if near and near[0] in installed:
        return f"{text} Did you mean {near[0]!r}?"
    if near:
        return f"{text} Did you mean {near[0]!r}? pip install 'agent-core[{near[0]}]'"
    return f"{text} Adapters: pip install 'agent-core[NAME]' with NAME one of {', '.join(_EXTRAS)}"


def _check_options(name: str, factory: Any, options: Mapping[str, Any]) -> None:
    parameters = inspect.signature(factory).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    unknown = [option for option in options if option not in parameters]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], parameters, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        if unknown[0] in CompletionRequest.model_fields:
            hint = f" {unknown[0]!r} is a setting of requests: load_model(spec, {{{unknown[0]!r}: ...}})"
        known = ", ".join(sorted(parameters))
        raise ConfigError(f"provider {name!r} takes no option {', '.join(unknown)}.{hint} It takes: {known}")


def _broken(name: str, point: EntryPoint, error: Exception) -> str:
    """Say what is wrong with an adapter, and which SDK was found where which one was tested."""
    facts = [f"{sdk}: found {found or 'none'}, tested with {tested}" for sdk, found, tested in _requirements(point)]
    told = f" ({'; '.join(facts)})" if facts else ""
    missing = [sdk for sdk, found, _ in _requirements(point) if found is None]
    fix = f". Install what is missing: pip install {' '.join(missing)}" if missing else ""
    return f"provider {name!r} of {_distribution(point)} is broken: {type(error).__name__}: {error}{told}{fix}"


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _requirements(point: EntryPoint) -> list[tuple[str, str | None, str]]:
    """Give name, installed version and tested range of what an adapter needs besides agent-core."""
    from importlib.metadata import PackageNotFoundError, version

    needs = []
    for line in (point.dist.requires if point.dist else None) or ():
        requirement, _, marker = line.partition(";")
        parsed = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^)]*)", requirement)
        if parsed is None or "extra" in marker or parsed.group(1) == "agent-core":
            continue
        try:
            found: str | None = version(parsed.group(1))
        except PackageNotFoundError:
            found = None
        needs.append((parsed.group(1), found, parsed.group(2).strip() or "any"))
    return needs
