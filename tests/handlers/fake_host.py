"""A network process made of lists: what handlers asked, and what they answered."""

import dataclasses
from types import SimpleNamespace

from kio.index import load_request_schema

from appliance.handlers.exchange import (
    WAITED,
    Exchange,
    FileRange,
    Handler,
    Host,
    Line,
    Route,
)
from appliance.handlers.sequence_gap_guard import SequenceGapGuard
from appliance.metadata.image import MetadataImage
from appliance.ring import partition_table as columns
from appliance.ring.messages import READ, Message
from appliance.ring.partition_table import SERVED_COLUMNS, TO_FOLLOWERS, PartitionTable
from appliance.wire import messages
from appliance.wire.build import build
from tests.callers import rights

SETTINGS = {
    "node.id": 1,
    "max.request.partition.size.limit": 2000,
    "penstock.topic.auto.create.max.per.minute": 500,
    "add.partitions.to.txn.retry.backoff.ms": 20,
    "add.partitions.to.txn.retry.backoff.max.ms": 100,
}


def codes_in(message):
    """Every error code that an answer has."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name == "error_code":
            yield int(value)
        for one in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(one):
                yield from codes_in(one)


class FakeFile:
    fd = -1


class Rows(PartitionTable):
    """looked_at: handles of the rows that were read."""

    def __init__(self, rows):
        super().__init__(memoryview(bytearray(self.bytes_needed(rows))), rows)
        self.looked_at = []

    def read_row(self, handle):
        self.looked_at.append(handle)
        return super().read_row(handle)

    def publish(self, handle, row):
        """A new version, if these columns are others."""
        if super().read_row(handle)[1:] != row[1:]:
            self.begin_change(handle)
            for column, value in enumerate(row[1:], 1):
                self.set(handle, column, value)
            self.end_change(handle)


class FakeHost(Host):
    """Partitions 0 to 3, or as many as asked for, of topic `flights` exist, all at home in ioproc
    0. counts_all: nobody else counts the errors of answers."""

    counts_all = True

    def __init__(self, partitions=4):
        self.count = partitions
        self.memory = memoryview(b"")
        self.image = MetadataImage()
        self.kraft_version = 0
        self.config = SimpleNamespace(int=SETTINGS.__getitem__, bool=lambda name: True)
        self.fetch_max_bytes = 57671680
        self.remote_wait_ms = 700
        self.cluster_id = "a-cluster"
        self.node_id = 1
        self.rack = None
        self.processes = SimpleNamespace(leader=(1, 5), isolated_ms=0)
        self.left = {}
        self.now_ns = 0
        self.rows = {}  # handle → (high watermark, last stable, log start)
        self.log_ends = {}  # handle → log end, where that is not the high watermark
        self.offline = set()  # handles
        self.leader_epoch = 5  # as the routes have it
        self.aborted_to = 0
        self.heard = []  # of other replicas
        self.waits_for = []  # which high watermark other replicas are to hear of
        self.offered = []  # (index, nodes that are nearer)
        self.asked = []  # (index, op, flags, a, b, e, f)
        self.cancelled = 0
        self.scheduled = []
        self.answer = None
        self.closed = False
        self.files = True
        self.places = {}  # (handle, offset) → (position, length, length of the first batch)
        self.remembered = []
        self.ensured = []
        self.asked_for = []
        self.read = []
        served = bytearray(8 * (partitions * SERVED_COLUMNS - TO_FOLLOWERS))
        self.served = memoryview(served).cast("q")
        self.partitions = Rows(partitions)
        self.watched = []  # (number, home, flags, rows)
        self.routing = 0
        self.failures = []
        self.authorizer = None
        self.verifies = True
        self.overtaking = SequenceGapGuard()
        self.questions = []  # (index, request)
        self.nodes_asked = []  # by question_node
        self.waits = []  # (index, delay in ns)
        self.one_line = Line()

    def ensure_topic(self, x, index, name):
        x.pending[index] = -1
        self.ensured.append((index, name))

    def forward(self, x):
        raise AssertionError("control is not here")

    def coordinate(self, x, index, route, body):
        raise AssertionError("no partition of __consumer_offsets is here")

    def coordinate_within(self, x, index, route, body, code, guard):
        raise AssertionError("no partition of __consumer_offsets is here")

    def question(self, x, index, route, key, version, body):
        x.pending[index] = route.home
        self.questions.append((index, messages.decode_request(key, version, body)))

    def question_node(self, x, index, node, key, version, body):
        x.pending[index] = -2
        self.questions.append((index, messages.decode_request(key, version, body)))
        self.nodes_asked.append(node)

    def later(self, x, index, delay_ns):
        self.hold_pending(x, index)
        self.waits.append((index, delay_ns))

    def hold_pending(self, x, index):
        x.pending[index] = -2

    def line(self, x):
        return self.one_line

    def wake(self, x, index):
        """What it waits for is over."""
        x.pending.pop(index)
        x.handler.complete(self, x, index, WAITED, b"")

    def software(self, x, name, version):
        self.told_software = name, version

    def client(self, x):
        raise AssertionError("nobody is subscribed to here")

    def reached(self, x):
        return "localhost", 9092

    def hang_up(self, x, why):
        self.closed = True

    def asks_for(self, x, name):
        self.asked_for.append(name)

    def reads(self, x, partitions):
        self.read.append([(one[0], one[1]) for one in partitions])

    def route(self, topic, partition, by_id):
        if topic == b"__transaction_state":
            return Route(90, 1, topic.decode(), b"s" * 16, partition, 0)
        if topic not in (b"flights", b"f" * 16) or not 0 <= partition < self.count:
            return None
        return Route(partition, 0, "flights", b"f" * 16, partition, 5)

    def replica(self, topic, partition, by_id):
        return self.route(topic, partition, by_id)

    def publish(self):
        """The rows as the test has them now: those that changed in a new version."""
        for handle in range(self.count):
            row = [0] * columns.COLUMNS
            row[columns.STATUS] = columns.OFFLINE if handle in self.offline else columns.ONLINE
            row[columns.ABORTED_TO] = self.aborted_to
            row[columns.LEADER_EPOCH] = self.leader_epoch
            marks = self.rows.get(handle, (0, 0, 0))
            row[columns.HIGH_WATERMARK], row[columns.LAST_STABLE], row[columns.LOG_START] = marks
            row[columns.LOG_END] = self.log_ends.get(handle, marks[0])
            self.partitions.publish(handle, row)

    def fetch_room(self, x):
        return None

    def glance(self, x, route, row, offset, limit, max_bytes):
        place = self.places.get((route.handle, offset))
        return None if place is None else (FakeFile(), *place)

    def remember(self, x, route, place):
        self.remembered.append((route.handle, *place[:3]))

    def ask_home(self, x, index, route, op, flags, a, b, e, f):
        x.pending[index] = route.home
        self.asked.append((index, op, flags, a, b, e, f))

    def ask_as_replica(self, x, index, route, flags, partition, replica, limits):
        x.pending[index] = route.home
        self.asked.append((index, READ, flags, partition.fetch_offset, *limits))
        node, epoch, visible = replica
        told = (node, epoch), partition.last_fetched_epoch, partition.log_start
        self.heard.append((index, *told))
        self.waits_for.append(visible)

    def ask_nearest(self, x, index, route, flags, partition, nodes, limits):
        x.pending[index] = route.home
        epoch = partition.current_leader_epoch
        self.asked.append((index, READ, flags, partition.fetch_offset, epoch, *limits))
        self.offered.append((index, nodes))

    def watch_rows(self, x, index, home, flags, rows):
        x.pending[index] = home
        self.watched.append((index, home, flags, rows))

    def cancel(self, x):
        self.cancelled += bool(x.pending)
        x.pending.clear()

    def schedule(self, x):
        self.scheduled.append(x.deadline_ns)

    def segment(self, route, base_offset, layout):
        return FakeFile() if self.files else None

    def finish(self, x, pieces):
        x.answer = pieces
        out = b""
        for piece in pieces:
            assert piece != b"", "an empty piece can never be sent"
            out += b"r" * piece.length if isinstance(piece, FileRange) else piece
        self.answer = messages.decode_response(x.handler.key, x.version, out)
        if self.counts_all:
            assert sorted(self.failures) == sorted(filter(None, codes_in(self.answer)))
        self.failures.clear()

    def failed(self, x, code, times=1):
        self.failures += [code] * times

    def finish_silently(self, x, close):
        x.answer = []
        self.closed = close

    def start(self, handler: Handler, version: int, values: dict) -> Exchange:
        """Begin a request given as plain values."""
        schema = load_request_schema(handler.key, version)
        return self.start_encoded(handler, version, messages.encode_request(build(schema, values)))

    def start_encoded(self, handler: Handler, version: int, body: bytes) -> Exchange:
        """Begin a request given as its bytes."""
        self.memory = memoryview(body)
        x = Exchange(1, handler, version, 7, rights("test", self.authorizer), 0, len(body), None)
        self.publish()
        self.partitions.looked_at.clear()
        handler.begin(self, x)
        return x

    def complete(self, x, index, more=False, **fields):
        """One completion, error code given as `error`. more: others of the same index follow."""
        if not more:
            x.pending.pop(index)
        names = dict.fromkeys(Message._fields, 0) | {"payload": b""} | fields
        names["flags"] = names.pop("error", 0) + 1
        x.handler.complete(self, x, index, Message(**names), names["payload"])

    def lose(self, x, index):
        """The process that was asked died."""
        x.pending.pop(index)
        x.handler.complete(self, x, index, None, b"")
