"""Names, settings and errors that want to break the console's screen are shown as text."""

from dataclasses import fields
from itertools import cycle

import pytest

from appliance.authorization.standard import AclRule
from appliance.history.samples import Whole
from appliance.observer.shown import ShownCertificate
from appliance.quotas.limits import CONNECTION, PRODUCE, entity_text
from appliance.ring.event_ring import LONGEST_TEXT
from appliance.wire.otlp import MetricPoint as OneSample
from console.model.access.access import AccessSeen
from console.model.access.acls import Policy
from console.model.access.audit_memory import AuditSeen, LastLogin
from console.model.access.certificates import Secured, Shown
from console.model.access.users import User
from console.model.asking.change import Change, Fact, Proposal, Tier
from console.model.asking.configs import Setting
from console.model.asking.failure import Failure
from console.model.cluster.cluster_watch import ClusterSeen, Count, Disks, Pace
from console.model.cluster.nodes import BROKER, VOTER, Node, Nodes, Quorum
from console.model.cluster.versions import Told
from console.model.decoding.choosing import Decoders
from console.model.decoding.memory import Choices
from console.model.groups.group_watch import GroupCount, GroupSeen, GroupsSeen, LagPast
from console.model.groups.groups import Group, Listed, Member
from console.model.groups.lag import Position
from console.model.jobs.job_preview import Preview
from console.model.jobs.job_watch import Jobs, JobSeen
from console.model.jobs.job_watch import Sample as JobSample
from console.model.jobs.jobs import Broke, Status
from console.model.local.client_metrics import Instance, Pushing
from console.model.local.clients import Connection
from console.model.local.events import LEVELS, EventsSeen, made
from console.model.local.history import Past, Series
from console.model.local.local import Facts, Sample
from console.model.local.remembered import Remembered
from console.model.local.stats import ApiRate, ProcessRate, TopicRate
from console.model.local.tail import Line
from console.model.quotas.quota_rules import Client
from console.model.quotas.quotas import Seen, Usage
from console.model.records.leaf import leaf
from console.model.records.one import Batch
from console.model.records.one import Whole as WholeRecord
from console.model.records.reading import Record
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import Forecast
from console.model.topics.copies import Copy, Placed
from console.model.topics.expiry import LOST, Risk
from console.model.topics.heat import HeatSeen
from console.model.topics.partitions import Partition as PlacedPartition
from console.model.topics.replicas import BEHIND, Behind, Health, Missing
from console.model.topics.retention import Expiry
from console.model.topics.topics import Deleted, Partition, Topic
from console.model.transactions.open_transactions import HANGING, Held, Open
from console.screens import quota_form
from console.screens.changes.form import LINES, TEXT, Field, Form
from console.screens.places import LISTS, LOG, Place
from console.screens.world import TopicSeen
from console.show.output import plain
from tests.console.seat import LARGE, SMALL, sit, tab

MOST = (1 << 63) - 1
HOSTILE = (
    "[/red]",
    "[/",
    "[b",
    "[@click=app.quit]x[/]",
    "[bold red]loud[/bold red]",
    "\\[",
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;cm0gLXJm\x07",
    "nul\x00nul",
    "two\r\nlines\ttab",
    "\udcff\udc80",
    "\u202egnp.exe",
    "\ufeff\u200b",
    "日本語のトピック",
    "👩‍👩‍👧‍👦" * 40,
    "x" * 100_000,
    "",
    " ",
)
NUMBERS = (0, 1, -1, MOST, -MOST - 1)


def position(name, n):
    return Position(name, MOST, n, n, n, n, float(MOST), name, name, name)


def quotas_seen():
    """Quotas of such names, and their use."""
    entities = [((kind, name),) for kind in ("client-id", "user", "ip") for name in HOSTILE]
    kinds = (PRODUCE, CONNECTION, "[/]")
    values = {kind: float(n) for kind, n in zip(kinds, NUMBERS[1:], strict=False)}
    usage = [
        Usage(kind, name, name, None, 1e30, 1e-30, 1e30, MOST, MOST, MOST, MOST, entity_text(one))
        for one, name, kind in zip(entities, HOSTILE, cycle(kinds), strict=False)
    ]
    return Seen(dict.fromkeys([*entities, (("client-id", None),)], values), tuple(usage))


def job(name, n):
    """As somebody else may have written it into the topic of states."""
    words = ("state", "kind", "cause", "remedy", "note", "since", "checkpoint")
    numbers = ("rows_in", "rows_out", "rows_per_s", "rows_out_per_s", "batch", "batch_ms")
    numbers += ("lag_records", "lag_s", "state_rows", "state_bytes", "late_rows", "dead_letters")
    told = {"wanted": "running", "reads": [name, n], "writes": {name: n}, "watermark": [name]}
    told |= {"phases_ms": {name: n, "x": name}, "delivery": n, "restarts": n, "next_attempt": n}
    told |= dict.fromkeys(words, name) | dict.fromkeys(numbers, n)
    return Status(**dict.fromkeys(field.name for field in fields(Status)) | told | {"job": name})


def jobs_seen():
    found = {name: job(name, NUMBERS[at % 5]) for at, name in enumerate(HOSTILE)}
    past = dict.fromkeys(found, (JobSample(1e30, 0.0, MOST, -1),) * 3)
    log = tuple(Line(at, name) for at, name in enumerate(HOSTILE))
    broke = Broke(-MOST, "[/", "[b", "\n".join(HOSTILE))
    rows = [{one: one, "[/]": MOST, "": [one]} for one in HOSTILE]
    return {
        "jobs": Jobs(HOSTILE[1], None, found, past),
        "job": JobSeen("[/red]", "[/", MOST, broke, log, log, "[/red]"),
        "preview": Preview(rows, list(HOSTILE)),
    }


def pushing():
    """Clients that push such names and such numbers, two by each id, one that cannot be read."""
    values = (float("nan"), float("-inf"), 1e300, -MOST, 0)
    return tuple(
        Pushing(
            Instance(name, f"{n}{name}", name, name, name, name, 1e30, -1.0, MOST, MOST, "[/red]"),
            tuple(OneSample(one, one, one, ((one, name), ("", "[/")), value)
                  for one, value in zip(HOSTILE, cycle(values), strict=False)) if n else (),
        )
        for name in HOSTILE
        for n in range(2)
    )  # fmt: skip


def connections():
    """Clients of such names."""
    return tuple(
        Connection(
            f"{number}-{n}", name, name, name, name, name, name, float(number), number, 1e30,
            number, 1e-30, number, 1e30, 1.0, 1.0, name, name if n % 2 else "", number, n, number,
        )
        for number, name in enumerate(HOSTILE)
        for n in NUMBERS
    )  # fmt: skip


def transactions():
    """Open ones of such names."""
    held = tuple(Held(name, MOST, n, n, n, n, float(n)) for name in HOSTILE for n in NUMBERS)
    return tuple(
        Open(name, state, n, n, n, n, float(n), held)
        for n, name in zip(NUMBERS * 4, HOSTILE, strict=False)
        for state in (HOSTILE[0], "ongoing")
    ) + tuple(
        Open("", HANGING, MOST, -1, None, None, None, (Held(name, -MOST, 0, None, None, MOST),))
        for name in HOSTILE
    )  # fmt: skip


PAST = Series((1e9 - 3, 1e9 - 2, 1e9, 1e12), (1e30, 0.0, float(MOST), -1.0))


def told_past(at):
    return Past((at - 5, at), (1.0, 0.001), (Whole(*[MOST] * 12), Whole(*[0] * 12)))


def happened():
    """Events as a process that went mad may have written them."""
    for n, one in enumerate(HOSTILE):
        text = one[:LONGEST_TEXT]
        fields = dict.fromkeys(("topic", "group", "client", "cause", "partition", text), text)
        yield made(f"{n}", NUMBERS[n % 5], LEVELS[n % 4], text, text, fields)
    yield made("last", 0, "error", "ioproc-0", "bug", {"cause": "\n".join(HOSTILE[:14])})


def cluster():
    """Nodes that are called so."""
    nodes = {
        n: Node(n, name, name, (name, BROKER, VOTER), name, 1e30, MOST, 1e30)
        for n, name in enumerate(HOSTILE)
    }
    behind = tuple(
        Behind(name, n, -1, (n,) * 40, (), (Missing(n, name, MOST, MOST), Missing(9, BEHIND, n, n)))
        for name in HOSTILE
        for n in NUMBERS
    )
    paces = {(name, n, 9): Pace(1e30, 1e30) for name in HOSTILE for n in NUMBERS}
    quorum = Quorum(0, MOST, MOST, tuple(nodes), (MOST,))
    return ClusterSeen(
        Nodes(HOSTILE[0], quorum, nodes), True, tuple(nodes), Health(*[MOST] * 5, behind),
        dict.fromkeys(nodes, Count(MOST, MOST, MOST)), paces,
    )  # fmt: skip


def placed():
    parts = PlacedPartition("[/red]", 0, MOST, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
    copies = tuple(Copy(n, False, False, True, True, True, n, n, n) for n in NUMBERS)
    return {0: Placed(parts, copies)}


def access():
    """Users and rules of such names."""
    rules = tuple(
        AclRule(kind, pattern, name, name, name, operation, permission)
        for name in HOSTILE
        for kind, pattern, operation, permission in ((2, 3, 4, 3), (7, 4, 2, 2), (4, 3, 9, 3))
    )
    users = tuple(User(name, {name: MOST, "SCRAM-SHA-512": -1}) for name in HOSTILE)
    return AccessSeen(users, Policy(rules, HOSTILE, True, HOSTILE, True), "[/red]")


def audited():
    """Entries as somebody may have written them who took the file."""
    events = ("login", "login-failed", "access-denied", "changed", "left-out", "[/red]")
    for n, (name, event) in enumerate(zip(HOSTILE, events * 3, strict=True)):
        changes = [{"type": name, "name": name, "action": name, name: name}, name, None]
        words = ("principal", "address", "why", "resource", "operation", "request", "mechanism")
        told = dict.fromkeys((*words, "name", "process"), name)
        yield str(n), {"time": name, "event": event, **told, "changes": changes, "more": n}
    yield "99", {"time": 5, "event": ["x"], "changes": "[/red]", "more": "[/red]", "of": [1]}


def shown():
    """Certificates for such names."""
    for n, name in enumerate(HOSTILE):
        ends = ShownCertificate(-1e30 if n % 2 else 0.0, 1e30 if n % 3 else float(n), HOSTILE, name)
        yield Shown(Secured(name, name, n), ends if n % 4 else None, name)


def whole_record():
    headers = [(name, name.encode(errors="surrogateescape")) for name in HOSTILE]
    record = Record("[/red]", MOST, MOST, MOST, headers[2][1], headers[7][1], headers)
    return WholeRecord(record, "[/]", MOST, Batch(MOST, MOST, MOST, "[b", MOST, MOST, True))


def answers():
    """Answers of a broker that has only such names and numbers."""
    setting = [
        Setting(name, name, name, name, name, name, False, False, ()) for name in HOSTILE
    ] + [Setting("secret", "hidden", "topic", None, None, "password", False, True, ())]
    partitions = [
        Partition(n, MOST, [MOST] * 40, [], start, MOST, start, name)
        for n, (start, name) in enumerate(zip(NUMBERS, HOSTILE, strict=False))
    ] + [Partition(99, None, [], [], None, None, None, "KAFKA_STORAGE_ERROR [/]")]
    topics = {
        name: TopicRate(name, MOST, 1e30, 1e30, float(MOST), 1e30, 1e-30, 1e30, n, n)
        for name in HOSTILE
        for n in NUMBERS
    }
    members = tuple(
        Member(name, name, name, name, ((name, MOST), ("[/]", 0), ("[/]", 1))) for name in HOSTILE
    )
    past = tuple((float(n), number) for n, number in enumerate((*NUMBERS, MOST)))
    risks = tuple(
        Risk(name, name, (MOST, 0), n, float(abs(n)), by, exact=n > 0, members=n)
        for name in HOSTILE
        for n, by in zip(NUMBERS, ("retention.ms", LOST, name) * 2, strict=False)
    )
    return jobs_seen() | {
        "facts": Facts(
            HOSTILE[0], 0, False,
            [ApiRate(one, MOST, 1e30, 1e30, 0.0, 1e30, 0.0, 1.0, {one: MOST}) for one in HOSTILE],
            [ProcessRate(one, MOST, one, 1e30, 1e30, 1e30, 1e30) for one in HOSTILE],
            topics, (Sample(1e30, 0.0, 1e30),) * 3,
            dict.fromkeys(HOSTILE, ((1e+30, 0.0),) * 3), dict.fromkeys(HOSTILE, 1.0),
            connections(), MOST, dict.fromkeys(HOSTILE, (MOST, MOST)), HOSTILE, pushing=pushing(),
        ),
        "past": Remembered(
            1e9, told_past(1e9), told_past(1e8), dict.fromkeys(HOSTILE, PAST),
            dict.fromkeys(HOSTILE, PAST),
            {n: Forecast(float(number), 1e30, 1e30) for n, number in enumerate(NUMBERS)},
        ),
        "folders": [LogFolder(one, MOST, n, n, "") for one in HOSTILE for n in NUMBERS]
        + [LogFolder(one, -1, -1, 0, one) for one in HOSTILE],
        "groups": GroupsSeen(
            [Listed(one, one, one) for one in HOSTILE],
            {one: GroupCount(MOST, MOST, MOST, float(MOST), past) for one in HOSTILE},
        ),
        "risks": risks,
        "heat": HeatSeen(
            {(one, n): MOST for one in sorted(HOSTILE) for n in (0, MOST)},
            {(one, n): 1e300 for one in sorted(HOSTILE) for n in (0, MOST)},
        ),
        "quotas": quotas_seen(),
        "transactions": transactions(),
        "trash": [
            Deleted(one, one, one, MOST, MOST, MOST, f"{n}{one}") for n, one in enumerate(HOSTILE)
        ],
        "events": EventsSeen(tuple(happened()), MOST, True),
        "topic": TopicSeen(
            Topic("[/red]", "[/]", True, MOST, MOST, MOST, partitions), setting, placed()
        ),
        "nodes": cluster(),
        "disks": {n: Disks(MOST, None, HOSTILE) for n in range(len(HOSTILE))},
        "versions": Told(dict(enumerate(HOSTILE)), frozenset((1,))),
        "access": access(),
        "audit": AuditSeen(dict(audited()), {one: LastLogin(one, one, one, MOST)
                                             for one in HOSTILE}),
        "certificates": tuple(shown()),
        "record": leaf(whole_record(), Decoders(Choices(None, "")), plain),
        "group": GroupSeen(
            Group("[/red]", "\x1b[2J", "[/]", "[b", MOST, members),
            [position(one, n) for one in HOSTILE for n in NUMBERS],
            LagPast(0.0, past, dict.fromkeys(HOSTILE, past), {(one, MOST): 1.0 for one in HOSTILE}),
            Expiry(risks, HOSTILE),
        ),
    }  # fmt: skip


def told(answer):
    """Lets every source say what it is given for it."""

    def prepare(app):
        world = app.world
        for name in ("facts", "folders", "groups", "risks", "quotas", "jobs", "past", "trash",
                     "transactions", "nodes", "disks", "versions", "access", "audit",
                     "certificates", "heat"):  # fmt: skip
            getattr(world, name).ask = lambda name=name: answer[name]
        world.events.ask = lambda: answer["events"]
        world._topic = lambda name: answer["topic"]
        world._group = lambda name: answer["group"]
        world._job = lambda name: answer["job"]
        world._preview = lambda name: answer["preview"]
        world._record = lambda name: answer["record"]

    return prepare


PLACES = (
    Place("overview"), Place("topics"), Place("topic", "[/red]"), Place("groups"),
    Place("group", "[@click=app.quit]x[/]"), Place("group", "\x1b]0;\udcff"),
    Place("records", "[/red]"), Place("tail", "[@click=app.quit]x[/]"),
    Place("record", "[/red] 0:1"), Place("log"),
    Place("clients"), Place("txns"), Place("quotas"),
    Place("quota", Client("\x1b[2J", "[@click=app.quit]x[/]").text),
    Place("jobs"), Place("job", "[/red]"), Place("preview", "\x1b]0;\udcff"),
    Place("deleted"), Place("nodes"), Place("users"), Place("acls"), Place("audit"),
    Place("can", "User:[/red] write topic [/red]"), Place("certificates"),
    Place("topology"), Place("heat"), Place("heat", "[/red]"),
)  # fmt: skip


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_whatever_a_broker_says_is_shown_as_text(appliance, size):
    async def act(seat):
        app, lines = seat.app, []

        def is_whole():
            lines[:] = seat.lines()
            return len(lines) == size[1]

        for place in PLACES:
            await app.go_to(place)
            await seat.until(
                lambda place=place: app.world.main(place).shown.value is not None, str(place)
            )
            for key in (
                "j",
                "G",
                "s",
                "s",
                "s",
                "tab",
                "j",
                "G",
                "s",
                "w",
                "y",
                "?",
                "escape",
                "g",
                "l",
            ):
                await seat.press(key)
                await seat.until(is_whole, "a whole screen")
                assert all(map(str.isprintable, lines))
            assert app.is_running
        assert app.here == PLACES[-1]
        await app.go_to(Place("groups"))
        await seat.sees("[@click=app.quit]x[/]", "[/red]", r"\x1b[31mred\x1b[0m", "9.22E")
        await seat.press("ctrl+p")
        await seat.type("[/red")
        await seat.sees("group [/red]")
        await seat.press("escape")
        await seat.press(":")
        await seat.type("g [/re")
        await seat.sees("g [/red]")

    sit(appliance.bootstrap, act, size=size, prepare=told(answers()))


def test_whatever_an_error_says_is_shown_as_text(appliance):
    """Each text on every third list, each list with every third text: all lists show an error by
    the same lines of code."""
    said = [HOSTILE[0]]

    def fail():
        raise Failure(said[0], said[0], where=said[0], name=said[0])

    def fault():
        raise ValueError(said[0])

    def prepare(app):
        world = app.world
        for source in (world.cluster, world.facts, world.folders, world.quotas, world.jobs,
                       world.transactions, world.nodes, world.access):  # fmt: skip
            source.ask = fail
        world.groups.ask = fault

    async def act(seat):
        world = seat.app.world
        for at, said[0] in enumerate(HOSTILE):
            world.request_updates()
            for kind in (*LISTS[1:], LISTS[0])[at % 3 :: 3]:
                await seat.press(tab(kind))
                source = world.cluster if kind == LOG else world.main(seat.app.here)
                await seat.until(
                    lambda source=source: said[0] in getattr(source.shown.failure, "message", ()),
                    f"{kind}: {said[0]!r}",
                )
                assert all(map(str.isprintable, seat.lines()))
            await seat.press("3")
            await seat.sees("groups: ValueError")

    sit(appliance.bootstrap, act, prepare=prepare, jobs="/nowhere")


def test_plans_and_forms_of_such_names_are_shown_as_text(appliance):
    everything = "\n".join(one for one in HOSTILE if len(one) < 1000)
    change = Change(
        "[/red]", HOSTILE[:-3], lambda link: everything, None, HOSTILE[:-3],
        tuple(Fact(one, one) for one in HOSTILE[:10]) + tuple(Fact("n", n) for n in NUMBERS),
        ("[/red]", "before"), tuple((one, n) for one in HOSTILE for n in NUMBERS),
    )  # fmt: skip
    fields = tuple(
        Field(one, one, one, about=one, kind=kind, check=lambda text: text and HOSTILE[3])
        for kind, one in zip((TEXT, LINES) * 6, HOSTILE, strict=False)
    )

    async def act(seat):
        app = seat.app
        for one in (HOSTILE[3], HOSTILE[7], HOSTILE[-3]):
            app.door.open_proposal(Proposal(one, Tier.NAME, lambda link: change, (one,)))
            await seat.plan()
            await seat.press("tab", "tab", "G", "y")
            assert all(char.isprintable() for line in seat.lines() for char in line)
            await seat.press("escape")
        app.door.open_proposal(Proposal("do", Tier.UNDO, lambda link: change))
        await seat.hears("do: [/red]")
        form = Form("[/red]", fields, lambda values: None, preview=lambda values: HOSTILE[6])
        app.door.open_proposal(form)
        await seat.sees("[/red]", r"\x1b[31mred")
        for _ in fields[:3]:
            await seat.press("tab")
            assert all(char.isprintable() for line in seat.lines() for char in line)
        await seat.sees("[@click=app.quit]x[/]")
        await seat.press("ctrl+s")
        await seat.press("tab", "tab")
        assert all(char.isprintable() for line in seat.lines() for char in line)
        await seat.press("escape")
        app.door.open_proposal(
            quota_form.edit((("client-id", HOSTILE[3]), ("user", HOSTILE[6])), {}, "")
        )
        await seat.sees("Quotas of client-id=[@click=app.quit]x[/]", r"\x1b[31mred")
        await seat.press(*"1MB", "enter")
        await seat.plan()
        await seat.sees("none", "1 MB/s")

    sit(appliance.bootstrap, act, size=LARGE)


def test_groups_of_such_names_are_shown_over_the_wire(run, appliance):
    from console.model.asking.link import Link
    from console.model.groups import groups

    link = Link(appliance.bootstrap, {}, 10.0)
    run("topic", "create", "hostile.topic", "-p", "1")
    named = list(HOSTILE[:6] + HOSTILE[9:10] + HOSTILE[13:14])
    for name in named:
        groups.commit(link, name, {("hostile.topic", 0): 0})

    async def act(seat):
        await seat.press("3")
        await seat.sees("[@click=app.quit]x[/]", "[/red]", "日本語のトピック", r"two\r\nlines\ttab")
        await seat.press("/")
        await seat.type("@click")
        await seat.misses("日本語")
        await seat.press("enter", "enter")
        await seat.sees("hostile.topic", "no member now")
        assert "group describe '[@click=app.quit]x[/]'" in seat.line("$ ")

    sit(appliance.bootstrap, act, size=LARGE)
