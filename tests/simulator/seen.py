"""What has been seen of a vendor: which JSON paths, with which types, it was recorded to send together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from recordings.oracle import Recording, chunks_of, read_recordings, recordings_folder

__all__ = ["Seen", "Shape", "recordings_of", "seen_of", "shape_of", "strange_in"]

_FOLDERS = {"local": "llamacpp"}


Shape: TypeAlias = frozenset[str]
"""The paths of one answer, chunk or error."""


class Seen(NamedTuple):
    """The shapes of whole answers, of chunks of streams, and of errors."""

    whole: set[Shape]
    chunks: set[Shape]
    errors: set[Shape]


def paths_of(value: Any, path: str = "$") -> Iterator[str]:
    """Give each path in a JSON value with the type found there: `$.choices[].index: int`."""
    match value:
        case dict():
            yield f"{path}: object"
            for name, inner in value.items():
                yield from paths_of(inner, f"{path}.{name}")
        case list():
            yield f"{path}: list"
            for inner in value:
                yield from paths_of(inner, f"{path}[]")
        case _:
            yield f"{path}: {type(value).__name__}"


def recordings_of(vendor: str) -> list[Recording]:
    """Every recording of a vendor; none where there is no folder with recordings."""
    folder = recordings_folder()
    wanted = _FOLDERS.get(vendor, vendor)
    return [each for each in _all(folder) if each.name.startswith(f"{wanted}/")] if folder is not None else []


@cache
def _all(folder: Path) -> list[Recording]:
    return read_recordings(folder)


@cache
def seen_of(vendor: str) -> Seen:
    """Collect the shapes in all recordings of a vendor."""
    seen = Seen(set(), set(), set())
    for recording in recordings_of(vendor):
        if recording.status >= 400:
            seen.errors.add(shape_of(recording.body))
        elif recording.is_stream:
            for chunk in chunks_of(recording.sse):
                (seen.errors if "error" in chunk else seen.chunks).add(shape_of(chunk))
        else:
            seen.whole.add(shape_of(recording.body))
    return seen


def shape_of(value: Any) -> Shape:
    """Give all paths in a JSON value."""
    return frozenset(paths_of(value))


def strange_in(value: Any, shapes: set[Shape]) -> Shape:
    """Give what a value has that the most alike of these shapes has not; nothing, where one has it all."""
    shape = shape_of(value)
    return min((shape - known for known in shapes), key=len)
