"""The operating system behind the Disk door."""

import errno
import fcntl
import mmap
import os
from contextlib import suppress

import pytest

from appliance.base.disk import PAGE, read_file, write_file
from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk, OsFile

DISK = OsDisk()


@pytest.mark.parametrize("count", [1, 3, 1024, 1025, 2500])
def test_every_buffer_arrives_however_many_there_are(tmp_path, count):
    file = DISK.create(f"{tmp_path}/f")
    buffers = [os.urandom(n % 50 + 1) for n in range(count)]
    file.pwritev(buffers, 7)
    assert file.pread(1 << 20, 7) == b"".join(buffers)
    assert file.size() == 7 + sum(map(len, buffers))
    buffer = bytearray(10)
    assert file.preadinto(buffer, file.size() - 3) == min(3, file.size())
    file.close()
    file.close()


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_partial_write_is_continued(tmp_path, monkeypatch, most):
    def short_pwritev(fd, buffers, position):
        return os.pwrite(fd, b"".join(buffers)[:most], position)

    whole = os.pwrite
    monkeypatch.setattr(os, "pwritev", short_pwritev)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, bytes(data)[:most], at))
    file = DISK.create(f"{tmp_path}/f")
    file.pwritev([b"ab", b"", b"cdefgh", bytes(200)], 0)
    file.pwritev([b"0123456789"], 208)
    assert file.pread(300, 0) == b"abcdefgh" + bytes(200) + b"0123456789"


def test_what_the_system_refuses_is_storage_failed(tmp_path):
    full = DISK.open_file("/dev/full", write=True)
    with pytest.raises(StorageFailed) as refused:
        full.pwritev([b"x"], 0)
    assert refused.value.errno == errno.ENOSPC
    full.close()
    missing = f"{tmp_path}/none/f"
    for call in (DISK.open_file, DISK.create, DISK.size, DISK.listdir, DISK.unlink, DISK.sync_dir):
        with pytest.raises(StorageFailed) as refused:
            call(missing)
        assert refused.value.errno == errno.ENOENT
        assert refused.value.path == missing
    DISK.create(f"{tmp_path}/f").close()
    with pytest.raises(StorageFailed):
        DISK.create(f"{tmp_path}/f")


def test_a_file_is_replaced_whole(tmp_path):
    path = f"{tmp_path}/f"
    for sync in (True, False):
        write_file(DISK, path, b"old" * 1000, sync=sync)
        write_file(DISK, path, b"new", sync=sync)
        assert read_file(DISK, path) == b"new"
    assert DISK.listdir(str(tmp_path)) == ["f"]
    assert 0 < DISK.space(path).free <= DISK.space(path).total
    assert abs(DISK.modified_ms(path) - os.stat(path).st_mtime * 1000) < 2


def test_the_lock_holds_others_off(tmp_path):
    path = f"{tmp_path}/lock"
    with DISK.lock(path):
        pid = os.fork()
        if pid == 0:
            import fcntl

            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
    with DISK.lock(path):
        pass


def test_starting_the_writeback_changes_nothing_and_a_refusal_is_final(tmp_path):
    file = DISK.create(f"{tmp_path}/f")
    file.pwritev([bytes(100_000)], 0)
    file.start_writeback(4096, 90_000)
    assert file.pread(1 << 20, 0) == bytes(100_000)
    file.close()
    with pytest.raises(StorageFailed) as refused:
        file.start_writeback(0, 10)
    assert refused.value.errno == errno.EBADF


def test_a_file_of_no_bytes_is_read_from_the_medium(tmp_path):
    """A power cut leaves a journal so that was made just before."""
    file = DISK.create(f"{tmp_path}/f")
    assert file.pread_medium(0, 0) == b""
    file.pwritev([b"abc"], 0)
    assert file.pread_medium(file.size(), 0) == b"abc"
    file.close()


REFUSED = [
    (module, name)
    for module, names in (
        (os, "open close pread preadv pwrite pwritev ftruncate fdatasync fsync fstat stat listdir "
             "mkdir rmdir replace unlink statvfs posix_fallocate posix_fadvise"),
        (mmap, "mmap"),
        (fcntl, "flock"),
    )
    for name in names.split()
]  # fmt: skip
CALLS = {
    "pwritev": ([b"x"], 0), "pread": (1, 0), "preadinto": (bytearray(1), 0), "truncate": (1,),
    "allocate": (1,), "sync": (), "pread_medium": (1, 0), "pwrite_medium": (bytes(PAGE), 0),
    "drop_cached": (1, 0), "start_writeback": (0, 1), "size": (), "fileno": (), "close": (),
}  # fmt: skip
OF_PATHS = {"open_file", "create", "exists", "size", "modified_ms", "listdir", "mkdir", "rmdir",
            "unlink", "sync_dir", "space", "lock"}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), REFUSED, ids=[name for _, name in REFUSED])
def test_no_call_lets_an_oserror_out_whatever_the_system_refuses(
    tmp_path, monkeypatch, module, name
):
    def refuse(*args, **more):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    def tried(what, *words):
        with monkeypatch.context() as planted, suppress(StorageFailed):
            planted.setattr(module, name, refuse)
            entered = what(*words)
            if hasattr(entered, "__enter__"):
                with entered:
                    pass

    assert set(CALLS) == {one for one in vars(OsFile) if one[0] != "_"} - {"path"}
    for called, words in CALLS.items():
        file = DISK.create(f"{tmp_path}/{called}")
        tried(getattr(file, called), *words)
        file.close()
    assert {*OF_PATHS, "rename"} == {one for one in vars(OsDisk) if one[0] != "_"}
    for called in sorted(OF_PATHS):
        tried(getattr(DISK, called), f"{tmp_path}/of-{called}")
    tried(DISK.rename, f"{tmp_path}/pread", f"{tmp_path}/renamed")


def test_what_is_done_under_the_lock_may_raise_what_it_likes(tmp_path):
    with pytest.raises(OSError, match="planted"), DISK.lock(f"{tmp_path}/lock"):
        raise OSError("planted")
