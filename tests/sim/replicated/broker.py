"""A replica: today's `PartitionLog` and `Progress` on a simulated disk, and what drives them, which
is a test's. The leader appends and answers fetches; a follower asks where its newest epoch ended
with the leader, truncates to where they part, and fetches from there on."""

from sim.node import Node
from sim.replicated.talk import (
    Alter,
    Beat,
    EpochEnd,
    EpochEnded,
    Fetch,
    Fetched,
    Had,
    Produced,
    State,
)

from appliance.base.errors import PeerError
from appliance.config.log_config import LogConfig
from appliance.ioproc.durability import checkpoints
from appliance.ioproc.lifecycle.partition_opener import PartitionOpener
from appliance.ioproc.replica_fetcher.divergence import is_unconfirmed
from appliance.metadata.log_dirs import LogDirs
from appliance.replication.progress import Progress
from appliance.ring.partition_table import PartitionTable
from appliance.wire.batch_header import read_header

DATA, TOPIC, KEY = "/data", "t", ("t", 0)
TOPIC_ID = TOPIC.encode().ljust(16, b"\0")
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300, retention_ms=-1)
LEAST_IN_SYNC = 2
LAG_MS = 60
BEAT_MS = 15
TIMEOUT_MS = 50
FETCH_BYTES = 600
LOOK_MS = 5


class Broker(Node):
    """One replica. durable: whether the disk counts, or the page cache (`cluster`). ledger: is told
    what a leader shows. unclean: power was cut, and the controller has not heard of it yet.
    waiting: who waits for an end offset to be shown: (offset, end of the connection, token)."""

    ends_with_storage = True

    def __init__(self, world, name, disk, *, durable, ledger):
        super().__init__(world, name, disk)
        self.log = None
        self.durable = durable
        self.ledger = ledger
        self.unclean = False
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")

    # A life -----------------------------------------------------------------------------------

    def begin(self):
        self.state_told = State(0, 0, "", ())
        self.to_controller = self.to_leader = None
        self.job = self.asked = self.altering = None
        self.parted = -1  # the epoch for which it is known where the leader's log and this one part
        self.waiting = []
        self.lives = {}  # of followers, as they said with their fetches
        self.compared = 0
        table = PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(4))), 4)
        table.add(TOPIC_ID, 0)
        opener = PartitionOpener(self.disk, LogDirs.of(DATA), table, clean=False)
        self.log, *_ = opener.open_log(TOPIC, 0, TOPIC_ID, 0, CONFIG, self.now_ms)
        self.log.sync_now()
        shown = checkpoints.read(self.disk, DATA, checkpoints.HIGH_WATERMARK).get(KEY, 0)
        start, end = self.log.log_start_offset, self.log.end_offset
        self.progress = Progress(start, end, min(max(shown, start), end))
        self.after(0, self.beat)
        self.after(LOOK_MS, self.look)
        self.after(50, self.checkpoint)

    def stop(self, *, power):
        power = power and not self.spared()
        self.unclean = self.unclean or (power and not self.durable)
        super().stop(power=power)

    def spared(self):
        """Whether what it has in its page cache may be nowhere else."""
        if self.durable:
            return False
        controller = self.world.nodes["controller"]
        others = [self.world.nodes[name] for name in controller.told.in_sync if name != self.name]
        if any(broker.unclean for broker in self.ledger.brokers() if broker is not self):
            return True
        alone = controller.told.number > 0 and not others
        return alone or not controller.knows(self) or self.altering is not None

    @property
    def now_ms(self):
        return self.clock.wall_ms()

    @property
    def epoch(self):
        return self.state_told.epoch

    @property
    def leads(self):
        return self.state_told.leader == self.name

    def beat(self):
        self.tell_controller(Beat(self.name, self.life, self.unclean))
        self.after(BEAT_MS, self.beat)

    def tell_controller(self, message):
        if self.to_controller is None:
            self.to_controller = self.world.network.connect(self, "controller")
        self.to_controller.send(message)

    def lost(self, end):
        if end is self.to_controller:
            self.to_controller = None
            if self.altering is not None:
                self.tell_controller(self.altering)
        if end is self.to_leader:
            self.to_leader = self.asked = None
            self.after(5, self.ask_leader)

    def received(self, end, message):
        getattr(self, f"on_{type(message).__name__.lower()}")(end, message)

    def checkpoint(self):
        """What spares the next life some work: it may be old, never ahead."""
        merge = checkpoints.merge
        point, shown = self.log.recovery_point, self.progress.high_watermark
        merge(self.disk, DATA, checkpoints.RECOVERY_POINT, {KEY: point})
        merge(self.disk, DATA, checkpoints.HIGH_WATERMARK, {KEY: shown})
        self.after(50, self.checkpoint)

    # Roles ------------------------------------------------------------------------------------

    def on_state(self, end, state):
        if state.number <= self.state_told.number:
            return
        before, self.state_told = self.state_told, state
        self.altering = None
        if self.leads and state.epoch == before.epoch:
            self.lead(state.in_sync)
        elif state.epoch > before.epoch:
            self.new_epoch()

    def new_epoch(self):
        self.refuse()
        self.asked = None
        if self.to_leader is not None:
            self.to_leader.close()
            self.to_leader = None
        if self.leads:
            self.lead(self.state_told.in_sync)
            if self.log.latest_epoch < self.epoch:
                self.log.begin_epoch(self.epoch)
            self.ledger.elected(self)
        else:
            self.progress.follow(self.epoch)
            self.ask_leader()

    def lead(self, in_sync):
        me, id_of = self.id_of(self.name), self.id_of
        replicas = [id_of(name) for name in self.ledger.names]
        others = [id_of(name) for name in in_sync]
        for ids in (replicas, others):
            if me in ids:
                ids.remove(me)
        if self.progress.lead(self.epoch, replicas, others, self.now_ms):
            self.risen()

    def id_of(self, name):
        """`Progress` knows replicas by number."""
        return self.ledger.names.index(name)

    def refuse(self):
        """Who waits here hears that nothing is known of it."""
        for _, end, token in self.waiting:
            end.send(Produced(token, False, -1))
        self.waiting.clear()

    # Leading ----------------------------------------------------------------------------------

    def on_produce(self, end, message):
        batch = bytearray(message.batch)
        header = read_header(batch)
        few = message.acks == -1 and len(self.state_told.in_sync) < LEAST_IN_SYNC
        if not self.leads or few:
            end.send(Produced(message.token, False, -1))
            return
        base = self.duplicate_of(header)
        if base is None:
            end.send(Produced(message.token, False, -1))
            return
        if base >= 0:
            self.world.reached("a record comes again")
        else:
            base = self.log.stage(memoryview(batch), header, self.epoch, self.now_ms)
            self.log.commit()
            self.appended()
        last = base + header.last_offset_delta + 1
        if message.acks != -1 or last <= self.progress.high_watermark:
            end.send(Produced(message.token, True, base))
        else:
            self.waiting.append((last, end, message.token))

    def duplicate_of(self, header):
        """The base offset of the batch that it repeats, -1 when it is new, None when it does not
        follow: an old one that comes late, or what only the newest leader knows."""
        if header.producer_id < 0:
            return -1
        try:
            return self.log.producers.check(header)
        except PeerError:
            known = self.log.producers.producers[header.producer_id]
            old = header.base_sequence < known.next_sequence
        latest = self.world.nodes["controller"].told.epoch
        assert old or self.epoch < latest, "what was acknowledged is not known where it must be"
        return None

    def appended(self):
        """The log has more: shown when it is held, which with `durable` takes a sync."""
        end = self.log.end_offset
        if self.progress.appended(end, self.held(end)):
            self.risen()
        self.sync_soon()

    def held(self, end):
        return self.progress.held if self.durable else end

    def sync_soon(self):
        if self.job is None and self.log.recovery_point < self.log.end_offset:
            self.job = self.log.flush_job()
            self.after(self.world.rng.uniform(0.1, 3), self.synced, self.job)

    def synced(self, job):
        if job is not self.job:
            return
        self.end_sync()
        self.sync_soon()
        if not self.leads:
            self.ask_leader()

    def end_sync(self):
        job, self.job = self.job, None
        self.sync(job)
        self.log.flushed(job)
        if self.progress.holds(self.log.recovery_point):
            self.risen()

    def sync(self, job):
        job.run()

    def risen(self):
        """The high watermark rose."""
        shown = self.progress.high_watermark
        self.ledger.shown(self)
        waiting, self.waiting = self.waiting, []
        for last, end, token in waiting:
            if last <= shown:
                end.send(Produced(token, True, -1))
            else:
                self.waiting.append((last, end, token))

    def on_fetch(self, end, message):
        if not self.leads or message.epoch != self.epoch:
            end.send(Fetched(self.epoch, -1, -1, b""))
            return
        self.lives[message.broker] = message.life
        if self.progress.replica_at(self.id_of(message.broker), message.offset, self.now_ms):
            self.risen()
        start, data = self.log.log_start_offset, b""
        if message.offset >= start:
            data = self.read(message.offset, self.log.end_offset)
        end.send(Fetched(self.epoch, self.progress.high_watermark, start, data))

    def read(self, offset, limit):
        found = self.log.locate(offset, FETCH_BYTES, limit)
        if found is None:
            return b""
        base, position, length, _ = found
        file = self.disk.open_file(f"{self.log.path}/{base:020d}.log")
        try:
            return file.pread(length, position)
        finally:
            file.close()

    def on_epochend(self, end, message):
        found = (-1, -1)
        if self.leads and message.epoch == self.epoch:
            found = self.log.epoch_end(message.asked)
        end.send(EpochEnded(self.epoch if self.leads else -1, *found))

    def on_read(self, end, message):
        """A client reads what is shown."""
        high = self.progress.high_watermark if self.leads else -1
        offset, data = max(message.offset, self.log.log_start_offset), b""
        if offset < high:
            data = self.read(offset, high)
        end.send(Had(high, data))

    def on_trim(self, end, message):
        if self.leads:
            self.trim(min(message.offset, self.progress.high_watermark))

    def trim(self, offset):
        """The log starts here; its segments below go."""
        log = self.log
        if offset > log.log_start_offset:
            log.advance_log_start(offset)
            checkpoints.merge(self.disk, DATA, checkpoints.LOG_START, {KEY: offset})
            self.progress.starts_at(offset)
            for removal in log.retain(self.now_ms, self.progress.high_watermark):
                removal.run(self.disk)

    def on_altered(self, end, message):
        if self.altering and message.number == self.altering.number and message.refused:
            self.altering = None
            if self.leads:
                self.lead(self.state_told.in_sync)

    def look(self):
        """Who is in sync: one change at a time, and who is to join counts from now on, before the
        controller has heard of it (KIP-497)."""
        if self.leads and self.altering is None:
            state, progress = self.state_told, self.progress
            in_sync, joins = state.in_sync, ()
            names = self.ledger.names
            late = [names[number] for number in progress.behind(self.now_ms, LAG_MS)]
            if late:
                in_sync = tuple(name for name in in_sync if name not in late)
            else:
                able = [names[number] for number in progress.followers if self.may_join(number)]
                if able:
                    joins = (able[0], self.lives[able[0]])
                    in_sync = (*in_sync, able[0])
                    self.count_at_once(in_sync)
            if in_sync != state.in_sync:
                self.altering = Alter(state.epoch, state.number, in_sync, joins)
                self.tell_controller(self.altering)
        self.after(LOOK_MS, self.look)

    def may_join(self, number):
        return self.progress.may_join(number)

    def count_at_once(self, in_sync):
        self.lead(in_sync)

    # Following --------------------------------------------------------------------------------

    def ask_leader(self):
        """The next question to the leader, one at a time: where the logs part, then what comes."""
        if self.leads or not self.state_told.leader or self.asked is not None:
            return
        if not self.may_fetch():
            self.sync_soon()
            return
        if self.to_leader is None:
            self.to_leader = self.world.network.connect(self, self.state_told.leader)
        latest = self.log.latest_epoch
        if self.parted < self.epoch and latest >= 0:
            question = EpochEnd(self.epoch, latest)
        else:
            question = Fetch(self.epoch, self.name, self.life, self.log.end_offset)
        self.asked = question
        self.to_leader.send(question)
        self.after(TIMEOUT_MS, self.too_late, question)

    def may_fetch(self):
        """Fetching from an offset says that what is below is held."""
        return not self.durable or self.log.recovery_point >= self.log.end_offset

    def too_late(self, question):
        if self.asked is question and self.to_leader is not None:
            self.to_leader.close()
            self.to_leader = self.asked = None
            self.ask_leader()

    def on_epochended(self, end, message):
        if end is not self.to_leader:
            return
        self.asked = None
        if message.epoch != self.epoch:
            self.after(5, self.ask_leader)
            return
        self.part(message.found, message.end)
        self.ask_leader()

    def part(self, found, end):
        """Truncate to where the logs part, as far as that is known by now (KIP-279)."""
        assert found >= 0, "a leader knows every epoch up to its own"
        mine, my_end = self.log.epoch_end(found)
        if mine == found:
            self.truncate(min(my_end, end))
            self.parted = self.epoch
        else:
            self.world.reached("where logs part is asked again")
            self.truncate(my_end)  # and ask again, for an epoch that both may have

    def truncate(self, offset):
        log, had = self.log, self.log.end_offset
        if self.job is not None:
            self.end_sync()
        self.lower_recovery_point(offset)
        log.truncate_to(offset, self.now_ms)
        if log.end_offset < had:
            self.world.reached("a log is cut")
            self.say(f"truncates {had} to {log.end_offset}")
            if log.log_start_offset == self.progress.log_start:
                self.progress.truncated(log.end_offset, {})
                return
            self.world.reached("logs part below a log start")
            self.progress = Progress(log.log_start_offset, log.end_offset, log.end_offset)
            self.progress.follow(self.epoch)

    def lower_recovery_point(self, offset):
        """To what the log ends behind when it is cut there, before it is."""
        before = [segment.base for segment in self.log.segments if segment.base < offset]
        point = before[-1] if before and offset >= self.log.log_start_offset else 0
        if self.log.recovery_point > point:
            checkpoints.merge(self.disk, DATA, checkpoints.RECOVERY_POINT, {KEY: point})
            self.log.recovery_point = point

    @property
    def leader_epoch(self):
        return self.epoch

    def begin_anew(self, offset):
        """The leader has nothing any more of what comes next here, or of what lies before it."""
        in_sync = self.world.nodes["controller"].told.in_sync  # this one may hear of it late
        assert self.name not in in_sync, "who is in sync has what was trimmed"
        if self.job is not None:
            self.end_sync()
        self.world.reached("a log starts over")
        self.say(f"starts over at {offset}")
        self.lower_recovery_point(0)
        self.log.begin_anew(offset)
        self.progress = Progress(offset, offset, offset)
        self.progress.follow(self.epoch)

    def on_fetched(self, end, message):
        if end is not self.to_leader:
            return
        self.asked = None
        if message.epoch != self.epoch or message.high_watermark < 0:
            self.after(5, self.ask_leader)
            return
        if message.log_start > self.log.end_offset or is_unconfirmed(self, message.log_start):
            self.begin_anew(message.log_start)
        if message.data:
            self.log.follow(memoryview(message.data), self.now_ms, self.epoch)
            self.log.commit()
            self.appended()
        self.progress.on_leader_high_watermark(message.high_watermark)
        self.trim(min(message.log_start, self.progress.high_watermark))
        self.after(0 if message.data else 4, self.ask_leader)
