"""The door to the operating system: /proc, /sys, folders, the clock, connections, commands.

What is missing or may not be read is empty or None: a doctor that is not root says less, and does
not fail. Tests put another class with these methods in its place.
"""

import ctypes
import os
import platform
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from typing import Final

from console.model.access.certificates import Secured, Shown, read_certificate
from console.model.asking.version import compiled
from console.model.doctor.facts import Owner, Space
from penstock.reach import unreachable

_TIMEX_BYTES: Final = 256  # struct timex has 208 on 64 bits
_TIME_ERROR: Final = 5  # adjtimex(2): the clock is not synchronised


class Host:
    """This host."""

    def text(self, path: str) -> str:
        """A whole file, "" when there is none for us."""
        try:
            with open(path, errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def names(self, path: str) -> list[str]:
        """The names in a folder."""
        try:
            return os.listdir(path)
        except OSError:
            return []

    def target(self, path: str) -> str:
        """Where a symbolic link leads."""
        try:
            return os.readlink(path)
        except OSError:
            return ""

    def real(self, path: str) -> str:
        """The path without symbolic links, absolute."""
        return os.path.realpath(path)

    def space(self, path: str) -> Space | None:
        """The space of the file system that a path lies on."""
        try:
            found = os.statvfs(path)
        except OSError:
            return None
        unit = found.f_frsize
        return Space(
            found.f_blocks * unit, found.f_bavail * unit, found.f_files, found.f_favail
        )  # fmt: skip

    def owner(self, path: str) -> Owner | None:
        """The owner and the permissions of a path."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return Owner(found.st_uid, stat.S_IMODE(found.st_mode), found.st_mtime)

    def uid(self) -> int:
        """The user who asks."""
        return os.geteuid()

    def cpus(self) -> int:
        """Those that this process may run on."""
        return len(os.sched_getaffinity(0))

    def files_limit(self) -> int:
        """Open files that a process of this user can ask for."""
        return resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def wall_s(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()

    def up_s(self) -> float:
        """Seconds since the host started, suspended ones included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def ticks_a_second(self) -> int:
        """The unit of times in /proc/PID/stat."""
        return os.sysconf("SC_CLK_TCK")

    def synchronised(self) -> bool | None:
        """True if the kernel's clock is synchronised (adjtimex, nothing set); None when unknown."""
        try:
            state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
        except (OSError, AttributeError):
            return None
        return None if state < 0 else state != _TIME_ERROR

    def machine(self) -> str:
        """The processor's kind."""
        return platform.machine()

    def python(self) -> tuple[int, int]:
        """Major and minor version of the interpreter."""
        return sys.version_info[:2]

    def compiled(self) -> bool:
        """True if the modules on the path of every request are machine code (setup.py)."""
        return compiled()

    def declared(self) -> list[str]:
        """The requirements that the installed distribution declares."""
        try:
            return metadata.requires("penstock") or []
        except metadata.PackageNotFoundError:
            return []

    def version(self, distribution: str) -> str:
        """The version of an installed distribution, "" when it is missing."""
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return ""

    def dial(self, server: str) -> str:
        """Why HOST:PORT does not accept a connection within 3 s; "" when it does."""
        try:
            return unreachable(server)
        except ValueError as wrong:
            return str(wrong)

    def shown(self, host: str, port: int) -> Shown:
        """The certificate that a TLS listener presents."""
        return read_certificate(Secured("", host, port))

    def run(self, command: Sequence[str]) -> str:
        """Apply a remedy: why it failed, "" when it did not."""
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
        return "" if done.returncode == 0 else done.stderr.strip() or f"exit {done.returncode}"
