"""Files that exist whole or not at all."""

from __future__ import annotations

import os

import pytest

from nysplus._runtime.atomic_file import atomic_write, remove_unfinished, write_whole


def test_content_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new ")
        file.write(b"content")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new content"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_file_before(tmp_path, error):
    path = tmp_path / "file"
    write_whole(path, b"old")
    writing = atomic_write(str(path))
    writing.__enter__().write(b"half of")
    with pytest.raises(error):
        writing.gen.throw(error)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_two_writes_at_once_do_not_meet(tmp_path):
    path = tmp_path / "file"
    with atomic_write(path) as first:
        with atomic_write(path) as second:
            second.write(b"second")
        first.write(b"first")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"


def test_leftovers_of_killed_writes_are_removed(tmp_path):
    """Those of this file, even if its name looks like a pattern, and of no other one."""
    for name in (".a[1].0123abcd.part", ".a1.0123abcd.part", "a[1]"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path / "a[1]")
    assert sorted(os.listdir(tmp_path)) == [".a1.0123abcd.part", "a[1]"]
