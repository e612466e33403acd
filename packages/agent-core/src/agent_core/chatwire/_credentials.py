"""Keys at the door: found, trimmed, and refused before an HTTP library would show them in its error."""

from __future__ import annotations

import os

from ..errors import ConfigError

__all__ = ["find_api_key"]


def find_api_key(provider: str, variable: str, given: str | None = None) -> str:
    """Give the key that was passed, else that of the environment variable. Blank ones count as missing.

    Blanks around a key are dropped: one that is read from a file ends with a newline.

    Raises:
        ConfigError: there is no key, or it cannot be sent in a header. The message names the variable, never the key.
    """
    if given is not None and not isinstance(given, str):
        raise ConfigError(f"api_key for {provider!r} must be a text, not {type(given).__name__}")
    key = (given or "").strip() or os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"no API key for {provider!r}: set {variable}, or pass api_key=...")
    if not (key.isascii() and key.isprintable()) or " " in key:
        where = "api_key" if (given or "").strip() else variable
        raise ConfigError(f"the API key for {provider!r} ({where}) holds a blank or a character that no key has")
    return key
