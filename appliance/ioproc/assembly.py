"""How an I/O process is put together: every part is made of parts made before it, and nothing is
put into one afterwards.

Called once by `main.py`, before anything is open.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from appliance.authorization.rights import Callers
from appliance.base.clock import OsClock
from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.base.ids import TRANSACTIONS_TOPIC
from appliance.base.level import LevelTime
from appliance.base.retention_clock import RetentionClock
from appliance.base.space import KEEP_FREE_PERCENT, SpaceGuard
from appliance.config import between_nodes, bounds
from appliance.coordinators.kinds import KINDS
from appliance.coordinators.runtime.kind import Kind, Lent
from appliance.coordinators.runtime.room import share_of
from appliance.coordinators.runtime.transaction_effects import Ending
from appliance.ioproc.chores import Chores
from appliance.ioproc.coordination.coordinator_host import CoordinatorHost
from appliance.ioproc.coordination.group_lag_sampler import GroupLagSampler
from appliance.ioproc.coordination.marker_sender import MarkerSender
from appliance.ioproc.coordination.orphaned_transactions import OrphanedTransactions
from appliance.ioproc.coordination.producer_id_pool import ProducerIdPool
from appliance.ioproc.coordination.remote_markers import RemoteMarkers
from appliance.ioproc.deletion.deleted_folders import DeletedFolders
from appliance.ioproc.deletion.partition_deletion import PartitionDeletion
from appliance.ioproc.deletion.undelete import PartitionUndelete
from appliance.ioproc.durability.group_commit import GroupCommit
from appliance.ioproc.durability.journal_recovery import JournalRecovery
from appliance.ioproc.durability.journals import Journals
from appliance.ioproc.durability.log_start_checkpoint import LogStartCheckpoint
from appliance.ioproc.ioproc_peers import IoprocPeers, Loopback
from appliance.ioproc.lifecycle.isolation import IsolationCheck, isolation
from appliance.ioproc.lifecycle.opening_ahead import SIDE_BY_SIDE
from appliance.ioproc.lifecycle.partition_manager import PartitionManager
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.log_folders.alter_log_dirs import LogDirMoves
from appliance.ioproc.log_folders.directory_reports import DirectoryReports
from appliance.ioproc.log_folders.folder_probe import FolderProbe
from appliance.ioproc.metadata_replay import CoordinatorFollowing
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partition_failures import PartitionFailures, Report
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.partition_listener import PartitionListener
from appliance.ioproc.partitions.partition_rows import Rows
from appliance.ioproc.remote.remote_assembly import RemoteAssembly
from appliance.ioproc.remote.remote_storage import RemoteStorage
from appliance.ioproc.replica_fetcher.divergence import DivergenceTruncation
from appliance.ioproc.replica_fetcher.fetcher_context import FetcherContext
from appliance.ioproc.replica_fetcher.fetchers import LeaderChanges, ReplicaFetchers
from appliance.ioproc.replication.control_channel import ControlChannel
from appliance.ioproc.replication.replicas import Replicas
from appliance.ioproc.replication.replication_throttle import ReplicationThrottling
from appliance.ioproc.requests.appends import Appends
from appliance.ioproc.requests.producer_limit import ProducerLimit
from appliance.ioproc.requests.reads import PartitionReads
from appliance.ioproc.requests.request_time import RequestTime
from appliance.ioproc.retention.cleaner_link import CleanerLink
from appliance.ioproc.retention.housekeeping import Housekeeping
from appliance.ioproc.retention.log_cleaner import LogCleaner
from appliance.ioproc.served_partitions import ServedPartitions
from appliance.ioproc.turn.core import Core
from appliance.ioproc.turn.dispatch import Dispatcher
from appliance.ioproc.turn.job_context import JobContext
from appliance.ioproc.workers import Workers
from appliance.metadata.effective import broker_config
from appliance.metadata.endpoints import inter_broker
from appliance.metadata.follower import Follower
from appliance.metadata.log_dirs import LogDirs, directory_of, read_log_dirs
from appliance.peers.between import carry_to_brokers
from appliance.peers.brokers import Brokers
from appliance.peers.link import Watcher
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, Peer
from appliance.ring.slots import pack_assign, pack_folder_failed, pack_producer_ids
from appliance.shell.links import Links
from appliance.shell.log import ERROR, WARNING, Log
from appliance.shell.metadata_faults import tell_faults
from appliance.shell.read_retries import ReadRetries
from appliance.shell.seat import Seat


class IoprocParts(NamedTuple):
    """The parts that the shell drives."""

    core: Core
    billing: RequestTime
    arrivals: Dispatcher
    hosts: tuple[CoordinatorHost, ...]
    endings: MarkerSender
    siblings: IoprocPeers
    own: Loopback
    home: PartitionManager
    following: CoordinatorFollowing
    housekeeping: Housekeeping
    moves: LogDirMoves
    cleaning: LogCleaner
    chores: Chores
    journals: Journals
    ids: ProducerIdPool
    pulling: ReplicaFetchers
    brokers: Brokers
    report: Report
    time: LevelTime
    remote: RemoteStorage | None


class Assembly:
    """Makes the parts, each by a method that says of what."""

    def __init__(
        self,
        seat: Seat,
        links: Links,
        disk: Disk,
        events: Log,
        clock: OsClock,
        workers: Workers,
        watcher: Watcher,
    ) -> None:
        """watcher: the loop."""
        self._seat = seat
        self._watcher = watcher
        self._leaders = LeaderChanges()
        self._links = links
        self._disk = disk
        self._events = events
        self._clock = clock
        self._workers = workers
        most = seat.config.int(bounds.setting_of(bounds.CALLERS))
        self._callers = Callers(seat.authorizer, most, events.reach)
        self._node_id = seat.config.int("node.id")
        alone = len(seat.log_dirs) == 1  # then nobody asks for ids
        self._dirs = LogDirs.of(seat.data_dir) if alone else read_log_dirs(disk, seat.log_dirs)
        self._follower = Follower(disk, seat.data_dir, seat.partitions, tell_faults(events))
        self._throttling = ReplicationThrottling(seat.config, seat.index, seat.ioprocs)
        self._ids = ProducerIdPool(self._ask_ids)
        self._time = RetentionClock(doubts=not clock.is_turned)
        self._level = LevelTime()
        self._level.read_clocks(clock.monotonic_ns(), clock.wall_ms())
        self._writers = {index: links.writer(NETPROC, index) for index in range(seat.netprocs)}
        self._own = Loopback()
        self._siblings = {
            index: self._own.writer if index == seat.index else links.writer(IOPROC, index)
            for index in range(seat.ioprocs)
        }
        self._way = between_nodes.to_brokers(seat.config)
        self._brokers = Brokers(
            self._where,
            watcher,
            clock,
            f"penstock-{self._node_id}",
            carry_to_brokers(seat.config, clock, self._events),
        )
        self._remote = RemoteAssembly(seat, disk, events, self._follower)
        self._away = RemoteMarkers(self._node_id, self._brokers)
        self._endings = MarkerSender(
            self._siblings,
            self._follower.image,
            self._follower.handles,
            self._refused,
            self._away,
            self._level,
        )

    def parts(self) -> IoprocParts:
        """All of them."""
        seat, workers, clock = self._seat, self._workers, self._clock
        trims = LogStartCheckpoint(self._disk, workers.trims, self._dirs.paths)
        journals = Journals(
            self._disk,
            self._dirs.paths,
            seat.index,
            workers.group_writes,
            lambda: os.urandom(16),
            count_flush=self._count_flush(),
        )
        probing = self._probing()
        core, billing, hosts, whereabouts = self._core(trims, journals, probing)
        ground = JobContext(self._disk, self._dirs, core, self._events)
        remote, removals = self._remote.make_storage(ground, workers.remote, trims, self._time)
        housekeeping = Housekeeping(
            seat.config, ground, workers.chores, trims, self._time, removals
        )
        moves = self._moves(ground, housekeeping)
        left = self._left_open(core)
        home = self._home(ground, housekeeping, (moves, remote), left, whereabouts)
        cleaning = self._cleaning(ground, housekeeping)
        throttling = self._throttling
        following = CoordinatorFollowing(
            seat,
            self._follower,
            home,
            hosts,
            throttling,
            billing,
            clock.wall_ms,
            ReadRetries(self._events),
        )
        behind = GroupLagSampler(
            seat.lags,
            seat.index,
            seat.partitions,
            self._follower,
            lambda: (shard for host in hosts for shard in host.shards()),
        )
        replicas = core.questions.replicas
        chores = Chores(
            home, following, housekeeping, moves, cleaning, behind, left, replicas, whereabouts,
            probing, self._isolating(core), remote,
        )  # fmt: skip
        pulling = self._pulling(ground, housekeeping, moves, cleaning)
        endings = self._endings
        arrivals = Dispatcher(core, home.fetch, moves.begin_move, endings, left)
        askers = core.served.siblings
        siblings = IoprocPeers(seat.index, self._own, askers, endings, arrivals.handle)
        return IoprocParts(
            core, billing, arrivals, hosts, endings, siblings, self._own, home, following,
            housekeeping, moves, cleaning, chores, journals, self._ids, pulling, self._brokers,
            self._report, self._level, remote,
        )  # fmt: skip

    def _count_flush(self) -> Callable[[int], None]:
        return partial(self._seat.processes.count_flush, Peer(IOPROC, self._seat.index))

    def _core(
        self, trims: LogStartCheckpoint, journals: Journals, probing: FolderProbe
    ) -> tuple[Core, RequestTime, tuple[CoordinatorHost, ...], DirectoryReports]:
        seat, links = self._seat, self._links
        keep = seat.config.int("penstock.disk.free.min.bytes")
        served = ServedPartitions(
            Rows(seat.partitions),
            GroupCommit(self._workers.syncs, journals, links.pending, self._count_flush()),
            [SpaceGuard(keep, KEEP_FREE_PERCENT) for _ in self._dirs.paths],
            self._events.reach,
        )
        served.watches.most = seat.config.int(bounds.setting_of(bounds.WATCHES))
        for index, arena in enumerate(seat.arenas):
            served.askers[index] = NetprocPeer(index, arena, links.writer(NETPROC, index))
        for index, writer in self._siblings.items():
            served.siblings[index] = NetprocPeer(index, memoryview(b""), writer)
        failures = PartitionFailures(served, self._report)
        most = share_of(seat.config, bounds.setting_of(bounds.PRODUCER_IDS), seat.ioprocs)
        room = ProducerLimit(served, most)
        appends = Appends(served, failures, room)
        cluster = ControlChannel(seat.config, self._follower, links)
        replicas = Replicas(served, cluster, self._throttling.leader)
        reads = self._remote.make_reads(served, self._clock)
        questions = PartitionReads(served, appends, failures, trims.add, replicas, reads)
        coordinators = {kind.TOPIC.name: self._host(kind, appends, failures) for kind in KINDS}
        whereabouts = DirectoryReports(
            self._node_id, served, lambda: self._follower.image, self._assign
        )
        observers: list[PartitionListener] = [self._leaders, whereabouts, probing]
        if self._remote.link is not None:
            observers.append(self._remote.news)
        billing = RequestTime(self._clock, served.askers)
        core = Core(served, appends, questions, failures, observers, coordinators, billing)
        return core, billing, tuple(coordinators.values()), whereabouts

    def _probing(self) -> FolderProbe:
        return FolderProbe(
            self._disk,
            self._dirs.paths,
            self._seat.index,
            self._workers.probes,
            lambda number: self._dirs.is_told_offline(number, self._registered_folders()),
            lambda number: self._links.writer(CONTROL, 0).push(*pack_folder_failed(number)),
            self._events,
        )

    def _host(self, kind: Kind, appends: Appends, failures: PartitionFailures) -> CoordinatorHost:
        return CoordinatorHost(
            kind,
            appends,
            failures,
            self._seat.config,
            self._writers,
            self._follower.image,
            self._clock,
            Lent(
                lambda: os.urandom(16),
                self._ids.take_id,
                self._believed,
                self._level,
                self._seat.ioprocs,
            ),
            self._seat.errors,
            self._callers,
            self._events,
            self._endings,
        )

    def _believed(self, wall_ms: int) -> int:
        return self._time.at(self._clock.monotonic_ns(), wall_ms)

    def _left_open(self, core: Core) -> OrphanedTransactions:
        return OrphanedTransactions(
            self._seat.index,
            self._siblings,
            core.coordinators[TRANSACTIONS_TOPIC],
            core.appends,
            core.partitions,
            lambda: self._follower.image,
            self._follower.handles,
            self._events,
            self._away,
        )

    def _home(
        self,
        ground: JobContext,
        housekeeping: Housekeeping,
        workers_on_it: tuple[LogDirMoves, RemoteStorage | None],
        left: OrphanedTransactions,
        whereabouts: DirectoryReports,
    ) -> PartitionManager:
        seat, workers = self._seat, self._workers
        online = [path for _, path in self._dirs.online()]
        journals = JournalRecovery(self._disk, online, seat.index, seat.ioprocs, clean=seat.clean)
        opener = PartitionOpener(
            self._disk,
            self._dirs,
            seat.partitions,
            journals,
            clean=seat.clean,
            tiered=self._remote.link is not None,
            side_by_side=SIDE_BY_SIDE,
        )
        trash = DeletedFolders(self._disk, lambda: online, seat.index, seat.ioprocs)
        moves, remote = workers_on_it

        def let_go(partition: Partition, now_ms: int) -> None:
            moves.give_up(partition, now_ms)
            if remote is not None:
                remote.give_up(partition)

        leaving = PartitionDeletion(ground, housekeeping, trash, workers.leaving, let_go)
        returning = PartitionUndelete(ground, trash, workers.returning)
        follower, back = self._follower, left.came_back
        look = whereabouts.compare_folder
        return PartitionManager(
            seat, ground, follower, housekeeping, opener, leaving, returning, back, look
        )

    def _cleaning(self, ground: JobContext, housekeeping: Housekeeping) -> LogCleaner:
        config = self._seat.config
        return LogCleaner(
            lambda: broker_config(self._follower.image, config),
            ground,
            self._workers.cleaner,
            CleanerLink(),
            housekeeping.remove_later,
            self._seat.ioprocs,
        )

    def _pulling(
        self,
        ground: JobContext,
        housekeeping: Housekeeping,
        moves: LogDirMoves,
        cleaning: LogCleaner,
    ) -> ReplicaFetchers:
        core, follower = ground.core, self._follower
        env = FetcherContext(
            self._seat.config,
            lambda: follower.image,
            core,
            housekeeping.trims.add,
            self._throttling.follower,
            self._watcher,
            self._clock,
            self._events,
        )
        starts = self._remote.starts
        parting = DivergenceTruncation(ground, housekeeping, moves, cleaning, env.parted, starts)
        served, appends = core.partitions, core.appends
        return ReplicaFetchers(
            self._leaders,
            env,
            parting,
            lambda p: served.get(p.handle) is p,
            lambda: appends.count,
        )

    def _moves(self, ground: JobContext, housekeeping: Housekeeping) -> LogDirMoves:
        return LogDirMoves(
            ground,
            housekeeping,
            self._workers.copies,
            self._assign,
            self._assigned(),
            self._copy_limit,
            lambda: self._seat.processes.moving,
            lambda: os.urandom(16).hex(),
        )

    # What is asked of the rest of the appliance ---------------------------------------------------

    def _assign(self, handle: int, number: int) -> None:
        """Asked again when it was lost: the ring may be full, or control about to come back."""
        self._links.writer(CONTROL, 0).push(*pack_assign(handle, number))

    def _registered_folders(self) -> Sequence[bytes]:
        broker = self._follower.image.brokers.get(self._node_id)
        return () if broker is None else broker.log_dirs

    def _ask_ids(self) -> bool:
        return self._links.writer(CONTROL, 0).push(*pack_producer_ids())

    def _isolating(self, core: Core) -> IsolationCheck:
        seat = self._seat
        made = isolation(seat.config)
        return IsolationCheck(made, core, seat.processes, seat.me, self._events)

    def _where(self, node: int) -> tuple[str, int] | None:
        return inter_broker(self._follower.image, node, self._way)

    def _assigned(self) -> Callable[[Partition], int]:
        node_id = self._node_id

        def number(partition: Partition) -> int:
            found = self._follower.image.partition(partition.topic, partition.index)
            return -1 if found is None else self._dirs.number(directory_of(found, node_id))

        return number

    def _copy_limit(self) -> int:
        config = broker_config(self._follower.image, self._seat.config)
        return config.int("replica.alter.log.dirs.io.max.bytes.per.second")

    def _refused(self, ending: Ending, where: tuple[str, int], code: int) -> None:
        self._events.event_seldom(
            WARNING,
            "marker-refused",
            partition=f"{where[0]}-{where[1]}",
            transactional_id=ending.transactional_id,
            cause=f"error {code}",
        )

    def _report(self, partition: Partition, failure: StorageFailed) -> None:
        name = "partition-offline" if partition.log.failure is not None else "read-failed"
        self._events.event(ERROR, name, partition=partition, cause=failure)
