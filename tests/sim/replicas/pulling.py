"""One leader and what a broker fetches from it: today's `Fetcher`, driven as
`ioproc/replica_fetcher` does it, over a connection of the simulated world."""

from sim.replicas.talk import Earliest, Fetch

from appliance.replication.follower import BEGIN, NEVER, PART, TAKE, Fetcher, FetchResult, parts_at

TIMEOUT_MS = 40
PATIENCE_MS = 8
HURRY_MS = 6
LONGEST_PAUSE_MS = 30


class Pulling:
    """broker: whose it is. leader: the number of the other one."""

    def __init__(self, broker, leader):
        self.broker = broker
        self.leader = leader
        self.fetcher = Fetcher(LONGEST_PAUSE_MS)
        self.link = None
        self.unsettled = {}
        self.begins = {}
        self.since_ms = 0
        self.asked_ms = 0
        self.number = 0
        self.armed = NEVER

    def settle(self, key):
        """It is to be fetched from where its log ends, when all of that is held."""
        self.fetcher.hold_partition(key)
        if not self.unsettled:
            self.since_ms = self.broker.now_ms
        self.unsettled[key] = None
        self.turn()

    def drop(self, key):
        """It follows this leader no more."""
        self.fetcher.drop(key)
        self.unsettled.pop(key, None)
        self.begins.pop(key, None)

    def turn(self):
        """What can be done now."""
        broker, now_ms = self.broker, self.broker.now_ms
        for key in list(self.unsettled):
            replica = broker.replicas[key]
            if replica.is_level():
                del self.unsettled[key]
                self.fetcher.at(key, replica.position())
            else:
                replica.sync_soon()
        if not self.fetcher.asked and (not self.unsettled or now_ms >= self.since_ms + PATIENCE_MS):
            self.ask(now_ms)
        self.hurry(now_ms)
        due = self.fetcher.due_ms()
        if self.unsettled:
            due = min(due, now_ms + PATIENCE_MS)
        if now_ms < due < self.armed:
            self.armed = due
            broker.after(due - now_ms, self.wake, due)

    def wake(self, due):
        if due == self.armed:
            self.armed = NEVER
            self.turn()

    def hurry(self, now_ms):
        """Who came since the question is not to wait for what it waits for."""
        if self.fetcher.newcomers and now_ms >= self.asked_ms + HURRY_MS:
            self.link.close()
            self.gone()
        elif self.fetcher.newcomers:
            self.broker.after(HURRY_MS, self.turn)

    def ask(self, now_ms):
        question = self.fetcher.next_fetch(now_ms)
        if question is None:
            return
        self.connect()
        self.number += 1
        self.asked_ms = now_ms
        session = question.session_id, question.session_epoch
        changes = tuple(question.partitions), tuple(question.forgotten)
        broker = self.broker
        self.link.send(
            Fetch(broker.number, broker.known_epoch, *session, *changes, question.wait_ms)
        )
        broker.after(TIMEOUT_MS, self.too_late, self.number)

    def connect(self):
        if self.link is None:
            self.link = self.broker.world.network.connect(self.broker, f"n{self.leader}")

    def too_late(self, number):
        if self.fetcher.asked and self.number == number:
            self.broker.world.reached("a fetch is given up")
            self.link.close()
            self.gone()

    def begin_anew(self):
        """In a session of its own."""
        if self.link is not None:
            self.link.close()
            self.gone()

    def gone(self):
        """The connection is."""
        self.link = None
        begins, self.begins = self.begins, {}
        self.fetcher.lost(self.broker.now_ms)
        for key in begins:
            self.settle(key)
        self.turn()

    def fetched(self, message):
        fetcher, now_ms = self.fetcher, self.broker.now_ms
        if not fetcher.asked:
            return
        fetcher.answered(message.error, message.session_id, now_ms)
        for part in message.parts:
            what = fetcher.outcome(FetchResult(part.key, part.error, part.diverging), now_ms)
            if what:
                self.follow_up(what, part)
        fetcher.taken()
        self.turn()

    def follow_up(self, what, part):
        """What the answer means for one partition."""
        replica = self.broker.replicas[part.key]
        if what == TAKE and replica.is_unconfirmed(part.log_start):
            self.fetcher.hold_partition(part.key)
            what = BEGIN
        if what == TAKE:
            replica.take(part)
            if part.entries:
                self.settle_later(part.key)
            else:
                self.fetcher.at(part.key, replica.position())
        elif what == PART:
            mine = replica.log.epoch_end(part.diverging[0])
            replica.part(parts_at(part.diverging, mine, replica.log.end))
            self.settle_later(part.key)
        elif what == BEGIN:
            self.begins[part.key] = None
            self.link.send(Earliest(part.key, replica.leader_epoch))
            self.broker.after(TIMEOUT_MS, self.give_up, part.key)

    def settle_later(self, key):
        """As `settle`, from within an answer."""
        self.fetcher.hold_partition(key)
        if not self.unsettled:
            self.since_ms = self.broker.now_ms
        self.unsettled[key] = None

    def give_up(self, key):
        if self.begins.pop(key, 0) is None:
            self.settle(key)

    def begins_at(self, message):
        """Where the leader's log of a partition starts."""
        if self.begins.pop(message.key, 0) is None:
            replica = self.broker.replicas[message.key]
            if message.offset >= 0 and replica.leader_epoch == message.leader_epoch:
                replica.begins_at(message.offset)
            self.settle(message.key)
