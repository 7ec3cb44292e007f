"""An ioproc whose logs take long to open is alive: it beats, and lets go of who died."""

import threading
import time

import pytest
from test_control_shell import NET, Appliance, create, new

from appliance.base.os_disk import OsDisk
from appliance.ioproc.coordination import coordinator_loading
from appliance.ioproc.main import IoProcess
from appliance.ring.process_table import IOPROC, READY, STARTING, Peer
from appliance.shell.links import Links
from appliance.shell.loop import Loop

IO = Peer(IOPROC, 0)


class GatedDisk(OsDisk):
    """Nothing is created before the gate is open; `asked`: somebody waits there."""

    def __init__(self):
        self.gate, self.asked = threading.Event(), threading.Event()

    def create(self, path):
        self.asked.set()
        assert self.gate.wait(60)
        return super().create(path)


@pytest.fixture
def appliance(tmp_path):
    one = Appliance(tmp_path)
    yield one
    one.close()


def started(appliance, disk):
    """An I/O process, and what makes a turn of its loop."""
    seat = appliance.seats.seat(IO)
    links = Links(seat, appliance.log)
    process = IoProcess(seat, links, disk, appliance.log, Loop(seat, links))

    def turn():
        links.beat()
        changed = links.changed_peers()
        process.peers_changed(changed)
        links.confirm()
        for peer, messages in links.poll():
            process.handle(peer, messages)
        return process.run_once(time.monotonic_ns())

    return process, turn


def test_coordinators_that_load_are_told(appliance, monkeypatch):
    gate = threading.Event()

    def load(partition, replayed):
        while not gate.is_set():
            yield False  # its followers have not got all of it yet

    create(appliance, new("__consumer_offsets", 2))
    process, turn = started(appliance, OsDisk())
    while appliance.table.state(IO) != READY:
        turn()
        process.workers.opener.wait()
    assert appliance.table.loading == 0
    monkeypatch.setattr(coordinator_loading, "load", load)
    for partition in process.core.partitions.values():
        process.core.coordinators["__consumer_offsets"].no_room(partition, lost=True)
    while appliance.table.loading != 2:
        turn()
    gate.set()
    while appliance.table.loading:
        turn()
    assert process.close()


def test_a_log_that_takes_long_keeps_no_peer_waiting(appliance):
    create(appliance, new("t", 3))
    disk = GatedDisk()
    process, turn = started(appliance, disk)
    assert turn() > 0
    assert disk.asked.wait(60)
    for _ in range(3):
        assert turn() > 0
    appliance.table.vacate(NET)
    epoch = appliance.table.move_epoch()
    turn()
    assert appliance.table.confirmed(IO) == epoch
    assert appliance.table.heartbeat(IO) == 5
    assert appliance.table.state(IO) == STARTING
    disk.gate.set()
    process.workers.opener.wait()
    turn()
    assert appliance.table.state(IO) == READY
    assert len(process.core.partitions) == 3
    assert process.close()
