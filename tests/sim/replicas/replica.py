"""One replica: today's `Progress` over a log of paper, as much of a `Partition` as `Replicas` wants
to see of one, and what drives it, which is a test's."""

from sim.replicas.talk import Entries, Entry, Had, Part, Produced

from appliance.base import errors
from appliance.ioproc.partitions import read_rules
from appliance.replication.follower import Position
from appliance.replication.progress import Progress
from appliance.replication.role import ELSEWHERE

LEAST_IN_SYNC = 2
READ_MOST = 10


class Replica:
    """compared: how much of what it shows was compared with what others showed. waiting: who waits
    for an end offset to be shown: (offset, end of the connection, token)."""

    def __init__(self, broker, key, log):
        self.broker = broker
        self.key = key
        self.topic_id, self.index = key
        self.handle = self.index
        self.log = log
        self.ledger = broker.ledgers[key]
        start, end = log.start, log.end
        log.synced = end  # an opening does that
        self.progress = Progress(start, end, min(max(log.shown, start), end))
        self.role = ELSEWHERE
        self.leader_epoch = -1
        self.risen = False
        self.compared = 0
        self.waiting = []
        self.parted = -1  # the newest epoch in which it was cut
        self.syncing = False
        self.broken = None

    def __str__(self):
        return f"n{self.broker.number}:{self.index}"

    @property
    def leads(self):
        return self.progress.leads

    @property
    def leader(self):
        return self.role.leader if not self.role.leads else -1

    @property
    def shared(self):
        return self.leads and bool(self.role.replicas)

    # Roles ----------------------------------------------------------------------------------------

    def is_now(self, epoch, role, now_ms):
        """What the metadata says."""
        if role.leads and not self.may_lead():
            role = ELSEWHERE
        before = self.leader_epoch, self.role
        self.leader_epoch, self.role = epoch, role
        if role.leads:
            self.lead(epoch, role, now_ms)
            self.broker.led.leads(self)
        elif before[0] != epoch or before[1].leads or before[1].leader != role.leader:
            self.refuse()
            self.progress.follow(epoch)
            self.broker.led.follows(self)
            self.broker.fetch_from(self.key, role.leader)

    def may_lead(self):
        """A log may have lost its end since the life that the metadata speaks of."""
        return self.broker.knows_itself()

    def lead(self, epoch, role, now_ms):
        began = not self.progress.leads or self.progress.epoch < epoch
        if began:
            self.refuse()
            self.broker.fetch_from(self.key, -1)
        self.wait_for(role.isr, epoch, now_ms)
        if began:
            if self.log.latest_epoch < epoch:
                self.log.begin_epoch(epoch)
            self.ledger.leads(self, epoch)
            if epoch == self.broker.controller.partition(self.key[1]).leader_epoch:
                self.ledger.has_all(self)

    @property
    def enough(self):
        return len(self.role.isr) + 1 >= LEAST_IN_SYNC

    def wait_for(self, isr, epoch, now_ms):
        """These others must have a record before it is visible."""
        replicas = self.role.replicas
        if self.progress.lead(epoch, replicas, isr, now_ms, enough=self.enough):
            self.raise_visible()
            self.release()

    def ends(self):
        """This broker has no replica any more."""
        self.refuse()
        self.broker.led.closed(self)

    def refuse(self):
        """Who waits here hears that nothing is known of it."""
        for _, end, token in self.waiting:
            end.send(Produced(token, -1, self.leader))
        self.waiting.clear()

    # Leading --------------------------------------------------------------------------------------

    def produce(self, end, message):
        if not self.leads or (message.acks == -1 and not self.enough):
            end.send(Produced(message.token, -1, self.leader))
            return
        offset = self.log.end
        number, at = self.log.newest.get(message.who, (-1, -1))
        if message.who >= 0 and message.number <= number:
            self.broker.world.reached("a record comes again")
            offset = at
            if message.number < number:
                end.send(Produced(message.token, -1, self.leader))  # late, and long acknowledged
                return
        elif message.who >= 0 and message.number != number + 1:
            latest = self.broker.controller.partition(self.key[1]).leader_epoch
            assert self.leader_epoch < latest, "what was acknowledged is not known where it must be"
            end.send(Produced(message.token, -1, self.leader))
            return
        else:
            self.log.append(Entry(self.leader_epoch, message.who, message.number))
            self.appended()
        if message.acks != -1 or offset < self.progress.high_watermark:
            end.send(Produced(message.token, offset, -1))
        else:
            self.waiting.append((offset, end, message.token))

    def appended(self):
        end = self.log.end
        held = self.progress.held if self.broker.durable else end
        if self.progress.appended(end, held, self.broker.now_ms):
            self.raise_visible()
            self.release()
        self.sync_soon()
        self.broker.news()

    def sync_soon(self):
        if not self.syncing and self.log.synced < self.log.end:
            self.syncing = True
            life, end = self.broker.life, self.log.end
            self.broker.after(self.broker.world.rng.uniform(0.1, 2), self.synced, life, end)

    def synced(self, life, end):
        self.syncing = False
        end = min(end, self.log.end)
        self.log.synced = max(self.log.synced, end)
        if self.progress.holds(self.log.synced):
            self.raise_visible()
            self.release()
        self.sync_soon()
        if self.leader in self.broker.pullings:
            self.broker.pullings[self.leader].turn()

    def raise_visible(self):
        """The high watermark rose."""
        self.ledger.shown(self)

    def release(self):
        """Who waited for that is answered."""
        shown = self.progress.high_watermark
        waiting, self.waiting = self.waiting, []
        for offset, end, token in waiting:
            if offset < shown:
                end.send(Produced(token, offset, -1))
            else:
                self.waiting.append((offset, end, token))
        self.broker.news()

    def heard(self, broker, broker_epoch, position):
        """A follower names a new place: how it is refused, or None."""
        epoch, offset, last_epoch, log_start = position
        if not self.leads:
            return Part(self.key, errors.NOT_LEADER_OR_FOLLOWER)
        asked = (0, 0, self.handle, 0, offset, epoch, last_epoch, log_start, broker_epoch, broker)
        refused = self.broker.led.on_follower_fetch(self, asked)
        if refused is None:
            return None
        if refused[1] > 1:
            return Part(self.key, refused[1] - 1)
        _, _, _, _, shown, _, start, epoch, end, *_ = refused
        return Part(self.key, 0, (epoch, end), Entries(), shown, start)

    def part_for(self, position, most):
        """What a follower is answered that was heard."""
        log = self.log
        code = 0
        if not self.leads:
            code = errors.NOT_LEADER_OR_FOLLOWER
        elif position.leader_epoch != self.leader_epoch:
            code = read_rules.stale(self, position.leader_epoch)
        elif not log.start <= position.offset <= log.end:
            code = errors.OFFSET_OUT_OF_RANGE
        if code:
            return Part(self.key, code)
        entries = log.read(position.offset, log.end, most)
        return Part(self.key, 0, None, entries, self.progress.high_watermark, log.start)

    def read(self, end, message):
        """A client reads what is shown."""
        high = self.progress.high_watermark if self.leads else -1
        offset, entries = max(message.offset, self.log.start), Entries()
        if offset < high:
            entries = self.log.read(offset, high, READ_MOST)
        end.send(Had(self.key, self.log.start, high, offset, entries))

    def trim(self, offset):
        if self.leads:
            self.starts_at(min(offset, self.progress.high_watermark))

    def starts_at(self, offset):
        if offset > self.log.start:
            self.log.starts_at(offset)
            self.progress.starts_at(offset)
            self.broker.news()

    # Following ------------------------------------------------------------------------------------

    def is_level(self):
        """Whether it may be fetched from where the log ends: that says that all below is held."""
        return not self.broker.durable or self.log.synced >= self.log.end

    def position(self):
        log = self.log
        return Position(self.leader_epoch, log.end, log.latest_epoch, log.start)

    def take(self, part):
        for entry in part.entries:
            self.log.append(entry)
        if part.entries:
            self.appended()
        risen = self.progress.on_leader_high_watermark(part.high_watermark)
        self.starts_at(min(part.log_start, self.progress.high_watermark))
        if risen:  # what lies before the leader's log start may be another's: it is gone by now
            self.ledger.shown(self)

    def part(self, offset):
        """Truncate there."""
        log, world = self.log, self.broker.world
        world.moved = True
        twice = self.parted == self.leader_epoch
        world.reached("a log is cut twice in an epoch" if twice else "a log is cut")
        self.parted = self.leader_epoch
        self.broker.say(f"{self.key[1]} truncates {log.end} to {offset}")
        if offset < log.start:
            self.begins_anew(log.start)
        else:
            log.truncate(offset)
            self.progress.truncated(offset, {})
            self.compared = min(self.compared, offset)

    def begins_at(self, offset):
        """The leader's log starts there, and lies beside this one."""
        if not self.log.start <= offset <= self.log.end or self.is_unconfirmed(offset):
            self.broker.say(f"{self.key[1]} starts over at {offset}")
            self.begins_anew(offset)

    def is_unconfirmed(self, leader_start):
        """As `ioproc/replica_fetcher/divergence.py` has it."""
        log = self.log
        ends_there = leader_start == log.end > self.progress.high_watermark
        return ends_there and log.latest_epoch < self.leader_epoch

    def begins_anew(self, offset):
        self.broker.world.moved = True
        self.broker.world.reached("a log starts over")
        self.log.begin_anew(offset)
        self.progress = Progress(offset, offset, offset)
        self.progress.follow(self.leader_epoch)
        self.compared = 0
