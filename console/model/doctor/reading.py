"""Texts of /proc and /sys as values: pure."""

import re
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from console.model.doctor.facts import Mount

_LISTEN: Final = "0A"
_SEGMENTS: Final = "penstock-"
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_REQUIRES: Final = re.compile(r"^([A-Za-z0-9_.-]+)>=([0-9.]+)$")


def in_kib(text: str) -> dict[str, int]:
    """Lines `Name:  123 kB` (meminfo, status) by name, in bytes."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdecimal():
            found[name] = int(words[0]) * 1024
    return found


def mount_of(path: str, mounts: str) -> Mount | None:
    """The file system that an absolute path lies on. mounts: /proc/self/mounts; of two at the same
    place the later one is on top."""
    best, found = -1, None
    for line in mounts.splitlines():
        words = line.split()
        if len(words) < 4:
            continue
        place = _OCTAL.sub(lambda m: chr(int(m[1], 8)), words[1]).rstrip("/")
        if (path == place or path.startswith(f"{place}/")) and len(place) >= best:
            best, found = len(place), Mount(words[2], frozenset(words[3].split(",")))
    return found


def chosen(text: str) -> str:
    """The word in brackets: `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0]


def listening(text: str) -> Iterator[tuple[str, int, str]]:
    """(address, port, inode) of each listening socket of /proc/net/tcp or tcp6."""
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] == _LISTEN:
            address, _, port = words[1].partition(":")
            yield _address(address), int(port, 16), words[9]


def _address(text: str) -> str:
    """The kernel writes words of 32 bits in the order of the host's bytes."""
    packed = b"".join(
        struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8)
    )
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def files_limit(limits: str) -> int:
    """The soft limit of open files in /proc/PID/limits; 0 when it is not told."""
    for line in limits.splitlines():
        if line.startswith("Max open files"):
            word = line.split()[3]
            return int(word) if word.isdecimal() else 0
    return 0


def shared_bytes(maps: str) -> int:
    """The size of an appliance's shared memory with every page in use (/proc/PID/maps)."""
    found = 0
    for line in maps.splitlines():
        if f"/dev/shm/{_SEGMENTS}" in line:
            begin, _, end = line.split(maxsplit=1)[0].partition("-")
            found += int(end, 16) - int(begin, 16)
    return found


def started_ticks(stat: str) -> int:
    """When a process began, in ticks since the host did (/proc/PID/stat); 0 when it is gone."""
    words = stat.rpartition(")")[2].split()
    return int(words[19]) if len(words) > 19 else 0


def unit_path(cgroup: str) -> str:
    """The path of a service's control group in /proc/PID/cgroup (version 2, or systemd's own of
    version 1), "" when it is in none."""
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (number == "0" or controllers == "name=systemd") and path.endswith(".service"):
            return path
    return ""


def too_old(required: Iterable[str], installed: dict[str, str]) -> list[tuple[str, str, str]]:
    """(name, version, least) of those that are older than is declared, or missing. Extras are
    nobody's need."""
    found = []
    for one in required:
        if match := _REQUIRES.match(one.replace(" ", "")):
            name, least = match.groups()
            version = installed.get(name, "")
            if not version or _numbers(version) < _numbers(least):
                found.append((name, version, least))
    return found


def required_names(required: Iterable[str]) -> list[str]:
    """The distributions among them that every installation needs."""
    matches = (_REQUIRES.match(one.replace(" ", "")) for one in required)
    return [match[1] for match in matches if match]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:4])
