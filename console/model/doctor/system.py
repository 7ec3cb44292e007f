"""The host: memory, the kernel's settings, its clock, the installation."""

from collections.abc import Iterator
from typing import Final

from appliance.config.broker_settings import BROKER
from appliance.supervisor.layout import default_processes
from console.model.doctor.facts import Clock, Facts, Space, System
from console.model.doctor.finding import CRITICAL, NOTE, WARNING, Finding, in_unit

_MIB: Final = 1 << 20
_LEAST_MEMORY: Final = 256 * _MIB
_DIRTY_RATIO: Final = 40
_DIRTY_BYTES: Final = 64 * _MIB
_DIRTY_CENTISECONDS: Final = 6000
_MAPS: Final = 65_530
_ARENA_BYTES: Final = int(str(BROKER["penstock.arena.bytes"].default))
_SHARED_LEAST: Final = 16 * _MIB
_PAST: Final = 1_735_689_600  # 2025
_FUTURE_S: Final = 60
_JUMP_AHEAD_S: Final = 5.0
_JUMP_BACK_S: Final = -60.0


def judge(facts: Facts) -> Iterator[Finding]:
    """Findings about this host, when the appliance is or would be on it."""
    if facts.host is None:
        return
    host = facts.host
    yield from _memory(host)
    yield from _dirty(host)
    yield from _mappings(facts, host)
    yield from _huge_pages(host)
    if host.shared is not None:
        yield from _shared_memory(facts, host.shared, host.cpus)
    if facts.clock is not None:
        yield from _clock(facts, facts.clock)
    yield from _installation(host)


def _setting(
    name: str, found: str, wanted: int, why: str, *, level: str = WARNING, unit: str = ""
) -> Finding:
    return Finding(
        level=level, check="sysctl", subject=name, found=found, wanted=f"{wanted}{unit}", why=why,
        remedy=f"set it, and keep {name}={wanted} in /etc/sysctl.d/penstock.conf",
        command=("sysctl", "-w", f"{name}={wanted}"), safe=True, needs_root=True,
    )  # fmt: skip


def _memory(host: System) -> Iterator[Finding]:
    if host.memory and host.memory_available < max(_LEAST_MEMORY, host.memory // 20):
        critical = host.memory_available < _LEAST_MEMORY and not host.swap_free
        yield Finding(
            level=CRITICAL if critical else WARNING, check="memory", subject="memory",
            found=f"{in_unit(host.memory_available)} of {in_unit(host.memory)} are available",
            wanted=f"{in_unit(max(_LEAST_MEMORY, host.memory // 20))} or more",
            why="reads go to the disk, and then the kernel kills processes",
            remedy="stop or limit what else runs here; ps -eo pid,rss,args --sort=-rss | head",
        )  # fmt: skip
    used = host.swap - host.swap_free
    swappiness = host.settings.get("vm.swappiness", 0)
    if used > host.memory // 20 and swappiness > 10:
        why = "pages of waiting processes are swapped out for the page cache: they answer late"
        found = f"{swappiness}, with {in_unit(used)} in swap"
        yield _setting("vm.swappiness", found, 1, why)


def _dirty(host: System) -> Iterator[Finding]:
    of = host.settings
    ratio, limit = of.get("vm.dirty_ratio", 0), of.get("vm.dirty_bytes", 0)
    if ratio > _DIRTY_RATIO:
        why = "the kernel writes much at once when that is reached, and every sync waits for it"
        yield _setting("vm.dirty_ratio", f"{ratio} %", 20, why, unit=" %")
    if 0 < limit < _DIRTY_BYTES:
        why = "writers wait for the disk at so little"
        yield _setting("vm.dirty_bytes", in_unit(limit), 4 * _DIRTY_BYTES, why)
    background = of.get("vm.dirty_background_ratio", 0)
    if ratio and background >= ratio:
        why = "nothing is written in the background before writers are stopped"
        yield _setting("vm.dirty_background_ratio", f"{background} %", ratio // 2, why, unit=" %")
    if of.get("vm.dirty_expire_centisecs", 0) > _DIRTY_CENTISECONDS:
        found = f"{of['vm.dirty_expire_centisecs'] / 100:.0f} s"
        why = "with log.flush.policy=os a power cut loses what was acknowledged in that time"
        yield _setting("vm.dirty_expire_centisecs", found, 3000, why)


def _mappings(facts: Facts, host: System) -> Iterator[Finding]:
    limit = host.settings.get("vm.max_map_count", 0)
    most = max((one.maps for one in facts.processes), default=0)
    if not limit or (limit >= _MAPS and most * 10 < limit * 8):
        return
    yield _setting(
        "vm.max_map_count", f"{limit:,}, and one process has {most:,} mappings",
        262_144 if limit < 262_144 else 2 * limit, "no more memory or library can be mapped then",
        level=CRITICAL if most * 10 >= limit * 9 else WARNING,
    )  # fmt: skip


def _huge_pages(host: System) -> Iterator[Finding]:
    if host.huge_pages != "always":
        return
    yield Finding(
        level=NOTE, check="huge-pages", subject="transparent huge pages", found="always",
        wanted="madvise",
        why="processes share memory by fork: a write of one byte then copies 2 MiB, not 4 KiB",
        remedy="switch it; transparent_hugepage=madvise on the kernel's command line keeps it",
        command=("sh", "-c", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
        safe=True, needs_root=True,
    )  # fmt: skip


def _shared_memory(facts: Facts, shared: Space, cpus: int) -> Iterator[Finding]:
    wanted, least = _arenas(facts, cpus)
    if shared.free >= wanted:
        return
    why = (
        "when others have filled it, a process dies of the next page that it takes"
        if facts.runs
        else "arenas are made smaller, and below 8 MiB each it does not start"
    )
    size = -(-(shared.total - shared.free + wanted) // _MIB)
    yield Finding(
        level=CRITICAL if shared.free < least else WARNING,
        check="shared-memory", subject="/dev/shm",
        found=f"{in_unit(shared.free)} of {in_unit(shared.total)} are free",
        wanted=in_unit(wanted), why=why,
        remedy="enlarge it, in /etc/fstab too (a container: --shm-size)",
        command=("mount", "-o", f"remount,size={size}M", "/dev/shm"), safe=True, needs_root=True,
    )  # fmt: skip


def _arenas(facts: Facts, cpus: int) -> tuple[int, int]:
    """Shared memory that the appliance may still take, and what it needs to go on or to start."""
    if not facts.runs:
        count = default_processes(cpus)
        return count * _ARENA_BYTES, count * _SHARED_LEAST
    whole = max(one.shared for one in facts.processes)
    touched = sum(one.touched for one in facts.processes if one.name.startswith("netproc"))
    left = max(0, whole - touched)
    return left, min(left, _SHARED_LEAST)


def _clock(facts: Facts, clock: Clock) -> Iterator[Finding]:
    if clock.synchronised is False:
        yield _bad_time(
            WARNING, "not synchronised", "synchronised", "retention, offsets by time and what"
            " producers stamp go by a clock that drifts", "chrony or systemd-timesyncd keeps it",
            ("timedatectl", "set-ntp", "true"),
        )  # fmt: skip
    if clock.wall_s < _PAST:
        yield _bad_time(
            CRITICAL, "before 2025", "the time", "records get times of the past, so that retention"
            " deletes them as soon as the clock is set", "set it before the appliance starts",
        )  # fmt: skip
    if clock.jumped_s > _JUMP_AHEAD_S or clock.jumped_s < _JUMP_BACK_S:
        ahead = clock.jumped_s > 0
        yield _bad_time(
            WARNING, f"set {'ahead' if ahead else 'back'} by {abs(clock.jumped_s):.0f} s since the"
            " appliance started", "slewed, never set",
            "retention counts what was skipped as age" if ahead else "records are kept longer, and"
            " times in a log run backwards", "let it be slewed (chrony: makestep only at boot)",
        )  # fmt: skip
    changed = [one.owner.changed_s for one in facts.folders if one.owner is not None]
    if changed and max(changed) > clock.wall_s + _FUTURE_S:
        yield _bad_time(
            WARNING, f"{max(changed) - clock.wall_s:.0f} s before the last change of a log folder",
            "never set back", "records of the future stay until their time has come",
            "see that the clock is right",
        )  # fmt: skip


def _bad_time(
    level: str, found: str, wanted: str, why: str, remedy: str, command: tuple[str, ...] = ()
) -> Finding:
    return Finding(
        level=level, check="clock", subject="clock", found=found, wanted=wanted, why=why,
        remedy=remedy, command=command, safe=bool(command), needs_root=bool(command),
    )  # fmt: skip


def _installation(host: System) -> Iterator[Finding]:
    if not host.compiled:
        yield Finding(
            level=NOTE, check="interpreted", subject="hot modules", found="interpreted",
            wanted="compiled", why="small requests cost more processor time",
            remedy="install a C compiler and Python's headers, then install again",
        )  # fmt: skip
    if host.python < (3, 11):
        yield Finding(
            level=CRITICAL, check="python", subject="Python",
            found=".".join(map(str, host.python)), wanted="3.11 or newer",
            why="it does not start with an older one", remedy="install a newer Python",
        )  # fmt: skip
    if host.machine != "x86_64":
        yield Finding(
            level=CRITICAL, check="processor", subject="processor", found=host.machine,
            wanted="x86_64", why="it does not start: rings rely on stores that are seen in order",
            remedy="run it on an x86-64 host",
        )  # fmt: skip
    for name, version, least in host.too_old:
        yield Finding(
            level=WARNING, check="library", subject=name, found=version or "missing",
            wanted=f"{least} or newer", why="it is not available before that",
            remedy="upgrade it in the environment of the appliance",
            command=("pip", "install", f"{name}>={least}"),
        )  # fmt: skip
