"""Files that exist whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nysplus._runtime import atomic_file
from nysplus._runtime.atomic_file import atomic_write, remove_unfinished, write_whole
from nysplus._runtime.file_lock import FileLock, try_lock


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


LEFTOVERS = (
    ".a[1].0123abcd.part",
    ".a1.0123abcd.part",  # of another file: a pattern would match it
    ".a[1].old.part",  # of another program
    ".a[1].0123abcd.part2",
    "a[1]",
)


@pytest.mark.parametrize("how", [remove_unfinished, lambda path: write_whole(path, b"new")])
def test_leftovers_of_killed_writes_are_removed(tmp_path, how):
    """Those of this file, even if its name looks like a pattern, and of no other one."""
    for name in LEFTOVERS:
        (tmp_path / name).touch()
    how(tmp_path / "a[1]")
    assert sorted(os.listdir(tmp_path)) == sorted(LEFTOVERS[1:])


KILLED_WRITE = """
import os, signal, sys
from nysplus._runtime import atomic_file
from nysplus._runtime.atomic_file import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half of")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


def test_the_temporary_file_of_a_write_is_removed_once_its_process_is_killed(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    command = [sys.executable, "-c", KILLED_WRITE, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"written\n"
        write_whole(path, b"other")
        assert len(os.listdir(tmp_path)) == 2  # the writer is alive
        process.kill()
        process.wait()
    assert len(os.listdir(tmp_path)) == 2
    write_whole(path, b"new")
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o755])
def test_permissions_stay(tmp_path, mode):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    with atomic_write(path) as file:
        (unfinished,) = tmp_path.glob(".*.part")
        assert stat.S_IMODE(unfinished.stat().st_mode) == mode  # nobody else can read it meanwhile
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "file", b"new")
    modes = [(tmp_path / name).stat().st_mode for name in ("usual", "file")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path, exists):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link, second = folder / "target", tmp_path / "link", tmp_path / "second"
    if exists:
        target.write_bytes(b"old")
        target.chmod(0o600)
    link.symlink_to(target)
    second.symlink_to("link")
    (folder / ".target.0123abcd.part").touch()
    write_whole(second, b"new")
    assert target.read_bytes() == b"new"
    assert os.readlink(link) == str(target)
    assert os.readlink(second) == "link"
    assert os.listdir(folder) == ["target"]
    assert not exists or stat.S_IMODE(target.stat().st_mode) == 0o600


def test_folders_and_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match="is no regular file"):
            write_whole(tmp_path / name, b"new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_writes_of_many_threads_never_mix(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([number]) * 50_000 for number in range(8)]
    write_whole(path, contents[0])
    stop, seen = threading.Event(), []

    def look():
        while not stop.is_set():
            seen.append(path.read_bytes() in contents)

    looking = threading.Thread(target=look)
    looking.start()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: [write_whole(path, content) for _ in range(10)], contents))
    stop.set()
    looking.join()
    assert seen
    assert all(seen)
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_another_write_is_removing_is_not_used(tmp_path, monkeypatch):
    """Between the creation and the lock another write may lock the file, in order to remove it."""
    answers = iter([False, True])
    monkeypatch.setattr(atomic_file, "try_lock", lambda file: next(answers))
    write_whole(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert next(answers, None) is None


# ---- locks --------------------------------------------------------------------------------------


def test_a_lock_has_one_owner(tmp_path):
    path = tmp_path / "lock"
    path.touch()  # left by a process that was killed
    first, second = FileLock(path), FileLock(path)
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert not path.exists()
    assert second.acquire()
    second.release()
    second.release()
    assert os.listdir(tmp_path) == []


def test_a_lock_whose_file_was_removed_before_it_was_locked_is_taken_again(tmp_path, monkeypatch):
    path, files = tmp_path / "lock", []

    def removed_first(file):
        if not files:
            path.unlink()
        files.append(file)
        return try_lock(file)

    monkeypatch.setattr("nysplus._runtime.file_lock.try_lock", removed_first)
    lock = FileLock(path)
    assert lock.acquire()
    assert len(files) == 2
    assert not FileLock(path).acquire()
    lock.release()


@pytest.mark.parametrize("failing", ["try_lock", "open"])
def test_a_file_system_without_locks_or_space_grants_every_lock(tmp_path, monkeypatch, failing):
    def fails(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(f"nysplus._runtime.file_lock.{failing}", fails, raising=False)
    for lock in (FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")):
        assert lock.acquire()
        lock.release()


def test_a_file_system_without_locks_keeps_leftovers(tmp_path, monkeypatch):
    """They may be of a write that is under way."""

    def fails(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("nysplus._runtime.atomic_file.try_lock", fails)
    (tmp_path / ".file.0123abcd.part").touch()
    write_whole(tmp_path / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == [".file.0123abcd.part", "file"]
