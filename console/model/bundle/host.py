"""The host, as far as it matters to an appliance: kernel, CPUs, memory, the data folder's file
system, limits. No environment."""

import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from console.model.asking.version import compiled

Facts = dict[str, Any]
_MEMORY: Final = (
    "MemTotal",
    "MemAvailable",
    "Cached",
    "Dirty",
    "Writeback",
    "SwapTotal",
    "SwapFree",
)
_LIBRARIES: Final = ("confluent-kafka", "kio", "crc32c", "click", "posix-ipc")
_KERNEL: Final = (
    "vm/dirty_ratio", "vm/dirty_background_ratio", "vm/swappiness", "vm/max_map_count",
    "net/core/somaxconn", "fs/file-nr",
)  # fmt: skip


def versions(version: str) -> Facts:
    """Versions of the program and its libraries."""
    libraries = {}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            libraries[name] = metadata.version(name)
    return {
        "penstock": version,
        "hot_modules": "compiled" if compiled() else "interpreted",
        "python": platform.python_version(),
        "compiler": platform.python_compiler(),
        "libc": " ".join(platform.libc_ver()),
        "libraries": libraries,
    }


def facts(data_dir: str, pid: int) -> Facts:
    """Facts of this host. pid: whose limits are told; 0: our own."""
    system = os.uname()
    return {
        "kernel": f"{system.sysname} {system.release} {system.version}",
        "machine": system.machine,
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "cpu": _first("/proc/cpuinfo", "model name"),
        "load": os.getloadavg(),
        "uptime_s": float((_read("/proc/uptime") or "0").split()[0]),
        "memory_kib": _memory(),
        "cgroup": {
            name: _read(f"/sys/fs/cgroup/{name}")
            for name in ("memory.max", "cpu.max", "memory.current")
        },
        "kernel_settings": {name: _read(f"/proc/sys/{name}") for name in _KERNEL},
        "pressure": {name: _read(f"/proc/pressure/{name}") for name in ("cpu", "memory", "io")},
        "file_system": _file_system(data_dir),
        "limits_of": "the appliance" if pid else "this command",
        "limits": (_read(f"/proc/{pid or 'self'}/limits") or "").splitlines(),
    }


def _read(path: str) -> str | None:
    with suppress(OSError, UnicodeDecodeError):
        return Path(path).read_text()[:16384].strip()
    return None


def _first(path: str, key: str) -> str | None:
    for line in (_read(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _memory() -> dict[str, int]:
    found = {}
    for line in (_read("/proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name in _MEMORY:
            found[name] = int(value.split()[0])
    return found


def _file_system(path: str) -> Facts:
    """The size and device of the file system that holds a folder. Raises OSError."""
    space, device = os.statvfs(path), os.stat(path).st_dev
    told: Facts = {
        "bytes": space.f_blocks * space.f_frsize,
        "free_bytes": space.f_bavail * space.f_frsize,
        "files": space.f_files,
        "free_files": space.f_favail,
    }
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in (_read("/proc/self/mountinfo") or "").splitlines():
        before, _, behind = line.partition(" - ")
        if before.split()[2:3] == [number]:
            told |= {"type": behind.split()[0], "options": before.split()[5]}
    return told
