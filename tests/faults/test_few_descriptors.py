"""Connections up to the limit of open files, while others read old segments: nobody dies, what is
left in reserve serves, and connections stay below their share."""

import contextlib
import os
import re
import socket
import struct
import time
from pathlib import Path

import pytest

from appliance.netproc.limits.open_files import RESERVE
from benchmarks import requests
from benchmarks.batches import batch
from benchmarks.peer import WrongAnswer
from tests.broker_process import KAFKA, Broker, answers

pytestmark = [pytest.mark.timeout(180), pytest.mark.skipif(KAFKA, reason="its limits are not ours")]
FILES = 320
PARTITIONS = 64
"""More of them than a netproc of so few files keeps open: a fetch of all closes some for others."""
GREEDY = "127.0.0.2"


class Poor(Broker):
    """A broker that may open few files."""

    def command(self):
        limit = f'ulimit -n {FILES}; exec "$@"'
        return ["/bin/sh", "-c", limit, "sh", *super().command()]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("poor")
    with Poor(folder / "data", {"log.segment.bytes": str(1 << 20)}) as one:
        one.peer.create(PARTITIONS, {"segment.bytes": str(1 << 20)}, "old")
        with one.peer.connect(1 << 16) as wire:
            for partition in range(PARTITIONS):
                for size in (1_000_000, 100_000):  # a segment that is over, and one that is not
                    records = batch([b"v" * size], int(time.time() * 1000))
                    answer = wire.call(requests.produce("old", partition, records, -1, 1))
                    assert struct.unpack_from(">h", answer, 4 + 2 + 3 + 4 + 4) == (0,)
        yield one


def netproc(broker):
    """The process id of the only network process."""
    for pid in broker.pids():
        if "net-0" in Path(f"/proc/{pid}/comm").read_text():
            return pid
    raise AssertionError("there is no network process")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def hold(broker, address, most):
    """Connections of this address, as many as stay open when so many are tried."""
    held = []
    for _ in range(most):
        sock = socket.create_connection(("127.0.0.1", broker.port), 20, (address, 0))
        held.append(sock)
    request = requests.api_versions(7)
    stay = []
    for sock in held:
        try:
            sock.sendall(request)
            stays = bool(sock.recv(1 << 16))
        except ConnectionError:
            stays = False
        if stays:
            stay.append(sock)
        else:
            sock.close()
    return stay


def read_all(broker):
    """Every partition from its start on, of the segment that is over: how many have records."""
    found = 0
    shape = requests.fetch_shape("old", 4)
    with broker.peer.connect(1 << 22) as wire:
        for partition in range(PARTITIONS):
            answer = wire.call(requests.fetch("old", partition, 0, 1 << 20, 5, max_wait_ms=0))
            code = shape.fields.unpack_from(answer, shape.at - 4)[0]
            assert code == 0, f"partition {partition} is refused with {code}"
            found += len(answer) > 500_000
    return found


def test_connections_up_to_the_limit_leave_what_others_need(broker):
    pids, pid = broker.pids(), netproc(broker)
    before = open_files(pid)
    held = []
    try:
        for address in (GREEDY, "127.0.0.3"):  # each has three quarters of what is left
            more = hold(broker, address, FILES)
            assert more, f"{address} finds no room beside the others"
            held += more
            assert len(held) < FILES - RESERVE - before, "connections have their share"
            assert open_files(pid) <= FILES - RESERVE // 2, "the reserve is there"
        assert "bound=open-files" in broker.output()
        for _ in range(2):
            assert read_all(broker) == PARTITIONS
            assert open_files(pid) < FILES, "segments have theirs"
        broker.peer.create(1, {}, "made-meanwhile")
        assert broker.pids() == pids
        assert not re.search(r" (bug|segment-unreadable|accept-failed) ", broker.output())
    finally:
        for sock in held:
            sock.close()
    assert answers(broker.port)
    end = time.monotonic() + 20
    while len(more := hold(broker, GREEDY, 60)) < 60:  # nothing says when all are closed
        for sock in more:
            sock.close()
        assert time.monotonic() < end, "room that was given back is there again"
    for sock in more:
        sock.close()
    assert broker.pids() == pids


def test_a_flood_of_connections_keeps_no_reader_waiting(broker):
    """Connections that are closed by the limit cost a reader at work nothing but turns."""
    pids, pid = broker.pids(), netproc(broker)
    held = hold(broker, GREEDY, FILES)
    try:
        with broker.peer.connect(1 << 22) as wire:
            for number in range(60):
                with contextlib.suppress(ConnectionError):
                    socket.create_connection(("127.0.0.1", broker.port), 20, (GREEDY, 0)).close()
                partition = number % PARTITIONS
                answer = wire.call(requests.fetch("old", partition, 0, 1 << 20, 5, max_wait_ms=0))
                assert len(answer) > 500_000
                assert open_files(pid) < FILES
    except WrongAnswer as why:
        raise AssertionError(f"a reader was closed: {broker.output()[-2000:]}") from why
    finally:
        for sock in held:
            sock.close()
    assert broker.pids() == pids
