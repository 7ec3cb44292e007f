"""A leader whose answers are cut, flipped or noise, and come in any pieces: the follower raises
nothing, serves what it has, and has what a sound leader has in the end."""

import contextlib
import random
from struct import Struct

import pytest
from core_world import batch
from logstore.twin import stored
from made_up_leader import Connection, MadeUp, Poller
from pulling_world import SMALL, Follower, level, write
from sim.disk import SimDisk

from tests.seeds import each_seed

_I32 = Struct(">i")
EXTREMES = (0, 1, -1, -2, 0x7FFFFFFF, -(1 << 31), 1 << 24)


class MadConnection(Connection):
    def answer(self, frame):
        """As the leader would, changed, and in pieces between which the follower takes turns."""
        sent = []
        sock, self.sock = self.sock, _Kept(sent)
        try:
            super().answer(frame)
        finally:
            self.sock = sock
        if not sent or self not in self.leader.connections:
            return
        data = b"".join(sent)
        if frame[:2] != b"\0\x12":  # versions are agreed upon soundly
            data = self.leader.changed(data)
        sock.setblocking(True)
        with contextlib.suppress(OSError):
            for piece in self.leader.pieces(data):
                sock.sendall(piece)
        sock.setblocking(False)


class _Kept:
    """Takes what is sent."""

    def __init__(self, sent):
        self.sendall = sent.append

    def setblocking(self, _):
        pass


class MadLeader(MadeUp):
    """mad: how likely an answer is changed."""

    def __init__(self, poller, rng):
        super().__init__(poller)
        self.rng, self.mad = rng, 0.0

    def ready(self, mask):
        before = len(self.connections)
        super().ready(mask)
        for one in self.connections[before:]:
            one.__class__ = MadConnection

    def pieces(self, data):
        at = 0
        while at < len(data):
            size = self.rng.choice((1, 4, 50, 700, len(data)))
            yield data[at : at + size]
            at += size

    def changed(self, data):
        rng = self.rng
        if rng.random() >= self.mad:
            return data
        data = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(8, len(data))
            kind = rng.randrange(5)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                data[at : at + 4] = _I32.pack(rng.choice(EXTREMES))
            elif kind == 2:
                del data[at : at + rng.randrange(1, 80)]
            elif kind == 3:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            else:
                start = rng.randrange(8, len(data))
                data[at:at] = data[start : start + rng.randrange(200)]  # twice, or elsewhere
            if len(data) < 9:
                data += bytes(9)
        if rng.random() < 0.9:
            data[:4] = _I32.pack(len(data) - 4)
        return bytes(data)


@pytest.fixture
def poller():
    return Poller()


@each_seed(3000)
def test_a_follower_outlives_a_mad_leader(poller, seed):
    rng = random.Random(seed)
    disk = SimDisk(random.Random(seed))
    disk.mkdir("/data")
    disk.sync_dir("/")
    leader = MadLeader(poller, rng)
    leader.most = rng.choice((200, 3000, 1 << 20))
    led = [leader.add(name, **SMALL, retention_ms=-1) for name in "tu"]
    follower = Follower("/data", leader, disk=disk)
    partitions = [follower.add(one) for one in led]

    def grow():
        for one in led:
            for _ in range(rng.randrange(4)):
                write(one.log, batch(rng.randbytes(rng.randrange(300))), epoch=one.epoch)

    leader.mad = 0.5
    for _ in range(12):
        grow()
        for _ in range(rng.randrange(12)):
            follower.turn()
        for partition in partitions:
            assert partition.broken is None, partition.broken
            progress = partition.progress
            assert progress.log_start <= progress.high_watermark <= progress.log_end < 1 << 62
    leader.mad = 0.0
    for connection in list(leader.connections):  # what came of an answer may wait for the rest
        connection.close()
    for one, partition in zip(led, partitions, strict=True):
        one.epoch = max(one.epoch, partition.leader_epoch) + 1
        one.log.begin_epoch(one.epoch)
        follower.follow(partition, one.epoch)
    grow()
    for one in led:
        write(one.log, batch(b"last"), epoch=one.epoch)
    for one, partition in zip(led, partitions, strict=True):
        follower.until(level(one, partition))
        got, wanted = stored(partition.log), stored(one.log)
        assert got[-1:] == wanted[-1:] and got == wanted[len(wanted) - len(got) :]
    follower.pulling.close()
    for partition in partitions:
        partition.log.close()
    leader.close()
