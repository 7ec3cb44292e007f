"""One page of metrics out of the tables, and the looks between two of them.

`look` is called about once a second and costs some 100 µs; `prepare` after it, for as long as there
is something new; `page` when somebody asks. Neither asks
a process of the appliance anything: what is not in the tables is the kernel's account of processes
and disks, and the metadata log's file.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import StorageFailed
from appliance.base.space import KEEP_FREE_PERCENT, SpaceGuard
from appliance.config.broker import BrokerConfig
from appliance.exporter.agreement import Agreement
from appliance.exporter.certificates import ListenerCertificates
from appliance.exporter.clients import Clients, GroupSeries, tell_quotas
from appliance.exporter.exposition import Page
from appliance.exporter.layout import SeriesLimits
from appliance.exporter.partitions import Partitions
from appliance.exporter.post import Address, Post, of_endpoint
from appliance.exporter.pushed import PushedMetrics
from appliance.exporter.requests import STEP_NS, RequestRates
from appliance.exporter.security import tell_bounds, tell_security
from appliance.exporter.usage import EXPORTER, SUPERVISOR, ProcessUsage, Used
from appliance.metadata.changes import (
    Change,
    ConfigChanged,
    PartitionAdded,
    PartitionChanged,
    TopicAdded,
    TopicRemoved,
)
from appliance.metadata.effective import broker_config, log_config
from appliance.metadata.follower import Follower, MetadataUnreadable, skip_silently
from appliance.metadata.identity import Identity
from appliance.metadata.image import TOPIC, MetadataImage
from appliance.observer.health import HealthWatch, Verdict, not_sent_to
from appliance.observer.snapshot import take_snapshot
from appliance.quotas.window import Windows
from appliance.ring import partition_table as columns
from appliance.ring.process_table import IOPROC, NETPROC, READY, Peer, RemoteFigures
from appliance.shell.log import WARNING, Log

_OF_TOPICS: Final = (TopicAdded, TopicRemoved, PartitionAdded, PartitionChanged, ConfigChanged)
_MIN_ISR: Final = "min.insync.replicas"
_ANEW_NS: Final = 600_000_000_000
_MS: Final = 1000
_NS: Final = 1e9
_REMOTE = (
    "copied_bytes_total", "copy_errors_total", "delete_errors_total", "copy_lag_bytes",
    "copy_lag_segments", "fetched_bytes_total", "fetches_total", "fetch_errors_total",
)  # fmt: skip
_KAFKAS_REMOTE = (
    "remotecopybytes_total", "remotecopyerrors_total", "remotedeleteerrors_total",
    "remotecopylagbytes", "remotecopylagsegments", "remotefetchbytes_total",
    "remotefetchrequests_total", "remotefetcherrors_total",
)  # fmt: skip
"""What RemoteFigures are called, ours after penstock_remote_."""
_DELAYED: Final = ("Produce", "Fetch")  # in the order of the process table
_STARTING, _OPENING, _SERVING, _ENDING = 1, 2, 3, 6


class Exporter:
    """The scraped state of the appliance that `post` belongs to."""

    def __init__(self, post: Post, disk: Disk, log: Log) -> None:
        tables, config = post.tables, post.config
        self._post = post
        self._config = config
        self._tables = tables
        self._disk = disk
        self._log = log
        self._node_id = config.int("node.id")
        self._follower = Follower(disk, post.folders[0], tables.partitions, skip_silently)
        self._readable = True
        self._version = 0  # of what the metadata says of topics
        self.watch = HealthWatch(tables.processes, tables.partitions)
        self._requests = RequestRates()
        self._agreement = Agreement(tables.processes, self._node_id)
        self._usage = ProcessUsage()
        self._busy: tuple[int, dict[str, Used]] = (0, {})  # as of the last step
        self._idle: dict[int, float] = {}  # kind of process → share
        self._step_ns = self._anew_ns = 0
        self._partitions = Partitions(
            tables.partitions,
            self._node_id,
            SeriesLimits(
                config.int("penstock.metrics.partitions.max"),
                config.int("penstock.metrics.topics.max"),
            ),
            partial(_min_isr, config),
        )
        listeners = [endpoint.name for endpoint in config.endpoints()]
        self._advertised = config.advertised(listeners[0]) if listeners else None
        self._clients = Clients(tables.clients, listeners)
        self._groups = GroupSeries(tables.lags)
        self._pushed = PushedMetrics(tables.pushes)
        self._certificates = ListenerCertificates(self._listeners)
        windows = config.int("quota.window.num"), config.int("quota.window.size.seconds") * _MS
        self._windows = Windows(*windows)
        keep = config.int("penstock.disk.free.min.bytes")
        self._guards = {one: SpaceGuard(keep, KEEP_FREE_PERCENT) for one in post.folders}
        self._took_s = 0.0

    @property
    def identity(self) -> Identity:
        """Returns the ids of this node and its cluster."""
        return self._follower.identity

    def sample_all(self, now_ns: int) -> None:
        """Once a second. now_ns: monotonic."""
        self.watch.check_progress(now_ns)
        self._usage.read_usage(self._pids(), now_ns)
        if self._tables.processes.cluster_ready:
            self._certificates.begin_reading(now_ns)
        if now_ns >= self._anew_ns:
            self._anew_ns = now_ns + _ANEW_NS
            self._version += 1  # other topics may be the heaviest
        if now_ns >= self._step_ns:
            self._step_ns = now_ns + STEP_NS
            self._requests.remember(take_snapshot(self._tables, now_ns, _no_cpu))
            self._agreement.remember(now_ns)
            self._see_idle(now_ns)

    def begin_anew(self) -> None:
        """Read the metadata log from its beginning, and make the page without what was kept of the
        last one: an exception may have left them half changed."""
        folder, rows = self._post.folders[0], self._tables.partitions
        self._follower = Follower(self._disk, folder, rows, skip_silently)
        self._version += 1

    def prepare(self) -> bool:
        """Some ms of what the next page would have to do anew; whether there is more of it. After
        each look, so that who asks does not wait for it."""
        return self._partitions.prepare(self._follow(), self._version)

    def verdict(self, now_ns: int) -> Verdict:
        """As the tables show it, with the disks and what the controller thinks of this node."""
        found = self.watch.verdict(now_ns)
        sent_to = self.watch.is_broker and not found.missing
        if sent_to and (why := not_sent_to(self._follow(), self._node_id)):
            found = found._replace(missing=(why,))
        full = [
            f"{folder} is full: records are refused"
            for folder, guard in self._guards.items()
            if guard.low
        ]
        unreadable = [] if self._readable else ["the metadata log cannot be read"]
        return found._replace(warnings=(*found.warnings, *full, *unreadable))

    def page(self, now_ns: int) -> str:
        """Everything, in Prometheus' format."""
        began = time.thread_time()
        page = Page()
        image = self._follow()
        self._see_disks(page, now_ns)
        self._tell_appliance(page, image, now_ns)
        self._partitions.write_page(page, image, self._version)
        page.add("penstock_partitions_stalled", self.watch.stalled(now_ns))
        self._requests.write_page(page, take_snapshot(self._tables, now_ns, _no_cpu))
        self._clients.write_page(page, now_ns // 1_000_000)
        tell_security(page, self._tables.security)
        tell_bounds(page, self._tables.bounds)
        self._pushed.write_page(page, now_ns // 1_000_000)
        self._groups.write_page(page)
        self._certificates.write_page(page)
        tell_quotas(page, self._tables.quotas, self._windows, now_ns // 1_000_000)
        self._tell_processes(page, now_ns)
        self._tell_usage(page)
        page.add("penstock_scrape_seconds", round(self._took_s, 6))
        text = page.text()
        self._took_s = time.thread_time() - began
        return text

    def resource(self) -> dict[str, str]:
        """Returns the resource attributes of this appliance, in OpenTelemetry's names; without the
        cluster until it is known."""
        told = {"service.name": "penstock"}
        if self._follower.applied >= 0:
            cluster = self._follower.cluster_id
            told |= {"service.namespace": cluster, "service.instance.id": str(self._node_id)}
        return told

    def _follow(self) -> MetadataImage:
        committed = self._tables.processes.metadata_offset
        try:
            changes = self._follower.catch_up(committed)
            self._version += any(isinstance(one, _OF_TOPICS) for one in changes)
            self._agreement.changed(self._follower.image, changes)
            self._configure(changes)
            self._readable = True
        except (MetadataUnreadable, StorageFailed) as why:
            if self._readable:
                self._log.event(WARNING, "metadata-unreadable", cause=why)
            self._readable = False
        return self._follower.image

    def _configure(self, changes: Sequence[Change]) -> None:
        """How much must stay free may be another number while we run."""
        if any(isinstance(one, ConfigChanged) for one in changes):
            config = broker_config(self._follower.image, self._config)
            for guard in self._guards.values():
                guard.keep_free(config.int("penstock.disk.free.min.bytes"))

    def _listeners(self) -> list[Address]:
        """Returns this node's listeners: those opened at its start, and those opened since as
        advertised."""
        me = self._follower.image.brokers.get(self._node_id)
        known = {one.listener for one in self._post.addresses}
        told = map(of_endpoint, me.endpoints if me is not None else ())
        return [*self._post.addresses, *(one for one in told if one.listener not in known)]

    def _pids(self) -> Iterator[tuple[str, int]]:
        table = self._tables.processes
        for peer in table.peers:
            yield str(peer), table.pid(peer)
        yield SUPERVISOR, self._post.supervisor
        yield EXPORTER, os.getpid()

    def _see_idle(self, now_ns: int) -> None:
        """How much of a CPU the loops of a kind have not used since the last step."""
        then_ns, before = self._busy
        now = {name: used for name, (used, *_) in self._usage.of().items()}
        self._busy = now_ns, now
        if not before:
            return
        for kind in (NETPROC, IOPROC):
            names = [str(peer) for peer in self._tables.processes.peers if peer.kind == kind]
            used_s = sum(now[name].cpu_s - before[name].cpu_s for name in names)
            share = used_s * _NS / (now_ns - then_ns) / len(names)
            self._idle[kind] = round(min(max(1 - share, 0.0), 1.0), 4)

    def _see_disks(self, page: Page, now_ns: int) -> None:
        table = self._tables.partitions
        sizes, places = table.column(columns.SIZE_BYTES), table.column(columns.DIRECTORY)
        logs = [0] * len(self._post.folders)
        for size, place, used in zip(sizes, places, table.holders(), strict=False):
            if size and used & 1 and place < len(logs):
                logs[place] += size
        for (folder, guard), used in zip(self._guards.items(), logs, strict=True):
            page.add("penstock_disk_log_bytes", used, folder)
            try:
                space = self._disk.space(folder)
            except StorageFailed:
                continue  # a folder that is away says nothing
            guard.read_space(now_ns, space.total, space.free)
            page.add("penstock_disk_size_bytes", space.total, folder)
            page.add("penstock_disk_free_bytes", space.free, folder)
            page.add("penstock_disk_full", int(guard.low), folder)

    def _tell_appliance(self, page: Page, image: MetadataImage, now_ns: int) -> None:
        table, verdict = self._tables.processes, self.verdict(now_ns)
        if self._follower.applied >= 0:
            page.add("penstock_info", 1, self._follower.cluster_id, str(self._node_id))
        page.add("penstock_start_time_seconds", self._post.started_ms / _MS)
        page.add("penstock_ready", int(not verdict.missing))
        page.add("penstock_warnings", len(verdict.warnings))
        self._agreement.write_page(page)
        page.add("penstock_metadata_load_errors", self._follower.faults)
        fenced = sum(broker.fenced for broker in image.brokers.values())
        page.add("penstock_brokers", len(image.brokers) - fenced)
        page.add("penstock_brokers_fenced", fenced)
        for broker_id, broker in sorted(image.brokers.items()):
            told = [(one.host, one.port) for one in broker.endpoints]
            if broker_id == self._node_id:  # its port may have been any free one
                told = [self._advertised or self._post.addresses[0][:2]]
            address = f"{told[0][0]}:{told[0][1]}" if told else ""
            page.add("kafka_broker_info", 1, str(broker_id), address)
        state = _SERVING
        if table.drain:
            state = _ENDING
        elif not table.cluster_ready:
            state = _OPENING if table.metadata_offset else _STARTING
        page.add("kafka_server_kafkaserver_brokerstate", state)

    def _tell_processes(self, page: Page, now_ns: int) -> None:
        table = self._tables.processes
        delayed, flushes = dict.fromkeys(_DELAYED, 0), 0
        remote = [0] * len(_KAFKAS_REMOTE)
        for peer in table.peers:
            name, up = str(peer), table.state(peer) == READY
            page.add("penstock_process_up", int(up), name)
            page.add("penstock_process_restarts_total", max(table.generation(peer) - 1, 0), name)
            page.add("penstock_process_turns_total", table.heartbeat(peer), name)
            page.add("penstock_process_longest_turn_seconds", table.longest_turn(peer) / _NS, name)
            if peer.kind == IOPROC:
                count, took_ns = table.flushes(peer)
                page.add("penstock_log_flushes_total", count, name)
                page.add("penstock_log_flush_seconds_total", took_ns / _NS, name)
                flushes += count
                _tell_remote(page, name, table.remote_figures(peer))
                remote = [a + b for a, b in zip(remote, table.remote_figures(peer), strict=True)]
            elif peer.kind == NETPROC:
                for api, waiting in zip(_DELAYED, table.delayed(peer), strict=True):
                    page.add("penstock_delayed_requests", waiting, name, api)
                    delayed[api] += waiting
            silent_s = self.watch.silent_ns(peer, now_ns) / _NS
            page.add("penstock_process_silent_seconds", round(silent_s, 3), name)
            if up:
                lag = max(table.metadata_offset - table.applied(peer), 0)
                page.add("penstock_process_metadata_lag_records", lag, name)
        page.add("kafka_log_logflushstats_logflushrateandtimems_count", flushes)
        for of_kafka, value in zip(_KAFKAS_REMOTE, remote, strict=True):
            page.add(f"kafka_server_brokertopicmetrics_{of_kafka}", value)
        for api, waiting in delayed.items():
            page.add("kafka_server_delayedoperationpurgatory_purgatorysize", waiting, api)

    def _tell_usage(self, page: Page) -> None:
        whole, memory, files = Used(), 0, 0
        for name, (used, mine, open_files) in self._usage.of().items():
            whole, memory, files = whole.plus(used), memory + mine, files + open_files
            page.add("penstock_process_cpu_seconds_total", round(used.cpu_s, 3), name)
            page.add("penstock_process_disk_read_bytes_total", used.read, name)
            page.add("penstock_process_disk_written_bytes_total", used.written, name)
            page.add("penstock_process_memory_bytes", mine, name)
            page.add("penstock_process_open_files", open_files, name)
        page.add("process_cpu_seconds_total", round(whole.cpu_s, 3))
        page.add("process_resident_memory_bytes", memory)
        page.add("process_open_fds", files)
        page.add("kafka_server_kafkaserver_linux_disk_read_bytes", whole.read)
        page.add("kafka_server_kafkaserver_linux_disk_write_bytes", whole.written)
        for kind, name in ((NETPROC, "network"), (IOPROC, "io")):
            if kind in self._idle:
                page.add(f"penstock_{name}_idle_ratio", self._idle[kind])


def _min_isr(config: BrokerConfig, image: MetadataImage) -> Callable[[str], int]:
    """min.insync.replicas by the name of a topic. Few topics have one of their own."""
    default = log_config(image, config, "").min_insync_replicas

    def of(topic: str) -> int:
        if _MIN_ISR not in image.config(TOPIC, topic):
            return default
        return log_config(image, config, topic).min_insync_replicas

    return of


def _no_cpu(_: Peer) -> float:
    """Returns no CPU time: it is summed elsewhere."""
    return 0.0


def _tell_remote(page: Page, process: str, figures: RemoteFigures) -> None:
    """Tiered storage of one I/O process."""
    for name, value in zip(_REMOTE, figures, strict=True):
        page.add(f"penstock_remote_{name}", value, process)
