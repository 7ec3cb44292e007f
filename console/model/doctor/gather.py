"""Facts about a host, and about the appliance of a data folder or behind a Link."""

import os
from collections.abc import Iterable
from typing import Final

from appliance.config.listeners import in_url
from appliance.metadata.identity import META_PROPERTIES
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.doctor import reading
from console.model.doctor.facts import (
    Advertised,
    Clock,
    Facts,
    Folder,
    Listening,
    Process,
    Space,
    System,
    Unit,
)
from console.model.doctor.host import Host
from console.model.doctor.running import Running, find_running
from console.model.local.local import data_folder
from console.model.storage.disk import log_folders

_ANY: Final = ("0.0.0.0", "::")
_SETTINGS: Final = (
    "swappiness",
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "max_map_count",
)
_GROUPS: Final = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd")


def of_folder(host: Host, data_dir: str) -> Facts:
    """Gathers the facts of this host and a data folder, with its appliance if one runs. Raises
    nothing: `remarks` has what cannot be seen.
    """
    running, why = find_running(host, data_dir)
    if running is not None:
        return _of_running(host, running)
    if host.owner(data_dir) is None:
        why = f"{data_dir} is missing or not readable: its parent was looked at"
    real = host.real(data_dir)
    # The port of an appliance that we may not look into is not taken by another one.
    holder = host.text(f"{real}/.lock").strip()
    held = holder.isdecimal() and host.owner(f"/proc/{holder}") is not None
    return Facts(
        uid=host.uid(),
        host=_system(host),
        clock=Clock(host.wall_s(), host.synchronised()),
        folders=_folders(host, [real]),
        files_limit=host.files_limit(),
        partitions=sum(_is_partition(name) for name in host.names(real)),
        listening=() if held else _listening(host, "self", ()),
        remarks=(why,),
    )


def of_link(host: Host, link: Link) -> Facts:
    """Gathers the facts of the appliance behind the link, and of this host when it is on it. Raises
    Failure when no broker answers.
    """
    try:
        return of_folder(host, data_folder(link))
    except Failure as why:
        # An advertised address that leads nowhere ends here too: that is what we are to find.
        told = f"the broker's own host is not looked at: {why.message}; {why.hint}"
    folders = tuple(
        Folder(one.path, Space(one.total_bytes, one.free_bytes), problem=one.problem)
        if one.total_bytes > 0
        else Folder(one.path, None, problem=one.problem)
        for one in log_folders(link, used=False)
    )
    brokers = [one for one in nodes.read_nodes(link).brokers.values() if one.lives]
    return Facts(
        uid=host.uid(),
        host=None,
        clock=None,
        folders=folders,
        advertised=tuple(
            _dialled(
                host, one.id, *_apart(one.address), own=len(brokers) == 1, tls=link.door.uses_tls
            )
            for one in brokers
        ),
        remarks=(told,),
    )


def _of_running(host: Host, running: Running) -> Facts:
    seen = tuple(_process(host, name, pid) for name, pid in running.pids.items())
    sockets = {
        host.target(f"/proc/{pid}/fd/{number}")
        for pid in running.pids.values()
        for number in host.names(f"/proc/{pid}/fd")
    }
    supervisor = running.pids["supervisor"]
    return Facts(
        uid=host.uid(),
        host=_system(host),
        clock=Clock(host.wall_s(), host.synchronised(), _jumped_s(host, running)),
        folders=_folders(host, running.folders),
        files_limit=host.files_limit(),
        partitions=running.partitions,
        processes=seen,
        listening=_listening(host, str(supervisor), sockets),
        advertised=tuple(
            _dialled(host, node, name, port, own=node == running.node, tls=tls)
            for node, name, port, tls in running.endpoints
        ),
        unit=_unit(host, supervisor),
        remarks=running.remarks,
        logins=running.logins,
        refused_logins=running.refused_logins,
        bounds=running.bounds,
    )


def _is_partition(name: str) -> bool:
    return name.rpartition("-")[2].isdecimal() and not name.startswith(".")


def _folders(host: Host, paths: Iterable[str]) -> tuple[Folder, ...]:
    """The facts of each path; of the nearest existing parent if the path does not exist."""
    mounts = host.text("/proc/self/mounts")
    found = []
    for path in paths:
        there = path
        while host.owner(there) is None and there != os.path.dirname(there):
            there = os.path.dirname(there)
        owner = host.owner(path)
        mount = reading.mount_of(there, mounts)
        formatted = META_PROPERTIES in host.names(path)
        found.append(Folder(path, host.space(there), mount, owner, formatted=formatted))
    return tuple(found)


def _system(host: Host) -> System:
    memory = reading.in_kib(host.text("/proc/meminfo"))
    required = host.declared()
    installed = {name: host.version(name) for name in reading.required_names(required)}
    values = {name: host.text(f"/proc/sys/vm/{name}").strip() for name in _SETTINGS}
    return System(
        release=host.text("/proc/sys/kernel/osrelease").strip(),
        machine=host.machine(),
        python=host.python(),
        compiled=host.compiled(),
        cpus=host.cpus(),
        memory=memory.get("MemTotal", 0),
        memory_available=memory.get("MemAvailable", 0),
        swap=memory.get("SwapTotal", 0),
        swap_free=memory.get("SwapFree", 0),
        settings={f"vm.{name}": int(text) for name, text in values.items() if text.isdecimal()},
        huge_pages=reading.chosen(host.text("/sys/kernel/mm/transparent_hugepage/enabled")),
        shared=host.space("/dev/shm"),
        too_old=tuple(reading.too_old(required, installed)),
    )


def _process(host: Host, name: str, pid: int) -> Process:
    folder = f"/proc/{pid}"
    owner = host.owner(folder)
    maps = host.text(f"{folder}/maps")
    status = reading.in_kib(host.text(f"{folder}/status"))
    return Process(
        name,
        pid,
        uid=host.uid() if owner is None else owner.uid,
        files_open=len(host.names(f"{folder}/fd")),
        files_limit=reading.files_limit(host.text(f"{folder}/limits")),
        maps=maps.count("\n"),
        swapped=status.get("VmSwap", 0),
        shared=reading.shared_bytes(maps),
        touched=status.get("RssShmem", 0),
    )


def _jumped_s(host: Host, running: Running) -> float:
    """The supervisor began at an age of the host that does not change; by today's clock that was
    at another time than it wrote down if the clock was set since. It writes that down a moment
    after it began, so that a short way back is not seen."""
    ticks = reading.started_ticks(host.text(f"/proc/{running.pids['supervisor']}/stat"))
    if not ticks:
        return 0.0
    born_s = host.wall_s() - host.up_s() + ticks / host.ticks_a_second()
    return born_s - running.started_ms / 1000


def _listening(host: Host, pid: str, ours: Iterable[str]) -> tuple[Listening, ...]:
    """The listening sockets of this process's network, which may be a container's. Each network
    process has a socket at the same port: listed once.
    """
    mine = frozenset(ours)
    found = (
        Listening(address, port, address in _ANY, f"socket:[{inode}]" in mine)
        for file in ("tcp", "tcp6")
        for address, port, inode in reading.listening(host.text(f"/proc/{pid}/net/{file}"))
    )
    return tuple(dict.fromkeys(found))


def _dialled(host: Host, node: int, name: str, port: int, *, own: bool, tls: bool) -> Advertised:
    problem = host.dial(f"{in_url(name)}:{port}")
    shown = host.shown(name, port) if tls and not problem else None
    return Advertised(node, name, port, problem, own, shown, host.wall_s())


def _apart(address: str) -> tuple[str, int]:
    name, _, port = address.rpartition(":")
    return name.strip("[]"), int(port)


def _unit(host: Host, pid: int) -> Unit | None:
    """Its limits as the kernel has them; those of control groups above it are not looked at."""
    path = reading.unit_path(host.text(f"/proc/{pid}/cgroup"))
    if not path:
        return None
    folder = next((f"{at}{path}" for at in _GROUPS if host.names(f"{at}{path}")), "")
    quota = host.text(f"{folder}/cpu.max").split()
    tasks = host.text(f"{folder}/pids.current").strip()
    return Unit(
        name=os.path.basename(path),
        memory=_number(host.text(f"{folder}/memory.max")),
        tasks=_number(host.text(f"{folder}/pids.max")),
        tasks_now=int(tasks) if tasks.isdecimal() else 0,
        cpus=int(quota[0]) / int(quota[1]) if quota and quota[0].isdecimal() else None,
    )


def _number(text: str) -> int | None:
    """None of `max` and of nothing."""
    return int(text) if text.strip().isdecimal() else None
