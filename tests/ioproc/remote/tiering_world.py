"""One tiered partition on a simulated disk, with a store in memory that lives on when the machine
does not: copies, deletions, restarts, cuts.

`Life` is one life of the I/O process; `Store` outlives it. Everything that runs on a thread or in
the process beside runs when the test says so.
"""

import base64
import json
from types import SimpleNamespace

from appliance.base.errors import StorageFailed
from appliance.base.object_store import StoreRefused
from appliance.config.log_config import LogConfig
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.failures import FENCED
from appliance.ioproc.remote.link import AnswerRoutes, StoreAnswer
from appliance.ioproc.remote.manifest_steps import ManifestAnswers
from appliance.ioproc.remote.remote_chain import read_chain
from appliance.ioproc.remote.tiered_starts import TieredStarts
from appliance.ioproc.remote.tiering import Tiering
from appliance.ioproc.turn.job_context import JobContext
from appliance.logstore.log import PartitionLog
from appliance.remotelog.manifests import LeaderFenced, ManifestDamaged, RemoteManifests
from appliance.remotelog.objects import LOG, RemoteFilesMissing, RemoteObjects
from appliance.remotelog.records import decode_record
from tests.ioproc.core_world import NOW_MS, HeldThreads, World, batch

TOPIC_ID = b"t".ljust(16, b"\0")
FOLDER = "/data/t-0"


class Store:
    """An `ObjectRoom` in memory. refuses: whether it does nothing. cut_in: raises `cut` before so
    many more changes, if not negative."""

    def __init__(self, cut=StoreRefused):
        self.held = {}
        self.refuses = False
        self.cut_in = -1
        self.cut = cut
        self.objects = RemoteObjects(self)

    def of_segments(self):
        """Names of what is no manifest and no holder."""
        return {name for name in self.held if name.count("/") == 2}

    def _change(self):
        if self.refuses:
            raise StoreRefused("memory", "it is away")
        if self.cut_in == 0:
            self.cut_in = -1
            raise self.cut
        self.cut_in -= self.cut_in > 0

    def names(self, prefix):
        self._change()
        return {
            name: len(data) for name, data in self.held.items() if name.startswith(f"{prefix}/")
        }

    def read_object(self, name):
        yield self.held[name]

    def read_range(self, name, at, length):
        return self.held[name][at : at + length]

    def write_object(self, name, pieces):
        data = b"".join(pieces)
        self._change()
        self.held[name] = data

    def delete(self, name):
        self._change()
        self.held.pop(name, None)


class StoreOfFiles:
    """A `StoreChannel`: does what the process would, when the test says so."""

    def __init__(self, disk, store):
        self.disk, self.store = disk, store
        self.asked = []
        self.came = []

    def ask_store(self, tag, question):
        self.asked.append((tag, question))

    def take_answers(self):
        came, self.came = self.came, []
        return came

    def run_one(self):
        tag, question = self.asked.pop(0)
        try:
            self.came.append(StoreAnswer(tag, "", "", self._do(question)))
        except LeaderFenced as why:
            self.came.append(StoreAnswer(tag, str(why), FENCED, {}))
        except (StoreRefused, StorageFailed, RemoteFilesMissing, ManifestDamaged) as why:
            self.came.append(StoreAnswer(tag, str(why), "store", {}))

    def _do(self, question):
        objects = self.store.objects
        answers = ManifestAnswers(objects, RemoteManifests(self.store)).by_name
        if question["op"] in answers:
            return answers[question["op"]](json.loads(json.dumps(question)))
        if question["op"] == "delete-partition":
            topic_id = bytes.fromhex(question["topic-id"])
            told = topic_id, question["partition"], question["node"]
            return {"objects": objects.release_partition(*told)}
        one = decode_record(base64.b64decode(question["segment"]))
        if question["op"] == "delete":
            objects.delete_segment(one)
            return {}
        assert question["op"] == "copy"
        parts = {kind: [base64.b64decode(text)] for kind, text in question["bytes"].items()}
        for kind, path in question["paths"].items():
            file = self.disk.open_file(path)
            size = one.segment_size_in_bytes if kind == LOG else file.size()
            parts[kind] = [file.pread(size, 0)]
            file.close()
        objects.copy_segment(one, parts)
        return {}


class Events:
    def __init__(self):
        self.said = []

    def event(self, level, name, **fields):
        self.said.append((name, fields))

    event_seldom = event


class Life:
    """log_starts: the checkpoint of log starts, which outlives it. rules: of the topic."""

    def __init__(self, disk, store, log_starts, ids, now_ns=1_000_000_000, **rules):
        self.disk, self.store, self.log_starts = disk, store, log_starts
        self.rules = {"remote_storage_enable": True, "segment_bytes": 400, **rules}
        self.events = Events()
        self.world = World("/data", disk=disk)
        self.world.now_ns = now_ns
        self.threads = HeldThreads()
        self.link = StoreOfFiles(disk, store)
        self.routes = AnswerRoutes(self.link, lambda where, step: step())
        config = SimpleNamespace(
            int=lambda name: {
                "remote.log.manager.task.interval.ms": 1,
                "remote.log.manager.copier.thread.pool.size": 1,
                "remote.log.manager.copy.max.bytes.per.second": 1 << 62,
            }[name]
        )
        self.trims = []
        self.tiering = Tiering(
            lambda: config,
            JobContext(disk, None, self.world.core, self.events),
            self.threads,
            self.routes,
            lambda partition, told: self.trims.append((partition, told)),
            lambda now_ns, now_ms: now_ms,
            1,
            lambda: next(ids)[-8:],
            1,
        )
        self.starts = TieredStarts(self.routes, self.tiering, self.events)
        self.partition = self._open()
        self.world.core.add(self.partition, self.world.now_ns)
        self.tiering.opened(self.partition)

    def _open(self):
        rules = LogConfig(**self.rules)
        if self.disk.exists(FOLDER):
            start = self.log_starts.get("t", 0)
            log = PartitionLog.open_folder(
                self.disk, FOLDER, rules, recovery_point=0, log_start_offset=start, clean=False,
                machine_lived=False, now_ms=NOW_MS,
            )  # fmt: skip
            read_chain(log, TOPIC_ID, 0, start)
        else:
            log = PartitionLog.create(self.disk, FOLDER, TOPIC_ID, rules, now_ms=NOW_MS)
            log.sync_now()
            self.disk.sync_dir("/data")
        handle = self.world.rows[TOPIC_ID, 0] = self.world.table.add(TOPIC_ID, 0)
        return Partition(handle, "t", 0, TOPIC_ID, log, 0, now_ms=NOW_MS)

    @property
    def log(self):
        return self.partition.log

    def set_rules(self, **rules):
        self.rules |= rules
        self.partition.set_rules(LogConfig(**self.rules))

    def append(self, value, age_ms=0):
        """Acknowledged, visible and on the disk at return."""
        time = NOW_MS - age_ms
        end = self.log.end_offset + 1
        self.world.append(self.partition.handle, batch(value, timestamp=time), acks=-1)
        self.world.settle()
        assert self.partition.high_watermark == self.log.end_offset == end

    def retain(self):
        """A round of the housekeeping: what goes locally goes at once."""
        segment = self.log.active_base
        for removal in self.log.retain(self.world.now_ms, self.partition.high_watermark):
            removal.run(self.disk)
        if self.log.active_base != segment:
            self.world.core.syncing.wrote(self.partition, self.world.now_ns)
        self.world.settle()
        self.world.core.publish(self.partition)

    def trim(self, offset):
        """DeleteRecords."""
        self.log.advance_log_start(offset)
        self.partition.trimmed()
        self.log_starts["t"] = self.log.log_start_offset

    def trim_to(self, offset):
        """The leader's log start, or DeleteRecords at the leader."""
        if offset > self.log.log_start_offset:
            self.trim(offset)

    def step(self, ms=1, does=lambda: True):
        """One turn of the chores, and one thing of each that others do for it, if it `does`."""
        self.world.now_ns += ms * 1_000_000
        self.routes.deliver_answers(self.world.now_ns, self.world.now_ms)
        self.tiering.tick(self.world.now_ns, self.world.now_ms)
        if self.threads.jobs and does():
            self.threads.run_one()
        if self.trims and does():
            partition, told = self.trims.pop(0)
            self.log_starts["t"] = partition.log.log_start_offset
            told(None)
        if self.link.asked and does():
            self.link.run_one()

    def finish(self, ms=100_000):
        """Until nothing is left to do."""
        for _ in range(1000):
            self.step(ms)
            if not (self.threads.outstanding() or self.link.asked or self.link.came or self.trims):
                if self.idle:
                    return
                self.idle = True
            else:
                self.idle = False
        raise AssertionError("there is no end of it")

    idle = False

    def known(self):
        return self.tiering.segments_of(self.partition)

    def values(self):
        """Offset → value of all that a reader gets, local segments before remote ones."""
        data = {}
        for one in self.known().finished() if self.known() else ():
            data |= values_in(self.store.objects.fetch_range(one, 0, one.segment_size_in_bytes))
        for segment in self.log.segments:
            data |= values_in(segment.reader(self.disk).pread(segment.size, 0))
        return {at: value for at, value in sorted(data.items()) if at >= self.log.log_start_offset}


def values_in(data):
    """Offset → value of batches of one record."""
    found = {}
    while data:
        base = int.from_bytes(data[:8], "big")
        size = int.from_bytes(data[8:12], "big") + 12
        found[base] = data[61:size].split(b"|")[1]
        data = data[size:]
    return found
