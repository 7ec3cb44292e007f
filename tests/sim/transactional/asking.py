"""A client whose life is a generator: it yields what it asks, and goes on with the answers."""

from sim.node import Node
from sim.transactional.talk import answer, ask

from appliance.base import errors

TIMEOUT_MS = 60
RETRIED = {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.CONCURRENT_TRANSACTIONS,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNSTABLE_OFFSET_COMMIT,
    errors.KAFKA_STORAGE_ERROR,
}
FENCED = {
    errors.INVALID_PRODUCER_EPOCH,
    errors.INVALID_PRODUCER_ID_MAPPING,  # the epochs of the old one were used up
    errors.PRODUCER_FENCED,
    errors.INVALID_TXN_STATE,
    errors.TRANSACTION_ABORTABLE,
}
"""What may be said to whose transaction has ended without it, or whose id was taken over."""


class Lost(Exception):
    """The connection is gone, or there was no answer in time: what was asked may have happened."""


class Refused(Exception):
    """An answer after which asking again is of no use. code: Kafka's."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Asking(Node):
    """`live` yields a list of (API key, version, fields), all of which are sent at once, and is
    given the answers, or Lost; or it yields how many ms it sleeps.

    forgets: when there is no answer in time, it closes the connection, and what it had asked may
    still arrive, behind what it asks by the next one; else the connection is reset."""

    forgets = True

    def begin(self):
        self.end = None
        self.tokens = 0
        self.asked = {}  # token → Ask, in order
        self.answers = {}  # token → what came
        self.connect()
        self.living = self.live()
        self.go_on(None)

    def live(self):
        raise NotImplementedError

    def connect(self):
        self.end = self.world.network.connect(self, "net")

    def go_on(self, value, lost=False):
        if self.living.gi_frame is None:
            return  # it is over, or was killed
        try:
            wanted = self.living.throw(Lost()) if lost else self.living.send(value)
        except StopIteration:
            return
        if not isinstance(wanted, list):
            self.after(wanted, self.go_on, None)
        elif self.end is None:
            self.after(1, self.go_on, None, True)
        else:
            self.answers.clear()
            for one in wanted:
                self.tokens += 1
                self.asked[self.tokens] = sent = ask(self.tokens, *one)
                self.end.send(sent)
            self.after(TIMEOUT_MS, self.too_late, self.tokens)

    def received(self, end, message):
        if end is not self.end or message.token not in self.asked:
            return
        self.answers[message.token] = answer(self.asked[message.token], message.body)
        if len(self.answers) == len(self.asked):
            found = [self.answers[token] for token in self.asked]
            self.asked.clear()
            self.go_on(found)

    def too_late(self, token):
        if token not in self.asked:
            return
        self.world.reached("an answer is given up")
        end, self.end = self.end, None
        if self.forgets:
            end.close()
        else:
            self.world.network.reset(end)
        self.give_up()

    def lost(self, end):
        if end is self.end:
            self.end = None
            self.give_up()

    def give_up(self):
        self.after(5, self.connect)
        if self.asked:
            self.asked.clear()
            self.go_on(None, True)

    def refused(self, code):
        """Asking again is of no use."""
        assert code in FENCED, f"{self.name} is told {code}"
        return Refused(code)

    def persist(self, key, version, fields, code_of=lambda found: found.error_code):
        """Ask until there is an answer. Raises Refused."""
        while True:
            try:
                (found,) = yield [(key, version, fields)]
            except Lost:
                yield 3
                continue
            code = int(code_of(found))
            if code == errors.NONE:
                return found
            if code not in RETRIED:
                raise self.refused(code)
            yield self.world.rng.uniform(3, 15)
