"""A network process made of lists: what handlers asked, and what they answered."""

from types import SimpleNamespace

from kio.index import load_request_schema

from appliance.handlers.exchange import Exchange, FileRange, Handler, Route
from appliance.metadata.image import MetadataImage
from appliance.ring.messages import Message
from appliance.wire import messages
from appliance.wire.build import build

SETTINGS = {"fetch.max.bytes": 57671680, "node.id": 1, "max.request.partition.size.limit": 2000}


class FakeFile:
    fd = -1


class FakeHost:
    """Partitions 0 to 3 of topic `flights` exist, all at home in ioproc 0."""

    def __init__(self):
        self.memory = memoryview(b"")
        self.image = MetadataImage()
        self.config = SimpleNamespace(int=SETTINGS.__getitem__, bool=lambda name: True)
        self.cluster_id = "a-cluster"
        self.now_ns = 0
        self.rows = {}  # handle → (high watermark, last stable, log start)
        self.offline = set()  # handles
        self.asked = []  # (index, op, flags, a, b, e, f)
        self.cancelled = 0
        self.scheduled = []
        self.answer = None
        self.closed = False
        self.files = True
        self.places = {}  # (handle, offset) → what a glance finds
        self.remembered = []
        self.ensured = []
        self.asked_for = []
        self.read = []

    def ensure_topic(self, x, index, name):
        x.pending[index] = -1
        self.ensured.append((index, name))

    def asks_for(self, x, name):
        self.asked_for.append(name)

    def reads(self, x, partitions):
        self.read.append([(one.topic, one.partition) for one in partitions])

    def route(self, topic, partition, by_id):
        if topic not in (b"flights", b"f" * 16) or not 0 <= partition < 4:
            return None
        return Route(partition, 0, "flights", b"f" * 16, partition, 5)

    def row(self, handle):
        return (*self.rows.get(handle, (0, 0, 0)), handle in self.offline)

    def fetch_room(self, x):
        return None

    def glance(self, x, route, offset, max_bytes):
        return self.places.get((route.handle, offset))

    def remember(self, x, route, segment, position, layout):
        self.remembered.append((route.handle, segment, position))

    def ask(self, x, index, route, op, flags, a, b, e, f):
        x.pending[index] = route.home
        self.asked.append((index, op, flags, a, b, e, f))

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

    def finish_silently(self, x, close):
        x.answer = []
        self.closed = close

    def start(self, handler: Handler, version: int, values: dict) -> Exchange:
        """Begin a request given as plain values."""
        body = messages.encode_request(build(load_request_schema(handler.key, version), values))
        self.memory = memoryview(body)
        x = Exchange(1, handler, version, 7, b"test", 0, len(body), None)
        handler.begin(self, x)
        return x

    def complete(self, x, index, **fields):
        """One completion, error code given as `error`."""
        x.pending.pop(index)
        names = dict.fromkeys(Message._fields, 0) | {"payload": b""} | fields
        names["flags"] = names.pop("error", 0) + 1
        x.handler.complete(self, x, index, Message(**names), b"")

    def lose(self, x, index):
        """The process that was asked died."""
        x.pending.pop(index)
        x.handler.complete(self, x, index, None, b"")
