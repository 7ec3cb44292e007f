"""An ioproc on a disk that another program fills: what needs room is refused, the rest goes on, and
nothing has to be started again."""

from random import Random

from core_world import NOW_MS, World, batch
from sim.disk import PAGE, SimDisk

from appliance.base import errors
from appliance.logstore.log import PartitionLog
from appliance.ring.messages import APPENDED, DELETE_RECORDS, DELETED, FOUND
from appliance.wire.batch import read_header
from tests.seeds import each_seed


def full_world():
    disk = SimDisk()
    disk.mkdir("/d")
    return World("/d", disk=disk)


def fill(disk, leave=0):
    disk.foreign = 0
    disk.foreign = disk.capacity - disk.used() - leave


def make_room(world):
    world.disk.foreign = 0
    for later in (1, 2):  # it does not believe at once that there is room
        world.space.read_space(world.now_ns + later * 10**12, 1 << 40, 1 << 40)
    assert not world.space.low
    world.core.has_room(0)


def test_a_batch_without_room_is_refused_and_nothing_else():
    world = full_world()
    p = world.add()
    world.append(p.handle, batch(b"a", producer=(7, 0, 0)), acks=1, token=1)
    world.settle()
    fill(world.disk)
    late = batch(bytes(2 * PAGE), producer=(7, 0, 1))
    world.append(p.handle, late, acks=-1, token=2)
    assert {m.token: m.flags for m in world.turn()} == {2: errors.KAFKA_STORAGE_ERROR}
    assert p.broken is None and world.space.low
    world.read(p.handle, 0, token=3)
    world.ask(DELETE_RECORDS, p.handle, token=4, a=1)
    assert {m.token: (m.op, m.flags) for m in world.turn()} == {3: (FOUND, 0), 4: (DELETED, 0)}
    world.append(p.handle, batch(b"b"), acks=-1, token=5)
    assert {m.token: m.flags for m in world.turn()} == {5: errors.KAFKA_STORAGE_ERROR}
    make_room(world)
    world.append(p.handle, late, acks=-1, token=6)  # the retry of an idempotent producer
    world.turn()
    world.threads.run_all()
    assert [(m.op, m.token, m.flags, m.a) for m in world.turn()] == [(APPENDED, 6, 0, 1)]
    assert (p.log.end_offset, p.high_watermark) == (2, 2)
    assert world.failures == []


def test_what_was_held_and_written_by_the_end_of_its_segment_counts():
    """There is room for it and not for the segment that the next batch needs: nothing is staged and
    nothing held then."""
    world = full_world()
    p = world.add(segment_bytes=3 * PAGE)
    fill(world.disk)
    big = batch(bytes(2 * PAGE), producer=(7, 0, 0))
    world.append(p.handle, big, token=1)
    assert [m.flags for m in world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert p.log.has_unwritten
    fill(world.disk, leave=3 * PAGE)
    world.space.low = False
    world.append(p.handle, batch(bytes(2 * PAGE)), token=2)
    assert [m.flags for m in world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert not p.log.has_unwritten and p.log.end_offset == p.progress.log_end == 1
    make_room(world)
    world.append(p.handle, big, acks=-1, token=3)
    assert [(m.token, m.flags, m.a) for m in world.settle()] == [(3, 0, 0)]
    assert (p.high_watermark, world.failures) == (1, [])


def test_what_was_held_and_written_counts_though_what_follows_it_is_held():
    world = full_world()
    p = world.add(segment_bytes=3 * PAGE)
    fill(world.disk)
    world.append(p.handle, batch(bytes(2 * PAGE)), token=1)
    world.turn()
    fill(world.disk, leave=20 * PAGE)
    world.space.low = False
    second = batch(bytes(2 * PAGE))
    world.append(p.handle, second, token=2)
    fill(world.disk)
    assert [m.flags for m in world.turn()] == [errors.KAFKA_STORAGE_ERROR]
    assert p.log.has_unwritten and p.log.written_end == p.progress.log_end == 1
    make_room(world)
    world.settle()
    assert (p.high_watermark, world.failures) == (2, [])


def test_what_was_written_before_is_acknowledged_on_a_full_disk():
    world = full_world()
    p = world.add()
    world.append(p.handle, batch(b"a"), acks=-1, token=1)
    assert world.turn() == []
    fill(world.disk)
    world.append(p.handle, batch(bytes(2 * PAGE)), acks=-1, token=2)
    assert [(m.token, m.flags) for m in world.turn()] == [(2, errors.KAFKA_STORAGE_ERROR)]
    world.threads.run_all()
    assert [(m.token, m.flags) for m in world.turn()] == [(1, 0)]


@each_seed(40)
def test_nothing_acknowledged_is_lost_whenever_another_program_takes_the_room(seed):
    """Idempotent producers that try again until they are told; every batch lands once, in order."""
    rng = Random(seed)
    world = full_world()
    size = rng.choice((900, 1 << 20))
    parts = [world.add(f"t{n}", segment_bytes=size, index_interval_bytes=64) for n in range(3)]
    next_sequence = dict.fromkeys(parts, 0)
    acknowledged = dict.fromkeys(parts, 0)
    token = 0
    for _ in range(150):
        if rng.random() < 0.5:
            fill(world.disk, leave=rng.randint(0, 6) * PAGE)
        elif rng.random() < 0.5:
            make_room(world)
        asked = {}
        for p in parts:
            if rng.random() < 0.7:
                token += 1
                asked[token] = p, next_sequence[p]
                sent = batch(bytes(rng.randint(1, PAGE)), producer=(7, 0, next_sequence[p]))
                acks = rng.choice((1, -1))
                world.append(p.handle, sent, acks, token, position=len(asked) * 2 * PAGE)
        answers = world.turn()
        for _ in range(4):
            world.threads.run_all()
            answers += world.turn()
        for answer in answers:
            p, sequence = asked.pop(answer.token)
            if answer.flags == 0:
                acknowledged[p] = next_sequence[p] = sequence + 1
            else:
                assert answer.flags == errors.KAFKA_STORAGE_ERROR
        assert not asked and world.failures == []
    make_room(world)
    world.turn()
    for p in parts:
        sequences = [header[11] for header in headers(world, p)]
        assert sequences == list(range(len(sequences)))
        assert acknowledged[p] <= len(sequences) <= acknowledged[p] + 1
        reopened = PartitionLog.open_folder(
            world.disk, p.log.path, p.log.config, recovery_point=p.synced, log_start_offset=0,
            clean=False, machine_lived=False, now_ms=NOW_MS,
        )  # fmt: skip
        assert reopened.end_offset == p.log.end_offset


def headers(world, partition):
    for segment in partition.log.segments:
        data = memoryview(world.disk.open_file(segment.path).pread(1 << 30, 0))
        at = 0
        while at < len(data):
            header = read_header(data, at)
            yield header
            at += header.size
