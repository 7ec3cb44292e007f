"""Whatever is committed, marked, deleted and led anew in whatever order: who serves groups knows of
offsets, pending ones included, what a new coordinator would load."""

from random import Random
from tempfile import TemporaryDirectory

from core_world import NOW_MS
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema
from sim.disk import PAGE
from test_coordinating import OFFSETS_ID, Groups
from test_coordinators_lead import Led, shard_of
from test_full_groups import FullGroups

from appliance.base import errors
from appliance.config.log_config import LogConfig
from appliance.logstore.log import PartitionLog
from appliance.ring.messages import TRUSTED_GUARD
from appliance.wire.build import build
from appliance.wire.messages import encode_request
from tests.seeds import each_seed

PRODUCERS = st.integers(1, 3)
STEPS = st.one_of(
    st.tuples(st.just("commit")),
    st.tuples(st.just("within"), PRODUCERS),
    st.tuples(st.just("mark"), PRODUCERS, st.booleans()),
    st.sampled_from([("delete",), ("turn",), ("sync",), ("follow",), ("lead",), ("load",)]),
)


def play(world, offset, step, *rest):
    if step == "commit":
        world.commit(offset)
    elif step == "within":
        world.within((*rest, 0), offset, standing=(errors.NONE, TRUSTED_GUARD))
    elif step == "mark":
        if world.leads:
            world.mark((rest[0], 0), committed=rest[1])
    elif step == "delete":
        body = encode_request(build(load_request_schema(42, 1), {"groups_names": ["g"]}))
        world.send_bytes(42, 1, body)
    elif step == "turn":
        world.turn()
    elif step == "sync":
        world.synced()
    elif step == "load":
        world.load()
    elif world.leads or step == "lead":
        world.follow() if step == "follow" else world.lead()


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, max_size=30))
def test_what_serves_is_what_is_loaded(steps):
    with TemporaryDirectory() as folder:
        world = Led(folder)
        for offset, step in enumerate(steps):
            play(world, offset, *step)
        if not world.leads:
            world.lead()
        world.load()
        world.turn()
        while world.threads.jobs:
            world.synced()
        live, loaded = world.groups._led[world.handle].shard.state, shard_of(world).state
        assert live.offsets.by_group == loaded.offsets.by_group
        assert held(live) == held(loaded)
        assert live.groups.keys() == loaded.groups.keys()
        stable = world.log.producers.open.keys()
        assert {producer for place in held(live).values() for producer in place} <= set(stable)


def held(state):
    """Place → producer → offset of its commit, None when it is outdated."""
    return {
        (group, *place): {producer: value and value.offset for producer, (_, value) in one.items()}
        for group, places in state.pending.by_group.items()
        for place, one in places.items()
    }


def test_a_dead_netproc_costs_no_offset_of_a_transaction(tmp_path):
    world = Groups(tmp_path)
    world.turn()
    world.within((5, 0), 7, standing=(errors.NONE, TRUSTED_GUARD))
    world.core.drop(world.core.askers[0])
    world.mark((5, 0))
    world.turn()
    assert world.synced() == [[], []]
    assert world.committed(stable=True) == [7]


class SmallFull(FullGroups):
    """Segments are small, so there may be no room even to stage a batch."""

    def _log(self, path, open_log):
        config = LogConfig(flush_policy="group", compact=True, delete=False, segment_bytes=2 * PAGE)
        return PartitionLog.create(self.disk, path, OFFSETS_ID, config, now_ms=NOW_MS)

    def load(self):
        for _ in range(100):
            if not self.groups._loading.queue:
                return
            self.now_ns += 10**9
            self.synced()
        raise AssertionError("it loads for ever")


@each_seed(40)
def test_no_room_in_the_middle_of_a_turn(seed):
    rng = Random(seed)
    world = SmallFull()
    for offset in range(60):
        if rng.random() < 0.3:
            world.fill(leave=rng.randint(0, 3) * PAGE)
        elif rng.random() < 0.3:
            world.sim.foreign = 0
            world.look()
        what = rng.randrange(5)
        if what < 2:
            world.commit(offset, group=rng.choice("gh") * rng.choice((1, PAGE // 2)))
        elif what < 4:
            world.within((rng.randint(1, 3), 0), offset, standing=(0, TRUSTED_GUARD))
        elif not world.log.has_unwritten:
            world.mark((rng.randint(1, 3), 0), committed=rng.random() < 0.5)
        if rng.random() < 0.4:
            world.turn()
            world.synced()
    world.make_room()
    world.load()
    assert world.partition.broken is None and not world.events.said
    live, loaded = world.groups._led[world.handle].shard.state, shard_of(world).state
    assert live.offsets.by_group == loaded.offsets.by_group
    assert held(live) == held(loaded)
