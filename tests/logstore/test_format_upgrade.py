"""A folder with segments of formats 0 and 1 opens with every message, wherever the power is cut."""

import re
import subprocess
from random import Random

import pytest
from sim.disk import PowerCut, SimDisk
from twin import small_batch, stage, stored

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.config.log_config import LogConfig
from appliance.logstore import repair
from appliance.logstore.files import CLEANED, LOG, stem
from appliance.logstore.format_upgrade import upgrade_folder
from appliance.logstore.log import PartitionLog
from appliance.logstore.scrub import ANY, RECORDS, TAIL, Damage, ScrubbedLog, scrub
from appliance.wire.batch_header import read_header
from appliance.wire.records import NewRecord, build_batch, iter_records
from benchmarks import kafka
from tests.old_formats import Plain, message, random_set, wrapper

FOLDER = "/t-0"
CONFIG = LogConfig(index_interval_bytes=300)


def put(disk, folder, base, data):
    path = stem(folder, base) + LOG
    if disk.exists(path):
        disk.unlink(path)
    file = disk.create(path)
    file.pwritev([data], 0)
    file.sync()
    file.close()
    disk.sync_dir(folder)


def content(disk, folder, base):
    file = disk.open_file(stem(folder, base) + LOG)
    data = file.pread(file.size(), 0)
    file.close()
    return data


def three_segments(disk, folder, seed=1, count=60, *, gaps=False):
    """Format 0; format 1 and then 2, as an upgrade of Kafka leaves a segment; format 2."""
    rng = Random(seed)
    disk.mkdir(folder)
    disk.sync_dir(folder.rpartition("/")[0] or "/")
    old, told = random_set(rng, 0, count, 0, gaps=gaps)
    put(disk, folder, 0, old)
    second = told[-1].offset + 1
    newer, more = random_set(rng, second, count, 1, gaps=gaps)
    told += more
    third = told[-1].offset + 1
    put(disk, folder, second, newer + build_batch([NewRecord(9, b"a", b"b")], base_offset=third))
    put(disk, folder, third + 1, build_batch([NewRecord(10, b"c", None)], base_offset=third + 1))
    told += [Plain(third, 9, b"a", b"b"), Plain(third + 1, 10, b"c", None)]
    return told, (0, second, third + 1)


def opened(disk, folder=FOLDER, *, clean=True, point=0, config=CONFIG):
    return PartitionLog.open_folder(
        disk, folder, config, recovery_point=point, log_start_offset=0, clean=clean,
        machine_lived=False, now_ms=0,
    )  # fmt: skip


def seen(log):
    return [Plain(*one[:4]) for batch in stored(log) for one in iter_records(batch)]


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_every_message_is_there_and_appends_follow(clean, gaps):
    for seed in range(8):
        disk = SimDisk()
        config = LogConfig(index_interval_bytes=300, compact=gaps)
        told, _ = three_segments(disk, FOLDER, seed, gaps=gaps)
        log = opened(disk, clean=clean, config=config)
        assert seen(log) == told
        assert log.end_offset == told[-1].offset + 1
        stage(log, small_batch(Random(1), 5), 2, 0)
        log.commit()
        more = seen(log)
        assert more[: len(told)] == told
        log.close()
        log = opened(disk, point=log.recovery_point, config=config)
        assert seen(log) == more
        for _, header in (one for segment in log.segments for one in headers(log, segment)):
            assert header.magic == 2


def headers(log, segment):
    data = content(log.disk, log.path, segment.base)
    at = 0
    while at < len(data):
        header = read_header(data, at)
        yield at, header
        at += header.size


def test_it_is_found_by_time():
    disk = SimDisk()
    told, _ = three_segments(disk, FOLDER, 3)
    log = opened(disk)
    stamps = sorted({one.timestamp for one in told if one.timestamp > 0})
    for stamp in stamps[:: len(stamps) // 9]:
        first = next(one for one in told if one.timestamp >= stamp)
        found = log.offset_for_timestamp(stamp, log.end_offset)
        assert found == (first.timestamp, first.offset, -1)


STEPS = 40


@pytest.mark.parametrize("process_only", [False, True])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_it_may_be_cut_anywhere(step, process_only):
    disk = SimDisk(Random(step))
    told, _ = three_segments(disk, FOLDER)
    disk.crash_at = disk.steps + step
    try:
        opened(disk)
    except PowerCut:
        pass
    else:
        assert step > 25, "nothing was cut"
    if process_only:
        disk.process_death()
    else:
        disk.power_cut(Random(step))
    disk.crash_at = -1
    log = opened(disk, clean=False, point=told[-1].offset + 1)
    assert seen(log) == told
    assert not [name for name in disk.listdir(FOLDER) if name.endswith(CLEANED)]


@pytest.mark.parametrize("missing", [1, 20, 60])
def test_a_torn_tail_is_cut_and_told(missing):
    disk = SimDisk()
    disk.mkdir(FOLDER)
    data, told = random_set(Random(5), 0, 20, 1)
    tail = message(Plain(told[-1].offset + 1, 1, b"k", b"v" * 40), 1)
    put(disk, FOLDER, 0, data + tail[:-missing])
    log = opened(disk, clean=False)
    assert seen(log) == told
    assert log.end_offset == told[-1].offset + 1
    found = log.cut
    assert found is not None
    assert (found.offset, found.size) == (told[-1].offset + 1, len(tail) - missing)


def test_damage_below_the_recovery_point_changes_nothing():
    disk = SimDisk()
    told, (_, second, _) = three_segments(disk, FOLDER)
    before = bytearray(content(disk, FOLDER, second))
    before[len(before) // 3] ^= 1
    put(disk, FOLDER, second, bytes(before))
    with pytest.raises(StorageFailed, match="corrupt"):
        opened(disk, clean=False, point=told[-1].offset + 1)
    assert content(disk, FOLDER, second) == before


def damages(disk, known):
    return [one for one in scrub(disk, FOLDER, known) if isinstance(one, Damage)]


def test_verify_finds_no_damage_in_sound_ones_and_repair_keeps_the_rest():
    disk = SimDisk()
    disk.mkdir(FOLDER)
    one = [message(Plain(n, -1, b"k%d" % n, b"v"), 0) for n in range(8)]
    two = wrapper([Plain(n, 5, b"k%d" % n, b"w") for n in (8, 9, 10)], 1, 1)
    put(disk, FOLDER, 0, b"".join(one) + two)
    known = ScrubbedLog(recovery_point=11, gaps=False)
    assert damages(disk, known) == []
    one[4] = one[4][:-1] + b"?"
    put(disk, FOLDER, 0, b"".join(one) + two)
    (found,) = damages(disk, known)
    place = len(one[0]) * 4
    assert (found.kind, found.position, found.behind) == (RECORDS, place, place + len(one[0]))
    assert (found.first, found.last) == (4, 4)
    made = repair.plan(disk, FOLDER, [found], 11)
    repair.carry_out(disk, FOLDER, made, "/beside", lambda old, new: put_copy(disk, old, new))
    assert damages(disk, ScrubbedLog(recovery_point=11)) == []
    log = opened(disk, clean=False, point=11, config=LogConfig(compact=True))
    assert [record.offset for record in seen(log)] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]


def put_copy(disk, old, new):
    source = disk.open_file(old)
    file = disk.create(new)
    file.pwritev([source.pread(source.size(), 0)], 0)
    file.close()
    source.close()


def test_verify_tells_a_torn_tail():
    disk = SimDisk()
    disk.mkdir(FOLDER)
    one = message(Plain(0, -1, b"k", b"v"), 0)
    put(disk, FOLDER, 0, one + one[:-3])
    (found,) = damages(disk, ScrubbedLog(recovery_point=1, gaps=False))
    assert (found.kind, found.position) == (TAIL, len(one))


MESSAGE = re.compile(
    r"^\| offset: (\d+) \w*: ?(-?\d+) .*?keySize: (-?\d+) valueSize: (-?\d+)", re.MULTILINE
)


def dumped(folder):
    """What Apache Kafka's own tool says of every message."""
    names = ",".join(str(path) for path in sorted(folder.glob("*.log")))
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", f"{kafka.libs()}/*", "org.apache.kafka.tools.DumpLogSegments",
         "--print-data-log", "--files", names],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    return [tuple(map(int, one)) for one in MESSAGE.findall(done.stdout)]


@pytest.mark.skipif(bool(kafka.unavailable()), reason=kafka.unavailable() or "")
def test_apache_kafka_reads_the_same_messages_before_and_after(tmp_path):
    folder = tmp_path / "t-0"
    told, bases = three_segments(OsDisk(), str(folder), 11)
    before = dumped(folder)
    done = upgrade_folder(OsDisk(), str(folder), list(bases), 300, ANY)
    assert [one.base for one in done] == list(bases[:2])
    sizes = [(*one[:2], *(-1 if part is None else len(part) for part in one[2:])) for one in told]
    assert before == dumped(folder) == sizes
