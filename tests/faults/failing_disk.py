"""A disk that refuses to write: ext4 on a loop device whose image lies in a memory file system that
can be made too small.

Blocks that were written before still can be, which is why the journal and the tables of inodes get
theirs at the start: only data fails, the file system lives on, and a sync says so once, as with a
disk that has bad sectors. Needs root.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.faults.loop_disk import LoopDisk, run

SIZE = "256m"
ROOM = "400m"
SPARE_KB = 4096  # written while the room is made smaller
TRIES = 5
PAGE = "4096"
NOT_LAZY = "lazy_itable_init=0,lazy_journal_init=0"


class FailingDisk(LoopDisk):
    """Mounted at `mount` as long as it is entered; whatever happens, nothing stays mounted."""

    def __init__(self, folder):
        super().__init__(folder)
        self.memory = folder / "memory"
        self.image = self.memory / "disk.img"

    def __enter__(self):
        if os.geteuid():
            pytest.skip("a failing disk needs root: it mounts a loop device")
        if shutil.which("mkfs.ext4") is None or shutil.which("fstrim") is None:
            pytest.skip("mkfs.ext4 or fstrim is not installed")
        self.memory.mkdir()
        self.mount.mkdir()
        commands = [
            ("mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", self.memory),
            ("truncate", "-s", SIZE, self.image),
            # A block for each page of the memory: of a write that is across two, and finds room for
            # the first one, the loop device says that all of it is there.
            ("mkfs.ext4", "-q", "-F", "-b", PAGE, "-E", NOT_LAZY, self.image),
            ("fallocate", "-l", SIZE, self.image),
        ]
        for command in commands:
            self._or_skip(run(*map(str, command)))
        self._or_skip(self._mount())
        self._or_skip(run("fstrim", str(self.mount)))
        return self

    def _or_skip(self, done):
        if done.returncode:
            self.__exit__()
            pytest.skip(f"{done.args[0]} does not work here: {done.stderr.strip()}")

    def _mount(self):
        done = super()._mount()
        if done.returncode == 0:
            # The loop device calls a write that found room for its first pages a success: page by
            # page.
            Path(f"/sys/block/{Path(self.device).name}/queue/max_sectors_kb").write_text("4")
        return done

    def fail(self, spare_kb=SPARE_KB):
        """Soon blocks that were never written cannot be: there is room for so many more."""
        said = ""
        for _ in range(TRIES):  # what was written since it was looked at may be more than is spared
            used = os.statvfs(self.memory)
            said = self._room(
                f"{((used.f_blocks - used.f_bfree) * used.f_frsize >> 10) + spare_kb}k"
            )
            if not said:
                return
        raise AssertionError(said)

    def mend(self):
        said = self._room(ROOM)
        assert not said, said

    def _room(self, size):
        """Why the room could not be made as large as that; nothing when it is."""
        done = run("mount", "-o", f"remount,size={size}", str(self.memory))
        return done.stderr if done.returncode else ""

    def evict(self):
        """The kernel wants memory: what counts as clean is read from the disk from now on."""
        Path("/proc/sys/vm/drop_caches").write_text("3")

    def __exit__(self, *_):
        for place in (self.mount, self.memory):
            if run("umount", str(place)).returncode:
                run("umount", "-l", str(place))
