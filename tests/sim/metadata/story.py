"""The control process of one machine under clients that create, configure and delete topics, while
it dies, loses power or loses its leadership.

What was answered is true for ever after; what was not may be true or not; and it is all there is.
"""

from kio.index import load_request_schema
from sim.faults import Faults
from sim.metadata.node import Ask, Metadata
from sim.node import Node
from sim.world import World

from appliance.base.errors import NONE, TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION
from appliance.wire.build import build
from appliance.wire.messages import decode_response, encode_request

RARE = {
    "a life ends in the middle of a change": 20,
    "a torn tail is cut off": 50,
    "a sync fails": 40,
    "the leadership is lost": 10,
    "a log is cut": 40,
    "a wish is sent again": 10,
    "a wish is refused": 20,
}
"""What is to come about in so many seeds."""
STORM_MS = 2000
CALM_MS = 700
TIMEOUT_MS = 60
CREATE, DELETE, PRODUCER_ID, ALTER = 19, 20, 22, 44
VERSIONS = {CREATE: 7, DELETE: 5, PRODUCER_ID: 4, ALTER: 1}
RETENTION = "retention.ms"


def encoded(key, **fields):
    return encode_request(build(load_request_schema(key, VERSIONS[key]), fields))


def request(key, name, value):
    if key == CREATE:
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [],
                 "configs": []}  # fmt: skip
        return encoded(CREATE, topics=[topic], timeout=1000, validate_only=False)
    if key == DELETE:
        return encoded(DELETE, topic_names=[name], timeout=1000)
    if key == ALTER:
        entry = {"name": RETENTION, "config_operation": 0, "value": str(value)}
        resource = {"resource_type": 2, "resource_name": name, "configs": [entry]}
        return encoded(ALTER, resources=[resource], validate_only=False)
    fields = {"transactional_id": None, "transaction_timeout": 1}
    return encoded(PRODUCER_ID, **fields, producer_id=-1, producer_epoch=-1)


class Told:
    """topics: those that an answer said are there, name → retention.ms, -1 before it was set.
    pending: client → what it asked for and has no answer to: (name, values it may have then, None
    for a topic that is not there). producer_ids: those that were given."""

    def __init__(self):
        self.topics = {}
        self.pending = {}
        self.producer_ids = set()

    def still_true(self, image, _=None):
        maybe = dict(self.pending.values())
        for name in image.topics_by_name:
            assert name in self.topics or name in maybe, f"nobody asked for {name}"
        for name in self.topics.keys() | maybe.keys():
            found = None
            if name in image.topics_by_name:
                found = int(image.config(2, name).get(RETENTION, -1))
            may_be = maybe.get(name) or (self.topics[name],)
            assert found in may_be, f"{name} is {found}, not one of {may_be}"


class Admin(Node):
    """Changes topics that are its own, one after the other, and asks again until it is told."""

    def __init__(self, world, name, told):
        super().__init__(world, name)
        self.told = told
        self.end = self.asked = None
        self.going_on = True
        self.token = self.made = 0

    def begin(self):
        self.next()

    def next(self):
        self.told.pending.pop(self.name, None)
        self.asked = None
        if self.going_on:
            self.after(self.world.rng.expovariate(1 / 8), self.ask)

    def ask(self):
        rng, topics = self.world.rng, self.told.topics
        mine = [name for name in topics if name.startswith(f"{self.name}-")]
        key = rng.choice((CREATE, ALTER, ALTER, DELETE, PRODUCER_ID)) if mine else CREATE
        if len(mine) > 5:
            key = DELETE
        name, value = (rng.choice(mine) if mine else ""), rng.randint(1, 9999)
        if key == CREATE:
            self.made += 1
            name, value = f"{self.name}-{self.made}", -1
        before, after = topics.get(name), None if key == DELETE else value
        if key != PRODUCER_ID:
            self.told.pending[self.name] = name, (before, after)
        self.asked = key, name, after
        self.body = request(key, name, value)
        self.send()

    def send(self):
        if self.end is None:
            self.end = self.world.network.connect(self, "control")
        self.token += 1
        key = self.asked[0]
        self.end.send(Ask(self.token, key, VERSIONS[key], self.body))
        self.after(TIMEOUT_MS, self.too_late, self.token)

    def too_late(self, token):
        """A server that is no more says nothing. One that lives may still hear what was sent: who
        gives up on that one may see an old wish come true after a new one."""
        if token == self.token and self.asked:
            if self.end.unheard:
                self.end.close()
                self.end = None
                self.send()
            else:
                self.after(TIMEOUT_MS, self.too_late, token)

    def lost(self, end):
        if end is self.end:
            self.end = None
            self.token += 1
            if self.asked:
                self.after(5, self.send_again, self.token)

    def send_again(self, token):
        if token == self.token and self.asked:
            self.world.reached("a wish is sent again")
            self.send()

    def received(self, end, answer):
        if end is not self.end or answer.token != self.token:
            return
        assert answer.code == NONE, answer
        key, name, after = self.asked
        body = decode_response(key, VERSIONS[key], answer.body)
        row = {CREATE: "topics", DELETE: "responses", ALTER: "responses"}.get(key)
        code = getattr(body, row)[0].error_code if row else body.error_code
        done = {CREATE: TOPIC_ALREADY_EXISTS, DELETE: UNKNOWN_TOPIC_OR_PARTITION}.get(key, NONE)
        if code not in (NONE, done):
            self.world.reached("a wish is refused")
            self.say(f"is refused: {code}")
            self.token += 1
            self.after(10, self.send_again, self.token)
            return
        if key == PRODUCER_ID:
            assert body.producer_id not in self.told.producer_ids, "an id was given twice"
            self.told.producer_ids.add(body.producer_id)
        elif after is None:
            del self.told.topics[name]
        else:
            self.told.topics[name] = after
        self.next()


class Administered:
    """The story. failing: the chance that a sync fails, which ends a life."""

    def __init__(self, world, *, failing=0.0, node=Metadata):
        self.world = world
        self.failing = failing
        self.told = Told()
        self.node = node(world, "control", self.told)
        self.admins = [Admin(world, f"admin{number}", self.told) for number in range(3)]
        for one in (self.node, *self.admins):
            world.after(world.rng.random(), one.start, node=one)
        faults = self.faults = Faults(world, [self.node])
        faults.kinds += [self.lose_leadership, self.lose_leadership, self.lose_leadership]

    def lose_leadership(self):
        if self.node.up:
            cut = self.world.rng.random() < 0.5
            self.node.after(0, self.node.lose_leadership, cut)

    def play(self):
        try:
            self.node.disk.failing = self.failing
            self.world.run(STORM_MS)
            self.faults.stop()
            self.node.disk.failing = 0.0
            for admin in self.admins:
                admin.going_on = False
            self.world.run(CALM_MS)
            self.world.check(self.all_is_well)
        finally:
            self.node.close()
        return self.world

    def all_is_well(self):
        assert self.node.up and self.node.control._quorum.active
        assert not self.told.pending, self.told.pending
        self.told.still_true(self.node.image())
        self.node.compare()


def play(seed, **planted):
    """The story of this seed; the world as it was left. Raises Broken."""
    options = {"failing": 0.03 if seed % 3 == 2 else 0.0}
    return Administered(World(seed), **options | planted).play()
