"""Stories of faults, made of a seed, and what each of them cost. Nothing here touches a node: that
is `hands.py`."""

import os
import statistics
from collections import defaultdict
from typing import NamedTuple

LEADER, CONTROLLER, COORDINATOR, ANY = "leader", "controller", "coordinator", "any"
"""Who suffers: the leader of a partition of the load, the active controller, who keeps the group's
offsets, whoever."""
SHORT, SOME, LONG = (0.3, 1), (1, 3, 6), (2, 6, 14)
"""Seconds; the last of LONG is longer than a broker's session and than a supervisor's patience."""
GROUP, AUTO = "group", "auto"
"""`flush.policy`. With AUTO what is acknowledged is in the memory of two nodes at least."""
WHOLE_S = 10.0
"""All replicas are in sync so soon after the end of a fault, while the machine has time for it."""
BUSY = 2.0 * (os.cpu_count() or 1)
"""A load average above it: this machine has no time, and seconds say nothing."""


class Kind(NamedTuple):
    """told: what fails, for those who read the table. seconds: how long it may last. sizes: how bad
    it may be; what they mean `hands.py` says. who: who may suffer. gentle: whether another fault
    may come on top. hosts: with fewer it cannot be. policies: with which it is promised to lose
    nothing."""

    told: str
    seconds: tuple[float, ...]
    sizes: tuple[int, ...] = (0,)
    who: tuple[str, ...] = (LEADER, CONTROLLER, COORDINATOR, ANY)
    gentle: bool = False
    hosts: int = 3
    policies: tuple[str, ...] = (GROUP, AUTO)


HOUR, YEARS = 3_600, 315_360_000
KINDS = {
    "cut off": Kind("a host that its peers cannot reach, clients can", LONG),
    "two cut apart": Kind("two hosts cannot reach each other", LONG),
    "cut one way": Kind("a host cannot reach another, which reaches it", LONG),
    "deaf": Kind("a host that hears nothing of its peers", LONG),
    "clients cut off": Kind("a host that clients cannot reach, its peers can", SOME),
    "flapping": Kind("a host that its peers reach every other half second", LONG),
    "bridge": Kind("five hosts: two and two meet in the fifth alone", LONG, hosts=5),
    "ring": Kind("five hosts: each reaches its two neighbours alone", LONG, who=(ANY,), hosts=5),
    "losing packets": Kind("2 to 25 % of packets are lost", SOME, (2, 10, 25), gentle=True),
    "slow link": Kind("a link of 256 or 2,000 kbit/s", SOME, (256, 2_000), gentle=True),
    "kill netproc": Kind("a network process is killed", SHORT, gentle=True),
    "kill ioproc": Kind("an I/O process is killed", SHORT, (0, 1), gentle=True),
    "kill control": Kind("a control process is killed", SHORT, gentle=True),
    "stop netproc": Kind("a network process is stopped (SIGSTOP)", LONG),
    "stop ioproc": Kind("an I/O process is stopped", LONG, (0, 1)),
    "stop control": Kind("a control process is stopped", LONG),
    "kill node": Kind("a node is killed (SIGKILL to all of it)", SOME),
    "end node": Kind("a node ends (SIGTERM)", SHORT),
    "stop node": Kind("a node is stopped (SIGSTOP to all of it)", LONG),
    "each in turn": Kind("each node restarts, one after the other", (0,), who=(ANY,)),
    "power of one": Kind("the power of one host", SOME),
    "power of all": Kind("the power of all hosts", SHORT, who=(ANY,), policies=(GROUP,)),
    "disk full": Kind("a disk is full", SOME),
    "disk fails": Kind("a disk fails (EIO)", SOME),
    "slow disk": Kind("each sync of a disk takes 50 or 500 ms", SOME, (50, 500), gentle=True),
    "replaced": Kind("a node is lost and begins with an empty disk", SHORT),
    "moved": Kind("replicas leave a node and come back", SHORT),
    "guest": Kind("a node joins, gets replicas, and leaves for good", SHORT),
    "clock": Kind("a clock an hour or ten years wrong", SOME, (HOUR, -HOUR, YEARS, -YEARS),
                  gentle=True),
}  # fmt: skip
TWO = "two of these at once"


class Shape(NamedTuple):
    """Of the cluster that a story happens to."""

    hosts: int
    policy: str

    def kinds(self, wanted=tuple(KINDS)):
        """Those of `wanted` that can happen to it, and that it is promised to bear."""
        return tuple(
            one
            for one in wanted
            if KINDS[one].hosts <= self.hosts and self.policy in KINDS[one].policies
        )


def shape(seed):
    """Each policy, and five hosts every third time."""
    return Shape(5 if seed % 3 == 0 else 3, AUTO if seed % 2 else GROUP)


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
    of a partition at most, and until all replicas were in sync, from when the fault began to be
    taken back: a node that has to start for it starts within them. load: the machine's average over
    one minute, the higher one of before and after."""

    producer: float
    consumer: float
    healed: float
    load: float

    @property
    def in_time(self):
        return self.healed <= WHOLE_S or self.load > BUSY


def table(told):
    """Lines of Markdown. told: (step, Cost) of each; those of one fault are told by kind."""
    found = defaultdict(list)
    for step, cost in told:
        found[KINDS[step[0].kind].told if len(step) == 1 else TWO].append(cost)
    order = [kind.told for kind in KINDS.values()] + [TWO]
    lines = [
        "| what fails | n | a write waits | a reader waits | all in sync again, after its end"
        " | load |",
        "|---|---|---|---|---|---|",
    ]
    for what in sorted(found, key=order.index):
        costs = found[what]
        cells = [
            f"{statistics.median(column):.2f}, {max(column):.2f}"
            for column in list(zip(*costs, strict=True))[:3]
        ]
        loads = [cost.load for cost in costs]
        cells.append(f"{min(loads):.0f} to {max(loads):.0f}")
        lines.append(f"| {what} | {len(costs)} | {' | '.join(cells)} |")
    late = sum(cost.healed > WHOLE_S for _, cost in told)
    lines.append("")
    lines.append(
        f"Median and worst, in seconds. Not in sync within {WHOLE_S:.0f} s: {late} of {len(told)},"
        f" all of them at a load above {BUSY:.0f}."
    )
    return "\n".join(lines)
