"""What is told of an appliance's tables: all that was counted since the look before, once, whatever
becomes of partitions, connections and processes meanwhile."""

import random

from appliance.base.ids import TopicId
from appliance.history.clients import kind_of
from appliance.history.format import MINUTE, SECOND
from appliance.history.sampler import Outside, Sampler
from appliance.history.sampler import SampledTables as Looked
from appliance.history.samples import ClientIdentity, ClientSample, TopicSample
from appliance.ring import partition_table as columns
from appliance.ring.client_table import NO_ROW, ROWS, ClientTable
from appliance.ring.lag_table import Lag
from appliance.ring.process_table import IOPROC, Peer
from appliance.ring.tables import Shape, Tables

SHAPE = Shape(ioprocs=1, netprocs=2, partition_rows=16, quota_windows=11)
BEGIN_MS = 1_000_040_000  # in the middle of a minute


class World:
    """Tables that nobody shares, and a clock that the test moves."""

    def __init__(self):
        memory = memoryview(bytearray(Tables.bytes_needed(SHAPE)))
        self.tables = made = Tables(memory, SHAPE)
        self.names = {}
        self.cpu = {}
        self.ms = 0
        looked = Looked(made.processes, made.partitions, made.counters, made.clients, made.lags)
        outside = Outside(
            lambda topic_id: self.names.get(topic_id, ""),
            lambda pid: self.cpu.get(pid, (0.0, 0))[0],
            lambda pid: self.cpu.get(pid, (0.0, 0))[1],
            lambda: [(1000, 400), (0, 0)],
        )
        self.sampler = Sampler(looked, outside, BEGIN_MS, 0)

    def partition(self, name, row=None):
        topic_id = TopicId(name.encode().ljust(16, b"-"))
        self.names[topic_id] = name
        table = self.tables.partitions
        return table.add(topic_id, 0) if row is None else table.reuse(row, topic_id, 0)

    def append(self, handle, size, records=1):
        table = self.tables.partitions
        table.begin_change(handle)
        for column, more in (
            (columns.BYTES_IN, size), (columns.RECORDS_IN, records), (columns.BATCHES_IN, 1),
            (columns.SIZE_BYTES, size),
        ):  # fmt: skip
            table.set(handle, column, table.read_column(handle, column) + more)
        table.end_change(handle)

    def serve(self, netproc, handle, size):
        row = (handle & columns.ROW_MASK) * columns.SERVED_COLUMNS
        part = self.tables.partitions.served[netproc]
        part[row + columns.BYTES_OUT] += size
        part[row + columns.FETCHES] += 1

    def look(self, ms=1000, **how):
        self.ms += ms
        return self.sampler.take_samples(BEGIN_MS + self.ms, self.ms, **how)


def test_all_that_is_appended_and_read_is_told_once():
    rng, world, twin, told = random.Random(7), World(), {}, {}
    handles = [world.partition(f"t{n % 3}") for n in range(7)]
    for _ in range(40):
        for _ in range(rng.randrange(4)):
            n = rng.randrange(len(handles))
            size, read = rng.randrange(1, 10**6), rng.randrange(10**6)
            world.append(handles[n], size)
            world.serve(rng.randrange(2), handles[n], read)
            was = twin.get(f"t{n % 3}", TopicSample())
            twin[f"t{n % 3}"] = TopicSample(was[0] + size, was[1] + read, was[2] + 1)
        if rng.random() < 0.1 and len(handles) < 16:
            handles.append(world.partition(f"t{len(handles) % 3}"))
        for step in world.look():
            assert step.span_ms == 1000 or step.step == MINUTE
            whole = [sum(column) for column in zip(*step.topics.values(), strict=True)]
            assert tuple(whole or (0, 0, 0)) == step.whole[:3]
            if step.step == SECOND:
                for name, one in step.topics.items():
                    past = told.get(name, TopicSample())
                    told[name] = TopicSample(*map(sum, zip(past, one, strict=True)))
    assert told == twin


def test_a_minute_is_told_when_it_is_over_and_at_the_end():
    world = World()
    handle = world.partition("orders")
    minutes = []
    for _ in range(90):
        world.append(handle, 10)
        minutes += [one for one in world.look() if one.step == MINUTE]
    (first,) = minutes
    assert (first.at_ms % 60_000, first.span_ms, first.topics["orders"].bytes_in) == (
        0,
        40_000,
        400,
    )
    world.append(handle, 10)
    (_, last) = world.look(last=True)
    assert (last.step, last.span_ms, last.topics["orders"].bytes_in) == (MINUTE, 51_000, 510)


def test_a_row_that_another_partition_has_counts_anew():
    world = World()
    handle = world.partition("old")
    world.append(handle, 5000)
    world.look()
    table = world.tables.partitions
    table.retire(handle, 1)
    handle = world.partition("new", handle & columns.ROW_MASK)
    world.append(handle, 7000)
    (step,) = world.look()
    assert step.topics == {"new": TopicSample(7000, 0, 1)}
    assert step.whole.size_bytes == 7000
    assert [(one.total, one.free, one.logs) for one in step.disks] == [(1000, 400, 7000), (0, 0, 0)]


def test_latencies_are_those_of_the_interval():
    world = World()
    answers = world.tables.counters.answers
    for netproc in (0, 1):
        answers[netproc].answered(0, 100, 10, 5_000_000)
    world.tables.counters.errors[2].failed(0, 3)
    (step,) = world.look()
    (api,) = step.apis
    assert (api.key, api.requests, api.errors) == (0, 2, 1)
    assert abs(api.p50_us - 5000) < 5000 / 60
    assert (step.whole.requests, step.whole.received, step.whole.sent) == (2, 200, 20)
    answers[0].answered(0, 100, 10, 20_000)
    (api,) = world.look()[0].apis
    assert (api.requests, api.errors, api.p50_us, api.longest_us) == (1, 0, 20, 20)
    assert not world.look()[0].apis
    (_, minute) = world.look(last=True)
    assert (minute.apis[0].requests, minute.apis[0].p50_us > 4000) == (3, True)


def test_cpu_is_of_the_process_that_has_the_place():
    world = World()
    peer = Peer(IOPROC, 0)
    world.tables.processes.occupy(peer)
    world.tables.processes.set_pid(peer, 50)
    world.cpu[50] = (10.0, 2048)
    world.look()
    world.cpu[50] = (10.25, 4096)
    found = {(one.kind, one.index): one for one in world.look()[0].processes}
    assert (found[IOPROC, 0].cpu, found[IOPROC, 0].memory_kib) == (25.0, 2048)
    minute = {(one.kind, one.index): one for one in world.look(last=True)[1].processes}
    assert minute[IOPROC, 0].memory_kib == 4096, "it is looked at once a minute"
    world.tables.processes.vacate(peer)
    found = {(one.kind, one.index): one for one in world.look()[0].processes}
    assert (found[IOPROC, 0].pid, found[IOPROC, 0].cpu) == (0, 0.0)
    world.tables.processes.occupy(peer)
    world.tables.processes.set_pid(peer, 51)
    world.cpu[51] = (0.5, 1)
    found = {(one.kind, one.index): one for one in world.look()[0].processes}
    assert found[IOPROC, 0].cpu == 50.0, "since it began"


# Clients --------------------------------------------------------------------------------------


def test_connections_of_one_client_count_together_and_each_count_once():
    world = World()
    rows = [world.tables.clients.rows[n] for n in (0, 1)]
    a, b = rows[0].claim("127.0.0.1", "L", 5), rows[1].claim("127.0.0.1", "L", 6)
    for part, row in ((rows[0], a), (rows[1], b)):
        part.write_names(row, "alice", "loader")
    rows[0].count(a, 3, 900, 90, 800, 0, 0, 0)
    (step,) = world.look()
    alice = ClientIdentity("alice", "loader", "local")
    assert step.clients == {alice: ClientSample(800, 0, 3, 0)}
    assert step.whole.connections == 2
    rows[0].count(a, 4, 1000, 100, 850, 0, 0, 0)
    rows[1].count(b, 1, 50, 5000, 0, 4000, 1, 0)
    rows[0].pause(a, 0, world.ms + 4000, 4000)
    rows[0].pause(a, 0, world.ms + 3000, 3000)
    rows[0].pause(a, 0, world.ms + 5000, 4500)  # it was told so while it paused already
    (step,) = world.look()
    assert step.clients == {alice: ClientSample(50, 4000, 2, 5000)}
    assert step.whole.throttled == 1
    assert not world.look()[0].clients


def test_what_a_connection_did_just_before_it_hung_up_is_told():
    world = World()
    table = world.tables.clients
    rows = table.rows[0]
    for n in range(3):
        row = rows.claim("10.0.0.9", "L", n)
        rows.write_names(row, "bob", f"c{n}")
        rows.count(row, 1, 10, 10, 7 + n, 0, 0, 0)
        rows.release(row)
    (step,) = world.look()
    assert step.clients == {
        ClientIdentity("bob", f"c{n}", "private"): ClientSample(7 + n, 0, 1, 0) for n in range(3)
    }
    assert list(table.connected()) == []
    assert step.whole.connections == 0


def test_a_connection_that_says_another_name_counts_for_that_from_then_on():
    world = World()
    rows = world.tables.clients.rows[0]
    row = rows.claim("8.8.8.8", "L", 0)
    rows.write_names(row, "ANONYMOUS", "first")
    rows.count(row, 1, 1, 1, 1, 0, 0, 0)
    world.look()
    rows.write_names(row, "ANONYMOUS", "second")
    rows.count(row, 2, 2, 2, 3, 0, 0, 0)
    (step,) = world.look()
    assert step.clients == {
        ClientIdentity("ANONYMOUS", "second", "public"): ClientSample(2, 0, 1, 0)
    }


class Meddled:
    """A region's words, in which something happens between two looks at columns."""

    def __init__(self, words, *happenings):
        self._words, self._happenings = words, list(happenings)

    def __getitem__(self, what):
        if isinstance(what, slice) and self._happenings:
            self._happenings.pop(0)()
        return self._words[what]


def test_connections_that_come_and_go_while_they_are_looked_at():
    world = World()
    table = world.tables.clients
    rows = table.rows[0]
    gone = rows.claim("8.8.8.8", "L", 0)
    rows.write_names(gone, "ANONYMOUS", "long")
    rows.count(gone, 100, 1, 1, 5000, 0, 0, 0)
    world.look()

    def one_more():
        rows.claim("8.8.8.8", "L", 0)

    def another():
        while rows.claim("8.8.8.8", "L", 0) < ROWS - 1:
            pass
        rows.release(gone)
        row = rows.claim("8.8.8.8", "L", 0)
        rows.write_names(row, "ANONYMOUS", "short")
        rows.count(row, 2, 1, 1, 7, 0, 0, 0)
        assert row == gone

    words, memory = table._regions[0]
    table._regions[0] = Meddled(words, one_more, one_more, another, one_more), memory
    (step,) = world.look()
    assert step.clients == {
        ClientIdentity("ANONYMOUS", "short", "public"): ClientSample(7, 0, 2, 0)
    }
    assert step.whole.connections == ROWS + 1, "one of them found no row"


def test_kinds_of_addresses():
    kinds = [kind_of(one) for one in ("::1", "fe80::1%eth0", "192.168.3.4", "1.1.1.1", "")]
    assert kinds == ["local", "private", "private", "public", "private"]


def test_rows_of_connections_are_given_again_and_those_without_one_are_counted():
    table = ClientTable(memoryview(bytearray(ClientTable.bytes_needed(1))), 1)
    rows = table.rows[0]
    given = [rows.claim("1.2.3.4", "L", n) for n in range(ROWS)]
    assert given == list(range(ROWS))
    assert rows.claim("1.2.3.4", "L", 9) == NO_ROW and table.left_out == 1
    for say in (
        lambda: rows.write_names(NO_ROW, "a", "b"), lambda: rows.software(NO_ROW, "a", "b"),
        lambda: rows.count(NO_ROW, 1, 1, 1, 1, 1, 1, 0), lambda: rows.pause(NO_ROW, 1, 1, 1),
    ):  # fmt: skip
        say()
    assert [one.row for one in table.connected()] == given
    rows.release(NO_ROW)
    rows.release(7)
    rows.release(3)
    assert table.left_out == 0
    assert [rows.claim("5.6.7.8", "M", 11), rows.claim("", "L", 12)] == [7, 3]
    one = table.read(0, 7)
    assert (one.address, one.listener, one.since_ms, one.requests) == ("5.6.7.8", "M", 11, 0)
    successor = table.rows[0]
    successor.clear_rows()
    assert list(table.connected()) == []
    assert successor.claim("9.9.9.9", "L", 1) == 0, "a new netproc has all of them again"


def test_names_of_a_connection_are_cut_and_kept_apart():
    table = ClientTable(memoryview(bytearray(ClientTable.bytes_needed(2))), 2)
    rows = table.rows[1]
    row = rows.claim("a" * 99, "l" * 99, 0)
    rows.write_names(row, "p" * 99, "é" * 99)
    rows.software(row, "s" * 99, "v" * 99)
    (one,) = table.connected()
    assert (one.netproc, one.address, one.principal) == (1, "a" * 46, "p" * 60)
    assert (one.client_id, one.software, one.version) == ("é" * 35, "s" * 32, "v" * 32)
    assert (one.last_api, one.paused_until_ms) == (-1, 0)
    rows.write_names(row, "q", "")
    assert (table.read(1, row).principal, table.read(1, row).client_id) == ("q", "")


# Lags -----------------------------------------------------------------------------------------


def test_lags_are_told_with_each_minute():
    world = World()
    world.tables.lags.write_lags(0, [Lag(5, "billing", "orders"), Lag(0, "g" * 400, "t" * 249)], 3)
    (_, minute) = world.look(last=True)
    assert minute.lags == {("billing", "orders"): 5, ("g" * 256, "t" * 249): 0}
    assert minute.left_out == {"lags": 3}
    world.tables.lags.write_lags(0, [], 0)
    assert world.look(last=True)[1].lags == {}


def test_lags_of_an_ioproc_that_died_while_it_wrote_are_not_told():
    world = World()
    table = world.tables.lags
    table.write_lags(0, [Lag(5, "a", "t")], 0)
    words = table._regions[0][0]
    words[0] += 1
    assert table.read() == ({}, 0)
    table.write_lags(0, [Lag(6, "a", "t")], 0)
    assert table.read() == ({("a", "t"): 6}, 0)
