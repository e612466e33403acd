"""What a GGUF file says about itself, read without loading the model.

Decides whether a path holds a model that can be given to llama.cpp at all. The format: the magic, a version, the number
of tensors and of entries, then the entries (key, type, value), all little-endian; the tensors that follow are not read.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from agent_core.errors import ConfigError

__all__ = ["Metadata", "read_metadata"]

Metadata = dict[str, str | int | float | bool]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_LFS = b"version https://git-lfs"
_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MOST_ENTRIES = 100_000  # a corrupt count must not keep a reader busy: real files have some dozens,
_MOST_STRINGS = 10_000_000  # and vocabularies of up to some hundred thousand words
_DEEPEST = 4  # arrays in arrays


def read_metadata(path: Path) -> Metadata:
    """Read the texts and numbers of a GGUF file; of an array only how long it is.

    Raises:
        ConfigError: there is no such file, it cannot be read, it is no GGUF file, or it is cut off or corrupt.
    """
    try:
        if not path.exists():
            raise ConfigError(f"no model file at {path}: check the path, or download a .gguf file there")
        if path.is_dir():
            raise ConfigError(f"{path} is a directory: name the .gguf file itself{_example_in(path)}")
        with path.open("rb") as file:
            start = file.read(len(_LFS))
            if not start.startswith(_MAGIC):
                raise ConfigError(_no_gguf(path, start))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data).metadata()
    except (OSError, ValueError) as error:
        if isinstance(error, _CorruptError):
            told = f"the GGUF file {path} is cut off or corrupt ({error}): download it again"
        else:
            told = f"the model file {path} cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigError(told)


def _example_in(folder: Path) -> str:
    found = sorted(folder.glob("*.gguf"))
    return f", such as {found[0].name}" if found else "; there is none in it"


def _no_gguf(path: Path, start: bytes) -> str:
    if start.startswith(_LFS):
        return f"{path} is a Git LFS pointer, not the model: fetch the file itself with `git lfs pull`"
    begins = f"begins with {start[:8]!r}" if start else "is empty"
    return f"{path} is no GGUF file (it {begins}): llama.cpp reads GGUF only, so take the model's .gguf file"


class _CorruptError(ValueError):
    """The bytes make no sense as GGUF."""


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = len(_MAGIC)

    def metadata(self) -> Metadata:
        version = self._number("I")
        if version not in _VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
            raise _CorruptError("it is big-endian" if swapped else f"version {version}, not 2 or 3")
        self._number("Q")  # tensors
        found: Metadata = {}
        for _ in range(self._count(_MOST_ENTRIES)):
            key = self._string()
            value = self._value(self._number("I"))
            found[key] = value
        return found

    def _value(self, kind: int, depth: int = 0) -> str | int | float | bool:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._skip_array(depth)
        if kind not in _NUMBERS:
            raise _CorruptError(f"unknown type {kind}")
        value: int | float | bool = self._unpack(_NUMBERS[kind])
        return value

    def _skip_array(self, depth: int) -> int:
        """Step over an array and give its length."""
        if depth == _DEEPEST:
            raise _CorruptError("arrays too deep")
        kind = self._number("I")
        if kind in _NUMBERS:
            count = self._count(len(self._data))
            self._step(count * struct.calcsize(_NUMBERS[kind]))
            return count
        count = self._count(_MOST_STRINGS)
        for _ in range(count):
            if kind == _STRING:
                self._step(self._number("Q"))
            else:
                self._value(kind, depth + 1)
        return count

    def _string(self) -> str:
        length = self._number("Q")
        start = self._at
        self._step(length)
        return self._data[start : self._at].decode("utf-8", "replace")

    def _count(self, most: int) -> int:
        count = self._number("Q")
        if count > most:
            raise _CorruptError(f"{count} entries")
        return count

    def _number(self, code: str) -> int:
        return int(self._unpack(code))

    def _unpack(self, code: str) -> int | float | bool:
        at = self._at
        self._step(struct.calcsize(code))
        value: int | float | bool = struct.unpack_from("<" + code, self._data, at)[0]
        return value

    def _step(self, length: int) -> None:
        self._at += length
        if self._at > len(self._data):
            raise _CorruptError("it ends in mid-metadata")
