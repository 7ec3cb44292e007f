"""A seed that breaks, and a seed in a process of its own; `tests/seeds.py` has which are played."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from sim.world import Broken

from appliance.base.errors import CannotServe, PeerError, StorageFailed

NOTICED = (AssertionError, PeerError, StorageFailed, CannotServe)
"""How a bug shows; anything else is a mistake of the story."""


SHOWN_BY = Path(__file__).with_name("shown_by.json")
"""Test → the seed that showed its planted bug lately; `SIM_NOTE=1 pytest tests/sim` writes it."""


def first_broken(play, most, by=""):
    """(seed, Broken) of a seed that breaks, of those below `most`: how a planted bug is found. The
    search begins at the seed that showed it lately, because each seed takes a second. play: a
    world's whole story, from a seed. by: with what it has to begin, if another rule may notice the
    same bug sooner."""
    anew = "SIM_NOTE" in os.environ
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition("/")[2].rpartition(" (")[0]
    shown_by = json.loads(SHOWN_BY.read_text())
    lately = 0 if anew else min(shown_by.get(test, 0), most)
    for seed in (*range(lately, most), *range(lately)):
        try:
            play(seed)
        except Broken as broken:
            if not isinstance(broken.__cause__, NOTICED):
                raise
            if str(broken.__cause__).startswith(by):
                if anew:
                    text = json.dumps(shown_by | {test: seed}, indent=0, sort_keys=True)
                    SHOWN_BY.write_text(f"{text}\n")
                return seed, broken
    return None


def digests(stories, seed):
    """The hash of the trace of this seed in each of these stories: (module, what plays it)."""
    return [getattr(import_module(name), play)(seed).digest for name, play in stories]


def digests_under_other_hashes(stories, seed):
    """The same in a process of its own, in which strings hash differently."""
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join(map(str, (tests, tests.parent)))
    env = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": paths}
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"  # kio would import it
        f"from sim.seeds import digests; print(*digests({stories!r}, {seed}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
