"""What clients pushed last: whole rows, the latest of each client, and room for so many."""

from dataclasses import dataclass

from appliance.ring import push_table
from appliance.ring.push_table import DEFAULT_ROWS as ROWS
from appliance.ring.push_table import PAYLOAD, PushingClient, PushTable

WHO = PushingClient("alice", "loader", "127.0.0.1", "a-client", "1.2")


@dataclass
class World:
    table: PushTable
    seen: PushTable

    def push(self, n, now_ms=1000, netproc=0, payload=b"", ended=False, who=WHO):
        self.table.rows[netproc].write_push(
            n.to_bytes(16, "big"), who, now_ms, 100, 4, ended, payload
        )

    def found(self, now_ms=1000):
        return {int.from_bytes(one.instance, "big"): one for one in self.seen.read(now_ms)}


def world(netprocs=1):
    memory = memoryview(bytearray(PushTable.bytes_needed(netprocs)))
    return World(PushTable(memory, netprocs), PushTable(memory.toreadonly(), netprocs))


def test_the_last_push_is_read_as_it_was_written():
    one = world()
    one.push(7, 1000, payload=b"x" * PAYLOAD)
    one.push(7, 1100, payload=b"second")
    (found,) = one.found(1150).values()
    assert (found.who, found.payload, found.pushes) == (WHO, b"second", 2)
    assert (found.pushed_ms, found.interval_ms, found.codec) == (1100, 100, 4)
    long = PushingClient("p" * 100, "ü" * 100, "", "", "")
    one.push(8, who=long, payload=b"y")
    found = one.found()[8]
    assert (found.who.principal, found.who.client_id) == ("p" * 60, "ü" * 35)
    assert found.payload == b"y"


def test_who_is_silent_for_two_intervals_or_has_ended_is_not_told():
    one = world()
    one.push(1, 1000)
    one.push(2, 1050)
    one.push(3, 1050, ended=True)
    assert set(one.found(1199)) == {1, 2}
    assert set(one.found(1200)) == {2}


def test_a_client_that_reached_another_process_is_told_once_by_what_it_pushed_last():
    one = world(netprocs=2)
    one.push(1, 1000, netproc=1, payload=b"old")
    one.push(1, 1050, netproc=0, payload=b"new")
    assert one.found(1060)[1].payload == b"new"
    one.push(1, 1090, netproc=1, ended=True)
    assert one.found(1095) == {}


def test_when_all_rows_are_taken_the_one_that_was_silent_longest_goes():
    one = world()
    for n in range(ROWS):
        one.push(n, 1000 + (n == 5) - (n == 9))
    one.push(5000, 1002)
    assert 9 not in one.found(1003) and 5000 in one.found(1003)
    assert len(one.found(1003)) == ROWS and one.seen.pushed_out == 1
    one.push(9, 1003)
    assert 9 in one.found(1003) and one.seen.pushed_out == 2


def test_a_row_that_is_being_written_is_passed_over_and_a_successor_knows_nobody():
    one = world()
    one.push(1)
    one.push(2)
    words, _ = one.table._regions[0]
    words[push_table._at(0)] += 1  # the netproc is killed here
    assert set(one.found()) == {2}
    one.table.rows[0].clear_rows()
    assert one.found() == {}
    one.push(3)
    assert set(one.found()) == {3} and one.found()[3].pushes == 1
