"""Reasoning that stands in the text between `<think>` tags, taken apart as it streams.

Only tags at the very start of an answer count: `<think>` later on is something the answer says.
"""

from __future__ import annotations

__all__ = ["ThinkSplitter"]

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Splits the text of one answer, however it is cut. Held back is only what could still become a tag.

    Blanks around the tags belong to neither side.
    """

    __slots__ = ("_held", "_inside", "_started", "_trim")

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._started = False  # whether it is known if the answer begins with a tag
        self._trim = False  # whether blanks are to be dropped until the next other character

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """Give what is certain: pairs of (is it reasoning?, text)."""
        text, self._held = self._held + text, ""
        if not self._started:
            begun = text.lstrip()
            if len(begun) < len(_OPEN) and _OPEN.startswith(begun):
                self._held = text
                return []
            self._started = True
            if begun.startswith(_OPEN):
                self._inside = self._trim = True
                text = begun[len(_OPEN) :]
        pieces: list[tuple[bool, str]] = []
        if self._inside:
            thought, closed, text = text.partition(_CLOSE)
            if not closed:
                keep = _tail_that_may_close(thought)
                thought, self._held = thought[:keep], thought[keep:]
            else:
                thought = thought.rstrip()
            if thought := self._trimmed(thought):
                pieces.append((True, thought))
            if not closed:
                return pieces
            self._inside, self._trim = False, True
        if text := self._trimmed(text):
            pieces.append((False, text))
        return pieces

    def flush(self) -> list[tuple[bool, str]]:
        """Give what was held back, now that nothing follows."""
        held, self._held = self._held, ""
        return [(self._inside, held)] if held else []

    def _trimmed(self, text: str) -> str:
        if self._trim and text:
            text = text.lstrip()
            self._trim = not text
        return text


def _tail_that_may_close(text: str) -> int:
    """Find where the end begins that could belong to a closing tag: a part of the tag, and blanks before it."""
    length = next((n for n in range(min(len(text), len(_CLOSE) - 1), 0, -1) if _CLOSE.startswith(text[-n:])), 0)
    return len(text[: len(text) - length].rstrip())
