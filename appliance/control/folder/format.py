"""Making an empty data folder a node's folder, so that a power cut at any instant leaves either an
empty folder to us or a formatted one.

`meta.properties` is written last and by rename: it is what makes a folder formatted. A folder that
was formatted half-way is formatted again. A folder of Apache Kafka is opened as it is.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from appliance.base.disk import Disk, write_file
from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig
from appliance.control.quorum import first_voters
from appliance.control.quorum import log_repair as repair
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.first_voters import FirstVoters
from appliance.controller.decision import Record
from appliance.controller.registration import bootstrap_records
from appliance.metadata import checkpoint, files, identity
from appliance.metadata.checkpoint import SnapshotId, VoterSet
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.identity import META_PROPERTIES, Identity
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import format_others
from appliance.wire.uuids import format_uuid

BOOTSTRAP: Final = "bootstrap.checkpoint"
_PARTITION_FOLDER: Final = re.compile(r".+-\d+\Z")


def open_or_format(
    disk: Disk,
    data_dir: str,
    config: BrokerConfig,
    random: Callable[[int], bytes],
    now_ms: int,
    cluster_id: str = "",
    first: FirstVoters | None = None,
    users: Sequence[Record] = (),
) -> tuple[Identity, bool]:
    """The identity of this node, and whether the folder was formatted just now.

    random(n): n random bytes. cluster_id: its cluster, "": a new one, or that of the folder.
    config: a static cluster of several needs an id that all of them have, and keeps its voters; one
    that is joined has an id; one that begins here has this node as its first voter, and others can
    come (KIP-853). first: who votes first instead, in an empty folder. users: records that a new
    cluster begins with, too. Raises ConfigError when the folder belongs to another node or cluster
    or holds partitions but no identity.
    """
    node_id, voters = config.int("node.id"), [one.node_id for one in config.voters()]
    if disk.exists(f"{data_dir}/{META_PROPERTIES}"):
        found = identity.read_identity(disk, data_dir)
        if found.node_id != node_id:
            raise ConfigError(
                f"{data_dir} belongs to node.id={found.node_id}, the settings say"
                f" node.id={node_id}; set node.id={found.node_id}"
                " or choose another folder with --data"
            )
        if cluster_id not in ("", found.cluster_id):
            raise ConfigError(
                f"{data_dir} belongs to the cluster {found.cluster_id}, not to {cluster_id}: leave"
                " out --cluster-id, or choose another folder with --data"
            )
        _check_voters(disk, data_dir, voters or (node_id,))
        return found, False
    if stranger := _stranger(disk, data_dir):
        raise ConfigError(
            f"{data_dir} holds {stranger} but no {META_PROPERTIES}; restore that file,"
            " or choose an empty folder with --data"
        )
    fresh = format_uuid(identity.new_uuid(random))
    others = config.joins if first is None else first.several
    if (set(voters) - {node_id} or others) and not cluster_id:
        raise ConfigError(
            f"{data_dir} is empty, and no cluster id is given: start every node with the same"
            " --cluster-id, that of the nodes which already run, or for a new cluster"
            f" --cluster-id {fresh}"
        )
    cluster_id = cluster_id or fresh
    directory = None if first is None else first.directory(node_id)
    new = Identity(cluster_id, node_id, directory or identity.new_uuid(random))
    disk.sync_dir(data_dir.rpartition("/")[0] or ("/" if data_dir.startswith("/") else "."))
    write_file(disk, f"{data_dir}/{BOOTSTRAP}", bootstrap(now_ms, users))
    if first is None and not (voters or config.joins):
        first = FirstVoters()
    if first is not None:
        named = first.voters(config, node_id, new.directory_id)
        first_voters.write_first_snapshot(disk, data_dir, named, now_ms)
    write_file(disk, f"{data_dir}/{META_PROPERTIES}", identity.encode(new))
    return new, True


def _check_voters(disk: Disk, data_dir: str, voters: Collection[int]) -> None:
    """Refuses a change of the voters by the settings: the new ones could agree without the old
    ones, and acknowledged records would be truncated. Raises ConfigError.
    """
    before = quorum_state.voters(disk, f"{data_dir}/{LOG_FOLDER}")
    if not before or before == set(voters):
        return
    was = "a node alone" if len(before) == 1 else f"a cluster with the voters {sorted(before)}"
    now = "this node alone" if len(voters) == 1 else str(sorted(voters))
    remedy = (
        "choose an empty folder with --data, and copy the topics over"
        if len(before) == 1
        else "name them all, on every node"
    )
    raise ConfigError(
        f"{data_dir} is the folder of {was}, and controller.quorum.voters says {now}: voters who"
        " have nothing could agree on a cluster without anything, and its topics would be gone"
        f" here, too; {remedy}"
    )


def format_log_dirs(
    disk: Disk, paths: Sequence[str], identity: Identity, random: Callable[[int], bytes]
) -> list[tuple[str, str]]:
    """Format those of the other log folders that are new: which are offline, and why. Raises
    ConfigError."""
    return format_others(disk, paths, identity, random, lambda path: _stranger(disk, path))


def _stranger(disk: Disk, path: str) -> str:
    for name in disk.listdir(path):
        if _PARTITION_FOLDER.match(name):
            begun = name == LOG_FOLDER and not files.segments(disk, f"{path}/{name}")
            if not begun:  # a format step that was cut off
                return name
    return ""


def bootstrap(now_ms: int, users: Sequence[Record] = ()) -> bytes:
    """The first records of the cluster as a snapshot file, which KRaft's formatting leaves too.
    users: more of them."""
    image = MetadataImage()
    for offset, record in enumerate([*bootstrap_records(), *users]):
        image.apply(offset, record)
    pieces = checkpoint.write_checkpoint(
        image, SnapshotId(0, 0), VoterSet(), now_ms=now_ms, last_log_timestamp=now_ms
    )
    return b"".join(pieces)


def check_metadata_is_there(disk: Disk, data_dir: str) -> None:
    """Raises ConfigError when partitions are there but the metadata log is not: starting with an
    empty cluster over them would lose them."""
    if repair.finish(disk, data_dir):
        return
    if disk.exists(f"{data_dir}/{LOG_FOLDER}"):
        return
    for name in disk.listdir(data_dir):
        if _PARTITION_FOLDER.match(name):
            raise ConfigError(
                f"{data_dir} holds {name} but no {LOG_FOLDER}, the cluster's metadata;"
                " restore that folder from a copy, choose another folder with --data, or see what"
                " can be saved: penstock metadata repair DATA-FOLDER --dry-run"
            )


def check_metadata_is_whole(disk: Disk, dirs: Sequence[str], image: MetadataImage) -> None:
    """Raises ConfigError when the metadata log knows of nothing at all and partitions are there:
    every one of them would be moved away."""
    if image.metadata_version:
        return
    for path in dirs:
        for name in disk.listdir(path) if disk.exists(path) else ():
            if _PARTITION_FOLDER.match(name) and name != LOG_FOLDER:
                raise ConfigError(
                    f"{dirs[0]}/{LOG_FOLDER}, the cluster's metadata, is empty, but {path} holds"
                    f" {name}; restore that folder from a copy, or see what can be saved:"
                    " penstock metadata repair DATA-FOLDER --dry-run"
                )
