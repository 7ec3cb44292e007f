"""The audit file has each login, denial and change once, also when the disk fails for a while, a
file becomes long or control dies."""

import errno
import json
import os
from functools import partial

import pytest

from appliance.base.caller import Caller, Principal
from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.config import bounds
from appliance.control.history.audit_writer import AuditFile, Auditor
from appliance.history.audit_log import entry_of
from appliance.ring.security_table import ACCESS_DENIED, LOGIN_FAILED, SecurityTable
from appliance.shell.audit import LONGEST, MOST, Trail, most_of
from console.model.access.audit import AuditFilter, AuditReader
from tests.console_process import typing
from tests.control.test_keeping import Threads

SECOND_NS = 1_000_000_000
NOW_MS = 1_795_000_000_000
CALLER = Caller(Principal("User", "anna"), "cli", "10.0.0.1", "SASL")
ORDERS = {"type": "topic", "name": "orders", "action": "create"}


class Clock:
    def wall_ms(self):
        return NOW_MS


class Lines:
    def __init__(self):
        self.told = []

    def event(self, priority, event, **fields):
        self.told.append(event)


class World:
    def __init__(self, folder):
        self.folder = str(folder)
        memory = memoryview(bytearray(SecurityTable.bytes_needed(1, 1)))
        self.table = SecurityTable(memory, ioprocs=1, netprocs=1)
        self.now_ns = 0
        self.disk = OsDisk()
        self.log = Lines()
        self.reached = []
        self.begin()

    def reach(self, bound, why):
        assert bounds.setting_of(bound) in why
        self.reached.append(bound)

    def begin(self, max_bytes=1 << 20, files=3):
        opened = partial(AuditFile, self.disk, self.folder, max_bytes, files, self.reach)
        self.threads = Threads()
        self.auditor = Auditor(self.table, opened, Clock(), self.threads, self.log)

    def trail(self, process="netproc-0"):
        region = self.table.regions[process]
        return Trail(region, MOST, lambda: self.now_ns, lambda: NOW_MS, self.reach)

    def turn(self, seconds=1):
        self.now_ns += seconds * SECOND_NS
        self.auditor.run_turn(self.now_ns)
        self.threads.work()
        self.auditor.run_turn(self.now_ns)

    def entries(self):
        return list(AuditReader(self.folder).entries())


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_an_entry_has_who_did_what_from_where_and_only_its_owner_reads_the_file(world):
    world.trail().note_login((0, "SASL"), "PLAIN", "User:anna", "10.0.0.1", "cli")
    world.trail("control").note_change("CreateTopics", [ORDERS], 2, CALLER)
    world.turn()
    changed, login = world.entries()
    assert [login, changed] == [
        {
            "time": "2026-11-18T11:06:40.000Z", "event": "login", "process": "netproc-0",
            "principal": "User:anna", "mechanism": "PLAIN", "listener": "SASL",
            "address": "10.0.0.1", "client_id": "cli",
        },
        {
            "time": "2026-11-18T11:06:40.000Z", "event": "changed", "process": "control",
            "principal": "User:anna", "address": "10.0.0.1", "listener": "SASL",
            "client_id": "cli", "request": "CreateTopics", "changes": [ORDERS], "more": 2,
        },
    ]  # fmt: skip
    file = os.path.join(world.folder, "penstock.audit.jsonl")
    assert os.stat(file).st_mode & 0o777 == 0o600
    [count] = world.table.logins()
    assert count == ("SASL", "PLAIN", 1, 0, 0, 0)


def test_a_flood_of_failures_is_bounded_and_counted(world):
    trail = world.trail()
    for n in range(1000):
        trail.note_login((0, "SASL"), "PLAIN", "", f"10.0.{n % 250}.1", "", why="wrong")
        trail.note_login((0, "SASL"), "PLAIN", "", "10.0.0.1", "", why="wrong")
    world.turn()
    *failures, rest = world.entries()
    assert [one["event"] for one in failures] == ["login-failed"] * most_of(MOST)[LOGIN_FAILED]
    assert (rest["event"], rest["of"]) == ("left-out", "login-failed")
    assert rest["count"] == 2000 - most_of(MOST)[LOGIN_FAILED]
    assert world.table.logins()[0].failed == 2000
    assert set(world.reached) == {bounds.AUDIT_ENTRIES}
    trail.note_login((0, "SASL"), "PLAIN", "", "10.0.0.1", "", why="wrong")
    world.turn()
    assert len(world.entries()) == len(failures) + 2, "a new second, and nothing is told twice"


def test_what_a_stranger_says_is_one_line_without_control_characters(world):
    name = 'x"\n{"event": "login"}\x1b[2J\u202e' + "y" * 10_000
    world.trail().write_entry(ACCESS_DENIED, 1, principal=name, name="\ud800")
    world.trail().note_change("CreateTopics", [{**ORDERS, "name": name}], 0, CALLER)
    world.turn()
    data = (world.disk.open_file(f"{world.folder}/penstock.audit.jsonl")).pread(1 << 20, 0)
    assert all(0x20 <= byte < 0x7F or byte == 0x0A for byte in data)
    denied, changed = world.entries()
    assert denied["principal"] == name[:LONGEST]
    [change] = changed["changes"]
    assert change["type"] == "topic" and name.startswith(change["name"])


class Failing(OsDisk):
    def create(self, path):
        raise StorageFailed(path, errno.EIO, "planted")


def test_a_disk_that_fails_costs_no_entry(world):
    good, world.disk = world.disk, Failing()
    world.begin()
    world.trail().note_login((0, "SASL"), "PLAIN", "User:anna", "10.0.0.1", "")
    world.turn()
    world.turn(60)
    assert world.entries() == [] and world.log.told == ["audit-not-written"]
    world.disk = good
    world.auditor._open_file = partial(AuditFile, good, world.folder, 1 << 20, 3, world.reach)
    world.turn(60)
    world.turn()
    assert [one["principal"] for one in world.entries()] == ["User:anna"]


def test_a_successor_goes_on_where_control_died(world):
    trail = world.trail()
    trail.note_login((0, "SASL"), "PLAIN", "User:anna", "10.0.0.1", "")
    world.turn()
    trail.note_login((0, "SASL"), "PLAIN", "User:bert", "10.0.0.1", "")
    world.begin()
    world.auditor.run_turn(world.now_ns + SECOND_NS)
    world.auditor.close()
    assert [one["principal"] for one in world.entries()] == ["User:anna", "User:bert"]


def test_what_is_overwritten_before_it_was_read_is_counted(world):
    trail = world.trail()
    trail.note_login((0, "SASL"), "PLAIN", "User:anna", "10.0.0.1", "")
    world.turn()
    for n in range(3000):
        world.now_ns += SECOND_NS
        trail.note_login((0, "SASL"), "PLAIN", f"User:{n}", "10.0.0.1", "")
    world.turn()
    *entries, rest = world.entries()
    assert rest["of"] == "any" and len(entries) + rest["count"] == 3001
    assert entries[-1]["principal"] == "User:2999"


def test_a_torn_line_is_passed_over(world):
    world.trail().note_login((0, "SASL"), "PLAIN", "User:anna", "10.0.0.1", "")
    world.turn()
    with open(f"{world.folder}/penstock.audit.jsonl", "ab") as file:
        file.write(b'{"time": "2026')
    world.begin()
    world.trail().note_login((0, "SASL"), "PLAIN", "User:bert", "10.0.0.1", "")
    world.turn()
    assert [one["principal"] for one in world.entries()] == ["User:anna", "User:bert"]


def test_files_are_bounded_in_size_and_number_and_followed(world):
    world.begin(max_bytes=400, files=3)
    trail, reader = world.trail(), AuditReader(world.folder)
    seen = []
    for n in range(20):
        trail.note_login((0, "SASL"), "PLAIN", f"User:{n}", "10.0.0.1", "")
        world.turn()
        seen += [one["principal"] for one in reader.news()]
    assert seen == [f"User:{n}" for n in range(20)]
    names = sorted(os.listdir(world.folder))
    assert names == [f"penstock.audit.jsonl{end}" for end in ("", ".1", ".2")]
    assert all(os.path.getsize(f"{world.folder}/{one}") <= 400 for one in names)
    assert set(world.reached) == {bounds.AUDIT_FILES}, "the oldest was deleted, which is told"
    kept = [one["principal"] for one in world.entries()]
    assert kept == seen[-len(kept) :] and len(kept) >= 4
    world.begin(max_bytes=400, files=2)
    trail.note_login((0, "SASL"), "PLAIN", "User:last" + "x" * 200, "10.0.0.1", "")
    world.turn()
    assert len(os.listdir(world.folder)) == 2


def test_who_has_read_the_files_holds_none_of_them(world):
    world.begin(max_bytes=300, files=3)
    for n in range(8):
        world.trail().note_login((0, "SASL"), "PLAIN", f"User:{n}", "10.0.0.1", "")
        world.turn()

    def held():
        there = (f"/proc/self/fd/{one}" for one in os.listdir("/proc/self/fd"))
        names = (os.readlink(one) for one in there if os.path.exists(one))
        return [one for one in names if one.startswith(str(world.folder) + "/penstock.audit")]

    ours = held()
    assert "User:7" in typing("nobody:1")("audit", "--data", str(world.folder)).stdout
    next(AuditReader(world.folder).entries())  # and looks no further
    assert held() == ours


def test_entries_are_found_by_who_and_since_when():
    entry = {"time": "2026-11-18T09:46:40.000Z", "event": "login", "principal": "User:Anna"}
    more = {"time": "2026-11-18T09:46:41.000Z", "event": "left-out", "of": "login", "count": 3}
    assert AuditFilter(who="anna").keeps(entry) and not AuditFilter(who="bert").keeps(entry)
    assert AuditFilter(who="bert").keeps(more), "it may be one of these"
    assert AuditFilter(event="login").keeps(more) and not AuditFilter(event="changed").keeps(more)
    assert not AuditFilter(since="2026-11-18T09:46:41").keeps(entry)
    assert entry_of(json.dumps(entry).encode()) == entry
    assert entry_of(b"[1]") is None and entry_of(b"{}") is None and entry_of(b"\xff") is None
