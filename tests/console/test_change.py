"""A change is done once, whatever becomes of its answer; forms say what is wrong."""

import pytest

from console.model.asking import configs
from console.model.asking.change import Change, Proposal, Tier, carry_out
from console.model.asking.failure import UNREACHABLE, Failure
from console.model.asking.link import Link
from console.model.topics import topic_changes
from console.screens import lines, topic_forms
from console.screens.changes.form import Field, Form, count, needed
from console.screens.journal import Journal

GONE = "127.0.0.1:1"


class Broker:
    """Has the change or not. answers: what becomes of each request: `done`, `lost` (done, its
    answer not heard), `dropped` (not done, not heard), or a name with which it is refused."""

    def __init__(self, *answers, looks=()):
        self.answers = list(answers)
        self.looks = list(looks)
        self.done = 0
        self.said = []

    def apply(self, link):
        answer = self.answers.pop(0)
        self.done += answer in ("done", "lost")
        if answer in ("lost", "dropped"):
            raise Failure("no answer", code=UNREACHABLE, name="UNREACHABLE")
        if answer != "done":
            raise Failure(answer, name=answer)
        return "it is done"

    def seen(self, link):
        look = self.looks.pop(0) if self.looks else ""
        if look:
            raise Failure(look, name=look, code=UNREACHABLE if look == "UNREACHABLE" else 1)
        return "it is there" if self.done else None

    def carry_out(self, *, patience=9, can_be_seen=True, unsure=False):
        reading, writing = Link(GONE, {}, 0.1, read_only=True), Link(GONE, {}, 0.1)
        change = Change("Do", ("x",), self.apply, self.seen if can_be_seen else None)
        rests = iter([False] * patience)
        return carry_out(
            change, reading, writing, tell=self.said.append, rest=lambda: next(rests, True),
            unsure=unsure,
        )  # fmt: skip


def test_what_is_answered_is_done_without_another_question():
    broker = Broker("done", looks=["no question is asked"])
    assert broker.carry_out() == "it is done"
    assert broker.done == 1 and broker.said == []


def test_what_is_refused_is_not_tried_again():
    broker = Broker("INVALID_CONFIG", "done")
    with pytest.raises(Failure, match="INVALID_CONFIG"):
        broker.carry_out()
    assert broker.done == 0


@pytest.mark.parametrize("answer", ["dropped", "NOT_CONTROLLER", "_DESTROY_BROKER"])
def test_what_was_lost_and_is_not_there_is_sent_again(answer):
    broker = Broker(answer, answer, "done")
    assert broker.carry_out() == "it is done"
    assert broker.done == 1 and len(broker.said) == 2


def test_what_was_lost_and_is_there_is_not_sent_again():
    broker = Broker("lost", looks=["UNREACHABLE", "NOT_CONTROLLER"])
    assert broker.carry_out().startswith("it is there")
    assert broker.done == 1
    assert "not known yet" in broker.said[1]


def test_what_arrives_late_refuses_its_own_second_and_is_found():
    broker = Broker("dropped", "TOPIC_ALREADY_EXISTS")
    looks, seen = iter(range(99)), broker.seen

    def late(link):
        broker.done = next(looks) > 2  # the first one comes through after it was looked for
        return seen(link)

    broker.seen = late
    assert broker.carry_out().startswith("it is there")


def test_what_is_refused_after_a_lost_answer_and_never_there_is_refused():
    broker = Broker("dropped", "INVALID_CONFIG")
    with pytest.raises(Failure, match="INVALID_CONFIG"):
        broker.carry_out()


def test_nobody_waits_for_ever_and_what_is_not_known_is_said():
    broker = Broker("lost", looks=["UNREACHABLE"] * 99)
    with pytest.raises(Failure, match="the outcome is not known") as told:
        broker.carry_out(patience=3)
    assert told.value.name == "NOT_KNOWN" and broker.done == 1
    broker.looks.clear()
    assert broker.carry_out(unsure=True).startswith("it is there"), "asked before it is sent"
    assert broker.done == 1


def test_what_cannot_be_looked_at_is_sent_once():
    broker = Broker("lost", "done")
    with pytest.raises(Failure, match="the outcome is not known"):
        broker.carry_out(can_be_seen=False)
    assert broker.done == 1


def test_names_are_typed_for_what_cannot_be_taken_back_and_for_nothing_else():
    with pytest.raises(AssertionError, match="a name is typed"):
        Proposal("Delete", Tier.NAME, lambda link: None)
    with pytest.raises(AssertionError, match="a name is typed"):
        Proposal("Set", Tier.UNDO, lambda link: None, ("x",))


@pytest.mark.parametrize(
    ("before", "after", "share"), [(1, 2, 1 / 2), (3, 6, 1 / 2), (3, 4, 3 / 4), (4, 4, 0.0)]
)
def test_how_many_keys_move(before, after, share):
    assert topic_changes.moved(before, after) == pytest.approx(share)
    span = range(before * after * 10)
    moved = sum(one % before != one % after for one in span)
    assert moved / len(span) == pytest.approx(share)


def test_a_command_line_means_its_words(monkeypatch):
    monkeypatch.delenv("PENSTOCK_BOOTSTRAP", raising=False)
    told = lines.of_words(("topic", "create", "a b", "-c", "x=$(reboot)\n"), "far:1")
    assert told.endswith("topic create 'a b' -c $'x=$(reboot)\\x0a' -b far:1")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("orders", ""), ("a.b_c-9", ""), ("x" * 249, ""), ("x" * 250, "at most"),
        ("", "needs a name"), ("..", "not . or .."), ("a b", "letters"), ("[/red]", "letters"),
    ],
)  # fmt: skip
def test_names_of_topics_are_checked_while_they_are_typed(name, wrong):
    told = topic_forms.new_topic().wrong(values(topic_forms.new_topic(), name=name)).get("name", "")
    assert wrong in told and bool(wrong) == bool(told)


def values(form, **typed):
    return {one.key: one.value for one in form.fields} | typed


@pytest.mark.parametrize("typed", ["0", "-1", "x", "1.5", "9" * 5000, "²", "100001"])
def test_counts_are_checked(typed):
    assert topic_forms.new_topic().wrong(
        values(topic_forms.new_topic(), name="x", partitions=typed)
    )


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("a=1\nb=2\n", ""), ("", ""), ("a", "KEY=VALUE"), ("=1", "KEY=VALUE"),
        ("a=1\na=2", "twice"),
    ],
)  # fmt: skip
def test_lines_of_settings_are_checked(typed, wrong):
    told = topic_forms.edit_settings("x", []).wrong({"lines": typed}).get("lines", "")
    assert wrong in told and bool(wrong) == bool(told)


def test_what_is_not_clear_yet_is_said_while_it_is_typed():
    one = configs.Setting("segment.bytes", "1048576", "topic", None, None, "int", False, False, ())
    preview = topic_forms.edit_setting("x", one).preview
    assert "say 10MB for 10000000" in preview({"value": "10M", "follow": "no"})
    assert "→  10000000" in preview({"value": "10MB", "follow": "no"})


def test_fields_say_what_may_be_typed():
    field = Field("x", "X", choices=("true", "false"))
    assert not field.wrong("true") and "true, false" in field.wrong("maybe")
    form = Form("F", (Field("n", "N", check=count), Field("m", "M", check=needed)), lambda v: None)
    assert form.wrong({"n": "", "m": " "}).keys() == {"m"}


def test_each_change_is_an_entry_of_its_own():
    journal = Journal()
    for n in range(2):
        journal.add_entry("Set x", n, line="l", outcome="1 → 2", is_change=True)
        journal.add_entry("topics", n, line="m")
    told = [(one.what, one.times, one.is_change) for one in journal.entries.values()]
    assert sorted(told) == [("Set x", 1, True), ("Set x", 1, True), ("topics", 2, False)]


def test_the_value_of_a_secret_is_in_nothing_that_is_shown_kept_or_copied(monkeypatch):
    def setting(value):
        return configs.Setting("key", value, "topic", None, None, "password", False, True, ())

    made = [configs.Change("key", None, "hunter2", "topic")]
    monkeypatch.setattr(configs, "settings", lambda link, target: [setting(None)])
    monkeypatch.setattr(configs, "change", lambda *_, dry_run: [] if dry_run else made)
    change = topic_changes.setting(None, "orders", {"key": "hunter2"})
    assert change.words == (), "there is no command line that could be kept"
    told = (change.says, change.facts, change.rows, change.words, change.apply(None))
    assert "hunter2" not in repr(told)
    away = topic_changes.setting(None, "orders", {"key": None})
    assert away.words == ("topic", "config", "unset", "orders", "key")
