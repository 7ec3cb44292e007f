"""An exception in any function that tiered storage calls costs one task, or one slice of the
chores: it is told once, and copies, deletions and retention come to the end that they would have
come to without it."""

import itertools
import os

import pytest

from appliance.ioproc.remote import adoption, manifest_steps, removing, task_choice, tasks, tiering
from appliance.shell.bugs import Bugs
from tests.ioproc.planting import play
from tests.ioproc.remote.test_tiering import LOCAL, again, expected, filled, new_disk, new_ids
from tests.ioproc.remote.tiering_world import Life, Store
from tests.seats import log_file

pytestmark = pytest.mark.interpreted("plants exceptions in parts")
MODULES = (adoption, manifest_steps, removing, task_choice, tasks, tiering)
BARRIERS = ("Tiering._guarded", "Tiering.take_answer")
"""What catches what others raise, and whose one line asks for that."""
SLICES = 60


def tiers(folder, plants):
    """Segments are copied, dropped here, and deleted by retention."""
    folder.mkdir()
    fd, log = log_file(folder, "ioproc")
    bugs = Bugs(log)
    life = Life(new_disk(), Store(), {}, new_ids(), **LOCAL)
    life.world.core.barrier.bugs = bugs
    life.routes._guard = bugs.guard

    def go_on():
        for _ in range(SLICES):
            life.world.now_ns += 100_000_000_000
            with plants.chores():
                bugs.guard("tiered storage", lambda: run_slice(life))
            life.step(0)  # and what others do for it

    filled(life)
    go_on()
    life.retain()
    sizes = [one.segment_size_in_bytes for one in life.known().finished()]
    assert life.log.copied_end == life.log.active_base == life.log.local_start and len(sizes) > 2
    life.set_rules(retention_bytes=sum(sizes[1:]) + life.log.active_size)
    go_on()
    first = life.known().finished()[0]
    assert len(life.known().finished()) == len(sizes) - 1
    assert life.log.log_start_offset == first.start_offset
    assert life.values() == expected(range(first.start_offset, 12))
    assert life.partition.broken is None
    told = [line for line in (folder / "log").read_text().splitlines() if " bug " in line]
    os.close(fd)
    assert len(told) == plants.raised and all("planted" in line for line in told), told
    second = again(life)
    second.finish()
    assert second.values() == expected(range(first.start_offset, 12))


def run_slice(life):
    life.routes.deliver_answers(life.world.now_ns, life.world.now_ms)
    life.tiering.tick(life.world.now_ns, life.world.now_ms)


def test_copies_and_deletions(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(
        monkeypatch, MODULES, lambda plants: tiers(tmp_path / str(next(numbers)), plants), BARRIERS
    )
    assert {
        "Tiering.tick", "Tiering._begin", "Tiering._written", "Tiering._answered",
        "Tiering._move_log_start", "task_choice.choose_task",
    } <= set(names)  # fmt: skip
