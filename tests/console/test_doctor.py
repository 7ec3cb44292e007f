"""What the doctor says: judges over made-up facts, texts of /proc as values, one real appliance."""

import os
import socket
from dataclasses import replace

import pytest

from appliance.ring.bound_table import ReachedBound
from appliance.ring.security_table import LoginCount
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.doctor import gather, judge, reading, remedies
from console.model.doctor.facts import (
    Advertised,
    Clock,
    Facts,
    Folder,
    Listening,
    Mount,
    Owner,
    Process,
    RefusedLogin,
    Space,
    System,
    Unit,
)
from console.model.doctor.finding import CRITICAL, NOTE, WARNING
from console.model.doctor.host import Host
from console.model.local.local import NOT_LOCAL
from penstock.local import Appliance
from tests.console_process import rows

GIB = 1 << 30
NOW = 1_800_000_000.0
DISK = Mount("ext4", frozenset(("rw", "relatime")))
FOLDER = Folder(
    "/srv/p", Space(100 * GIB, 60 * GIB, 1000, 900), DISK, Owner(7, 0o750, NOW - 5), formatted=True
)
SYSTEM = System(
    release="6.1.0", machine="x86_64", python=(3, 12), compiled=True, cpus=4,
    memory=16 * GIB, memory_available=9 * GIB, swap=GIB, swap_free=GIB,
    settings={
        "vm.swappiness": 60, "vm.dirty_ratio": 20, "vm.dirty_background_ratio": 10,
        "vm.dirty_bytes": 0, "vm.dirty_expire_centisecs": 3000, "vm.max_map_count": 65530,
    },
    huge_pages="madvise", shared=Space(8 * GIB, 8 * GIB),
)  # fmt: skip
NETPROC = Process("netproc-0", 11, 7, 40, 1 << 20, 500, 0)
WELL = Facts(
    uid=7, host=SYSTEM, clock=Clock(NOW, True), folders=(FOLDER,), files_limit=1 << 20,
    partitions=100,
    processes=(Process("supervisor", 10, 7, 30, 1 << 20, 400, 0), NETPROC),
    listening=(Listening("127.0.0.1", 9092, False, True),),
    advertised=(Advertised(1, "localhost", 9092, "", True),),
    unit=Unit("penstock.service", None, 4096, 8, None),
)  # fmt: skip
DOWN = replace(WELL, processes=(), listening=(), advertised=(), unit=None)


def disk(**changes):
    return replace(WELL, folders=(replace(FOLDER, **changes),))


def host(**changes):
    return replace(WELL, host=replace(SYSTEM, **changes))


def settings(**changes):
    named = {f"vm.{name}": value for name, value in changes.items()}
    return host(settings=SYSTEM.settings | named)


def netproc(**changes):
    return replace(WELL, processes=(replace(NETPROC, **changes),))


def shared(free):
    """An appliance that may take 256 MiB and has taken 100."""
    small = host(shared=Space(GIB, free))
    return replace(small, processes=(replace(NETPROC, shared=256 << 20, touched=100 << 20),))


def mounted(kind, *options):
    return disk(mount=Mount(kind, frozenset(options)))


def unit(**changes):
    return replace(WELL, unit=replace(WELL.unit, **changes))


def advertised(**changes):
    return replace(WELL, advertised=(replace(WELL.advertised[0], **changes),))


OTHER = Listening("::1", 9092, False, False)
NODE_LOGIN = RefusedLogin("10.0.0.2:9093", "CONTROLLER", "user node: invalid")
CASES = [
    (replace(WELL, refused_logins=(NODE_LOGIN,)), CRITICAL, "node-login"),
    (disk(space=Space(100 * GIB, GIB // 2)), CRITICAL, "disk-space"),
    (disk(space=Space(100 * GIB, 3 * GIB)), WARNING, "disk-space"),
    (disk(space=Space(100 * GIB, 60 * GIB, 1_000_000, 40_000)), WARNING, "inodes"),
    (disk(space=Space(100 * GIB, 60 * GIB, 1_000_000, 999)), CRITICAL, "inodes"),
    (disk(problem="KAFKA_STORAGE_ERROR"), CRITICAL, "folder-offline"),
    (disk(owner=Owner(8, 0o750, NOW)), WARNING, "folder-owner"),
    (disk(owner=Owner(7, 0o777, NOW)), WARNING, "folder-permissions"),
    (disk(owner=Owner(7, 0o755, NOW)), NOTE, "folder-permissions"),
    (disk(owner=Owner(7, 0o750, NOW + 3600)), WARNING, "clock"),
    (mounted("tmpfs", "rw"), CRITICAL, "filesystem"),
    (mounted("nfs4", "rw"), WARNING, "filesystem"),
    (mounted("fuse.sshfs", "rw"), WARNING, "filesystem"),
    (mounted("ext4", "ro"), CRITICAL, "mount-options"),
    (mounted("xfs", "rw", "nobarrier"), CRITICAL, "mount-options"),
    (mounted("ext4", "rw", "data=writeback"), WARNING, "mount-options"),
    (host(memory_available=100 << 20, swap=0, swap_free=0), CRITICAL, "memory"),
    (host(memory_available=GIB // 2), WARNING, "memory"),
    (host(swap_free=0), WARNING, "sysctl"),
    (host(huge_pages="always"), NOTE, "huge-pages"),
    (shared(60 << 20), WARNING, "shared-memory"),
    (shared(4 << 20), CRITICAL, "shared-memory"),
    (host(compiled=False), NOTE, "interpreted"),
    (host(python=(3, 10)), CRITICAL, "python"),
    (host(machine="aarch64"), CRITICAL, "processor"),
    (host(too_old=(("click", "7.0", "8.1"),)), WARNING, "library"),
    (settings(dirty_ratio=80), WARNING, "sysctl"),
    (settings(dirty_bytes=1 << 20), WARNING, "sysctl"),
    (settings(dirty_background_ratio=20), WARNING, "sysctl"),
    (settings(dirty_expire_centisecs=9000), WARNING, "sysctl"),
    (settings(max_map_count=1000), WARNING, "sysctl"),
    (netproc(maps=65_000), CRITICAL, "sysctl"),
    (netproc(files_limit=1024), WARNING, "open-files"),
    (netproc(files_open=1 << 20), CRITICAL, "open-files"),
    (netproc(swapped=8 << 20), WARNING, "swapped"),
    (replace(WELL, processes=(NETPROC,) * 5), NOTE, "processors"),
    (unit(tasks=10), CRITICAL, "unit-limits"),
    (unit(memory=GIB // 4), WARNING, "unit-limits"),
    (unit(cpus=0.5), WARNING, "unit-limits"),
    (replace(WELL, clock=Clock(NOW, False)), WARNING, "clock"),
    (replace(WELL, clock=Clock(NOW, True, 3600.0)), WARNING, "clock"),
    (replace(WELL, clock=Clock(NOW, True, -3600.0)), WARNING, "clock"),
    (replace(WELL, listening=(*WELL.listening, OTHER)), CRITICAL, "port"),
    (replace(WELL, listening=(Listening("::", 9092, True, True),)), WARNING, "advertised"),
    (advertised(problem="it is refused"), CRITICAL, "advertised"),
    (advertised(problem="it is refused", own=False), WARNING, "advertised"),
    (replace(WELL, logins=(LoginCount("SASL", "PLAIN", 99, 100, 0, 0),)), WARNING, "logins"),
    (
        replace(WELL, bounds=(ReachedBound("connections", 3, int(NOW) * 1000 - 60_000),)),
        WARNING,
        "bounds",
    ),
    (replace(WELL, bounds=(ReachedBound("connections", 3, 1000),)), NOTE, "bounds"),
    (replace(DOWN, listening=(OTHER,)), WARNING, "port"),
    (replace(DOWN, files_limit=1024), WARNING, "open-files"),
    (replace(DOWN, host=replace(SYSTEM, shared=Space(GIB, 1 << 20))), CRITICAL, "shared-memory"),
]


FEW_FAILURES = (LoginCount("SASL", "PLAIN", 9, 99, 0, 0), LoginCount("SASL", "SSL", 500, 400, 0, 0))


@pytest.mark.parametrize(
    "facts",
    [WELL, replace(WELL, logins=FEW_FAILURES), DOWN, disk(space=None, mount=None, owner=None)],
)
def test_a_host_without_fault_is_clean(facts):
    assert judge.findings(facts) == []
    assert judge.code([]) == 0


@pytest.mark.parametrize(("facts", "level", "check"), CASES)
def test_one_fault_is_one_finding(facts, level, check):
    (found,) = judge.findings(facts)
    assert (found.level, found.check) == (level, check)
    assert judge.code([found]) == {CRITICAL: 2, WARNING: 1, NOTE: 0}[level]
    assert found.why and found.remedy and found.wanted


def test_the_worst_comes_first():
    facts = host(compiled=False, too_old=(("click", "7.0", "8.1"),), python=(3, 10))
    found = judge.findings(facts)
    assert [one.level for one in found] == [CRITICAL, WARNING, NOTE]
    assert judge.code(found) == 2


def test_limits_of_how_much_is_left_are_of_the_disk_and_of_the_setting():
    """64 MiB or a percent, whichever is more: what the appliance itself goes by."""
    assert judge.findings(disk(space=Space(GIB, 63 << 20)))[0].level == CRITICAL
    assert judge.findings(disk(space=Space(GIB, 65 << 20)))[0].level == WARNING
    assert judge.findings(disk(space=Space(GIB, 513 << 20))) == []


def test_touched_arenas_need_no_more_room():
    assert judge.findings(shared(156 << 20)) == []
    assert judge.findings(shared(155 << 20)) != []


def test_others_may_listen_at_addresses_that_are_not_ours():
    elsewhere = Listening("10.0.0.7", 9092, False, False)
    assert judge.findings(replace(WELL, listening=(*WELL.listening, elsewhere))) == []
    everywhere = Listening("0.0.0.0", 9092, True, False)
    assert judge.findings(replace(WELL, listening=(*WELL.listening, everywhere))) != []


class Told:
    """A door that only writes down what it is to run."""

    def __init__(self, uid):
        self._uid = uid
        self.ran = []

    def uid(self):
        return self._uid

    def run(self, command):
        self.ran.append(command)
        return ""


def test_only_root_changes_the_kernel_and_nobody_without_leave():
    found = judge.findings(settings(dirty_ratio=80))
    for uid, leave, times in ((7, True, 0), (0, False, 0), (0, True, 1)):
        door = Told(uid)
        assert len(remedies.apply(door, found, lambda _, leave=leave: leave)) == times
        assert door.ran == [("sysctl", "-w", "vm.dirty_ratio=20")] * times


def test_what_is_not_safe_is_for_a_person():
    door = Told(0)
    found = judge.findings(disk(owner=Owner(8, 0o750, NOW)))
    assert found[0].command and remedies.apply(door, found, lambda _: True) == []


def test_a_mount_is_the_longest_and_the_last():
    mounts = (
        "/dev/a / ext4 rw 0 0\n/dev/b /srv xfs rw,nobarrier 0 0\n"
        "tmpfs /srv/a\\040b tmpfs rw 0 0\n/dev/c /srv btrfs rw 0 0\n"
    )
    assert reading.mount_of("/srv/x", mounts) == Mount("btrfs", frozenset(("rw",)))
    assert reading.mount_of("/srv/a b/data", mounts).kind == "tmpfs"
    assert reading.mount_of("/srvice", mounts).kind == "ext4"
    assert reading.mount_of("/x", "") is None


def test_a_unit_is_found_in_both_kinds_of_control_groups():
    path = "/system.slice/penstock.service"
    assert reading.unit_path(f"0::{path}\n") == path
    assert reading.unit_path(f"4:pids:/x.service\n1:name=systemd:{path}\n") == path
    assert reading.unit_path("0::/user.slice/session-3.scope\n") == ""


def test_versions_are_compared_as_numbers_and_extras_are_left_out():
    required = ["click>=8.1", "lz4>=4.3", "kio>=0.6.5", 'fastavro>=1.12; extra == "schemas"']
    installed = {"click": "8.10", "lz4": "4.2.9"}
    old = [("lz4", "4.2.9", "4.3"), ("kio", "", "0.6.5")]
    assert reading.too_old(required, installed) == old
    assert reading.required_names(required) == ["click", "lz4", "kio"]


def test_listening_sockets_are_read_from_the_kernel():
    with socket.create_server(("127.0.0.1", 0)) as server:
        inode = str(os.fstat(server.fileno()).st_ino)
        with open("/proc/net/tcp") as file:
            assert ("127.0.0.1", server.getsockname()[1], inode) in reading.listening(file.read())


class Moved(Host):
    """This host with a clock that was set by `ahead_s`, and files of our own."""

    def __init__(self, ahead_s=0.0, **files):
        self._ahead_s = ahead_s
        self._files = files

    def wall_s(self):
        return super().wall_s() + self._ahead_s

    def names(self, path):
        return ["pids.max"] if path.endswith(".service") else super().names(path)

    def text(self, path):
        return self._files.get(os.path.basename(path)) or super().text(path)


def test_a_running_appliance_is_looked_at_whole(alone):
    facts = gather.of_folder(Host(), str(alone.data_dir))
    assert {one.pid for one in facts.processes} <= set(alone.pids())
    assert facts.processes[0].name == "supervisor" and facts.processes[0].pid == alone.pid
    assert [one.path for one in facts.folders] == [os.path.realpath(alone.data_dir)]
    assert [(one.port, one.problem) for one in facts.advertised] == [(alone.port, "")]
    ours = [one for one in facts.listening if one.ours]
    assert [one.port for one in ours] == [alone.port]
    assert all(one.files_open and one.files_limit and one.maps for one in facts.processes)
    assert facts.processes[0].shared > 8 << 20
    assert -60 < facts.clock.jumped_s < 5


def test_a_clock_that_was_set_and_a_lower_limit_are_seen(alone):
    door = Moved(3600.0, limits="Max open files            100        100        files\n")
    found = judge.findings(gather.of_folder(door, str(alone.data_dir)))
    assert any(one.check == "clock" and "ahead by 3" in one.found for one in found)
    assert {one.check for one in found if "ioproc" in one.subject} >= {"open-files"}


@pytest.fixture(scope="module")
def lost(tmp_path_factory):
    """An appliance of two folders that sends its clients to nowhere."""
    folder = tmp_path_factory.mktemp("lost")
    settings = {
        "log.dirs": f"{folder / 'data'},{folder / 'more'}",
        "advertised.listeners": "PLAINTEXT://nowhere.invalid:9092",
    }
    with Appliance(folder / "data", settings=settings) as running:
        yield running


def test_an_address_that_leads_nowhere_is_found_from_every_side(lost, run):
    more = str(lost.data_dir.with_name("more"))
    for where in (("--data", str(lost.data_dir)), ("--data", more), ("-b", lost.bootstrap)):
        found = rows(run("doctor", *where, "-o", "json", code=2))
        (told,) = [one for one in found if one["check"] == "advertised"]
        assert told["level"] == CRITICAL and "nowhere.invalid:9092" in told["found"]
    facts = gather.of_folder(Host(), more)
    assert [one.path for one in facts.folders] == [str(lost.data_dir), more]
    assert all(one.formatted for one in facts.folders) and not facts.remarks


def test_limits_are_those_of_the_unit_that_it_runs_in(alone):
    files = {"cgroup": "0::/system.slice/p.service\n", "memory.max": "1048576\n"}
    files |= {"pids.max": "max\n", "pids.current": "9\n", "cpu.max": "50000 100000\n"}
    found = gather.of_folder(Moved(**files), str(alone.data_dir)).unit
    assert found == Unit("p.service", 1 << 20, None, 9, 0.5)


def test_of_another_host_disks_and_addresses_are_looked_at(alone, monkeypatch):
    def elsewhere(_):
        raise Failure("no appliance of this host answers there", name=NOT_LOCAL)

    monkeypatch.setattr(gather, "data_folder", elsewhere)
    facts = gather.of_link(Host(), Link(alone.bootstrap, {}, 10.0))
    assert facts.host is None and not facts.processes and "is not looked at" in facts.remarks[0]
    assert [one.path for one in facts.folders] == [str(alone.data_dir)]
    assert facts.folders[0].space.total > facts.folders[0].space.free > 0
    assert [(one.port, one.problem) for one in facts.advertised] == [(alone.port, "")]


@pytest.fixture
def open_to_all(alone):
    """Its folder, which everybody may read."""
    alone.data_dir.chmod(0o755)
    return str(alone.data_dir)


def test_the_command_tells_the_same_of_a_folder_and_of_an_address(alone, run, open_to_all):
    data = open_to_all
    code = judge.code(judge.findings(gather.of_folder(Host(), data)))
    folder, address = (
        rows(run("doctor", *where, "-o", "json", code=code))
        for where in (("--data", data), ("-b", alone.bootstrap))
    )
    assert [(one["check"], one["subject"]) for one in folder] == [
        (one["check"], one["subject"]) for one in address
    ]
    assert "folder-permissions" in {one["check"] for one in folder}
    said = run("doctor", "--data", data, code=code).stdout
    assert f"chmod go-w,o-rwx {os.path.realpath(alone.data_dir)}" in said


def test_a_remedy_is_applied_and_looked_at_again(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").touch()
    (tmp_path / "data").chmod(0o777)
    found = judge.findings(gather.of_folder(Host(), str(tmp_path / "data")))
    mine = [one for one in found if one.check == "folder-permissions"]
    assert remedies.apply(Host(), mine, lambda _: True)[0].problem == ""
    again = judge.findings(gather.of_folder(Host(), str(tmp_path / "data")))
    assert "folder-permissions" not in {one.check for one in again}


def test_rights_of_a_folder_that_is_not_an_appliances_are_left_alone():
    assert judge.findings(disk(owner=Owner(8, 0o1777, NOW), formatted=False)) == []


def test_each_remedy_is_asked_for(open_to_all, run, monkeypatch):
    ran = []
    monkeypatch.setattr(Host, "run", lambda _, command: ran.append(command) or "")
    monkeypatch.setattr("console.commands.doctor.at_terminal", lambda: True)
    facts = gather.of_folder(Host(), open_to_all)
    found = judge.findings(facts)
    safe = [one.command for one in found if one.may_be_applied(facts.uid)]
    words = ("doctor", "--data", open_to_all, "--fix")
    said = run(*words, stdin="n\n" * 50, code=judge.code(found)).stderr
    assert ran == [] and said.count("Do it?") == len(safe) > 0
    run(*words, "--yes", code=judge.code(found))
    assert ran == safe


def test_nobody_is_asked_who_is_not_at_a_terminal(tmp_path, run):
    assert "--yes" in run("doctor", "--data", str(tmp_path), "--fix", code=2).stderr
    run("doctor", "--data", str(tmp_path), "-b", "localhost:1", code=2)
    run("doctor", "-b", "localhost:1", code=3)
