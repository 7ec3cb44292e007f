"""`python -m tests.sim`: many seeds of the simulated world, by night. It stops at the first that
breaks; at the end it says which rare things came about, and in how many seeds.

Ends with 0 when all held and everything that has to come about in so many seeds did; 1: not so;
2: it was asked for what there is not; 130: it was interrupted.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sim.nightly import Night, Plan
from sim.stories import STORIES


def main(words=None):
    """The exit code."""
    asked = arguments().parse_args(words)
    night = Night(Plan.of(asked.seeds, asked.story, asked.first))
    for name, count in night.plan.seeds.items():
        print(f"{count:>9,} seeds of {name}")
    code = 0
    try:
        night.run(jobs=asked.jobs, most_s=60 * asked.minutes)
    except KeyboardInterrupt:
        code = 130
    print(*night.report(), sep="\n")
    if failure := night.failure():
        print(failure, file=sys.stderr)
        return 1
    return code


def arguments():
    parser = argparse.ArgumentParser("python -m tests.sim", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=count, default=100_000, help="in all, shared out by cost")
    parser.add_argument("--story", nargs="+", choices=STORIES, default=(), help="only of these")
    parser.add_argument("--first", type=int, default=0, help="the first seed of each story")
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most so long")
    return parser


def count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
