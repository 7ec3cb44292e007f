"""A controller and brokers that are words: requests in, records replayed, a clock that is told."""

from itertools import count

from appliance.config.broker import BrokerConfig
from appliance.controller import broker_states
from appliance.controller.broker_registration import Registering, register_broker
from appliance.controller.broker_states import Heartbeat
from appliance.controller.decision import Situation
from appliance.controller.features import LATEST_METADATA_VERSION, SUPPORTED
from appliance.controller.heartbeats import Heartbeats
from appliance.controller.registration import bootstrap_records, records_of_several
from appliance.controller.topics import NewTopic, create_topics
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import Endpoint, Feature
from appliance.metadata.record_versions import encode
from appliance.wire import kraft_records as kraft

CLUSTER = "cluster"
SESSION_MS = 9000
CONTROLLER = 100
FEATURES = tuple(
    Feature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED.items()
)


def folder(broker):
    """The only folder of a broker."""
    return broker.to_bytes(16, "big")[::-1]


def doors(port):
    """Where a broker listens."""
    return Endpoint(name="PLAINTEXT", host="h", port=port, security_protocol=0)


class Brokers:
    """Brokers 1 … n, registered and in use. elr: whether eligible leader replicas are kept."""

    def __init__(self, brokers=3, elr=True, racks=(), session_ms=SESSION_MS, **settings):
        self.image = MetadataImage()
        self.numbers = count(1)
        named = {key.replace("_", "."): value for key, value in settings.items()}
        config = BrokerConfig.of({"node.id": str(CONTROLLER), **named})
        self.situation = Situation(self.image, config, CONTROLLER, b"d" * 16, self.new_id, 10**6)
        self.replay(bootstrap_records())
        if elr:
            self.replay(records_of_several(config))
        self.now = 1000
        self.heartbeats = Heartbeats(self.image, -1, session_ms, self.now)
        self.epochs = {}
        self.incarnations = {}
        self.racks = dict(enumerate(racks, 1))
        self.written = []
        for broker in range(1, brokers + 1):
            self.start(broker)

    def new_id(self):
        return next(self.numbers).to_bytes(16, "big")

    def replay(self, records):
        self.written = []
        for record in records:
            value = encode(record, self.image.metadata_version or LATEST_METADATA_VERSION)
            self.written.append(kraft.decode(value))
            self.image.apply(self.image.applied_offset + 1, self.written[-1])

    def register(self, broker, incarnation=None, previous=None, **changed):
        """Ask for a registration; its epoch. previous: of the orderly end before."""
        asked = Registering(**{
            "broker_id": broker,
            "cluster_id": CLUSTER,
            "incarnation_id": incarnation or self.new_id(),
            "endpoints": (doors(9000 + broker),),
            "features": FEATURES,
            "rack": self.racks.get(broker),
            "log_dirs": (folder(broker),),
            "previous_epoch": previous,
            **changed,
        })  # fmt: skip
        records, epoch = register_broker(self.situation, self.heartbeats, asked, CLUSTER, self.now)
        self.replay(records)
        self.epochs[broker], self.incarnations[broker] = epoch, asked.incarnation_id
        return epoch

    def beat(self, broker, offset=None, **wants):
        """A heartbeat of a broker that has read everything: (caught up, fenced, to end)."""
        at = self.image.applied_offset if offset is None else offset
        asked = Heartbeat(broker_id=broker, epoch=self.epochs[broker], offset=at, **wants)
        records, answer = broker_states.heartbeat(self.situation, self.heartbeats, asked, self.now)
        self.replay(records)
        return answer.is_caught_up, answer.is_fenced, answer.should_shut_down

    def start(self, broker):
        """Register and unfence."""
        self.register(broker)
        return self.beat(broker)

    def tick(self, ms=0):
        """Time goes by: who is fenced for it."""
        self.now += ms
        fenced = []
        while records := broker_states.stale(self.situation, self.heartbeats, self.now):
            self.replay(records)
            fenced.append(records[-1].broker_id)
        return fenced

    def kill(self, *brokers):
        """Time goes by in which all but these are heard of."""
        for _ in range(3):
            self.now += SESSION_MS // 2
            for broker in self.epochs:
                if broker not in brokers and broker in self.image.brokers:
                    self.beat(broker)
        return self.tick()

    def create(self, name, *assignment, **configs):
        """A topic with these replicas of its partitions."""
        configs = {key.replace("_", "."): value for key, value in configs.items()}
        topic = NewTopic(name, assignments=list(enumerate(assignment)), configs=configs)
        records, [(_, result, _)] = create_topics(self.situation, [topic])
        assert result.code == 0, result
        self.replay(records)

    def partition(self, name="t", index=0):
        return self.image.partition(name, index)

    def shape(self, name="t", index=0):
        """(leader, ISR, ELR) of a partition."""
        found = self.partition(name, index)
        return found.leader, list(found.isr), list(found.eligible_leader_replicas)
