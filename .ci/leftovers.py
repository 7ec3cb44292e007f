"""What a run of tests leaves behind: processes, sockets, shared memory, mounts, temporary folders.

The run has a temporary folder of its own and an environment variable with a value of its own, so
other runs on the same machine are not taken for it. What is about to end gets time to end.
"""

import contextlib
import fnmatch
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

MARK = "PENSTOCK_TEST_RUN"
PATIENCE_S = float(os.environ.get("CI_PATIENCE_S", 30))
"""Time for what is ending. Nothing is waited for where nothing is left."""
OURS = "penstock*"
KEPT = ("pytest-of-*",)
"""Folders that pytest keeps in the temporary folder on purpose."""


class Watch:
    """Looks at the machine before and after."""

    def __init__(self, temporary: Path):
        self._temporary = temporary
        self._mark = uuid.uuid4().hex
        self._before = set(self._unnamed_by_run())

    def environment(self) -> dict[str, str]:
        """For the tests."""
        return {"TMPDIR": str(self._temporary), MARK: self._mark}

    def find(self) -> list[str]:
        """Waits until nothing is left, for a while; returns what is left then."""
        end = time.monotonic() + PATIENCE_S
        while (left := self._left()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def _left(self) -> list[str]:
        new = [one for one in self._unnamed_by_run() if one not in self._before]
        return [*self._processes(), *self._named_by_folder(), *new, *self._folders()]

    def _processes(self) -> Iterator[str]:
        for pid in self._pids():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                yield f"process {pid}: {words.decode(errors='replace')[:200]}"

    def _pids(self) -> list[int]:
        """Processes with the run's mark in their environment, or with its folder in their command
        or as their working directory. Not those that only wait to be waited for."""
        folder, mark = str(self._temporary), f"{MARK}={self._mark}\0".encode()
        found = []
        for place in Path("/proc").iterdir():
            if not place.name.isdigit() or int(place.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if (
                    mark in (place / "environ").read_bytes() + b"\0"
                    or folder.encode() in (place / "cmdline").read_bytes()
                    or os.readlink(place / "cwd").startswith(folder)
                ):
                    found.append(int(place.name))
        return sorted(found)

    def _named_by_folder(self) -> Iterator[str]:
        """Mounts, loop devices and sockets whose name holds the run's folder."""
        folder = str(self._temporary)
        for line in Path("/proc/self/mounts").read_text().splitlines():
            if folder in line:
                yield f"mount {line.split()[1]}"
        for device in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):
                if folder in device.read_text():
                    yield f"loop device {device.parts[3]}"
        for line in Path("/proc/net/unix").read_text().splitlines():
            if folder in line:
                yield f"socket {line.split()[-1]}"

    @staticmethod
    def _unnamed_by_run() -> Iterator[str]:
        """Shared memory that no living process has mapped, and network namespaces: named as ours.
        Other runs may have some, too, so only what stays counts."""
        shared = [one for one in Path("/dev/shm").glob(OURS) if not _is_mapped(one)]
        yield from (f"shared memory {one}" for one in shared)
        yield from (f"network namespace {one.name}" for one in Path("/run/netns").glob(OURS))

    def _folders(self) -> list[str]:
        names = sorted(one.name for one in self._temporary.iterdir())
        return [
            f"temporary {name}"
            for name in names
            if fnmatch.fnmatch(name, OURS) and not any(fnmatch.fnmatch(name, k) for k in KEPT)
        ]

    def clean(self) -> None:
        """Ends the run's processes that are left and removes its folder, once they are named."""
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        others = [
            one.name
            for one in self._temporary.iterdir()
            if not any(fnmatch.fnmatch(one.name, kept) for kept in (OURS, *KEPT))
        ]
        if others:
            print(f"other programs left in {tempfile.gettempdir()}: {', '.join(sorted(others))}")
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        for place in [line.split()[1] for line in mounts if str(self._temporary) in line]:
            subprocess.run(["umount", "-l", place], check=False, timeout=30)
        shutil.rmtree(self._temporary, ignore_errors=True)


def _is_mapped(shared: Path) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if str(shared) in maps.read_text():
                return True
    return False
