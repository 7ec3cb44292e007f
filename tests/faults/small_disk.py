"""A small file system that another program can fill: tmpfs, or ext4 on a loop device, which
allocates late. Needs root."""

import contextlib
import os
import shutil
import subprocess

import pytest

CHUNK = bytes(1 << 16)


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class SmallDisk:
    """Mounted at `mount` as long as it is entered; whatever happens, nothing stays mounted."""

    def __init__(self, mount, kind, mib=64):
        self.mount = mount
        self.kind = kind
        self.mib = mib
        self.image = mount.parent / f"{mount.name}.img"
        self.foreign = mount / "foreign"

    def __enter__(self):
        if os.geteuid():
            pytest.skip("a full disk needs root: it mounts a small file system")
        self.mount.mkdir()
        if self.kind == "tmpfs":
            done = _run("mount", "-t", "tmpfs", "-o", f"size={self.mib}m", "none", str(self.mount))
        else:
            if shutil.which("mkfs.ext4") is None:
                pytest.skip("mkfs.ext4 is not installed")
            with self.image.open("wb") as image:
                image.truncate(self.mib << 20)
            made = _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self.image))
            assert made.returncode == 0, made.stderr
            done = _run("mount", "-o", "loop", str(self.image), str(self.mount))
        if done.returncode:
            self.image.unlink(missing_ok=True)
            pytest.skip(f"file systems cannot be mounted here: {done.stderr.strip()}")
        return self

    def fill(self):
        """Another program takes all that is left, to the last byte."""
        with contextlib.suppress(OSError), self.foreign.open("ab", buffering=0) as file:
            while file.write(CHUNK):
                pass
        with contextlib.suppress(OSError), self.foreign.open("ab", buffering=0) as file:
            while file.write(b"\0" * 512):
                pass

    def make_room(self):
        """The other program removes its file."""
        self.foreign.unlink(missing_ok=True)

    def __exit__(self, *_):
        if _run("umount", str(self.mount)).returncode:
            _run("umount", "-l", str(self.mount))
        self.image.unlink(missing_ok=True)
