"""Changes of groups as proposals: their plans are made of the same functions as the commands'."""

from typing import Final

from console.model.asking.change import Change, Fact, Proposal, Tier
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.groups import groups, members, seek
from console.model.groups.groups import Group, Place
from console.model.groups.lag import places, total

_PLAN: Final = ("topic", "partition", "before", "after", "delta")
_NOBODY: Final = "No member is active: the offsets apply when one joins."


def propose_move(
    name: str,
    *,
    to: str = "",
    to_group: str = "",
    to_file: str = "",
    topics: tuple[str, ...] = (),
) -> Proposal:
    """Committed offsets go somewhere else. to: the grammar of `penstock group seek --to`; or where
    another group is, or as a file says. topics: TOPIC or TOPIC:P,…; none: all that it committed.
    Raises Failure (USAGE)."""
    if sum(map(bool, (to, to_group, to_file))) != 1:
        raise usage("name a position, a group or a file: one of the three")
    if to_file == "-":
        raise usage("a file is named here: nothing is read from the terminal")
    target = seek.read_to(to) if to else None
    words = ["group", "seek", name]
    words += [f"--to={to}"] if to else []
    words += ["--to-group", to_group] if to_group else []
    words += ["--to-file", to_file] if to_file else []
    for one in topics:
        words += ["-t", one]

    def plan(link: Link) -> Change:
        seek.refuse_readers(link, name, may_be_new=bool(topics or to_group or to_file))
        given = seek.read_file(to_file) if to_file else None
        moves = seek.plan(link, name, topics, to=target, to_group=to_group or None, given=given)
        if not moves:
            raise Failure(
                f"{name} has no committed offsets there", "name a topic",
                name="NOTHING_TO_DO",
            )  # fmt: skip

        def apply(writing: Link) -> str:
            seek.commit_moves(writing, name, moves)
            return f"{_some(len(moves), 'offset')} moved"

        def find_done(reading: Link) -> str | None:
            return "the offsets are reset" if seek.is_there(reading, name, moves) else None

        return Change(
            "Move", tuple(words), apply, find_done, says=(_NOBODY,), facts=_sizes(moves),
            columns=_PLAN,
            rows=tuple((one.topic, one.partition, one.before, one.after, one.delta)
                       for one in moves),
        )  # fmt: skip

    return Proposal(f"Reset offsets of {name}", Tier.PLAN, plan)


def _some(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _sizes(moves: list[seek.Move]) -> tuple[Fact, ...]:
    again = sum(-one.delta for one in moves if one.delta is not None and one.delta < 0)
    skipped = sum(one.delta for one in moves if one.delta is not None and one.delta > 0)
    return (Fact("read again", again, "records"), Fact("never read", skipped, "records"))


def delete(name: str) -> Proposal:
    """The group goes, with what it committed."""

    def plan(link: Link) -> Change:
        (group,) = groups.described(link, [name])
        groups.refuse_live(group, "it cannot be deleted")
        where = places(link, [group], seconds=False)[name]
        topics = sorted({one.topic for one in where})
        committed = sum(one.committed is not None for one in where)

        def apply(writing: Link) -> str:
            failure = groups.delete(writing, [name])[name]
            if failure is not None:
                raise failure
            return f"deleted, with {_some(committed, 'committed offset')}"

        return Change(
            "Delete", ("group", "delete", name), apply, lambda reading: _gone(reading, name),
            says=("A later member of this group starts at auto.offset.reset.",),
            facts=(
                Fact("members", 0), Fact("committed offsets", committed),
                Fact("topics", ", ".join(topics[:5]) + (", …" if topics[5:] else "")),
                Fact("not read yet", total(where)[0], "records"),
            ),
        )  # fmt: skip

    return Proposal(f"Delete group {name}", Tier.NAME, plan, names=(name,), leaves=True)


def _gone(link: Link, name: str) -> str | None:
    try:
        groups.described(link, [name])
    except Failure as failure:
        if failure.name == "GROUP_ID_NOT_FOUND":
            return "deleted"
        raise
    return None


def propose_deletion(name: str, topic: str) -> Proposal:
    """Deletes the offsets that a group committed of one topic."""

    def plan(link: Link) -> Change:
        (group,) = groups.described(link, [name])
        before = _of_topic(link, name, topic)
        readers = [one for one in group.members if any(t == topic for t, _ in one.places)]
        if readers:
            reading = Group(name, group.state, group.kind, "", None, tuple(readers))
            groups.refuse_live(reading, f"its offsets of {topic} cannot be deleted")
        if not before:
            raise Failure(f"{name} has no committed offsets of {topic}", name="NOTHING_TO_DO")

        def apply(writing: Link) -> str:
            refused = groups.delete_offsets(writing, name, list(before), group.server)
            if refused:
                (_, number), code = next(iter(refused.items()))
                raise Failure(f"{topic} partition {number}: {code}", name=code)
            return f"{_some(len(before), 'committed offset')} of {topic} deleted"

        def find_done(reading: Link) -> str | None:
            return None if _of_topic(reading, name, topic) else "the offsets are deleted"

        return Change(
            "Delete", ("group", "delete-offsets", name, "-t", topic), apply, find_done,
            says=(f"{name} then has no position in {topic}: members start at auto.offset.reset.",),
            columns=("topic", "partition", "committed"),
            rows=tuple((*place, at) for place, at in before.items()),
        )  # fmt: skip

    return Proposal(f"Delete offsets of {topic} of {name}", Tier.NAME, plan, names=(name,))


def _of_topic(link: Link, name: str, topic: str) -> dict[Place, int]:
    found = groups.committed(link, [name])[name]
    return {place: at for place, at in found.items() if place[0] == topic}


def remove(name: str, member_id: str) -> Proposal:
    """A member is put out."""

    def plan(link: Link) -> Change:
        (group,) = groups.described(link, [name])
        (member,) = members.named(group, [member_id])
        called = member.instance_id or member.client_id

        def apply(writing: Link) -> str:
            failure = members.remove(writing, group, [member])[member.member_id]
            if failure is not None:
                raise failure
            return f"{called} is removed"

        def find_done(reading: Link) -> str | None:
            there = {
                one.member_id
                for found in groups.still_there(reading, [name])
                for one in found.members
            }
            return None if member.member_id in there else f"{called} is removed"

        return Change(
            "Remove", ("group", "remove-member", name, member.instance_id or member.member_id),
            apply, find_done,
            says=(
                "Its partitions are reassigned. A living member joins again at its next "
                "heartbeat.",
            ),
            facts=(
                Fact("member", called), Fact("host", member.host.lstrip("/")),
                Fact("reads", len(member.places), "partitions"),
            ),
        )  # fmt: skip

    return Proposal(f"Remove a member of {name}", Tier.PLAN, plan)
