"""The forms for changes of topics, and the changes they propose."""

import re
from functools import partial
from typing import Final

from console.model.asking.change import Proposal, Tier
from console.model.asking.configs import Setting
from console.model.asking.failure import Failure, usage
from console.model.asking.setting_values import in_unit
from console.model.topics import replica_changes, topic_changes
from console.model.topics.topics import PARTITIONS_MOST
from console.screens.changes.form import FLAG, LINES, YES, Field, Form, Values, count, needed

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_OWN: Final = "topic"
_TAG: Final = re.compile(r"</?[a-z][^<>]*>")  # Apache Kafka writes its documentation for browsers


def new_topic() -> Form:
    """Create a topic; what is left empty is decided by the broker's settings."""
    return Form(
        "New topic",
        (
            Field("name", "Name", hint="orders", check=_name_wrong,
                  about="Letters, digits, dot, _ and -."),
            Field("partitions", "Partitions", hint="as the broker has it", check=_count_wrong,
                  about="They can become more later, never fewer."),
            Field("replicas", "Replicas", hint="as the broker has it", check=count,
                  about="Copies of each partition: 1 on an appliance alone."),
            Field("cleanup.policy", "cleanup.policy",
                  choices=("delete", "compact", "compact,delete"),
                  about="delete: records go when they are old. compact: the last one of each key"
                  " stays."),
            Field("retention.ms", "retention.ms", hint="7d",
                  about="How long records stay: 7d, 1h30m, or ms. -1: no limit."),
            Field("more", "More settings", hint="KEY=VALUE ...", check=_pairs_wrong,
                  about="With blanks between them: segment.bytes=100MiB flush.policy=os"),
        ),
        _new_topic,
        about="Nothing is made before what it would be has been shown.",
    )  # fmt: skip


def _new_topic(values: Values) -> Proposal:
    name = values["name"].strip()
    given = {key: values[key].strip() for key in ("cleanup.policy", "retention.ms")}
    given = {key: value for key, value in given.items() if value} | _pairs(values["more"])
    plan = partial(
        topic_changes.creating,
        name=name, partitions=_count(values["partitions"]), replicas=_count(values["replicas"]),
        given={key: in_unit(key, value) for key, value in given.items()},
    )  # fmt: skip
    return Proposal(f"Create topic {name}", Tier.PLAN, plan)


def delete(name: str, *, leaves: bool) -> Proposal:
    """Delete a topic. leaves: it is what is shown."""
    plan = partial(topic_changes.deleting, name=name)
    return Proposal(f"Delete topic {name}", Tier.NAME, plan, (name,), leaves)


def delete_all(names: tuple[str, ...]) -> Proposal:
    """Delete several topics."""
    plan = partial(topic_changes.deleting_all, names=names)
    return Proposal(f"Delete {len(names)} topics", Tier.NAME, plan, names)


def add_partitions(name: str, now: int) -> Form:
    """More partitions for a topic that has `now`."""

    def propose(values: Values) -> Proposal:
        plan = partial(topic_changes.adding, name=name, total=int(values["total"]))
        return Proposal(f"Add partitions to {name}", Tier.PLAN, plan)

    return Form(
        f"Add partitions to {name}",
        (
            Field("total", "How many in all", hint=f"more than {now}",
                  check=lambda text: needed(text) or _count_wrong(text)),
        ),
        propose,
        about=f"It has {now}. They can become more, never fewer.",
    )  # fmt: skip


def replicas(name: str, now: int) -> Form:
    """More or fewer replicas for a topic whose partitions have `now`, or other ones."""

    def propose(values: Values) -> Proposal:
        asked = replica_changes.parse(values["replicas"].split())
        plan = partial(replica_changes.setting, topic=name, asked=asked)
        return Proposal(f"Set replicas of {name}", Tier.PLAN, plan)

    return Form(
        f"Replicas of {name}",
        (
            Field("replicas", "How many, or where", hint=f"{now} now", check=needed,
                  about="3, or the nodes of partitions, who is to lead first: 0:1,2,3 1:2,3,1"),
        ),
        propose,
        about="New replicas copy all records first; only then those go that are to go.",
    )  # fmt: skip


def trim(name: str) -> Form:
    """Delete the oldest records."""

    def propose(values: Values) -> Proposal:
        numbers = tuple(int(one) for one in re.split(r"[,\s]+", values["partitions"]) if one)
        offset = values["offset"].strip()
        plan = partial(topic_changes.trimming, name=name, offset=offset, partitions=numbers)
        return Proposal(f"Trim topic {name}", Tier.NAME, plan, (name,))

    return Form(
        f"Trim topic {name}",
        (
            Field("offset", "Records before", hint="2h", check=needed,
                  about="47, +2, -3, end, @2013-01-31, or 2h: those that are older."),
            Field("partitions", "In partitions", hint="all", check=_numbers_wrong,
                  about="Numbers with blanks or commas between them; nothing: all of them."),
        ),
        propose,
    )  # fmt: skip


def edit_setting(name: str, one: Setting) -> Form:
    """Another value for one setting of a topic, or the broker's again."""
    value = "" if one.sensitive or one.value is None else one.value
    now = "a secret" if one.sensitive else f"{one.value} ({one.source})"

    def wanted(values: Values) -> str | None:
        follows = values["follow"] == YES
        return None if follows else in_unit(one.key, values["value"])

    def preview(values: Values) -> str:
        try:
            after = wanted(values)
        except Failure as unclear:  # 10M, perhaps on its way to 10MB
            return unclear.message
        told = f"the broker's ({one.default or 'default'})" if after is None else after or '""'
        return f"{now}  →  {'a secret' if one.sensitive and after is not None else told}"

    return Form(
        f"Set {one.key} of {name}",
        (
            Field("value", "Value", value, about=meaning(one),
                  choices=("true", "false") if one.type == "boolean" else ()),
            Field("follow", "Follow the broker", kind=FLAG,
                  about="No value of the topic's own any more: the broker's counts."),
        ),
        lambda values: topic_changes.edit(name, {one.key: wanted(values)}),
        about=f"default {one.default}" if one.default is not None else "",
        preview=preview,
    )  # fmt: skip


def edit_settings(name: str, settings: list[Setting]) -> Form:
    """All of a topic's own settings as lines: what differs is what changes."""
    own = {one.key: one.value or "" for one in settings if one.source == _OWN}

    def propose(values: Values) -> Proposal:
        typed = _pairs(values["lines"])
        gone: dict[str, str | None] = dict.fromkeys(key for key in own if key not in typed)
        kept = {key: in_unit(key, value) for key, value in typed.items()}
        changes = gone | {key: value for key, value in kept.items() if own.get(key) != value}
        if not changes:
            raise usage("nothing was changed", "a line for each setting; a line that goes unsets")
        return topic_changes.edit(name, changes, Tier.PLAN)

    return Form(
        f"Settings of {name}",
        (
            Field("lines", "KEY=VALUE", kind=LINES, check=_lines_wrong,
                  value="".join(f"{key}={value}\n" for key, value in own.items()),
                  about="A line for each setting of the topic's own. A line that is taken away:"
                  " the broker's value applies again. ^s continues."),
        ),
        propose,
    )  # fmt: skip


def meaning(one: Setting) -> str:
    """The description of a setting, as one paragraph."""
    doc = one.doc or "Its description is unavailable over SASL."
    return " ".join(_TAG.sub("", doc).split())


def _count(text: str) -> int | None:
    return int(text) if text.strip() else None


def _count_wrong(text: str) -> str:
    if words := count(text):
        return words
    return f"at most {PARTITIONS_MOST}" if (_count(text) or 0) > PARTITIONS_MOST else ""


def _name_wrong(text: str) -> str:
    name = text.strip()
    if not name:
        return "it needs a name"
    if len(name) > 249:
        return "at most 249 characters"
    right = _NAME.fullmatch(name) and name not in (".", "..")
    return "" if right else "letters, digits, dot, _ and - only, and not . or .."


def _numbers_wrong(text: str) -> str:
    right = re.fullmatch(r"(\d{1,9}([,\s]+|$))*", text.strip())
    return "" if right else "numbers of partitions, such as 0, 3"


def _pairs_wrong(text: str) -> str:
    wrong = [one for one in text.split() if not _is_pair(one)]
    return f"{wrong[0]} is not KEY=VALUE" if wrong else ""


def _lines_wrong(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    wrong = [line for line in lines if line and not _is_pair(line)]
    keys = [line.partition("=")[0].strip() for line in lines if line]
    twice = [key for key in keys if keys.count(key) > 1]
    return (
        f"{wrong[0]} is not KEY=VALUE" if wrong else f"{twice[0]} is there twice" if twice else ""
    )


def _is_pair(text: str) -> bool:
    key, equals, _ = text.partition("=")
    return bool(equals and key.strip())


def _pairs(text: str) -> dict[str, str]:
    """KEY=VALUE by blanks on one line, or by lines."""
    parts = text.splitlines() if "\n" in text else text.split()
    found = (one.partition("=") for one in parts if one.strip())
    return {key.strip(): value.strip() for key, _, value in found}
