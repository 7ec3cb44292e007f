"""Steps of control before it leads: format or open, recover, give every partition its row.

Every step may be cut off by a power cut or a kill and is simply done again by the next start.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from appliance.base.clock import Clock
from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk
from appliance.base.errors import CannotServe, ConfigError, StorageFailed
from appliance.config.bounds import PARTITIONS
from appliance.config.broker import BrokerConfig
from appliance.control.folder.format import (
    check_metadata_is_there,
    check_metadata_is_whole,
    format_log_dirs,
    open_or_format,
)
from appliance.control.partitions.rows import PartitionRows
from appliance.control.quorum.driver import seeds
from appliance.control.quorum.metadata_log import open_log
from appliance.control.quorum.metadata_quorum import MetadataQuorum, VotingSetup, open_quorum
from appliance.control.quorum.snapshots import SnapshotLimits
from appliance.controller.features import SUPPORTED
from appliance.controller.node_rows import MOST
from appliance.metadata.follower import Follower, MetadataUnreadable
from appliance.metadata.identity import Identity
from appliance.metadata.image import MetadataImage
from appliance.metadata.log_dirs import LogDirs, read_log_dirs
from appliance.quorum.times import Times
from appliance.quorum.voters import ControllerEndpoint, Voter
from appliance.ring.process_table import CONTROL, DOWN, ProcessTable
from appliance.shell.log import ERROR, NOTICE, WARNING, Log
from appliance.shell.patience import WEDGED_S
from appliance.shell.seat import Seat

_SMALLEST_SEGMENT: Final = 1 << 20
_LOOK_AGAIN_S: Final = 0.002


@dataclass(slots=True, frozen=True)
class Started:
    """A node that has read its metadata log, and leads nothing yet; with the doors that it came in
    through. random: so many random bytes."""

    quorum: MetadataQuorum
    identity: Identity
    rows: PartitionRows
    dirs: LogDirs
    disk: Disk
    clock: Clock
    random: Callable[[int], bytes]


def start_control(
    seat: Seat, disk: Disk, clock: Clock, random: Callable[[int], bytes], log: Log
) -> Started:
    """Raises as `first_time` says."""
    with first_time(seat):
        return _start(seat, disk, clock, random, log)


@contextmanager
def first_time(seat: Seat) -> Iterator[None]:
    """Turns failures within into CannotServe at the first start of a run; later ConfigError,
    StorageFailed and MetadataUnreadable pass, because they may be temporary.
    """
    try:
        yield
    except (ConfigError, StorageFailed, MetadataUnreadable) as cause:
        if seat.generation > 1:
            raise
        raise CannotServe(str(cause)) from cause


def _start(
    seat: Seat, disk: Disk, clock: Clock, random: Callable[[int], bytes], log: Log
) -> Started:
    config: BrokerConfig = seat.config
    now_ms = clock.wall_ms()
    data_dir = seat.data_dir
    identity, fresh = open_or_format(disk, data_dir, config, random, now_ms)
    if fresh:
        log.event(NOTICE, "formatted", folder=data_dir, cluster=identity.cluster_id)
    for path, cause in format_log_dirs(disk, seat.log_dirs, identity, random):
        log.event(ERROR, "log-dir-offline", folder=path, cause=cause)
    dirs = read_log_dirs(disk, [os.path.abspath(path) for path in seat.log_dirs])
    check_metadata_is_there(disk, data_dir)
    follower = Follower(disk, data_dir, seat.partitions)
    limits = _limits(config)
    clean = seat.clean and seat.generation == 1
    alone = not config.several
    opened = open_log(disk, data_dir, limits.segment_bytes, now_ms, clean=clean, alone=alone)
    if opened.recovered:
        log.event(WARNING, "metadata-recovered", cause=opened.recovered)
    vote = _vote(config, identity, seat.processes.metadata_offset, random, clock)
    quorum = open_quorum(disk, identity.node_id, opened, follower, limits, vote)
    if quorum.mended:
        log.event(WARNING, "quorum-state-mended", cause=quorum.mended)
    image = quorum.images.committed
    if quorum.alone:  # others have the metadata of this node, too
        check_metadata_is_whole(disk, dirs.paths, image)
    check_features(image, data_dir)
    if image.skipped:
        log.event(WARNING, "metadata-records-unknown", records=image.skipped)
    rows = PartitionRows(
        seat.partitions,
        identity.node_id,
        lambda: _applied(seat.processes),
        partial(_say_lacking, log),
    )
    rows.reconcile(image, quorum.committed, _others_go_on(seat.processes, clock))
    return Started(quorum, identity, rows, dirs, disk, clock, random)


def _vote(
    config: BrokerConfig,
    identity: Identity,
    published: int,
    random: Callable[[int], bytes],
    clock: Clock,
) -> VotingSetup:
    name = config.list("controller.listener.names")[0].strip().upper()
    return VotingSetup(
        voters=tuple(
            Voter(one.node_id, endpoints=(ControllerEndpoint(name, one.host, one.port),))
            for one in config.voters()
        ),
        published=published,
        chance=lambda most: int.from_bytes(random(4)) % (most + 1),
        now_ms=clock.monotonic_ns() // 1_000_000,
        times=Times(
            election_timeout=config.int("controller.quorum.election.timeout.ms"),
            fetch_timeout=config.int("controller.quorum.fetch.timeout.ms"),
            election_backoff=config.int("controller.quorum.election.backoff.max.ms"),
        ),
        directory=identity.directory_id,
        seeds=tuple(seeds(config)) if config.joins else (),
    )


def _say_lacking(log: Log, partitions: int) -> None:
    log.event_seldom(
        ERROR,
        "partition-table-full",
        bound=PARTITIONS,
        partitions=partitions,
        cause="replicas were placed here for which there is no row: they are not served",
        action=f"restart this node with a larger {MOST}, or move replicas away",
    )


def _applied(processes: ProcessTable) -> int:
    """The offset below which every process that may know partitions has replayed."""
    living = [
        processes.applied(peer)
        for peer in processes.peers
        if peer.kind != CONTROL and processes.state(peer) != DOWN
    ]
    return min(living, default=0)  # who is down knows nothing, and begins with what is published


def _others_go_on(processes: ProcessTable, clock: Clock) -> Callable[[], bool]:
    """Wait a moment for the others to replay what is published; False when it takes too long, or
    when they have."""
    until_ns = clock.monotonic_ns() + int(WEDGED_S * 1e9)

    def wait() -> bool:
        if _applied(processes) >= processes.metadata_offset or clock.monotonic_ns() > until_ns:
            return False
        time.sleep(_LOOK_AGAIN_S)
        return True

    return wait


def _limits(config: BrokerConfig) -> SnapshotLimits:
    snapshot_bytes = config.int("metadata.log.max.record.bytes.between.snapshots")
    segment_bytes = config.int("metadata.log.segment.bytes")
    return SnapshotLimits(
        snapshot_bytes=snapshot_bytes,
        snapshot_ms=config.int("metadata.log.max.snapshot.interval.ms"),
        # No larger than what lies between snapshots: only whole old segments can go.
        segment_bytes=max(min(segment_bytes, snapshot_bytes), _SMALLEST_SEGMENT),
    )


def check_features(image: MetadataImage, data_dir: str) -> None:
    """Raises ConfigError for a folder with a level that we would misread. What we know by no name
    stays: a folder of Apache Kafka may have finalized more, and its records are passed over."""
    for name, (lowest, highest) in SUPPORTED.items():
        level = image.features.get(name, 0)
        if level and not lowest <= level <= highest:
            remedy = "upgrade the cluster with kafka-features first"
            if level > highest:
                remedy = "use the Penstock that wrote it, or a newer one; nothing was changed"
            raise ConfigError(
                f"{data_dir} has {name} {level}; this appliance reads {lowest} to {highest}:"
                f" {remedy}"
            )
