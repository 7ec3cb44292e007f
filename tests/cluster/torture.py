"""Stories of faults, made of a seed, and what each of them cost. Nothing here touches a node: that
is `hands.py`."""

import statistics
from collections import defaultdict
from typing import NamedTuple

LEADER, CONTROLLER, ANY = "leader", "controller", "any"
"""Who suffers: the leader of a partition of the load, the active controller, whoever."""
SHORT, SOME, LONG = (0.3, 1), (1, 3, 6), (2, 6, 14)
"""Seconds; the last of LONG is longer than a broker's session and than a supervisor's patience."""


class Kind(NamedTuple):
    """seconds: how long it may last. sizes: how bad it may be; what they mean `hands.py` says.
    who: who may suffer. gentle: whether another fault may come on top."""

    seconds: tuple[float, ...]
    sizes: tuple[int, ...] = (0,)
    who: tuple[str, ...] = (LEADER, CONTROLLER, ANY)
    gentle: bool = False


HOUR, YEARS = 3_600, 315_360_000
KINDS = {
    "cut off": Kind(LONG),
    "two cut apart": Kind(LONG),
    "cut one way": Kind(LONG),
    "deaf": Kind(LONG),
    "losing packets": Kind(SOME, (2, 10, 25), gentle=True),
    "slow link": Kind(SOME, (256, 2_000), gentle=True),
    "kill netproc": Kind(SHORT, gentle=True),
    "kill ioproc": Kind(SHORT, (0, 1), gentle=True),
    "kill control": Kind(SHORT, gentle=True),
    "stop netproc": Kind(LONG),
    "stop ioproc": Kind(LONG, (0, 1)),
    "stop control": Kind(LONG),
    "kill node": Kind(SOME),
    "end node": Kind(SHORT),
    "stop node": Kind(LONG),
    "each in turn": Kind((0,), who=(ANY,)),
    "power of one": Kind(SOME),
    "power of all": Kind(SHORT, who=(ANY,)),
    "disk full": Kind(SOME),
    "disk fails": Kind(SOME),
    "clock": Kind(SOME, (HOUR, -HOUR, YEARS, -YEARS), gentle=True),
}


class Fault(NamedTuple):
    kind: str
    who: str
    seconds: float
    size: int


def story(rng, count, kinds=tuple(KINDS)):
    """So many steps, each the faults that happen at once, one or two: each kind comes once before
    any comes again."""
    steps, bag = [], []
    while len(steps) < count:
        if not bag:
            bag = rng.sample(kinds, len(kinds))
        step = [fault(rng, bag.pop())]
        gentle = [one for one in kinds if KINDS[one].gentle and one != step[0].kind]
        if gentle and rng.random() < 0.2:
            step.append(fault(rng, rng.choice(gentle)))
        steps.append(tuple(step))
    return steps


def fault(rng, kind):
    its = KINDS[kind]
    return Fault(kind, rng.choice(its.who), rng.choice(its.seconds), rng.choice(its.sizes))


class Cost(NamedTuple):
    """Seconds: that a record waited for its acknowledgement at most, that a consumer had nothing
    of a partition at most, and until all replicas were in sync, after the fault had ended."""

    producer: float
    consumer: float
    healed: float


def table(told):
    """Lines of Markdown. told: (step, Cost) of each step; those of one fault are told by kind."""
    found = defaultdict(list)
    for step, cost in told:
        found[step[0].kind if len(step) == 1 else "two at once"].append(cost)
    lines = [
        "| fault | n | a write waits, s | a reader waits, s | in sync again, s |",
        "|---|---|---|---|---|",
    ]
    for kind, costs in sorted(found.items()):
        cells = [
            f"{statistics.median(column):.2f} / {max(column):.2f}"
            for column in zip(*costs, strict=True)
        ]
        lines.append(f"| {kind} | {len(costs)} | {' | '.join(cells)} |")
    return "\n".join(lines)
