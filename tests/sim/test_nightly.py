"""What `python -m tests.sim` promises: the seeds that were asked for are played, whoever plays
them; it says what broke, how to see it again, and what never came about."""

import os
import re
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from sim.nightly import Night, Plan
from sim.stories import STORIES, Played, Story
from sim.world import World

ROOT = Path(__file__).parents[2]


def test_some_seeds_of_the_cheap_stories_reach_what_is_declared():
    cheap = [name for name, story in STORIES.items() if story.share > 2]
    night = Night(Plan.of(24, cheap))
    night.run()
    assert night.broken is None, night.failure()
    assert night.played.total() == 24 and set(night.played) == set(cheap)
    reached = {story for story, _ in night.rare}
    assert reached == set(cheap), "a story in which nothing rare happens"
    assert night.failure() == ""


@pytest.mark.parametrize("name", STORIES)
def test_every_story_declares_what_is_rare_in_it(name):
    rare = STORIES[name].rare
    assert len(rare) >= 4
    assert all(enough >= 10 for enough in rare.values())


@pytest.mark.parametrize("stories", [(), ("agreed",), ("silent", "isolated")])
def test_a_plan_plays_each_seed_once_and_all_stories_together(stories):
    plan = Plan.of(3001, stories, first=7)
    assert plan.total == 3001
    pieces = plan.pieces()
    played = {name: [] for name in plan.seeds}
    for name, seeds in pieces:
        played[name] += seeds
    assert played == {name: list(range(7, 7 + n)) for name, n in plan.seeds.items()}
    half = Counter(name for name, _ in pieces[: len(pieces) // 2])
    if len(pieces) > 20 * len(plan.seeds):
        assert set(half) == set(plan.seeds), "a night that is too short leaves stories out"


# A story of its own -------------------------------------------------------------------------------

RARE = {"a seed that ends in 7": 10, "what never is": 10}


def play(seed):
    world = World(seed)
    if seed % 10 == 7:
        world.reached("a seed that ends in 7")
    world.invariants.append(lambda: never(seed))
    world.after(1, lambda: None)
    world.run(2)
    return world


def never(seed):
    assert seed != 33, "it is 33"


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setitem(STORIES, "mine", Story("sim.test_nightly", "play", 1))


def test_what_never_came_about_is_a_failure_once_there_were_seeds_enough(told):
    few = Night(Plan.of(9, ["mine"]))
    few.run()
    assert few.failure() == "" and few.rare == {("mine", "a seed that ends in 7"): 1}
    enough = Night(Plan.of(30, ["mine"]))
    enough.run()
    assert enough.failure() == "Never came about, in seeds enough:\n    mine: what never is"
    lines = list(enough.report())
    assert "        3  a seed that ends in 7" in lines
    assert "        0  what never is   expected in 10 seeds" in lines


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_that_breaks_ends_it_and_says_how_to_see_it_again(told, jobs):
    night = Night(Plan.of(100, ["mine"]))
    night.run(jobs=jobs)
    assert night.broken.seed == 33 and night.played["mine"] < 100
    assert "it is 33" in night.failure()
    assert "python -m tests.sim --story mine --first 33 --seeds 1" in night.failure()


def test_what_a_story_does_not_declare_is_refused(told, monkeypatch):
    monkeypatch.delitem(STORIES["mine"].rare, "a seed that ends in 7")
    with pytest.raises(AssertionError, match="mine does not declare 'a seed that ends in 7'"):
        Night(Plan.of(10, ["mine"])).run()


def test_time_that_is_over_ends_it_and_progress_is_told_now_and_then(told, monkeypatch):
    now = iter(range(0, 10_000, 7))
    lines = []
    night = Night(Plan.of(30_000, ["mine"], first=100), lines.append, lambda: next(now))
    monkeypatch.setattr("sim.nightly.play", lambda name, seeds: Played(name, len(seeds), 1, {}))
    night.run(most_s=100)
    assert lines[-1] == "The time is over." and 0 < night.played["mine"] < 30_000
    assert re.fullmatch(r"\d+ of 30,000 seeds, [\d.]+ a second, \d+ minutes left", lines[0])


def command(*words):
    return subprocess.run(
        [sys.executable, "-m", "tests.sim", *words], cwd=ROOT, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip


def test_the_command_plays_and_says_what_came_about():
    done = command("--seeds", "20", "--story", "silent", "isolated", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "       10 seeds of silent" in done.stdout and "20 seeds, " in done.stdout
    assert re.search(r"\d+  a broker is told of as silent\n", done.stdout)
    wrong = command("--story", "nothing")
    assert wrong.returncode == 2 and "invalid choice: 'nothing'" in wrong.stderr


# SIM_RUNS -----------------------------------------------------------------------------------------


def test_every_test_of_seeds_plays_all_that_are_asked_for():
    """A test of chunks once played no more than its first hundred, whatever was asked for."""
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider",
         str(Path(__file__).parent)],
        cwd=ROOT, capture_output=True, text=True, timeout=100,
        env={**os.environ, "SIM_SEED": "5", "SIM_RUNS": "230"},
    )  # fmt: skip
    played = {}
    for line in collected.stdout.splitlines():
        if found := re.fullmatch(r"(.*)\[(?:(.*)-)?(\d+)-(\d+)(?:-(.*))?\]", line):
            test, before, first, last, behind = found.groups()
            played.setdefault((test, before, behind), []).append(range(int(first), int(last) + 1))
    tests = {Path(test.split("::")[0]).name for test, *_ in played}
    assert len(tests) == 11, tests
    for some in played.values():
        assert list(chain(*some)) == list(range(5, 235))
