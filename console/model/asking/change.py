"""A change of the broker as a value, and carrying it out so that it is done once.

What is proposed has a tier, which says how it is asked for; its plan is made over a Link that only
reads, and is a frozen Change. Invariant of `carry_out`: after an answer that did not come, nothing
is sent again before the broker has been asked whether it is done already.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from console.model.asking.failure import UNREACHABLE, Failure
from console.model.asking.link import Link, asking

BYTES: Final = "bytes"
_LOOKS: Final = 4
STALE: Final = "PLAN_CHANGED"
"""Name of the Failure of `apply` that says that its plan does not hold any more: nothing was done,
and the plan is made and shown again."""
Cell = str | int | None


class Tier(IntEnum):
    """How a change is asked for. UNDO: it can be taken back, so nobody is asked. PLAN: it disrupts,
    so what would be is shown and Cancel is the default. NAME: it cannot be taken back, so its name
    is typed, or the number of things when there are several."""

    UNDO = 0
    PLAN = 1
    NAME = 2


@dataclass(slots=True, frozen=True)
class Fact:
    """what: of what, `records`. value: a number, words, or None when it is not known. unit: BYTES,
    a word that follows the number, or "" for neither."""

    what: str
    value: Cell
    unit: str = ""


@dataclass(slots=True, frozen=True)
class Change:
    """A planned change and its effects.

    verb: on the button, `Delete`. words: the command that does the same, behind `penstock` and
    without `-b`; none where a secret would stand in it. apply: does it over a writing Link, in a
    thread, and returns what happened in a few words (`deleted, with 500 records`); raises Failure.
    seen: asked over a reading Link when an answer was lost: what is there when it is done already,
    None when it is not; without it a lost answer stays lost, and it is never sent twice. says:
    sentences, worst first. facts: its size.
    columns, rows: the plan as a table, `before` and `after`. undo: takes it back.
    """

    verb: str
    words: tuple[str, ...]
    apply: Callable[[Link], str]
    seen: Callable[[Link], str | None] | None = None
    says: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    undo: "Proposal | None" = None

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "a cell for each column"


@dataclass(slots=True, frozen=True)
class Proposal:
    """A change that somebody wants. title: `Delete topic orders`. plan: makes the Change over a
    reading Link, in a thread; raises Failure for what cannot be done, and why. names: what is typed
    for NAME. leaves: what is shown where they are is gone afterwards."""

    title: str
    tier: Tier
    plan: Callable[[Link], Change]
    names: tuple[str, ...] = ()
    leaves: bool = False

    def __post_init__(self) -> None:
        assert bool(self.names) == (self.tier is Tier.NAME), "a name is typed for NAME alone"


_LOST: Final = frozenset(
    (
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NOT_CONTROLLER",
        "NOT_COORDINATOR",
        "NOT_LEADER_OR_FOLLOWER",
    )
)
"""Said by a broker one of whose processes is being replaced; what it did before that may hold."""


def is_lost(failure: Failure) -> bool:
    """True if the change may have happened although it failed: no answer came (names that begin
    with `_` are librdkafka's), or one that asks for a retry.
    """
    no_answer = failure.code == UNREACHABLE or failure.name.startswith("_")
    return no_answer or failure.name in _LOST


def carry_out(
    change: Change,
    reading: Link,
    writing: Link,
    *,
    tell: Callable[[str], None],
    rest: Callable[[], bool],
    unsure: bool = False,
) -> str:
    """Do it once: what happened. tell: is given a sentence about what is known meanwhile. rest:
    waits a moment before the next try; True when nobody wants to wait any longer. unsure: an
    earlier try had no answer. Raises Failure; NOT_KNOWN when nobody can say whether it is done."""
    while True:
        if unsure and (found := _seen(change, reading, tell, rest)) is not None:
            return f"{found}; the response was lost, so the broker was asked again"
        try:
            with asking(writing):
                return change.apply(writing)
        except Failure as failure:
            if is_lost(failure):
                if change.seen is None or rest():
                    raise _not_known(failure) from None
                tell(f"checking the outcome: {failure.message}")
            elif not unsure or not _soon_seen(change, reading, tell, rest):
                raise
            unsure = True


def _soon_seen(
    change: Change, reading: Link, tell: Callable[[str], None], rest: Callable[[], bool]
) -> bool:
    """True if the change is done after all. A refusal may be that of a second try, and brokers of
    Apache Kafka learn later what their controller has done.
    """
    for _ in range(_LOOKS):
        if _seen(change, reading, tell, rest) is not None:
            return True
        if rest():
            break
    return False


def _seen(
    change: Change, reading: Link, tell: Callable[[str], None], rest: Callable[[], bool]
) -> str | None:
    """The result when the change is done already, None when it is not. Raises Failure (NOT_KNOWN)
    when no broker answers.
    """
    if change.seen is None:
        raise _not_known(Failure("the outcome cannot be checked, so the change is not sent again"))
    while True:
        try:
            with asking(reading):
                return change.seen(reading)
        except Failure as failure:
            tell(f"the outcome is not known yet: {failure.message}")
            if not is_lost(failure) or rest():
                raise _not_known(failure) from None


def _not_known(failure: Failure) -> Failure:
    return Failure(
        f"the outcome is not known: {failure.message}",
        "check before you retry", where=failure.where, code=UNREACHABLE, name="NOT_KNOWN",
    )  # fmt: skip
