"""Reading a running appliance without asking it, and what is there to be read."""

import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest

from appliance.base.ids import TopicId
from appliance.observer import door, snapshot
from appliance.observer.door import NotThere, Observer
from appliance.ring.process_table import HEARTBEAT, LONGEST_TURN, NETPROC, READY, Peer
from appliance.ring.tables import FORMAT, PAGE, Shape, Tables, UnknownTables, read_head
from appliance.supervisor.folder import DataFolder
from benchmarks import batches, requests

SHAPE = Shape(ioprocs=2, netprocs=3, partition_rows=64, quota_windows=11)
PRODUCE, METADATA = 0, 3


def tables():
    memory = memoryview(bytearray(Tables.bytes_needed(SHAPE)))
    return memory, Tables(memory, SHAPE)


def take(made, at_ns=0):
    return snapshot.take_snapshot(made, at_ns, lambda peer: 1.5)


# What is read ---------------------------------------------------------------------------------


def test_the_head_says_how_the_memory_is_cut():
    memory, made = tables()
    with pytest.raises(UnknownTables, match="just starting"):
        read_head(memory)
    made.publish(pid=17, started_ms=99)
    assert read_head(memory) == (17, 99, SHAPE, len(memory))
    memory[8] += 1
    with pytest.raises(UnknownTables, match=f"format {FORMAT + 1}"):
        read_head(memory)
    with pytest.raises(UnknownTables, match="small"):
        read_head(memory[: PAGE - 1])


def test_tables_do_not_touch_one_another():
    memory, made = tables()
    made.processes.occupy(Peer(NETPROC, 2))
    made.partitions.add(TopicId(b"t" * 16), 0)
    made.counters.answers[2].answered(95, 1, 1, 1)
    made.counters.errors[0].failed(0, 3)
    again = Tables(memory.toreadonly(), SHAPE)
    assert again.processes.generation(Peer(NETPROC, 2)) == 1
    assert [row.topic_id for row in again.partitions.live_rows()] == [b"t" * 16]
    assert again.counters.answers[2].traffic(95) == (1, 1)
    assert list(again.quotas.read(0)) == []


def test_a_snapshot_sums_what_every_process_counted():
    _, made = tables()
    for netproc in (0, 2):
        made.counters.answers[netproc].answered(PRODUCE, 100, 10, 5_000)
    made.counters.answers[1].answered(METADATA, 30, 300, 2_000_000)
    made.counters.errors[1].failed(PRODUCE, 6)
    made.counters.errors[5].failed(PRODUCE, 6)
    made.counters.errors[5].failed(55, -1)
    found = take(made).apis
    assert sorted(found) == [PRODUCE, METADATA, 55]
    assert (found[PRODUCE].requests, found[PRODUCE].bytes_in, found[PRODUCE].bytes_out) == (
        2,
        200,
        20,
    )
    assert found[PRODUCE].errors == {6: 2}
    assert found[PRODUCE].percentile_us(0.99) == 5.5
    assert abs(found[METADATA].percentile_us(0.5) - 2000) < 2000 / 64
    assert (found[55].requests, found[55].errors) == (0, {-1: 1})


def test_the_difference_of_two_is_what_came_in_between():
    _, made = tables()
    region = made.counters.answers[0]
    region.answered(PRODUCE, 100, 10, 5_000)
    made.counters.errors[0].failed(PRODUCE, 6)
    before = take(made)
    region.answered(PRODUCE, 7, 8, 20_000)
    region.answered(METADATA, 1, 2, 3)
    between = take(made).since(before)
    assert (between[PRODUCE].requests, between[PRODUCE].bytes_in) == (1, 7)
    assert between[PRODUCE].percentile_us(0.5) == 20.5
    assert between[PRODUCE].errors == {}
    assert between[METADATA].requests == 1


def test_processes_are_those_of_the_tables():
    _, made = tables()
    peer = Peer(NETPROC, 1)
    for _ in range(2):  # a successor goes on counting turns
        made.processes.occupy(peer)
        made.processes.set_pid(peer, 77)
        made.processes.set_state(peer, READY)
        made.processes.row_word(peer, HEARTBEAT)[0] += 1
        made.processes.row_word(peer, LONGEST_TURN)[0] = 5000
        if made.processes.generation(peer) == 1:
            made.processes.vacate(peer)
    found = take(made)
    process = next(one for one in found.processes if one.name == "netproc-1")
    assert process == snapshot.ProcessCounters("netproc-1", 77, "ready", 2, 5000, 1.5, restarts=1)


# The door -------------------------------------------------------------------------------------


def test_without_an_appliance_it_says_so(tmp_path):
    with pytest.raises(NotThere, match="no folder of an appliance"):
        Observer(str(tmp_path))
    lock = tmp_path / ".lock"
    for text in ("", "nobody"):  # Apache Kafka's says nothing
        lock.write_text(text)
        with pytest.raises(NotThere, match="names no process"):
            Observer(str(tmp_path))
    for pid in (2**22 + 1, os.getpid()):  # nobody; somebody who has no such lock
        lock.write_text(f"{pid}\n")
        with pytest.raises(NotThere, match="no appliance is running"):
            Observer(str(tmp_path))


def ask(appliance, frame):
    host, _, port = appliance.bootstrap.partition(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        sock.sendall(frame)
        stream = sock.makefile("rb")
        return stream.read(int.from_bytes(stream.read(4), "big"))


def produce(topic):
    return requests.produce(topic, 0, batches.uniform(3, 50, 1_700_000_000_000), -1, 5)


def test_a_running_appliance_is_read_and_does_not_notice(fresh_appliance):
    running = fresh_appliance()
    ask(running, requests.create_topic("seen", 1, {}))
    frame = produce("seen")
    observer = Observer(str(running.data_dir))
    before = observer.snapshot()
    for _ in range(5):
        ask(running, frame)
    ask(running, produce("unseen"))
    after = observer.snapshot()
    between = after.since(before)[PRODUCE]
    assert between.requests == 6
    assert between.bytes_in == 5 * len(frame) + len(produce("unseen"))
    assert sum(between.errors.values()) == 1
    assert 10 < between.percentile_us(0.5) < 10_000_000
    observer.traffic.find_changed()
    (seen,) = [one for one in observer.traffic.topics.values() if one.records_in]
    assert (seen.records_in, seen.batches_in) == (15, 5)
    assert {one.state for one in after.processes} == {"ready"}
    while not any(one.cpu_s for one in observer.snapshot().processes):
        ask(running, frame)  # until a whole tick of the kernel's account was used
    assert observer.alive
    running.stop()
    assert not observer.alive
    assert observer.snapshot().apis[PRODUCE].requests >= 6, "the last values stay"
    with pytest.raises(NotThere, match="no appliance is running"):
        Observer(str(running.data_dir))


def tables_of(pid):
    """os.stat of the tables' memory; other descriptors may be closed meanwhile."""
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if "penstock-tables-" in os.readlink(one):
                return os.stat(one)
    raise AssertionError("the process has no tables")


def test_to_look_makes_no_page_of_memory(fresh_appliance):
    """A table that nobody uses costs nothing, however often it is read."""
    running = fresh_appliance()
    observer = Observer(str(running.data_dir))
    observer.snapshot()
    before = tables_of(observer.head.pid).st_blocks
    for _ in range(3):
        observer.snapshot()
    again = tables_of(observer.head.pid)
    assert again.st_blocks - before <= 8 * 4, "the loops go on meanwhile"
    assert before * 512 < observer.head.size / 2


def test_after_a_killed_netproc_counts_go_on(fresh_appliance):
    running = fresh_appliance(penstock_net_processes=1)
    ask(running, requests.create_topic("kept", 1, {}))
    observer = Observer(str(running.data_dir))
    for _ in range(3):
        ask(running, produce("kept"))
    before = observer.snapshot()
    (netproc,) = [one for one in before.processes if one.name == "netproc-0"]
    os.kill(netproc.pid, signal.SIGKILL)
    done = 0
    while done < 3:
        try:
            done += bool(ask(running, produce("kept")))
        except OSError:
            continue
    after = observer.snapshot()
    assert after.apis[PRODUCE].requests >= before.apis[PRODUCE].requests + 3
    (successor,) = [one for one in after.processes if one.name == "netproc-0"]
    assert successor.pid != netproc.pid
    assert successor.turns > netproc.turns


def test_who_locks_a_folder_and_looks_at_another_appliance_is_none(appliance, tmp_path):
    (tmp_path / "free").mkdir()
    locked = DataFolder(str(tmp_path / "free"))
    seen = os.open(door.segment(str(appliance.data_dir)), os.O_RDONLY)
    try:
        with pytest.raises(NotThere):
            Observer(locked.path)
    finally:
        os.close(seen)
        locked.close()


def test_tables_of_another_version_are_refused_in_words(tmp_path, monkeypatch):
    memory, made = tables()
    made.publish(pid=17, started_ms=99)
    memory[8] += 1
    path = tmp_path / "segment"
    path.write_bytes(memory)
    monkeypatch.setattr(door, "segment", lambda data_dir: str(path))
    with pytest.raises(NotThere, match="cannot be read: its tables have format"):
        Observer(str(tmp_path))
