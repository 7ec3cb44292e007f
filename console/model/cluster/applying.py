"""Plans the changes that make an appliance match a file: each step a Change, done once as those of
the console are (decision 37). Also exports an appliance as such a file.

A plan is made over a Link that only reads, and asks the broker whether it would take each change.
Without `prune` it takes nothing away: neither a topic nor a setting that the file does not name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from appliance.base.errors import ConfigError
from appliance.config.broker_settings import BROKER as BROKER_SETTINGS
from appliance.config.topic_settings import TOPIC as TOPIC_SETTINGS
from appliance.quotas.limits import Entity, entity_text
from console.model.asking import configs
from console.model.asking.change import Change
from console.model.asking.configs import CLUSTER, DELETE, GROUP, SET, TOPIC, Target
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.model.cluster.desired import Desired, DesiredTopic, Settings
from console.model.groups import groups
from console.model.quotas.quota_change import proposal
from console.model.quotas.quota_values import brief, exact, shown
from console.model.quotas.quotas import all_quotas
from console.model.topics import topic_changes, topics
from console.model.topics.topics import Listed

CREATE, CHANGE, REMOVE, NOTHING = "create", "change", "delete", "nothing"
_OWN: Final = {TOPIC: "topic", GROUP: "group", CLUSTER.kind: "cluster, set at run time"}
"""Kind of target → what source its own values have."""


@dataclass(slots=True, frozen=True)
class Row:
    """A line of the plan. action: CREATE, CHANGE, REMOVE or NOTHING. what: `partitions`, the key of
    a setting, a quota; "" for all of it."""

    action: str
    kind: str
    name: str
    what: str
    before: str | None
    after: str | None


@dataclass(slots=True, frozen=True)
class Step:
    """A change, and its lines of the plan. change: None where nothing is to be done."""

    rows: tuple[Row, ...]
    change: Change | None = None

    @property
    def removes(self) -> bool:
        """True if the step deletes a topic."""
        return any(row.action == REMOVE and row.kind == "topic" and not row.what
                   for row in self.rows)  # fmt: skip


def plan(link: Link, desired: Desired, *, prune: bool) -> list[Step]:
    """Every step in the order in which they are done, what deletes last. Raises Failure for the
    first thing that cannot be done."""
    steps: list[Step] = []
    if desired.cluster is not None:
        steps += _settings(link, CLUSTER, desired.cluster, prune)
    gone: list[Step] = []
    if desired.topics is not None:
        there = topics.listed(link)
        for name, topic in desired.topics.items():
            steps += _topic(link, name, topic, there.get(name), prune)
        if prune:
            unnamed = sorted(
                set(topics.choose(there, (), None, internal=False)) - {*desired.topics}
            )
            gone = [_deletion(link, name) for name in unnamed]
    for name, settings in (desired.groups or {}).items():
        steps += _settings(link, Target(GROUP, name), settings, prune)
    if desired.quotas is not None:
        steps += _quotas(link, desired.quotas, prune)
    return steps + gone


# Topics -------------------------------------------------------------------------------------------


def _topic(
    link: Link, name: str, desired: DesiredTopic, there: Listed | None, prune: bool
) -> Iterator[Step]:
    if there is None:
        change = topic_changes.creating(
            link, name, desired.partitions, desired.replicas, desired.config
        )
        counts = {"partitions": desired.partitions, "replicas": desired.replicas}
        said = {what: str(count) for what, count in counts.items() if count} | desired.config
        rows = [Row(CREATE, "topic", name, what, None, value) for what, value in said.items()]
        yield Step(tuple(rows) or (Row(CREATE, "topic", name, "", None, None),), change)
        return
    _refuse(name, desired, there)
    now = len(there.partitions)
    more = desired.partitions is not None and desired.partitions > now
    if desired.partitions is not None and more:
        row = Row(CHANGE, "topic", name, "partitions", str(now), str(desired.partitions))
        yield Step((row,), topic_changes.adding(link, name, desired.partitions))
    found = _settings(link, Target(TOPIC, name), desired.config, prune)
    yield from [one for one in found if one.change is not None or not more]


def _refuse(name: str, desired: DesiredTopic, there: Listed) -> None:
    """Raises Failure for what apply does not do to a topic that is there."""
    now = len(there.partitions)
    if desired.partitions is not None and desired.partitions < now:
        raise Failure(
            f"topic {name} has {now} partitions; the file asks for {desired.partitions}, and"
            " partitions cannot be removed", f"write partitions = {now}", name="CANNOT_APPLY",
        )  # fmt: skip
    if desired.replicas is not None and desired.replicas != there.replicas:
        raise Failure(
            f"topic {name} has {there.replicas} replicas; the file asks for {desired.replicas}",
            f"penstock topic replicas set {name} {desired.replicas} changes the replication factor",
            name="CANNOT_APPLY",
        )  # fmt: skip


def _deletion(link: Link, name: str) -> Step:
    return Step((Row(REMOVE, "topic", name, "", None, None),), topic_changes.deleting(link, name))


# Settings -----------------------------------------------------------------------------------------


def _settings(link: Link, target: Target, desired: Settings, prune: bool) -> Iterator[Step]:
    own = _own(link, target)
    differs: dict[str, str | None] = {
        key: value for key, value in desired.items() if not _same(key, own.get(key), value)
    }
    differs |= dict.fromkeys(key for key in own if prune and key not in desired)
    kind, _, name = str(target).rpartition(" ") if target.name else ("cluster", "", "")
    if not differs:
        yield Step((Row(NOTHING, kind, name, "", None, None),))
        return
    rows = [
        Row(CHANGE if value is not None else REMOVE, kind, name, key, own.get(key), value)
        for key, value in differs.items()
    ]
    yield Step(tuple(rows), _setting(link, target, differs))


def _own(link: Link, target: Target) -> dict[str, str]:
    return {
        one.key: one.value or ""
        for one in configs.settings(link, target)
        if one.source == _OWN[target.kind] and not one.sensitive
    }


def _same(key: str, one: str | None, other: str) -> bool:
    """True if both values mean the same: `a,b` and `a, b`."""
    known = TOPIC_SETTINGS.get(key) or BROKER_SETTINGS.get(key)
    if one is None or one == other or known is None:
        return one == other
    try:
        return known.parse(one) == known.parse(other)
    except ConfigError:
        return False


def _setting(link: Link, target: Target, wanted: Mapping[str, str | None]) -> Change:
    asked: configs.Changes = {
        key: (SET, value) if value is not None else (DELETE, None) for key, value in wanted.items()
    }
    configs.change(link, target, asked, dry_run=True)

    def apply(link: Link) -> str:
        configs.change(link, target, asked, dry_run=False)
        return "set"

    def find_done(link: Link) -> str | None:
        own = _own(link, target)
        done = all(own.get(key) == value for key, value in wanted.items())
        return "set" if done else None

    flag = {TOPIC: ("-t", target.name), GROUP: ("-g", target.name)}.get(target.kind, ())
    words = [f"{key}={value}" for key, value in wanted.items() if value is not None]
    return Change("Set", ("config", "set", *words, *flag), apply, find_done)


# Quotas -------------------------------------------------------------------------------------------


def _quotas(
    link: Link, desired: Mapping[Entity, Mapping[str, float]], prune: bool
) -> Iterator[Step]:
    there = all_quotas(link)
    for entity in dict.fromkeys([*desired, *(there if prune else ())]):
        now, then = there.get(entity, {}), desired.get(entity, {})
        changes: dict[str, float | None] = {
            kind: value for kind, value in then.items() if now.get(kind) != value
        }
        changes |= dict.fromkeys(kind for kind in now if prune and kind not in then)
        name = entity_text(entity)
        if not changes:
            yield Step((Row(NOTHING, "quota", name, "", None, None),))
            continue
        rows = [
            Row(REMOVE if value is None else CHANGE if kind in now else CREATE, "quota", name,
                brief(kind), shown(kind, now.get(kind)), shown(kind, value))
            for kind, value in changes.items()
        ]  # fmt: skip
        yield Step(tuple(rows), proposal(entity, changes, lambda *_: ()).plan(link))


# What is there ------------------------------------------------------------------------------------


def exported(link: Link) -> dict[str, Any]:
    """The state of an appliance in the shape of the file, without secrets."""
    there = topics.choose(topics.listed(link), (), None, internal=False)
    found: dict[str, Any] = {"cluster": _own(link, CLUSTER)} if link.is_asked else {}
    found["topics"] = {
        name: {"partitions": len(one.partitions), "replicas": one.replicas}
        | ({"config": own} if (own := _own(link, Target(TOPIC, name))) else {})
        for name, one in sorted(there.items())
    }
    if link.is_asked:
        named = sorted(one.name for one in groups.listed(link))
        of_groups = {name: _own(link, Target(GROUP, name)) for name in named}
        found["groups"] = {name: own for name, own in of_groups.items() if own}
        found["quotas"] = [_told(*one) for one in sorted(all_quotas(link).items(), key=str)]
    return found


def _told(entity: Entity, values: Mapping[str, float]) -> dict[str, Any]:
    defaults = [kind for kind, name in entity if name is None]
    whose: dict[str, Any] = {kind: name for kind, name in entity if name is not None}
    whose |= {"default": defaults} if defaults else {}
    return whose | {brief(kind): exact(kind, value) for kind, value in sorted(values.items())}
