"""The voices by name. A vendor is added by a module of its own and a line here."""

from __future__ import annotations

from ._groq import GroqVoice
from ._local import LocalVoice
from ._mistral import MistralVoice
from ._openai import OpenAIVoice
from ._together import TogetherVoice
from ._voice import Voice

__all__ = ["VENDORS", "voice_for"]

_VOICES: dict[str, Voice] = {
    voice.vendor: voice for voice in (OpenAIVoice(), GroqVoice(), MistralVoice(), TogetherVoice(), LocalVoice())
}

VENDORS: tuple[str, ...] = tuple(_VOICES)
"""The vendors there is a voice for."""


def voice_for(vendor: str) -> Voice:
    """Give a vendor's voice.

    Raises:
        ValueError: there is none for this vendor.
    """
    if vendor not in _VOICES:
        raise ValueError(f"there is no voice for {vendor!r}; there are: {', '.join(VENDORS)}")
    return _VOICES[vendor]
