"""Taking back what is on its way to other nodes, as a plan."""

from functools import partial

from console.model.asking.change import Change, Proposal, Tier
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.topics import moves


def cancel(topic: str) -> Proposal:
    """Take back all that moves of a topic."""
    return Proposal(f"Cancel what moves of {topic}", Tier.PLAN, partial(cancelling, topic=topic))


def cancelling(link: Link, topic: str) -> Change:
    """New replicas go, and those that were to go stay. Raises Failure when nothing moves."""
    found = moves.under_way(link, {}, [topic])
    if not found:
        raise Failure(f"topic {topic} has no reassignment in progress", name="NOTHING")

    def apply(link: Link) -> str:
        moves.alter_reassignments(link, {one.place: None for one in found})
        return "taken back"

    def find_done(link: Link) -> str | None:
        return None if moves.under_way(link, {}, [topic]) else "taken back"

    return Change(
        "Take back", ("topic", "replicas", "cancel", topic), apply, find_done,
        says=("Data copied to the new nodes is discarded.",),
        columns=("partition", "before", "after"),
        rows=tuple(
            (f"{topic}:{one.partition}", _ids(one.replicas),
             _ids(tuple(each for each in one.replicas if each not in one.adding)))
            for one in found
        ),
    )  # fmt: skip


def _ids(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))
