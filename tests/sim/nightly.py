"""Many seeds of many stories: who plays which, how far that is, and what rare came about."""

import signal
import time
from collections import Counter
from multiprocessing import get_context
from typing import NamedTuple

from sim.stories import STORIES, play

AT_ONCE_S = 5
"""About so long what one process is given takes."""
COSTS_S = dict.fromkeys(("agreed", "voters", "watching", "crossing", "replacing"), 1.5)
"""A seed, on a quiet core; the others cost less than 0.25."""


class Plan(NamedTuple):
    """Which seeds of each story are played: all from `first` on."""

    first: int
    seeds: dict

    @staticmethod
    def of(seeds, stories=(), first=0):
        """So many seeds in all, shared out among these stories, or among all."""
        names = list(stories) or list(STORIES)
        shares = sum(STORIES[name].share for name in names)
        counts = {name: int(seeds * STORIES[name].share / shares) for name in names}
        counts[names[0]] += seeds - sum(counts.values())
        return Plan(first, counts)

    @property
    def total(self):
        return sum(self.seeds.values())

    def pieces(self):
        """(story, seeds) for one process at a time: all stories get on together, so that a night
        that is too short has told a part of each."""
        cut = []
        for name, count in self.seeds.items():
            size = max(1, int(AT_ONCE_S / COSTS_S.get(name, 0.2)))
            seeds = range(self.first, self.first + count)
            cut.append([(name, seeds[at : at + size]) for at in range(0, count, size)])
        longest = max(map(len, cut), default=0)
        spread = [
            (at * longest // max(len(one), 1), piece) for one in cut for at, piece in enumerate(one)
        ]
        return [piece for _, piece in sorted(spread, key=lambda pair: pair[0])]


class Night:
    """What was played of a plan. rare: (story, name) → in how many seeds it came about. broken: the
    first that did, or None. say: where lines go."""

    def __init__(self, plan, say=print, clock=time.monotonic):
        self.plan = plan
        self.played = Counter()
        self.events = 0
        self.rare = Counter()
        self.broken = None
        self._say = say
        self._clock = clock
        self._began_s = self._told_s = clock()

    def run(self, *, jobs=1, most_s=float("inf")):
        """Play it, until something breaks or the time is over."""
        pieces = self.plan.pieces()
        if jobs == 1:
            self._take((play(*piece) for piece in pieces), most_s)
            return
        unheard = signal.signal, (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for this process
        with get_context("fork").Pool(jobs, *unheard) as pool:  # it ends with the block
            self._take(pool.imap_unordered(_play, pieces), most_s)

    def _take(self, results, most_s):
        for one in results:
            self.played[one.story] += one.seeds
            self.events += one.events
            for name, count in one.rare.items():
                self.rare[one.story, name] += count
            if one.broken:
                self.broken = one
                return
            self._progress()
            if self._clock() - self._began_s > most_s:
                self._say("The time is over.")
                return

    def _progress(self):
        now_s = self._clock()
        if now_s < self._told_s + 10:
            return
        self._told_s = now_s
        passed_s, done = now_s - self._began_s, self.played.total()
        left_s = passed_s * (self.plan.total - done) / max(done, 1)
        self._say(
            f"{done:,} of {self.plan.total:,} seeds, {done / passed_s:.1f} a second,"
            f" {left_s / 60:.0f} minutes left"
        )

    # What came of it ------------------------------------------------------------------------------

    def missing(self):
        """(story, name) of what had seeds enough to come about, and did not."""
        return [
            (story, name)
            for story, seeds in self.played.items()
            for name, enough in STORIES[story].rare.items()
            if seeds >= enough and not self.rare[story, name]
        ]

    def report(self):
        """Lines: what was played, and in how many seeds which rare thing came about."""
        yield f"{self.played.total():,} seeds, {self.events:,} events"
        missing = self.missing()
        for story, seeds in self.played.items():
            yield f"\n{story}: {seeds:,} seeds"
            for name, enough in STORIES[story].rare.items():
                why = f"   expected in {enough:,} seeds" if (story, name) in missing else ""
                yield f"{self.rare[story, name]:>9,}  {name}{why}"

    def failure(self):
        """What is wrong, or nothing: what broke, with how to see it again; what never came about
        though there were seeds enough."""
        if self.broken is not None:
            one = self.broken
            again = f"python -m tests.sim --story {one.story} --first {one.seed} --seeds 1"
            return f"{one.story} breaks: {one.broken}\nThe same again:\n    {again}"
        missing = self.missing()
        if missing:
            named = "\n".join(f"    {story}: {name}" for story, name in missing)
            return f"Never came about, in seeds enough:\n{named}"
        return ""


def _play(piece):
    return play(*piece)
