"""A cleaning that is cut at any disk operation: afterwards every key has its latest value, nothing
came back that a reader must not see twice, and a second cleaning ends what the first began."""

from random import Random

import pytest
from compacting import clean, read
from sim.disk import PowerCut, SimDisk
from test_compaction import CONFIG, PATH, append, new_log, transaction
from twin import aborted, stored

from appliance.logstore.files import CLEANED, SWAP
from appliance.logstore.log import PartitionLog


def written(disk) -> PartitionLog:
    log = new_log(disk=disk)
    for n in range(50):
        append(log, [(b"k%d" % (n * 7 % 9), None if n % 11 == 5 else b"%d" % n * 40)])
    transaction(log, 5, 0, [(b"k1", b"taken back")], False)
    log.sync_now()
    clean(log, 0, 0)  # small segments: the next cleaning puts them together
    for n in range(30):
        append(log, [(b"k%d" % (n * 5 % 9), None if n % 7 == 3 else b"again %d" % n * 20)])
    return log


def latest(records) -> dict:
    return {key: value for _, key, value, _ in records}


def steps_of_a_cleaning() -> int:
    disk = SimDisk()
    log = written(disk)
    before = disk.steps
    clean(log, 0, 500)
    return disk.steps - before


STEPS = steps_of_a_cleaning()


@pytest.mark.parametrize("process_only", [False, True])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_it_may_be_cut_anywhere(step, process_only):
    assert STEPS > 20
    disk = SimDisk(Random(step))
    log = written(disk)
    before = read(stored(log))
    told = aborted(log)
    assert len(told) == 1
    disk.crash_at = disk.steps + step
    with pytest.raises(PowerCut):
        clean(log, 0, 500)
    if process_only:
        disk.process_death()
    else:
        disk.power_cut(Random(step))
    log = PartitionLog.open_folder(
        disk,
        PATH,
        CONFIG,
        recovery_point=log.recovery_point,
        log_start_offset=0,
        clean=False,
        machine_lived=process_only,
        now_ms=0,
    )
    after = read(stored(log))
    assert set(after) <= set(before)
    assert aborted(log) == told
    assert log.producers.open == {}
    assert [record[0] for record in after] == sorted({record[0] for record in after})
    alive = {key: value for key, value in latest(before).items() if value is not None}
    assert {k: v for k, v in latest(after).items() if v is not None} == alive
    assert not [name for name in disk.listdir(PATH) if name.endswith((CLEANED, SWAP))]
    append(log, [(b"new", b"new")])
    clean(log, 0, 501)
    again = read(stored(log))
    assert {k: v for k, v in latest(again).items() if v is not None} == {**alive, b"new": b"new"}


def test_a_swap_that_another_appliance_left_is_finished():
    """Kafka may die between the log's new name and those of its indexes."""
    disk = SimDisk()
    log = written(disk)
    before = read(stored(log))
    log.close()
    first = f"{PATH}/{0:020d}"
    disk.rename(f"{first}.index", f"{first}.index.swap")
    disk.rename(f"{first}.timeindex", f"{first}.timeindex.swap")
    disk.create(f"{first}.log.cleaned").close()
    log = PartitionLog.open_folder(
        disk,
        PATH,
        CONFIG,
        recovery_point=log.end_offset,
        log_start_offset=0,
        clean=False,
        machine_lived=False,
        now_ms=0,
    )
    assert read(stored(log)) == before
    assert log.offset_for_timestamp(0, log.end_offset) is not None
