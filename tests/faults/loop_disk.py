"""A disk that can lose its power: ext4 on a loop device.

The cut is the file system's own shutdown ioctl without a log flush: from that instant nothing in
the page cache or the journal's memory reaches the image, exactly as when the power goes. Needs
root.
"""

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import time

import pytest

BUSY_S = 10
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
NO_LOG_FLUSH = struct.pack("I", 2)
SIZE = 2 << 30


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class LoopDisk:
    """Mounted at `mount` as long as it is entered; whatever happens, nothing stays mounted."""

    def __init__(self, folder):
        self.image = folder / "disk.img"
        self.mount = folder / "disk"

    def __enter__(self):
        if os.geteuid():
            pytest.skip("a power cut needs root: it mounts a loop device")
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("mkfs.ext4 is not installed")
        self.mount.mkdir()
        with self.image.open("wb") as image:
            image.truncate(SIZE)
        made = run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", str(self.image))
        assert made.returncode == 0, made.stderr
        mounted = self._mount()
        if mounted.returncode:
            self.image.unlink()
            pytest.skip(f"loop devices cannot be mounted here: {mounted.stderr.strip()}")
        return self

    def _mount(self):
        """By a loop device of its own each time: somebody's mount namespace may still hold the file
        system that lost its power, and that one would be mounted again."""
        made = run("losetup", "--find", "--show", str(self.image))
        if made.returncode:
            return made
        self.device = made.stdout.strip()
        mounted = run("mount", self.device, str(self.mount))
        run("losetup", "--detach", self.device)  # when it is mounted no more
        return mounted

    def cut(self):
        """The power goes. Files can still be open; every write fails from now on."""
        handle = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(handle)

    def back(self):
        """The power is back. Nobody may have a file of it open."""
        until = time.monotonic() + BUSY_S  # who was killed may still be on its way out
        while (gone := run("umount", str(self.mount))).returncode:
            assert time.monotonic() < until, gone.stderr
            time.sleep(0.05)
        mounted = self._mount()
        assert mounted.returncode == 0, mounted.stderr

    def __exit__(self, *_):
        if run("umount", str(self.mount)).returncode:
            run("umount", "-l", str(self.mount))
        with contextlib.suppress(OSError):
            self.image.unlink()
