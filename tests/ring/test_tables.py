"""Process and partition tables: whole rows, generations, what a dead writer leaves behind; and that
who reads them from outside knows how they are cut."""

import ast
import mmap
import os
import signal
import sys
from pathlib import Path
from zlib import crc32

import pytest

from appliance.base.ids import TopicId
from appliance.ring.partition_table import (
    COLUMNS,
    GENERATIONS,
    HIGH_WATERMARK,
    LOG_END,
    LOG_START,
    NO_HANDLE,
    ROW_BITS,
    ROW_MASK,
    VERSION,
    PartitionTable,
)
from appliance.ring.process_table import (
    CONTROL,
    DOWN,
    FIRST_EPOCH,
    HEARTBEAT,
    IOPROC,
    LONGEST_TURN,
    NETPROC,
    READY,
    STARTING,
    UNBOUND,
    Peer,
    ProcessTable,
    RemoteFigures,
)
from appliance.ring.tables import FORMAT

CUT = (
    "tables",
    "log_levels",
    "process_table",
    "partition_table",
    "quota_table",
    "counters",
    "histogram",
    "client_table",
    "lag_table",
    "push_table",
    "event_ring",
    "security_table",
    "bound_table",
)
"""Modules whose numbers say where what stands in the memory that others read."""
NO_PLACES = ("DEFAULT_ROWS", "FORMAT", "_TRIES")  # numbers there that move no word
CUTS = {
    1: 0x79FD5B14,
    2: 0xED997D5A,
    3: 0x73B3CC28,
    4: 0xE774599E,
    5: 0xE28FC985,
    6: 0x5ADCD439,
    7: 0xFE527D2C,
    8: 0xAAC2D15B,
    9: 0xBA630681,
    10: 0x6E1018F4,
    11: 0x99F0C95C,
    12: 0x9169FC2C,
    13: 0x25C7FBCA,
    14: 0x984726E3,
    15: 0x9D25DE83,
    16: 0x19156879,
    17: 0x81358829,
    18: 0xA324A0AA,
    19: 0x7FF35602,
    20: 0x7FF35602,  # one more region of the security table
    21: 0x9ABAE90F,
    22: 0x92527378,
    23: 0x733F4CB3,
    24: 0x161CF563,  # stages of requests beside the latencies
}
"""Format → digest of those numbers. Another digest is another format: a line more, none changed."""


def layout(name):
    """(constant, value) of a module, in order: constants are small numbers with a name in
    capitals."""
    module = sys.modules[f"appliance.ring.{name}"]
    for node in ast.parse(Path(module.__file__).with_suffix(".py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = getattr(module, node.target.id)
            if isinstance(value, int) and node.target.id not in NO_PLACES:
                yield name, node.target.id, value


@pytest.mark.interpreted("compiled constants are in no namespace")
def test_the_format_of_the_tables_rises_with_every_change_of_their_columns():
    found = [one for name in CUT for one in layout(name)]
    assert len(found) > 80, "it sees the columns"
    cut = crc32(repr(found).encode())
    assert CUTS.get(FORMAT) == cut, f"format {FORMAT} is not this one: {cut:#X}"
    assert max(CUTS) == FORMAT


def processes() -> ProcessTable:
    memory = memoryview(bytearray(ProcessTable.bytes_needed(2, 3)))
    return ProcessTable(memory, ioprocs=2, netprocs=3)


def partitions(rows=8) -> PartitionTable:
    return PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(rows))), rows)


def test_rows_of_the_process_table_do_not_touch_one_another():
    table = processes()
    assert [str(p) for p in table.peers] == [
        *("control", "ioproc-0", "ioproc-1", "netproc-0", "netproc-1", "netproc-2")
    ]
    for n, peer in enumerate(table.peers, 1):
        table.occupy(peer)
        table.set_pid(peer, n)
        table.set_applied(peer, n * 10)
        table.confirm(peer, n * 100)
        table.set_asleep(peer, n % 2 == 0)
        for _ in range(n):
            table.row_word(peer, HEARTBEAT)[0] += 1
    for n, peer in enumerate(table.peers, 1):
        assert table.pid(peer) == n
        assert table.applied(peer) == n * 10
        assert table.confirmed(peer) == n * 100
        assert table.asleep(peer) == (n % 2 == 0)
        assert table.heartbeat(peer) == n


def test_what_a_dead_process_said_of_itself_is_not_said_by_its_successor():
    table = processes()
    me, other = Peer(IOPROC, 1), Peer(NETPROC, 2)
    assert table.state(me) == DOWN
    assert table.occupy(me) == 1
    assert table.state(me) == STARTING
    table.set_state(me, READY)
    table.confirm(me, 9)
    table.accuse(me, other, 7)
    assert table.state(me) == READY
    assert table.accused(me) == (other, 7)
    table.vacate(me)
    assert table.state(me) == DOWN
    assert table.occupy(me) == 2
    assert table.state(me) == STARTING
    assert table.accused(me) is None
    assert table.confirmed(me) == UNBOUND


def test_figures_of_remote_storage_go_on_with_the_place():
    table = processes()
    one, other = Peer(IOPROC, 0), Peer(IOPROC, 1)
    figures = RemoteFigures(*range(1, 9))
    table.occupy(one)
    table.set_remote_figures(one, figures)
    table.count_flush(one, 7)
    table.set_delayed(one, 1, 2)
    table.set_loading(one, 3)
    assert table.remote_figures(one) == figures
    assert table.remote_figures(other) == RemoteFigures()
    table.vacate(one)
    table.occupy(one)
    assert table.remote_figures(one) == figures and table.loading == 0


def test_a_place_is_taken_once():
    table = processes()
    table.occupy(Peer(CONTROL, 0))
    with pytest.raises(AssertionError):
        table.occupy(Peer(CONTROL, 0))


def test_words_for_all():
    table = processes()
    assert table.move_epoch() == table.epoch == FIRST_EPOCH
    assert table.move_epoch() == FIRST_EPOCH + 1
    table.publish_metadata(12)
    assert table.metadata_offset == 12
    with pytest.raises(AssertionError):
        table.publish_metadata(11)
    assert table.leader == (-1, 0), "nobody is known to lead"
    table.publish_leader(7, 3)
    assert table.leader == (7, 3)
    table.publish_leader(-1, 3)
    assert table.leader == (-1, 3)
    with pytest.raises(AssertionError):
        table.publish_leader(7, 2)
    table.set_cluster_ready(True)
    table.set_drain(2)
    table.set_was_clean(True)
    assert (table.cluster_ready, table.drain, table.was_clean) == (True, 2, True)


def test_the_longest_turn_stands_until_somebody_begins_to_look_anew():
    table = processes()
    me = Peer(IOPROC, 1)
    table.occupy(me)
    longest = table.row_word(me, LONGEST_TURN)
    longest[0] = 30
    assert table.longest_turn(me) == 30
    assert [table.longest_turn(p) for p in table.peers if p != me] == [0] * 5
    table.forget_turns(me)
    longest[0] = 7
    assert table.longest_turn(me) == 7
    table.vacate(me)
    table.occupy(me)
    assert table.longest_turn(me) == 0


def test_rows_are_given_in_order_and_again_under_another_handle():
    table = partitions(4)
    ids = [TopicId(os.urandom(16)) for _ in range(6)]
    assert [table.add(topic_id, n * 7) for n, topic_id in enumerate(ids[:4])] == [0, 1, 2, 3]
    assert table.add(ids[4], 1) == NO_HANDLE
    with pytest.raises(AssertionError):
        table.reuse(1, ids[4], 5)
    seen = table.given
    table.set(1, LOG_END, 77)
    table.retire(1, 40)
    assert table.idle_rows() == [(40, 1)]
    assert not any(table.in_use(handle) for handle in (1, 4, -1))
    assert [(r.handle, r.topic_id, r.partition) for r in table.live_rows()] == [
        (n, ids[n], n * 7) for n in (0, 2, 3)
    ]
    handle = table.reuse(1, ids[4], 5)
    assert (handle & ROW_MASK, handle >> ROW_BITS) == (1, 1)
    assert table.in_use(handle) and not table.in_use(1), "the old handle names nobody"
    assert table.read_column(handle, LOG_END) == 0
    assert list(table.given_since(seen)) == [(handle, ids[4], 5)]
    for _ in range(5):
        table.retire(handle, 0)
        handle = table.reuse(1, ids[5], 6)
    late = [(r.handle, r.topic_id) for r in table.given_since(0)]
    assert late == [(0, ids[0]), (handle, ids[5]), (2, ids[2]), (3, ids[3])], "all, when it is late"


def test_a_handle_comes_again_only_after_all_generations():
    table = partitions(2)
    handles = [table.add(TopicId(bytes(16)), 0)]
    for _ in range(GENERATIONS):
        table.retire(handles[-1], 0)
        handles.append(table.reuse(0, TopicId(bytes(16)), 0))
    assert len(set(handles)) == GENERATIONS == len(handles) - 1
    assert max(handles) < 1 << 32


def test_columns_of_neighbouring_rows_are_apart():
    table = partitions()
    for handle in range(8):
        for column in range(1, COLUMNS):
            table.set(handle, column, handle * 100 - column)
    for handle in range(8):
        expected = [handle * 100 - column for column in range(1, COLUMNS)]
        assert table.read_row(handle)[1:] == expected
        assert table.read_column(handle, 3) == table.state[handle * COLUMNS + 3] == expected[2]


def test_a_writer_that_died_between_begin_and_end_does_not_stop_readers_or_its_successor():
    table = partitions()
    table.begin_change(0)
    table.set(0, LOG_END, 5)
    assert table.read_row(0)[LOG_END] == 5
    table.begin_change(0)
    assert table.read_column(0, VERSION) % 2 == 1
    table.end_change(0)
    assert table.read_column(0, VERSION) % 2 == 0
    with pytest.raises(AssertionError):
        table.end_change(0)


def test_read_row_sees_columns_of_one_moment_while_another_process_writes():
    memory = memoryview(mmap.mmap(-1, PartitionTable.bytes_needed(2)))
    table = PartitionTable(memory, 2)
    child = os.fork()
    if child == 0:
        n = 0
        while True:
            n += 1
            table.begin_change(1)
            table.set(1, LOG_START, n)
            table.set(1, HIGH_WATERMARK, n)
            table.set(1, LOG_END, n)
            table.end_change(1)
            if n % 50 == 0:
                os.sched_yield()
    try:
        seen = 0
        for _ in range(5000):
            row = table.read_row(1)
            if row[VERSION] % 2 == 0:
                assert row[LOG_START] == row[HIGH_WATERMARK] == row[LOG_END]
                seen += 1
        assert seen > 1000
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_what_the_supervisor_is_told_by_others_stands_in_their_words():
    table = processes()
    assert (table.nodes, table.settings) == ((0, 0), 0)
    table.set_nodes(3, 1)
    table.settings_changed()
    assert (table.nodes, table.settings) == ((3, 1), 1)
    me = Peer(IOPROC, 1)
    table.occupy(me)
    table.set_without_room(me, 2)
    table.set_moving(me, moving=True)
    table.set_moving(Peer(IOPROC, 0), moving=True)
    table.set_moving(Peer(IOPROC, 0), moving=False)
    assert [table.without_room(peer) for peer in table.peers if peer.kind == IOPROC] == [0, 2]
    table.set_without_room(me, 1)
    assert (table.all_without_room, table.moving) == (1, 1)
    table.vacate(me)
    table.occupy(me)
    assert table.without_room(me) == 0, "a successor has not looked at the disks yet"
    assert table.moving == 0


def test_the_topics_of_all_partitions_are_counted():
    memory = memoryview(bytearray(PartitionTable.bytes_needed(8)))
    table = PartitionTable(memory, 8)
    assert table.topics() == 0
    handles = [table.add(TopicId(bytes([n]) * 16), p) for n, p in ((1, 0), (1, 1), (2, 5), (3, 0))]
    assert table.topics() == 3
    table.retire(handles[2], 7)
    assert table.topics() == 2
