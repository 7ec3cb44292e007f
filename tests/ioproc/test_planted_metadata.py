"""An exception in what an I/O or network process does with metadata, at a record or at what follows
from it, ends nothing: it is told once, and everything else is followed and served."""

import itertools
from contextlib import nullcontext

import pytest
from planting import play

from appliance.base import errors
from appliance.ioproc import metadata_replay
from appliance.ioproc.lifecycle import partition_manager, partition_roles
from appliance.ioproc.replication import replication_throttle
from appliance.metadata import follower, image, replay
from appliance.netproc.connections import client_activity
from appliance.netproc.requests import metadata_replay as netproc_following
from appliance.netproc.sasl import logins
from appliance.netproc.transport import tls_listeners
from appliance.shell import process_authorizer
from appliance.shell.bugs import Bugs
from tests.netproc.netproc_world import World
from tests.netproc.test_fetched_files import fetch, produce

pytestmark = pytest.mark.interpreted("plants exceptions in parts")
MODULES = (
    metadata_replay,
    partition_manager,
    partition_roles,
    replication_throttle,
    process_authorizer,
    follower,
    image,
    replay,
)
STEPS = ("replay_slice", "_act_upon", "_guard", "say_applied")
FOLLOWS = (
    *(f"CoordinatorFollowing.{step}" for step in STEPS),
    *(f"MetadataFollowing.{step}" for step in STEPS),
)
READS = (
    *FOLLOWS,
    "Follower.replay_slice", "Follower.is_far", "Follower.catch_up", "Follower._replay_log",
    "Follower._next_segment", "Follower._replay_segment", "Follower._replay_batches",
    "Follower._level_with", "Follower._replay_batch", "Follower._apply",
)  # fmt: skip
"""How far this process has replayed is in doubt behind them: it ends, and begins anew."""
BARRIERS = (
    "PartitionRoles.tell_roles",
    "PartitionManager._run",
    "PartitionManager._mend",
    "PartitionManager._confine",
    "PartitionManager.busy",
)


def follows(folder, plants, *, of_io=True):
    """Topics come, change and go; the first one is served through all of it. of_io: plants are in
    the I/O process, else in the network process."""
    folder.mkdir()
    world = World(folder)
    process = world.io_process()
    process.raise_barriers(Bugs(world.log))
    client = world.client()
    produce(world, client, 1)

    def turns():
        for _ in range(6):
            if not of_io:
                with plants.chores():
                    world.server._following.replay_slice()
            world.turn(ms=300)
            with plants.chores() if of_io else nullcontext():
                world.io_turn()

    def change(key, version, **values):
        client.send(key, version, **values)
        for _ in range(40):
            turns()
            if client.answer() is not None:
                return
        raise AssertionError("a change is never answered")

    def configure(kind, name, key, value):
        setting = {"name": key, "config_operation": 0, "value": value}
        resource = {"resource_type": kind, "resource_name": name, "configs": [setting]}
        change(44, 1, resources=[resource], validate_only=False)

    topic = {"name": "new", "num_partitions": 3, "replication_factor": 1}
    topics = [topic | {"assignments": [], "configs": []}]
    change(19, 5, topics=topics, timeout=5000, validate_only=False)
    configure(2, "new", "retention.ms", "5000000")
    configure(4, "1", "leader.replication.throttled.rate", "9")
    change(20, 4, topic_names=["new"], timeout=5000)
    produce(world, client, 1)
    assert fetch(world, client, 0).error_code == errors.NONE
    assert process.core.partitions and world.ended is False
    with open(f"/proc/self/fd/{world.fd}") as said:
        told = [line for line in said if " bug " in line or "metadata-record-skipped" in line]
    assert len(told) >= min(plants.raised, 1), "nobody was told"
    world.close()


def test_metadata_is_followed(tmp_path, monkeypatch):
    numbers = itertools.count()
    names = play(
        monkeypatch, MODULES, lambda plants: follows(tmp_path / str(next(numbers)), plants),
        (*READS, *BARRIERS),
    )  # fmt: skip
    wanted = {
        "replay.replay", "MetadataImage.apply", "follower.decode_record", "PartitionManager.apply",
        "PartitionManager._added", "ProcessAuthorizer.follow", "ReplicationThrottling.follow",
    }  # fmt: skip
    assert wanted <= set(names), names


NETPROC = (
    netproc_following,
    process_authorizer,
    client_activity,
    logins,
    tls_listeners,
    follower,
    image,
    replay,
)
TURNS = (
    *READS,
    "MetadataFollowing.replay_slice",
    "MetadataFollowing.follow",
    "MetadataFollowing._replay",
)


def test_a_network_process_follows_it(tmp_path, monkeypatch):
    numbers = itertools.count()

    def story(plants):
        follows(tmp_path / str(next(numbers)), plants, of_io=False)

    names = play(monkeypatch, NETPROC, story, TURNS)
    wanted = {"replay.replay", "MetadataImage.apply", "ProcessAuthorizer.follow",
              "TlsListeners.follow", "MetadataFollowing._set_limits",
              "MetadataFollowing._forget"}  # fmt: skip
    assert wanted <= set(names), names
