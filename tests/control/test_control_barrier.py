"""An exception in any hook of control costs one answer or one run of a chore. What may have left
the log ahead of the image ends the process, and its successor has all that was answered."""

import errno
import uuid
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from test_control_shell import Appliance, create, new

from appliance.base import errors
from appliance.base.errors import CannotServe, StorageFailed
from appliance.control import shell
from appliance.control.barrier import ControlBarrier
from appliance.control.history.history_writer import Keeper
from appliance.control.partitions.ioproc_requests import Homes
from appliance.control.quorum import wire
from appliance.control.quorum.images import Images
from appliance.control.quorum.metadata_log import MetadataLog
from appliance.control.quorum.snapshot_fetch import BeginAgain
from appliance.control.requests.admin_requests import AdminRequests
from appliance.control.requests.contexts import Contexts
from appliance.control.requests.mutation_quotas import Mutations
from appliance.control.requests.pending_answers import LOST, Decision, WaitingAnswers
from appliance.control.requests.router import RequestRouter
from appliance.handlers.admin_apis import APIS
from appliance.peers.link import Link
from appliance.quorum.replica import Replica
from appliance.ring.messages import ISR_REFUSED, PRODUCER_ID_BLOCK, PRODUCER_IDS
from appliance.ring.process_table import CONTROL, IOPROC, Peer
from appliance.shell.bugs import Bugs
from appliance.wire.build import build
from appliance.wire.messages import encode_request, layout_of, request_type

PLANTED = pytest.mark.interpreted("plants exceptions in parts")
IO = Peer(IOPROC, 0)


class World(Appliance):
    """Control, one netproc and one I/O process."""

    def __init__(self, path, settings=None):
        super().__init__(path, settings)
        self.io = self.seats.links(IO)
        self.settle()

    def settle(self):
        super().settle()
        if hasattr(self, "io"):
            self.io.changed_peers()
            self.io.confirm()

    def told(self):
        """What the I/O process is told."""
        self.io.flush()
        self.turn()
        return [one for _, batch in self.io.poll() for one in batch]


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def fail(*args, **more):
    raise KeyError("planted")


def bugs(world):
    with open(f"/proc/self/fd/{world.fd}") as said:
        return [line for line in said if " bug " in line]


def goes_on(world, name):
    """Others are served, and what is published is what was decided."""
    assert create(world, new(name)).topics[0].error_code == errors.NONE
    assert not world.control._quorum.changing
    assert world.followed().image == world.control._quorum.image


def body_of(api):
    """A request of it with as little in it as may be."""
    return encode_request(blank(layout_of(request_type(api.key, api.lowest))))


def blank(layout):
    """A message with no entries in its arrays, no text and zeros."""
    return layout.make(**{one.name: _nothing(one) for one in layout.fields})


def _nothing(field):
    if field.tag >= 0:
        return field.default
    if field.array:
        return ()
    if field.nested is not None:
        return blank(field.nested)
    if field.kind == "uuid":
        return uuid.UUID(int=0)
    if field.convert is not None:
        return timedelta()
    return {"string": "", "bytes": b"", "bool": False}.get(field.kind, 0)


HOOKS = [
    (key, one.name)
    for key, api in sorted(APIS.items())
    for one in fields(api)
    if callable(getattr(api, one.name))
]


@PLANTED
@pytest.mark.parametrize(
    ("key", "hook"), HOOKS, ids=[f"{APIS[key].name}-{hook}" for key, hook in HOOKS]
)
def test_a_hook_of_any_api_that_raises_is_answered(world, monkeypatch, key, hook):
    api = APIS[key]
    with monkeypatch.context() as planted:
        planted.setitem(APIS, key, replace(api, **{hook: fail}))
        token = world.forward(key, api.lowest, body_of(api))
        code, _ = world.answers()[token]
    assert hook != "decide" or code == errors.UNKNOWN_SERVER_ERROR
    assert (code == errors.UNKNOWN_SERVER_ERROR) == bool(bugs(world))
    goes_on(world, "a")


PARTS = [
    (Contexts, "context"),
    (Contexts, "refresh"),
    (RequestRouter, "decide"),
    (Mutations, "permit"),
    (AdminRequests, "ensure_topic"),
    (WaitingAnswers, "add_answer"),
    (shell, "read"),
]


@PLANTED
@pytest.mark.parametrize(
    ("part", "name"), PARTS, ids=[f"{part.__name__}.{name}" for part, name in PARTS]
)
def test_a_request_that_raises_anywhere_else_is_answered_too(world, monkeypatch, part, name):
    with monkeypatch.context() as planted:
        planted.setattr(part, name, fail)
        assert world.ensure("lost") == errors.UNKNOWN_SERVER_ERROR
    assert len(bugs(world)) == 1 and "Traceback" in bugs(world)[0]
    goes_on(world, "a")


def chores_of(world, monkeypatch):
    """The labels of all that runs behind the barrier in some turns."""
    seen = {}
    run, guard = ControlBarrier.run_chore, Bugs.guard
    with monkeypatch.context() as watched:
        watched.setattr(ControlBarrier, "run_chore", lambda *a: (seen.setdefault(a[1]), run(*a))[1])
        watched.setattr(Bugs, "guard", lambda *a: (seen.setdefault(a[1]), guard(*a))[1])
        goes_on(world, "first")
    return list(seen)


@PLANTED
def test_a_chore_that_raises_is_told_and_requests_are_answered(world, monkeypatch):
    keeper = Keeper.__new__(Keeper)
    monkeypatch.setattr(Keeper, "keep_due", lambda self, now_ns: None)
    world.control.keeper = keeper
    run, guard = ControlBarrier.run_chore, Bugs.guard
    chores = chores_of(world, monkeypatch)
    assert len(chores) >= 8, chores
    for number, chore in enumerate(chores):
        before = len(bugs(world))
        with monkeypatch.context() as planted:
            planted.setattr(
                ControlBarrier,
                "run_chore",
                lambda self, w, do, *more, c=chore: run(self, w, fail if w == c else do, *more),
            )
            planted.setattr(
                Bugs,
                "guard",
                lambda self, w, do, c=chore: guard(self, w, fail if w == c else do),
            )
            assert create(world, new(f"t{number}")).topics[0].error_code == errors.NONE
        assert len(bugs(world)) > before, chore
        goes_on(world, f"u{number}")
    world.control.keeper = None


@PLANTED
def test_a_refusal_that_raises_costs_its_own_answer_alone():
    told = []
    waiting = WaitingAnswers(type("Told", (), {"report": lambda *a: told.append(a)})())
    for token, refuse in ((1, lambda why: (7, b"")), (2, fail), (3, lambda why: (8, b""))):
        waiting.add_answer(0, token, Decision(0, b"", refuse), 10)
    codes = {token: code for _, token, code, _ in waiting.refuse(5, LOST)}
    assert codes == {1: 7, 2: errors.UNKNOWN_SERVER_ERROR, 3: 8} and len(told) == 1


@PLANTED
@pytest.mark.parametrize("part", [Images, MetadataLog])
def test_an_append_that_stops_halfway_ends_the_process_and_nothing_answered_is_lost(
    world, monkeypatch, part
):
    goes_on(world, "a")
    with monkeypatch.context() as planted:
        planted.setattr(part, "decide" if part is Images else "append", fail)
        world.forward(19, 7, body_of(APIS[19]))
        world.answers()  # it changes nothing, so it is answered
        with pytest.raises(KeyError):
            world.ensure("b")
    assert "Traceback" in bugs(world)[-1]
    world.kill_control()
    goes_on(world, "c")
    assert world.followed().image.topics_by_name.keys() >= {"a", "c"}


@PLANTED
@pytest.mark.parametrize("op", [PRODUCER_IDS])
def test_a_message_of_an_io_process_that_raises_is_refused(world, monkeypatch, op):
    with monkeypatch.context() as planted:
        planted.setattr(Homes, "_take", fail)
        assert world.io.writer(CONTROL, 0).push(op, 0, 0, 0)
        (answer,) = world.told()
    assert answer.op in (PRODUCER_ID_BLOCK, ISR_REFUSED) and answer.flags - 1 != errors.NONE
    goes_on(world, "a")
    assert world.io.writer(CONTROL, 0).push(PRODUCER_IDS, 0, 0, 0)
    world.told()
    world.turn()
    assert [one.flags - 1 for one in world.told()] in ([], [errors.NONE])


VOTE, VOTE_VERSION = 52, 0


@PLANTED
def test_a_vote_that_cannot_be_read_is_answered_and_one_that_stops_halfway_ends_the_process(
    world, monkeypatch
):
    values = {
        "cluster_id": world.control._identity.cluster_id,
        "topics": [
            {
                "topic_name": "__cluster_metadata",
                "partitions": [
                    {
                        "partition_index": 0,
                        "replica_epoch": 9,
                        "replica_id": 1,
                        "last_offset_epoch": 8,
                        "last_offset": 99,
                    }
                ],
            }
        ],
    }
    body = encode_request(build(request_type(VOTE, VOTE_VERSION), values))
    with monkeypatch.context() as planted:
        planted.setattr(wire, "read", fail)
        token = world.forward(VOTE, VOTE_VERSION, body)
        assert world.answers()[token][0] == errors.UNKNOWN_SERVER_ERROR
    goes_on(world, "a")
    with monkeypatch.context() as planted:
        planted.setattr(Replica, "vote", fail)
        planted.setattr("appliance.control.quorum.request_checks.check_voter", lambda *a, **k: None)
        planted.setattr("appliance.control.quorum.request_checks.check_epoch", lambda *a: None)
        world.forward(VOTE, VOTE_VERSION, body)
        with pytest.raises(KeyError):
            world.answers()
    world.kill_control()
    goes_on(world, "b")


class Way:
    """A link to another node, of which nothing but this is asked here."""

    __class__ = Link

    def __init__(self):
        self.closed = 0

    def close(self):
        self.closed += 1


def test_what_another_node_answers_costs_its_link(world):
    way = Way()
    try:
        fail()
    except KeyError as bug:
        world.control.barrier.hang_up(way, bug)
        world.control.barrier.hang_up(way, bug)
    assert way.closed == 2
    (said,) = bugs(world)
    assert "an answer" in said and "planted" in said
    goes_on(world, "t")


@pytest.mark.parametrize(
    "meant", [StorageFailed("read", errno.EIO, "gone"), CannotServe("no"), BeginAgain("anew")]
)
def test_an_answer_that_is_to_end_the_process_does(world, meant):
    way = Way()
    with pytest.raises(type(meant)):
        world.control.barrier.hang_up(way, meant)
    assert not way.closed


def test_an_answer_that_leaves_the_log_half_told_ends_the_process(world):
    world.control._quorum.changing = True
    with pytest.raises(KeyError):
        world.control.barrier.hang_up(Way(), KeyError("planted"))
    world.control._quorum.changing = False


def test_what_is_no_link_is_not_taken_for_one(world):
    with pytest.raises(KeyError):
        world.control.barrier.hang_up(world.control, KeyError("planted"))
