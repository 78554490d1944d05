import errno
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from concont.errors import UsageError
from concont.runs.lock import HOLDER, LOCK, FolderLock
from processes import WARM, hold_lock

SECONDS = 60


@pytest.fixture
def holder(tmp_path):
    """Another process that has the lock."""
    own, others = multiprocessing.Pipe()
    process = WARM.Process(target=hold_lock, args=(tmp_path, others))
    process.start()
    assert own.poll(SECONDS)
    own.recv()
    yield process
    process.kill()
    process.join(SECONDS)


@pytest.mark.slow
def test_it_names_its_process_and_does_not_outlive_it(tmp_path, holder):
    with pytest.raises(UsageError, match=rf"is in use by process {holder.pid} on \S+ since 2"):
        FolderLock().acquire(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(SECONDS)
    lock = FolderLock()
    lock.acquire(tmp_path)
    assert (tmp_path / HOLDER).read_text().startswith(f"process {os.getpid()} ")


def test_it_is_let_go_of_and_taken_twice_by_the_same_object(tmp_path):
    first, second = FolderLock(), FolderLock()
    first.acquire(tmp_path)
    first.acquire(tmp_path)
    assert (first.is_held, second.is_held) == (True, False)
    with pytest.raises(UsageError, match="in use"):
        second.acquire(tmp_path)
    first.release()
    first.release()
    second.acquire(tmp_path)


def test_an_object_that_nobody_has_any_more_holds_nothing(tmp_path):
    FolderLock().acquire(tmp_path)
    FolderLock().acquire(tmp_path)


def test_a_forked_child_does_not_keep_it(tmp_path):
    lock = FolderLock()
    lock.acquire(tmp_path)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent is done
        os._exit(0)
    os.close(read)
    lock.release()
    FolderLock().acquire(tmp_path)
    os.close(write)
    os.waitpid(child, 0)


def test_what_the_holder_wrote_is_told_on_one_line_if_at_all(tmp_path):
    lock = FolderLock()
    lock.acquire(tmp_path)
    (tmp_path / HOLDER).write_bytes(b"\x1b[31mprocess\n1\xff")
    with pytest.raises(UsageError, match=r"in use by \\x1b\[31mprocess\\n1") as error:
        FolderLock().acquire(tmp_path)
    assert str(error.value).isprintable()
    (tmp_path / HOLDER).unlink()
    with pytest.raises(UsageError, match="in use by another process"):
        FolderLock().acquire(tmp_path)


def test_a_full_disk_does_not_keep_it_from_being_held(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", refuse)
    lock = FolderLock()
    lock.acquire(tmp_path)
    with pytest.raises(UsageError, match="in use by another process"):
        FolderLock().acquire(tmp_path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EACCES])
def test_a_file_system_without_locks_is_warned_of(tmp_path, monkeypatch, caplog, number):
    import filelock

    def refuse(self, timeout):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    if number == errno.EACCES:
        with pytest.raises(PermissionError):
            FolderLock().acquire(tmp_path)
    else:
        FolderLock().acquire(tmp_path)
        assert "no locks on this file system" in caplog.text
    assert not (tmp_path / LOCK).exists()
