"""Changes of where replicas are, as plans: so many for a topic, or those that somebody names."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from console.model.asking import configs
from console.model.asking.change import BYTES, Change, Fact, Proposal, Tier
from console.model.asking.configs import TOPIC, Target
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.cluster import nodes
from console.model.cluster.nodes import Node
from console.model.storage import disk
from console.model.topics import moves, partitions, placing
from console.model.topics.partitions import Partition
from console.model.topics.placing import Wanted

NOTHING: Final = "NOTHING"
"""Name of the Failure of a change that changes nothing."""
ON_ITS_WAY: Final = "on its way"
DONE: Final = "done"
_MIN_ISR: Final = "min.insync.replicas"


def parse(words: Sequence[str]) -> int | dict[int, tuple[int, ...]]:
    """`3`: so many replicas; `0:1,2,3 1:2,3,1`: those of each partition that is named, who is to
    lead first. Raises Failure."""
    if len(words) == 1 and words[0].isdecimal() and int(words[0]):
        return int(words[0])
    found: dict[int, tuple[int, ...]] = {}
    for word in words:
        number, _, nodes_told = word.partition(":")
        ids = nodes_told.split(",")
        if not number.isdecimal() or not all(one.isdecimal() for one in ids):
            raise usage(
                f"{word!r} is neither a number of replicas nor PARTITION:NODE,NODE",
                "for example 3, or 0:1,2,3 1:2,3,1",
            )
        if int(number) in found:
            raise usage(f"partition {number} is named twice")
        found[int(number)] = tuple(map(int, ids))
    return found


def _placed(
    link: Link, topic: str, asked: int | Mapping[int, tuple[int, ...]]
) -> tuple[Wanted, dict[int, Partition], dict[int, Node]]:
    brokers = nodes.read_nodes(link).brokers
    chosen = {one.partition: one for one in partitions.partitions(link, [topic])}
    if isinstance(asked, int):
        load = placing.load_of(partitions.partitions(link))
        return placing.resized(chosen.values(), asked, brokers, load), chosen, brokers
    for number, replicas in asked.items():
        if number not in chosen:
            raise usage(f"{topic} has no partition {number}, only 0 to {len(chosen) - 1}")
        if unknown := [one for one in replicas if one not in brokers]:
            raise usage(
                f"there is no node {unknown[0]}; the nodes are: "
                + ", ".join(map(str, sorted(brokers)))
            )
        if len(set(replicas)) < len(replicas):
            raise usage(f"partition {number}: a node is named twice")
    differs = {
        (topic, number): replicas
        for number, replicas in sorted(asked.items())
        if replicas != chosen[number].replicas
    }
    return differs, chosen, brokers


def setting(link: Link, topic: str, asked: int | Mapping[int, tuple[int, ...]]) -> Change:
    """Give a topic so many replicas, or its partitions those that are named: as `parse` gives it.
    Raises Failure (NOTHING) when nothing would change, and for what cannot be."""
    wanted, chosen, brokers = _placed(link, topic, asked)
    if not wanted:
        raise Failure("nothing would change", "it is so already", name=NOTHING)
    words = ("topic", "replicas", "set", topic, *_words(asked))
    before = {number: chosen[number].replicas for _, number in wanted}
    return change(
        link, wanted, chosen={(topic, number): one for number, one in chosen.items()},
        brokers=brokers, words=words, says=_says(link, topic, wanted, brokers),
        undo=Proposal(
            f"Give {topic} back its replicas", Tier.PLAN,
            partial(setting, topic=topic, asked=before),
        ),
    )  # fmt: skip


def growing(link: Link, factor: int) -> Change:
    """Every partition of every topic that has fewer replicas gets so many, and who is to lead them
    is spread over the nodes: one has led all. Raises Failure (NOTHING) when all have as many, and
    for what cannot be."""
    brokers, every = nodes.read_nodes(link).brokers, partitions.partitions(link)
    chosen = {one.place: one for one in every if len(one.replicas) < factor}
    if not chosen:
        raise Failure("nothing would change", "every partition has as many", name=NOTHING)
    wanted = placing.resized(chosen.values(), factor, brokers, placing.load_of(every))
    wanted = placing.spread(wanted, every)
    return change(
        link, wanted, chosen=chosen, brokers=brokers, words=("cluster", "grow", str(factor))
    )


def change(
    link: Link,
    wanted: Wanted,
    *,
    chosen: Mapping[tuple[str, int], Partition],
    brokers: Mapping[int, Node],
    words: tuple[str, ...],
    says: tuple[str, ...] = (),
    undo: Proposal | None = None,
) -> Change:
    """These partitions get these replicas. chosen: how they are now."""
    new = {place: set(to) - set(chosen[place].replicas) for place, to in wanted.items()}
    size = _to_copy(link, new, chosen, brokers)
    added = sum(map(len, new.values()))
    removed = sum(len(set(chosen[place].replicas) - set(to)) for place, to in wanted.items())

    def apply(link: Link) -> str:
        moves.alter_reassignments(link, wanted)
        return ON_ITS_WAY if added else DONE

    def find_done(link: Link) -> str | None:
        moving = {one.place for one in moves.under_way(link, {}, {name for name, _ in wanted})}
        now = {
            one.place: one.replicas
            for one in partitions.partitions(link, {name for name, _ in wanted})
        }
        told = all(
            place in moving or now.get(place) == replicas for place, replicas in wanted.items()
        )
        return ON_ITS_WAY if told and moving else DONE if told else None

    return Change(
        "Move", words, apply, find_done, says=says,
        facts=(
            Fact("partitions", len(wanted)),
            Fact("new replicas", added),
            Fact("replicas to remove", removed),
            Fact("to copy", size if added else None, BYTES),
        ),
        columns=("partition", "before", "after"),
        rows=tuple(
            (f"{topic}:{number}", _ids(chosen[topic, number].replicas), _ids(replicas))
            for (topic, number), replicas in wanted.items()
        ),
        undo=undo,
    )  # fmt: skip


def _says(link: Link, topic: str, wanted: Wanted, brokers: Mapping[int, Node]) -> tuple[str, ...]:
    silent = {one for to in wanted.values() for one in to if not brokers[one].lives}
    says = tuple(f"Node {one} does not run: it is waited for." for one in sorted(silent))
    least = min(map(len, wanted.values()))
    for one in configs.settings(link, Target(TOPIC, topic), (_MIN_ISR,)):
        if one.value is not None and least < int(one.value):
            says += (
                f"{_MIN_ISR} is {one.value}: of fewer replicas all must be in sync before a"
                " producer with acks=all is answered.",
            )
    return says


def _to_copy(
    link: Link,
    new: Mapping[tuple[str, int], set[int]],
    chosen: Mapping[tuple[str, int], Partition],
    brokers: Mapping[int, Node],
) -> int | None:
    """Bytes that new replicas get of their leaders; None where one does not tell."""
    by_leader: dict[int, dict[str, list[int]]] = {}
    for (topic, number), nodes_told in new.items():
        if nodes_told:
            leader = chosen[topic, number].leader
            by_leader.setdefault(leader, {}).setdefault(topic, []).append(number)
    size = 0
    for leader, topics in by_leader.items():
        if leader not in brokers or not brokers[leader].lives:
            return None
        found = disk.sizes(link, topics, brokers[leader].address)
        for topic, numbers in topics.items():
            for number in numbers:
                if (topic, number) not in found:
                    return None
                size += found[topic, number] * len(new[topic, number])
    return size


def _words(asked: int | Mapping[int, tuple[int, ...]]) -> tuple[str, ...]:
    if isinstance(asked, int):
        return (str(asked),)
    return tuple(f"{number}:{_ids(replicas)}" for number, replicas in asked.items())


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
