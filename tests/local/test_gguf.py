"""A GGUF file is read up to its tensors; whatever else is at a path is told in one clear error."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from agent_core.errors import ConfigError
from agent_core_local._gguf import read_metadata
from local.helpers import array, entry, gguf, text

MAGIC = b"GGUF"

WHOLE = gguf(
    entry("general.architecture", 8, text("llama")),
    entry("tokenizer.ggml.tokens", 9, array(8, text("<s>"), text(""), text("é"))),
    entry("tokenizer.ggml.scores", 9, array(6, struct.pack("<f", 1.5), struct.pack("<f", 2.5))),
    entry("nested", 9, array(9, array(0, b"\1", b"\2"), array(8, text("x")))),
    entry("u8", 0, b"\xff"),
    entry("i8", 1, b"\xff"),
    entry("u16", 2, b"\xff\xff"),
    entry("i16", 3, b"\xff\xff"),
    entry("llama.context_length", 4, struct.pack("<I", 8192)),
    entry("i32", 5, struct.pack("<i", -3)),
    entry("f32", 6, struct.pack("<f", 0.5)),
    entry("bool", 7, b"\1"),
    entry("u64", 10, struct.pack("<Q", 2**40)),
    entry("i64", 11, struct.pack("<q", -(2**40))),
    entry("f64", 12, struct.pack("<d", 0.25)),
    entry("tokenizer.chat_template", 8, text("{{ tools }} é")),
)
VALUES = {
    "general.architecture": "llama",
    "tokenizer.ggml.tokens": 3,
    "tokenizer.ggml.scores": 2,
    "nested": 2,
    "u8": 255,
    "i8": -1,
    "u16": 65535,
    "i16": -1,
    "llama.context_length": 8192,
    "i32": -3,
    "f32": 0.5,
    "bool": True,
    "u64": 2**40,
    "i64": -(2**40),
    "f64": 0.25,
    "tokenizer.chat_template": "{{ tools }} é",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("tail", [b"", b"\0" * 64])
def test_every_type_is_read(file: Path, tail: bytes) -> None:
    """Texts and numbers as they are, arrays as their length; what follows the metadata is left alone."""
    file.write_bytes(WHOLE + tail)
    assert read_metadata(file) == VALUES


def test_version_2_is_read(file: Path) -> None:
    """Versions 2 and 3 differ in nothing that is read here."""
    file.write_bytes(gguf(entry("a", 0, b"\1"), version=2))
    assert read_metadata(file) == {"a": 1}


def test_a_file_cut_anywhere_in_its_metadata_is_told(file: Path) -> None:
    """A download that broke off is one clear error, wherever it broke."""
    for length in range(len(MAGIC), len(WHOLE)):
        file.write_bytes(WHOLE[:length])
        with pytest.raises(ConfigError, match=r"cut off or corrupt.*download it again"):
            read_metadata(file)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is no GGUF file (it is empty)"),
        (b"GGU", "is no GGUF file (it begins with b'GGU')"),
        (b"<!DOCTYPE html>", "is no GGUF file (it begins with b'<!DOCTYP')"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "is a Git LFS pointer"),
        (gguf(version=1), "version 1, not 2 or 3"),
        (MAGIC + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (gguf(count=2**60), "cut off or corrupt (1152921504606846976 entries)"),
        (gguf(entry("a", 13, b"")), "unknown type 13"),
        (gguf(entry("a", 8, struct.pack("<Q", 2**63))), "ends in mid-metadata"),
        (gguf(entry("a", 9, struct.pack("<IQ", 4, 2**62))), "cut off or corrupt"),
        (gguf(entry("a", 9, struct.pack("<IQ", 8, 2**40))), "cut off or corrupt"),
        (gguf(entry("a", 9, struct.pack("<IQ", 9, 1) * 9)), "arrays too deep"),
    ],
)
def test_what_is_no_model_is_told(file: Path, data: bytes, says: str) -> None:
    """The error names the path, what was found there, and the way out."""
    file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read_metadata(file)
    assert says in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """The path may be misspelt, or the file not there yet."""
    with pytest.raises(ConfigError, match=r"no model file at .*absent\.gguf: check the path, or download"):
        read_metadata(tmp_path / "absent.gguf")


def test_a_directory_is_told(tmp_path: Path) -> None:
    """A directory is answered with a file in it, where there is one."""
    with pytest.raises(ConfigError, match=r"is a directory: name the \.gguf file itself; there is none in it"):
        read_metadata(tmp_path)
    (tmp_path / "b.gguf").touch()
    with pytest.raises(ConfigError, match=r"itself, such as b\.gguf"):
        read_metadata(tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_path_that_cannot_be_one_is_told(tmp_path: Path, name: str) -> None:
    """What the system refuses to look up is an error of this library all the same."""
    with pytest.raises(ConfigError):
        read_metadata(tmp_path / name)
