"""A machine that is one replica of a quorum: today's `Replica` over today's `MetadataLog` and
`quorum-state`. What drives them is a test's."""

from sim.agreed.talk import Answer, Ask, Done, Put
from sim.node import Node

from appliance.control import quorum_state
from appliance.control.metadata_log import batch_of, open_log
from appliance.metadata.checkpoint import control_record
from appliance.quorum.messages import BeginEpoch, EndEpoch, Fetch, Fetched, Vote, Voted
from appliance.quorum.replica import Replica
from appliance.quorum.times import Times
from appliance.wire import control_records as control
from appliance.wire.batch import NewRecord, read_header

DATA = "/data"
SEGMENT = 4000
TIMES = Times(election_timeout=100, fetch_timeout=200, election_backoff=100, lost=10)
LONG_POLL_MS = 50
AGAIN_MS = 5


class Voter(Node):
    """number: its id. voters: the ids of those who elect."""

    replica_of = Replica

    def __init__(self, world, number, voters, ledger, disk=None):
        super().__init__(world, f"n{number}", disk)
        self.number = number
        self.voters = voters
        self.ledger = ledger
        self.replica = self.log = None

    @property
    def now_ms(self):
        return self.world.clock.now_ns // 1_000_000

    def begin(self):
        self.links, self.asks, self.parked, self.puts = {}, {}, {}, []
        self.count = self.armed = self.fetching = 0
        self.compared = 0
        self.job = None
        self.led = -1  # the epoch in which it has appended as a leader
        self.log = open_log(self.disk, DATA, SEGMENT, self.now_ms)
        known = quorum_state.read(self.disk, self.log.folder)
        chance = self.chance
        self.replica = self.replica_of(
            self.number, self.voters, known, self.log, chance, self.now_ms, TIMES
        )
        self.turn()

    def chance(self, most):
        return self.world.rng.randint(0, most)

    # A turn ---------------------------------------------------------------------------------------

    def turn(self):
        """What follows from what happened."""
        replica = self.replica
        if replica.leads and self.led != replica.epoch:
            self.ledger.elected(self)
            self.led = replica.epoch
            change = control.LeaderChangeMessage(
                version=0, leader_id=self.number, voters=(), granting_voters=()
            )
            record = control_record(self.now_ms, change)
            self.append(batch_of([record], replica.epoch, is_control=True))
        self.ledger.agreed(self)
        self.answer_puts()
        for name in list(self.parked):
            self.wake(name)
        self.send()
        if replica.deadline != self.armed:
            self.armed = replica.deadline
            self.after(max(replica.deadline - self.now_ms, 0), self.tick, replica.deadline)

    def tick(self, deadline):
        if deadline == self.replica.deadline:
            self.armed = 0
            self.replica.tick(self.now_ms)
            self.turn()

    def hand_over(self):
        self.replica.resign(self.now_ms)
        self.turn()

    def send(self):
        known, messages = self.replica.take()
        if known is not None:
            self.remember(known)
        self.send_all(messages)

    def send_all(self, messages):
        for target, what in messages:
            self.count += 1
            self.asks[self.count] = what
            if isinstance(what, Fetch):
                self.fetching = self.count
            link = self.links.get(target)
            if link is None:
                link = self.links[target] = self.world.network.connect(self, f"n{target}")
            link.send(Ask(self.count, self.number, what))

    def remember(self, known):
        quorum_state.write(self.disk, self.log.folder, known, dynamic=False, voters=self.voters)

    def append(self, batch):
        self.log.append(batch, read_header(batch).leader_epoch, self.now_ms)
        self.sync()

    def sync(self):
        if self.job is None and self.log.unsynced:
            self.job = self.log.begin_sync()
            self.after(self.world.rng.uniform(0.05, 3), self.synced)

    def synced(self):
        job, self.job = self.job, None
        job.run()
        self.log.end_sync(job, None)
        self.replica.durable(self.log.durable)
        self.sync()
        self.replica.fetch()
        self.turn()

    # Messages -------------------------------------------------------------------------------------

    def received(self, end, message):
        replica, now = self.replica, self.now_ms
        if isinstance(message, Put):
            self.put(end, message)
        elif isinstance(message, Answer):
            self.answered(message)
        else:
            what = message.what
            if isinstance(what, Vote):
                self.reply(end, message, replica.vote(what, now))
            elif isinstance(what, BeginEpoch):
                replica.begin_epoch(what, now)
            elif isinstance(what, EndEpoch):
                replica.end_epoch(what, now)
            else:
                self.fetch(end, message)
        self.turn()

    def reply(self, end, ask, what, data=b""):
        known, messages = self.replica.take()
        if known is not None:
            self.remember(known)
        end.send(Answer(ask.number, self.number, what, data))
        self.send_all(messages)

    def fetch(self, end, ask):
        answer = self.replica.fetched_by(ask.what, self.now_ms)
        nothing = answer.parts is None and ask.what.end == self.log.end_offset
        if answer.leads and nothing and ask.what.replica not in self.parked:
            seen = self.replica.epoch, self.log.end_offset, self.replica.high_watermark
            self.parked[ask.what.replica] = end, ask, seen
            self.after(LONG_POLL_MS, self.wake, ask.what.replica, ask.number)
            return
        data = b""
        if answer.leads and answer.parts is None:
            found = self.log.read(ask.what.end, self.log.end_offset)
            data = b"".join(bytes(batch) for (_, batch), _ in zip(found, range(5), strict=False))
        self.reply(end, ask, answer, data)

    def wake(self, who, number=0):
        """A fetch that waits: whether something has come, or it is time."""
        if who not in self.parked:
            return
        end, ask, seen = self.parked[who]
        now = self.replica.epoch, self.log.end_offset, self.replica.high_watermark
        if number in (0, ask.number) and (number or now != seen):
            self.fetch(end, ask)
            del self.parked[who]

    def answered(self, message):
        asked = self.asks.pop(message.number, None)
        what = message.what
        if isinstance(what, Voted) and isinstance(asked, Vote):
            self.replica.voted_by(message.sender, what, self.now_ms)
        elif isinstance(what, Fetched) and message.number == self.fetching:
            self.fetched(what, message.data)

    def fetched(self, answer, data):
        replica, log = self.replica, self.log
        cut = replica.fetched(answer, self.now_ms)
        if cut < 0:
            self.after(AGAIN_MS, self.fetch_again, self.fetching)
            return
        if cut < log.end_offset:
            self.say(f"truncates to {cut}")
            log.truncate(cut, self.now_ms)
            self.compared = min(self.compared, cut)
        view, at = memoryview(bytearray(data)), 0
        while at < len(view):
            header = read_header(view, at)
            assert header.base_offset == log.end_offset
            batch = view[at : at + header.size]
            self.append(batch)
            at += header.size
        replica.take_over(answer)
        replica.fetch()

    def fetch_again(self, number):
        if number == self.fetching:
            self.replica.fetch()
            self.turn()

    def lost(self, end):
        for target, link in list(self.links.items()):
            if link is end:
                del self.links[target]
                self.replica.lost(target, self.now_ms)
                self.after(AGAIN_MS, self.fetch_again, self.fetching)
                self.turn()

    # Clients --------------------------------------------------------------------------------------

    def put(self, end, message):
        if not self.replica.leads:
            end.send(Done(False, self.replica.leader, -1))
            return
        self.puts.append((self.replica.epoch, self.log.end_offset, end, message))
        self.append(batch_of([NewRecord(0, None, message.value)], self.replica.epoch))

    def answer_puts(self):
        replica, waiting = self.replica, []
        for epoch, offset, end, message in self.puts:
            if not replica.leads or replica.epoch != epoch:
                end.send(Done(False, replica.leader, -1))
            elif offset < replica.high_watermark:
                end.send(Done(True, self.number, offset))
            else:
                waiting.append((epoch, offset, end, message))
        self.puts = waiting
