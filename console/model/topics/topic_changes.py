"""Changes of topics as plans: what each would do, the command that does the same, and whether it is
done already when an answer was lost. Every function asks over a Link that only reads.
"""

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from console.model.asking import configs
from console.model.asking.change import BYTES, Change, Fact, Proposal, Tier
from console.model.asking.configs import DELETE, SET, Setting, Target
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.groups import groups
from console.model.groups.offsets import bounds, partitions_of
from console.model.storage import disk
from console.model.topics import topics

MOST_GROUPS: Final = 300
"""Of so many groups it is found out whether they read a topic."""
_OWN: Final = "topic"
_FOR_A_WHILE: Final = "For a while it can be brought back, from the deleted topics."
_FOR_EVER: Final = "This cannot be undone: this cluster keeps no deleted topics."


# Create -------------------------------------------------------------------------------------------


def creating(
    link: Link, name: str, partitions: int | None, replicas: int | None, given: Mapping[str, str]
) -> Change:
    """Make a topic: what it would be as the broker resolves it (CreateTopics v7, validate_only).
    None: as the broker has it. Raises Failure for what the broker refuses."""
    found = topics.resolved(link, name, partitions, replicas, given)
    words = ["topic", "create", name]
    words += ["-p", str(partitions)] if partitions else []
    words += ["-r", str(replicas)] if replicas else []
    for key, value in given.items():
        words += ["-c", f"{key}={value}"]

    def apply(link: Link) -> str:
        _raised(
            topics.create(
                link, [name], partitions=partitions, replicas=replicas, settings=given,
                dry_run=False,
            )
        )  # fmt: skip
        return "created"

    def find_done(link: Link) -> str | None:
        there = topics.listed(link).get(name)
        return f"created, with {len(there.partitions)} partitions" if there else None

    counts = [("partitions", found.partitions), ("replicas", found.replicas)]
    own = [(key, value, _OWN) for key, value in given.items()]
    rest = [(one.key, one.value, one.source) for one in found.settings if one.key not in given]
    rows = [(what, value, "") for what, value in counts if value is not None]
    return Change(
        "Create", tuple(words), apply, find_done,
        columns=("setting", "value", "source"), rows=(*rows, *own, *rest),
        undo=_deletion(name),
    )  # fmt: skip


def _deletion(name: str) -> Proposal:
    return Proposal(f"Delete topic {name}", Tier.NAME, partial(deleting, name=name), (name,))


# Delete, undelete ---------------------------------------------------------------------------------


def deleting(link: Link, name: str) -> Change:
    """Delete a topic: its partitions, records and bytes, and who reads it now."""
    (topic,) = topics.described(link, [name])
    keeps = _keeps_deleted(link)
    sizes = disk.sizes(link, {name: range(topic.partition_count)})

    def apply(link: Link) -> str:
        _raised(topics.delete(link, [name]))
        return f"deleted, with {topic.records} records"

    def find_done(link: Link) -> str | None:
        if name not in topics.listed(link):
            return "deleted"
        (there,) = topics.described(link, [name])
        return "deleted; there is another one of that name" if there.id != topic.id else None

    return Change(
        "Delete", ("topic", "delete", name), apply, find_done,
        says=(_FOR_A_WHILE if keeps else _FOR_EVER,),
        facts=(
            Fact("partitions", topic.partition_count),
            Fact("records", topic.records),
            Fact("size", sum(sizes.values()) if sizes else None, BYTES),
            _readers(link, [name]),
        ),
        undo=undeletion(name, topic.id) if keeps else None,
    )  # fmt: skip


def deleting_all(link: Link, names: tuple[str, ...]) -> Change:
    """Delete several topics; those that are made anew meanwhile are left."""
    found = topics.described(link, list(names))
    sizes = disk.sizes(link, {one.name: range(one.partition_count) for one in found})
    rows = [
        (one.name, one.partition_count, one.records,
         sum(size for (name, _), size in sizes.items() if name == one.name) if sizes else None)
        for one in found
    ]  # fmt: skip
    records = sum(one.records for one in found)

    def left(link: Link) -> list[str]:
        there, ids = topics.listed(link), {one.id for one in found}
        known = [name for name in names if name in there]
        return [one.name for one in topics.described(link, known) if one.id in ids] if known else []

    def apply(link: Link) -> str:
        _raised(topics.delete(link, left(link)))
        return f"deleted, with {records} records"

    return Change(
        "Delete", ("topic", "delete", *names), apply,
        lambda link: None if left(link) else "deleted",
        says=(_FOR_A_WHILE if _keeps_deleted(link) else _FOR_EVER,),
        facts=(
            Fact("records", records),
            Fact("size", sum(sizes.values()) if sizes else None, BYTES),
            _readers(link, names),
        ),
        columns=("topic", "partitions", "records", "bytes"), rows=tuple(rows),
    )  # fmt: skip


def _readers(link: Link, names: Sequence[str]) -> Fact:
    """The groups that read one of them now."""
    found = groups.listed(link)
    if len(found) > MOST_GROUPS:
        return Fact("read by", f"not looked for in {len(found)} groups")
    live = [one.name for one in found if one.state not in ("empty", "dead")]
    try:
        described = groups.described(link, live)
    except Failure as gone:
        if gone.name != "GROUP_ID_NOT_FOUND":  # one went between the two requests
            raise
        return Fact("read by", None)
    readers = [
        f"{one.name} ({len(one.members)} live)"
        for one in described
        if any(topic in names for member in one.members for topic, _ in member.places)
    ]
    return Fact("read by", ", ".join(readers) or "nobody now")


def _keeps_deleted(link: Link) -> bool:
    try:
        topics.deleted(link)
    except Failure as failure:
        if failure.name in ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"):
            return False
        raise
    return True


def undeletion(name: str, topic_id: str) -> Proposal:
    """The proposal to bring one back."""
    plan = partial(undeleting, name=name, topic_id=topic_id)
    return Proposal(f"Undelete topic {name}", Tier.UNDO, plan)


def undeleting(link: Link, name: str, topic_id: str) -> Change:
    """Bring a deleted topic back: its id, records, settings and committed offsets."""
    _raised(topics.undelete(link, [name], topic_id, dry_run=True))

    def apply(link: Link) -> str:
        _raised(topics.undelete(link, [name], topic_id, dry_run=False))
        return "it is back"

    def find_done(link: Link) -> str | None:
        if name not in topics.listed(link):
            return None
        (found,) = topics.described(link, [name])
        return "it is back" if found.id == topic_id else None

    words = ("topic", "undelete", name, "--id", topic_id)
    return Change("Undelete", words, apply, find_done, undo=_deletion(name))


# Settings -----------------------------------------------------------------------------------------


def setting(link: Link, name: str, wanted: Mapping[str, str | None]) -> Change:
    """Give settings other values, None for the broker's: only what differs is sent
    (IncrementalAlterConfigs). Raises Failure when nothing differs, or the broker refuses."""
    target = Target(configs.TOPIC, name)
    before = {one.key: one for one in configs.settings(link, target)}
    differs = {key: value for key, value in wanted.items() if _differs(before.get(key), value)}
    if not differs:
        raise Failure("nothing would change", "it is so already", name="NOTHING")
    secrets = {key for key in differs if key in before and before[key].sensitive}
    tells_secret = any(differs[key] is not None for key in secrets)
    asked = _asked(differs)
    configs.change(link, target, asked, dry_run=True)

    def apply(link: Link) -> str:
        made = configs.change(link, target, asked, dry_run=False)
        return ", ".join(
            f"{one.key} is set"
            if one.key in secrets
            else f"{one.key} {_told(one.before)} → {_told(one.after)}"
            for one in made
        )

    def find_done(link: Link) -> str | None:
        now = {one.key: one for one in configs.settings(link, target)}
        same = all(not _differs(now.get(key), value) for key, value in differs.items())
        return "set" if same else None

    own = {key: one.value if one.source == _OWN else None for key, one in before.items()}
    return Change(
        "Set", () if tells_secret else _config_words(name, differs), apply, find_done,
        says=("A secret is set: what it was is not known, so this cannot be taken back.",)
        if secrets else (),
        columns=("setting", "before", "after"),
        rows=tuple((key, _now(before.get(key)), _then(before.get(key), value))
                   for key, value in differs.items()),
        undo=None if secrets else edit(name, {key: own.get(key) for key in differs}),
    )  # fmt: skip


def edit(name: str, wanted: Mapping[str, str | None], tier: Tier = Tier.UNDO) -> Proposal:
    """The proposal to give settings of a topic these values, None for the broker's."""
    title = f"Set {', '.join(wanted) if len(wanted) < 3 else f'{len(wanted)} settings'} of {name}"
    return Proposal(title, tier, partial(setting, name=name, wanted=dict(wanted)))


def _differs(now: Setting | None, value: str | None) -> bool:
    if value is None:
        return now is not None and now.source == _OWN
    return now is None or now.source != _OWN or now.value != value


def _asked(wanted: Mapping[str, str | None]) -> dict[str, tuple[int, str | None]]:
    return {
        key: (SET, value) if value is not None else (DELETE, None) for key, value in wanted.items()
    }


def _config_words(name: str, wanted: Mapping[str, str | None]) -> tuple[str, ...]:
    given = [f"{key}={value}" for key, value in wanted.items() if value is not None]
    gone = [key for key, value in wanted.items() if value is None]
    if not gone:
        return ("topic", "config", "set", name, *given)
    if not given:
        return ("topic", "config", "unset", name, *gone)
    sets = [word for one in given for word in ("--set", one)]
    return (
        "topic", "alter-config", name, *sets, *(word for key in gone for word in ("--delete", key)),
    )  # fmt: skip


def _told(value: str | None) -> str:
    return "the broker's" if value is None else value or '""'


def _now(one: Setting | None) -> str:
    if one is None:
        return _told(None)
    return "(secret)" if one.sensitive else f"{_told(one.value)} ({one.source})"


def _then(one: Setting | None, value: str | None) -> str:
    if value is not None:
        return "(secret)" if one is not None and one.sensitive else _told(value)
    below = one.places[1:] if one is not None else ()
    return f"{_told(below[0].value)} ({below[0].source})" if below else _told(None)


# Partitions and records ---------------------------------------------------------------------------


def adding(link: Link, name: str, total: int) -> Change:
    """Let a topic have `total` partitions, and what that does to records with keys."""
    now = topics.partition_counts(link, [name])[name]
    if total <= now:
        raise usage(f"{name} has {now} partitions; they can only become more")
    topics.add_partitions(link, name, total, dry_run=True)
    policy = next(
        iter(configs.settings(link, Target(configs.TOPIC, name), ("cleanup.policy",))), None
    )
    says = [
        f"Of all keys {moved(now, total):.0%} go to another partition from then on; what is"
        " written stays where it is. Records of one key are in order before and after, not across.",
    ]
    if policy is not None and policy.value is not None and "compact" in policy.value:
        says.append("It is compacted: the old value of a key that moves stays in its old place.")
    says.append("Partitions cannot become fewer again.")

    def apply(link: Link) -> str:
        topics.add_partitions(link, name, total, dry_run=False)
        return f"{now} → {total} partitions"

    def find_done(link: Link) -> str | None:
        there = topics.partition_counts(link, [name])[name]
        return f"{there} partitions" if there >= total else None

    return Change(
        "Add", ("topic", "add-partitions", name, "--to", str(total)), apply, find_done,
        says=tuple(says), columns=("topic", "before", "after", "delta"),
        rows=((name, now, total, f"+{total - now}"),),
    )  # fmt: skip


def moved(before: int, after: int) -> float:
    """The share of keys that go elsewhere when a client takes hash modulo `after` for `before`: as
    many of each lcm of hashes stay as there were partitions."""
    return 1 - before / math.lcm(before, after)


def trimming(link: Link, name: str, offset: str, partitions: tuple[int, ...] = ()) -> Change:
    """Delete the records before an offset of the grammar of `-o`, in each partition. Raises Failure
    when there is nothing before it."""
    plan = topics.trimmed(link, name, offset, partitions, time.time_ns() // 1_000_000)
    gone = sum(one.deleted for one in plan)
    if not gone:
        raise Failure(f"there is nothing to delete before {offset}", name="NOTHING")
    starts = {one.partition: one.new_start for one in plan if one.deleted}
    words = [word for one in partitions for word in ("-p", str(one))]

    def apply(link: Link) -> str:
        topics.trim(link, name, starts)
        return f"{gone} records deleted"

    def find_done(link: Link) -> str | None:
        known = bounds(link, partitions_of(link, [name], tuple(starts)))
        done = all(known[name, number].low >= start for number, start in starts.items())
        return f"{gone} records deleted" if done else None

    return Change(
        "Trim", ("topic", "trim", name, "-o", offset, *words), apply, find_done,
        says=("These records are gone then: this cannot be undone.",),
        facts=(
            Fact("records", gone),
            Fact("size, about", _share(name, disk.sizes(link, {name: starts}), plan), BYTES),
            _readers(link, [name]),
        ),
        columns=("partition", "start", "new start", "end", "deleted"),
        rows=tuple((one.partition, one.start, one.new_start, one.end, one.deleted)
                   for one in plan),
    )  # fmt: skip


def _share(
    topic: str, sizes: Mapping[tuple[str, int], int], plan: "list[topics.Trimmed]"
) -> int | None:
    """The bytes of what goes, when records were of one size; None when sizes are not known."""
    if not sizes:
        return None
    return sum(
        sizes.get((topic, one.partition), 0) * one.deleted // max(1, one.end - one.start)
        for one in plan
    )


def _raised(outcomes: topics.Outcomes) -> None:
    for failure in outcomes.values():
        if failure is not None:
            raise failure
