"""Three nodes with a replica each of a tiered partition, and one store: nodes lead, die
and return, and those that were deposed go on for a while as if they led.

Replication and the controller are the test's; logs, tiering and manifests are the product's.
"""

from itertools import count

from appliance.ioproc.partitions.partition import Partition
from appliance.remotelog.journal import decode_entries
from appliance.replication.follower import parts_at
from appliance.replication.role import PartitionRole
from tests.ioproc.core_world import NOW_MS
from tests.ioproc.remote.tiering_world import TOPIC_ID, Life, Store, values_in
from tests.sim.disk import SimDisk

CHANCE = count(1)


def new_disk(rng):
    disk = SimDisk(rng)
    disk.mkdir("/data")
    disk.sync_dir("/")
    return disk


class Node:
    """A machine: its disk outlives it. life: None while it is down."""

    def __init__(self, number, cluster):
        self.number, self.cluster = number, cluster
        self.disk, self.starts = new_disk(cluster.rng), {}
        self.life = None

    def start(self):
        ids = (number.to_bytes(16, "big") for number in CHANCE)
        cluster = self.cluster
        self.life = Life(
            self.disk, cluster.store, self.starts, ids, cluster.now_ns, **cluster.rules
        )
        self.life.tiering.is_alone = lambda partition: False
        self.hear_role()

    def hear_role(self):
        """The metadata arrives."""
        cluster, life = self.cluster, self.life
        if cluster.leader is self:
            life.world.core.lead(life.partition, cluster.epoch)
        else:
            other = -1 if cluster.leader is None else cluster.leader.number
            role = PartitionRole(False, other)
            life.world.core.follow(life.partition, cluster.epoch, role)
        life.tiering.role_changed(life.partition)

    def die(self, *, power):
        cluster, link = self.cluster, self.life.link
        if link.asked and cluster.rng.random() < 0.5:
            cluster.late.append(link)  # what it asked last is done all the same
        self.life = None
        if power:
            self.disk.power_cut()
        else:
            self.disk.process_death()

    @property
    def knows_role(self):
        partition, cluster = self.life.partition, self.cluster
        return partition.leader_epoch == cluster.epoch and partition.leads is (
            cluster.leader is self
        )

    def step(self, ms, does):
        life, cluster = self.life, self.cluster
        life.world.now_ns = max(life.world.now_ns, cluster.now_ns)
        life.step(ms, does)
        cluster.now_ns = max(cluster.now_ns, life.world.now_ns)

    def local(self):
        """Offset → value of what lies here."""
        found = {}
        for segment in self.life.log.segments:
            found |= values_in(segment.reader(self.disk).pread(segment.size, 0))
        return found


class Cluster:
    """allowed: up to where records may be gone. end: up to where they are acknowledged."""

    def __init__(self, rng, nodes=3, **rules):
        self.rng, self.rules = rng, rules
        self.store = Store()
        self.now_ns = 1_000_000_000
        self.late = []
        self.allowed = self.end = 0
        self.epoch, self.leader = 1, None
        self.nodes = [Node(number, self) for number in range(1, nodes + 1)]
        self.in_sync = list(self.nodes)
        for node in self.nodes:
            node.start()
        self.elect()

    def elect(self):
        """Another leader, of those in sync; its node hears of it at once."""
        alive = [node for node in self.in_sync if node.life is not None]
        self.leader = self.rng.choice(alive) if alive else None
        self.epoch += 1
        if self.leader is not None:
            self.leader.hear_role()

    def kill(self, node, *, power):
        node.die(power=power)
        if node in self.in_sync and len(self.in_sync) > 1:
            self.in_sync.remove(node)
        if self.leader is node:
            self.elect()

    def append(self, value):
        """Acknowledged when all in sync have it."""
        leader = self.leader
        leader.life.append(value)
        if all(node is leader or self.replicate(node) for node in self.in_sync):
            self.end = leader.life.log.end_offset

    def replicate(self, node):
        """A follower fetches until it is level; whether it is."""
        leader = self.leader
        if node.life is None or leader is None or not node.knows_role:
            return False
        for _ in range(20):
            if self._fetch(node.life, leader.life):
                break
        else:
            return False
        if node not in self.in_sync:
            self.in_sync.append(node)
        return True

    def _fetch(self, mine, theirs):
        log, theirs_log = mine.log, theirs.log
        end = log.end_offset
        known = theirs_log.epoch_end(log.latest_epoch)
        if (
            log.latest_epoch >= 0
            and known[0] >= 0
            and (known[0] < log.latest_epoch or known[1] < end)
        ):
            cut = parts_at(known, log.epoch_end(known[0]), end)
            log.recovery_point = 0
            log.truncate_to(cut, NOW_MS)
            self._serve(mine.partition)
        elif end < theirs_log.log_start_offset or end > theirs_log.end_offset:
            log.recovery_point = 0
            log.begin_anew(theirs_log.log_start_offset)
            self._serve(mine.partition)
        elif end < theirs_log.segments[0].base:
            self._begin_behind(mine, theirs_log.local_start)
        else:
            data = bytearray()
            for segment in theirs_log.segments:
                data += segment.reader(theirs.disk).pread(segment.size, 0)
            data = bytearray(b"".join(batches_from(bytes(data), end)))
            if data:
                log.follow(memoryview(data), NOW_MS, mine.partition.leader_epoch)
                log.commit()
            log.sync_now()
            mine.partition.progress.appended(log.end_offset, log.end_offset)
            mine.partition.progress.on_leader_high_watermark(log.end_offset)
            mine.trim_to(min(theirs_log.log_start_offset, log.end_offset))
            return log.end_offset == theirs_log.end_offset
        return False

    def _begin_behind(self, mine, offset):
        for _ in range(8):
            if mine.starts.is_ready(mine.partition, offset, mine.world.now_ns):
                mine.log.recovery_point = 0
                mine.starts.begin_log(mine.partition, NOW_MS)
                self._serve(mine.partition)
                return
            mine.step(100_000)

    def _serve(self, partition: Partition):
        log = partition.log
        log.sync_now()
        partition.serve_log(log, log.end_offset)
        partition.progress.follow(partition.leader_epoch)

    # What must hold -------------------------------------------------------------------------------

    def check(self):
        """Whoever may be elected has all that is kept, by its disk and the store."""
        stored = self._stored()
        wanted = {number: b"%06d" % number for number in range(self.allowed, self.end)}
        for node in self.in_sync:
            if node.life is None:
                continue
            remote = stored
            if remote is None:
                remote = self._values_of(node.life.known())
            has = remote | node.local()
            gone = {number for number, value in wanted.items() if has.get(number) != value}
            assert not gone, f"node {node.number} lacks {sorted(gone)}"
        if self.leader is not None:
            assert self.leader.life.log.log_start_offset <= self.allowed, "more is gone than wanted"

    def _stored(self):
        """Offset → value of what the manifest says, None without one."""
        names = sorted(name for name in self.store.held if "/manifests/" in name)
        for name in reversed(names):
            if self.store.held[name]:
                return self._values_of(decode_entries(self.store.held[name][5:], TOPIC_ID, 0)[0])
        return None

    def _values_of(self, known):
        found = {}
        for one in known.finished() if known else ():
            data = self.store.objects.fetch_range(one, 0, one.segment_size_in_bytes)
            found |= values_in(data)
        return found


def batches_from(data, offset):
    """Batches of one record from an offset on."""
    while data:
        base = int.from_bytes(data[:8], "big")
        size = int.from_bytes(data[8:12], "big") + 12
        if base >= offset:
            yield data[:size]
        data = data[size:]
