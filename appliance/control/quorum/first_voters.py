"""The first voters of a new cluster with dynamic voters (KIP-853), as `kafka-storage format` takes
them: this node alone (--standalone), or several at once, each with the directory id that its folder
is to have (--initial-controllers).

They stand beside an empty log as a snapshot of its offset 0; the first leader writes the same into
the log. A folder that has metadata is never told: who votes there is what its log says.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from appliance.base.disk import Disk, write_file
from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import parse_voter
from appliance.control.broker.addresses import own_controllers
from appliance.control.quorum import state_file as quorum_state
from appliance.control.quorum.voter_records import for_snapshot
from appliance.metadata import checkpoint, files
from appliance.metadata.checkpoint import SnapshotId
from appliance.metadata.follower import LOG_FOLDER
from appliance.metadata.identity import Identity
from appliance.metadata.image import MetadataImage
from appliance.quorum.messages import QuorumState
from appliance.quorum.voters import ANY, DYNAMIC, ControllerEndpoint, Electorate, Voter
from appliance.wire.uuids import format_uuid, parse_uuid

STANDALONE: Final = "--standalone"
INITIAL: Final = "--initial-controllers"
_STATIC: Final = "controller.quorum.voters"


class FirstVoters(NamedTuple):
    """listed: ID@HOST:PORT:DIRECTORY-ID of each, none: the node that is formatted, alone."""

    listed: tuple[Voter, ...] = ()

    @property
    def word(self) -> str:
        """As the command line has it."""
        return INITIAL if self.listed else STANDALONE

    @property
    def several(self) -> bool:
        """True if other nodes must be started with the same list."""
        return len(self.listed) > 1

    def directory(self, node_id: int) -> bytes | None:
        """That the folder of a node is to have; None: any."""
        return next((one.directory for one in self.listed if one.node_id == node_id), None)

    def voters(self, config: BrokerConfig, node_id: int, directory: bytes) -> tuple[Voter, ...]:
        """All of them. directory: of the folder of this node."""
        alone = Voter(node_id, directory, own_controllers(config, node_id))
        return tuple(sorted(self.listed)) or (alone,)


def parse(text: str, config: BrokerConfig) -> FirstVoters:
    """ID@HOST:PORT:DIRECTORY-ID[,...]. Raises ConfigError."""
    name = config.list("controller.listener.names")[0].strip().upper()
    listed = []
    for one in text.split(","):
        place, _, directory = one.strip().rpartition(":")
        try:
            found, its = parse_voter(INITIAL, place), parse_uuid(directory)
        except (ConfigError, ValueError):
            raise _shape(one) from None
        if its == ANY:
            raise _shape(one)
        listed.append(
            Voter(found.node_id, its, (ControllerEndpoint(name, found.host, found.port),))
        )
    for what, given in (
        ("node.id", [one.node_id for one in listed]),
        ("directory id", [one.directory for one in listed]),
        ("place", [one.endpoints for one in listed]),
    ):
        if len(set(given)) < len(given):
            raise ConfigError(f"{INITIAL}: two voters have the same {what}")
    return FirstVoters(tuple(listed))


def _shape(text: str) -> ConfigError:
    return ConfigError(
        f"{INITIAL} {text.strip()!r}: it takes ID@HOST:PORT:DIRECTORY-ID of each first voter, with"
        " commas between; penstock cluster new-id makes a directory id"
    )


def check(first: FirstVoters, config: BrokerConfig) -> None:
    """Checks that this node can be one of them. Raises ConfigError."""
    node_id = config.int("node.id")
    if config.voters():
        raise ConfigError(
            f"{_STATIC} fixes the voters: take it out of the settings and name the nodes in"
            f" controller.quorum.bootstrap.servers, or leave out {first.word}"
        )
    if not config.is_controller:
        raise ConfigError(f"{first.word}: process.roles has no controller, only those vote")
    if first.listed and first.directory(node_id) is None:
        there = ", ".join(str(one.node_id) for one in first.listed)
        raise ConfigError(
            f"{INITIAL} names the nodes {there}, and this one is node.id={node_id}; a node that"
            " joins them leaves it out"
        )


def write_first_snapshot(disk: Disk, data_dir: str, voters: Iterable[Voter], now_ms: int) -> None:
    """As a snapshot of an empty log, which KRaft's format step leaves too."""
    folder = f"{data_dir}/{LOG_FOLDER}"
    if not disk.exists(folder):
        disk.mkdir(folder)
    said = for_snapshot(Electorate(DYNAMIC, tuple(voters)))
    snapshot = SnapshotId(0, 0)
    pieces = checkpoint.write_checkpoint(
        MetadataImage(), snapshot, said, now_ms=now_ms, last_log_timestamp=now_ms
    )
    write_file(disk, f"{folder}/{snapshot.file_name}", b"".join(pieces))
    disk.sync_dir(data_dir)


def write_late(
    disk: Disk,
    data_dir: str,
    first: FirstVoters,
    config: BrokerConfig,
    identity: Identity,
    now_ms: int,
) -> bool:
    """Into a folder that was formatted without first voters and waits for somebody to vote; False:
    its log says who votes, and it is left as it is. Raises ConfigError when another folder is
    meant."""
    wanted = first.directory(identity.node_id)
    if wanted not in (None, identity.directory_id):
        raise ConfigError(
            f"{data_dir} has the directory id {format_uuid(identity.directory_id)}, and"
            f" {INITIAL} names {format_uuid(wanted or ANY)} for node {identity.node_id}: name that"
            " of the folder on every node, or choose an empty folder with --data"
        )
    folder = f"{data_dir}/{LOG_FOLDER}"
    if disk.exists(folder) and _begun(disk, folder):
        return False
    write_first_snapshot(
        disk, data_dir, first.voters(config, identity.node_id, identity.directory_id), now_ms
    )
    return True


def _begun(disk: Disk, folder: str) -> bool:
    """True if the folder has metadata, or this node has voted or learned of a leader."""
    if files.snapshots(disk, folder) or quorum_state.read(disk, folder) != QuorumState():
        return True
    return any(disk.size(f"{folder}/{base:020}.log") for base in files.segments(disk, folder))
