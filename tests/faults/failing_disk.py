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
from loop_disk import run

SIZE = "256m"
ROOM = "400m"
SPARE_KB = 4096  # written while the room is made smaller
TRIES = 5


class FailingDisk:
    """Mounted at `mount` as long as it is entered; whatever happens, nothing stays mounted."""

    def __init__(self, folder):
        self.memory = folder / "memory"
        self.image = self.memory / "disk.img"
        self.mount = folder / "disk"

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
            ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image),
            ("fallocate", "-l", SIZE, self.image),
            ("mount", "-o", "loop", self.image, self.mount),
            ("fstrim", self.mount),
        ]
        for command in commands:
            done = run(*map(str, command))
            if done.returncode:
                self.__exit__()
                pytest.skip(f"{command[0]} does not work here: {done.stderr.strip()}")
        # The loop device calls a write that found room for its first pages a success: page by page.
        device = run("losetup", "-j", str(self.image)).stdout.partition(":")[0]
        Path(f"/sys/block/{Path(device).name}/queue/max_sectors_kb").write_text("4")
        return self

    def fail(self):
        """Soon blocks that were never written cannot be: there is room for a few more."""
        said = ""
        for _ in range(TRIES):  # what was written since it was looked at may be more than is spared
            used = os.statvfs(self.memory)
            said = self._room(
                f"{((used.f_blocks - used.f_bfree) * used.f_frsize >> 10) + SPARE_KB}k"
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
