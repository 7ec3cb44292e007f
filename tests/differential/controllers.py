"""Two controllers that are asked the same, as brokers and clients ask: Apache Kafka, a node that is
a controller alone, and our decisions. What each answers and what it writes become words that can be
compared. Brokers are words too: they register and are heard of, and there are none.
"""

import contextlib
import time
from dataclasses import fields, is_dataclass
from pathlib import Path
from uuid import UUID

from kio.schema.errors import ErrorCode

from appliance.base.errors import PeerError
from appliance.controller import broker_states, configs
from appliance.controller.alter_partition import NewIsr, alter_partitions
from appliance.controller.config_resources import ConfigResource
from appliance.controller.configs import DELETE, SET, ConfigOperation
from appliance.controller.directories import Assigned, assign_replicas
from appliance.controller.elections import elect_leaders
from appliance.controller.partitions import MorePartitions, create_partitions
from appliance.controller.producer_ids import allocate_block_for
from appliance.controller.reassignments import alter_reassignments
from appliance.controller.topics import NewTopic, TopicToDelete, create_topics, delete_topics
from appliance.metadata.image import MetadataImage
from appliance.metadata.parts import Feature
from appliance.wire import kraft_records as kraft
from appliance.wire.batch_header import read_header
from appliance.wire.records import iter_records
from benchmarks.kafka import CLUSTER_ID, Kafka
from tests.controller.brokers import FEATURES as OUR_FEATURES
from tests.controller.brokers import Brokers, doors, folder
from tests.differential.link import LIMIT_S, Link

BROKER, TOPIC = 4, 2
FEATURES = (
    *OUR_FEATURES,  # Kafka's controller wants more of a broker than ours
    Feature(name="share.version", min_supported_version=0, max_supported_version=1),
    Feature(name="streams.version", min_supported_version=0, max_supported_version=1),
)
ITS_OWN = kraft.NoOpRecord | kraft.RegisterControllerRecord
"""What Kafka writes for itself alone."""
SESSION_MS = 600_000  # nobody is late, however slow the machine is


def incarnation(broker, number):
    """The id of the broker's start with this number."""
    return bytes([9, broker]) + number.to_bytes(14, "big")


class Words:
    """What is written, without ids and offsets that each controller has for itself."""

    def __init__(self):
        self.image = MetadataImage()
        self._topics = {}
        self._epochs = {}

    def note(self, records):
        """The words for records as they were written, when they are replayed."""
        words = []
        for record in records:
            if isinstance(record, kraft.TopicRecord):
                self._topics[record.topic_id] = record.name
            if isinstance(record, kraft.RegisterBrokerRecord):
                self._epochs.setdefault(record.broker_epoch, len(self._epochs))
            words.append((type(record).__name__, self._word(record)))
        self._sort(words)
        return words

    def epoch(self, broker):
        """The broker's epoch as it is here, 77 when there is none."""
        found = self.image.brokers.get(broker)
        return found.epoch if found else 77

    def members(self, isr):
        """(broker, epoch), -1 for None, else its epoch and the number."""
        return [(one, -1 if more is None else self.epoch(one) + more) for one, more in isr]

    def epoch_word(self, epoch):
        return self._epochs.get(epoch, "no epoch")

    def topic_id(self, name):
        topic = self.image.topics_by_name.get(name)
        return topic.topic_id if topic else b"?" * 16

    def _word(self, value):
        if is_dataclass(value):
            return {
                one.name: self._field(one.name, getattr(value, one.name)) for one in fields(value)
            }
        if isinstance(value, tuple):
            return [self._word(one) for one in value]
        return value

    def _field(self, name, value):
        if name == "topic_id":
            return self._topics[value]
        if name in ("broker_epoch", "epoch"):
            return self._epochs.get(value, value)
        return self._word(value)

    def _sort(self, words):
        """Partitions come in no order that means something."""
        start = 0
        while start < len(words):
            end = start
            while end < len(words) and words[end][0] == "PartitionChangeRecord":
                end += 1
            words[start:end] = sorted(
                words[start:end], key=lambda one: (one[1]["topic_id"], one[1]["partition_id"])
            )
            start = max(end, start + 1)


class Ours(Words):
    """Our decisions, over an image that is replayed."""

    def __init__(self):
        super().__init__()
        self.brokers = Brokers(0, session_ms=SESSION_MS)
        self.image = self.brokers.image
        self.situation = self.brokers.situation
        self.heartbeats = self.brokers.heartbeats

    def _tell(self, records, answer):
        self.brokers.replay(records)
        return answer, self.note(self.brokers.written)

    def _try(self, decide):
        try:
            records, answer = decide()
        except PeerError as error:
            return (word(error.code),), []
        return self._tell(records, answer)

    def register(self, broker, number, previous=None, **changed):
        changed = {"features": FEATURES, "endpoints": (doors(9000 + number),), **changed}
        try:
            epoch = self.brokers.register(broker, incarnation(broker, number), previous, **changed)
        except PeerError as error:
            return (word(error.code), "no epoch"), []
        words = self.note(self.brokers.written)
        return (word(0), self.epoch_word(epoch)), words

    def beat(self, broker, behind=0, epoch=0, **wants):
        at = self.image.applied_offset - behind
        if behind < 0:
            at = -1
        asked = broker_states.Heartbeat(
            broker_id=broker, epoch=self.epoch(broker) + epoch, offset=at, **wants
        )

        def decide():
            records, answer = broker_states.heartbeat(
                self.situation, self.heartbeats, asked, self.brokers.now
            )
            told = (answer.is_caught_up, answer.is_fenced, answer.should_shut_down)
            return records, (word(0), *told)

        found = self._try(decide)
        return found if len(found[0]) > 1 else ((*found[0], False, True, False), found[1])

    def unregister(self, broker):
        return self._try(
            lambda: (
                broker_states.unregister(self.situation, self.heartbeats, broker),
                (word(0),),
            )
        )

    def create(self, name, assignments=(), partitions=-1, factor=-1, **settings):
        topic = NewTopic(name, partitions, factor, list(enumerate(assignments)), dotted(settings))
        records, [(_, result, _)] = create_topics(self.situation, [topic])
        return self._tell(records, (word(result.code), result.message))

    def grow(self, name, count, assignments=None):
        item = MorePartitions(name, count, assignments)
        records, [(_, result)] = create_partitions(self.situation, [item])
        return self._tell(records, (word(result.code), result.message))

    def delete(self, name):
        records, [(_, result, _)] = delete_topics(self.situation, [TopicToDelete(name)])
        return self._tell(records, (word(result.code),))

    def alter(self, broker, name, index, isr, leader_epoch, partition_epoch, recovery=0):
        asked = NewIsr(
            self.topic_id(name), index, leader_epoch, partition_epoch, self.members(isr), recovery
        )

        def decide():
            records, [one] = alter_partitions(self.situation, broker, self.epoch(broker), [asked])
            told = (one.leader, one.leader_epoch, one.partition_epoch, list(one.isr))
            return records, (word(one.code), *told, one.recovery_state)

        return self._try(decide)

    def reassign(self, name, index, replicas, allow=True):
        records, [(_, [(_, result)])] = alter_reassignments(
            self.situation, [(name, [(index, replicas)])], may_change_factor=allow
        )
        return self._tell(records, (word(result.code),))

    def elect(self, kind, name, indexes):
        records, _, [(_, rows)] = elect_leaders(self.situation, kind, [(name, indexes)])
        return self._tell(records, tuple(word(result.code) for _, result in rows))

    def configure(self, kind, name, key, value):
        operation = ConfigOperation(key, DELETE if value is None else SET, value)
        records, [(_, result)] = configs.alter_incrementally(
            self.situation, [(ConfigResource(kind, name), [operation])]
        )
        return self._tell(records, (word(result.code),))

    def assign(self, broker, directory, name, index):
        asked = Assigned(directory, self.topic_id(name), index)

        def decide():
            records, codes = assign_replicas(self.situation, broker, self.epoch(broker), [asked])
            return records, (word(0), *map(word, codes))

        return self._try(decide)

    def ids(self, broker):
        return self._try(
            lambda: (lambda found: (found[0], (word(0), found[1])))(
                allocate_block_for(self.situation, broker, self.epoch(broker))
            )
        )


class Theirs(Words):
    """Apache Kafka's active controller, over a socket, and the log that it writes."""

    def __init__(self, port, log):
        super().__init__()
        self._link = Link(("127.0.0.1", port))
        self._log = log
        self._read = 0
        end = time.monotonic() + LIMIT_S
        while not self.image.controllers:  # it has registered itself: it leads
            assert time.monotonic() < end, "Kafka's controller does not lead"
            time.sleep(0.01)
            self._new()

    def close(self):
        self._link.close()

    def _ask(self, key, version, **values):
        answer = self._link.ask(key, version, values)
        return answer, self._new()

    def _new(self):
        """The words for what was written since; what was answered is in the file."""
        data = self._log.read_bytes()
        words = []
        while self._read < len(data):
            header = read_header(data, self._read)
            batch = data[self._read : self._read + header.size]
            self._read += header.size
            found = [] if header.is_control else list(iter_records(batch))
            records = [kraft.decode(one.value) for one in found]
            for offset, record in enumerate(records, header.base_offset):
                self.image.apply(offset, record)
            self.image.applied_offset = header.last_offset
            words += [one for one in records if not isinstance(one, ITS_OWN)]
        return self.note(words)

    def register(self, broker, number, previous=None, **changed):
        answer, words = self._ask(62, 2 if previous is None else 4, **{
            "broker_id": broker,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": uuid(incarnation(broker, number)),
            "listeners": [
                {"name": "PLAINTEXT", "host": "h", "port": 9000 + number, "security_protocol": 0}
            ],
            "features": [
                {"name": one.name, "min_supported_version": one.min_supported_version,
                 "max_supported_version": one.max_supported_version}
                for one in changed.get("features", FEATURES)
            ],
            "log_dirs": [uuid(one) for one in changed.get("log_dirs", [folder(broker)])],
            "previous_broker_epoch": previous or 0,
            **{key: value for key, value in changed.items() if key == "cluster_id"},
        })  # fmt: skip
        return (answer["error_code"], self.epoch_word(answer["broker_epoch"])), words

    def beat(self, broker, behind=0, epoch=0, **wants):
        at = self.image.applied_offset - behind
        if behind < 0:
            at = -1
        offline = [uuid(one) for one in wants.pop("offline", ())]
        answer, words = self._ask(
            63, 1, broker_id=broker, broker_epoch=self.epoch(broker) + epoch,
            current_metadata_offset=at, offline_log_dirs=offline, **wants,
        )  # fmt: skip
        told = (answer["is_caught_up"], answer["is_fenced"], answer["should_shut_down"])
        return (answer["error_code"], *told), words

    def unregister(self, broker):
        answer, words = self._ask(64, 0, broker_id=broker)
        return (answer["error_code"],), words

    def create(self, name, assignments=(), partitions=-1, factor=-1, **settings):
        topic = {
            "name": name, "num_partitions": partitions, "replication_factor": factor,
            "assignments": [
                {"partition_index": index, "broker_ids": replicas}
                for index, replicas in enumerate(assignments)
            ],
            "configs": [{"name": key, "value": value} for key, value in dotted(settings).items()],
        }  # fmt: skip
        answer, words = self._ask(19, 7, topics=[topic], timeout=10_000)
        (one,) = answer["topics"]
        return (one["error_code"], one["error_message"]), words

    def grow(self, name, count, assignments=None):
        placed = assignments and [{"broker_ids": replicas} for replicas in assignments]
        topic = {"name": name, "count": count, "assignments": placed}
        answer, words = self._ask(37, 3, topics=[topic], timeout=10_000)
        (one,) = answer["results"]
        return (one["error_code"], one["error_message"]), words

    def delete(self, name):
        answer, words = self._ask(20, 6, topics=[{"name": name}], timeout=10_000)
        (one,) = answer["responses"]
        return (one["error_code"],), words

    def alter(self, broker, name, index, isr, leader_epoch, partition_epoch, recovery=0):
        partition = {
            "partition_index": index, "leader_epoch": leader_epoch,
            "partition_epoch": partition_epoch, "leader_recovery_state": recovery,
            "new_isr_with_epochs": [
                {"broker_id": one, "broker_epoch": epoch} for one, epoch in self.members(isr)
            ],
        }  # fmt: skip
        topic = {"topic_id": uuid(self.topic_id(name)), "partitions": [partition]}
        answer, words = self._ask(
            56, 3, broker_id=broker, broker_epoch=self.epoch(broker), topics=[topic]
        )
        if answer["error_code"] != "NONE":
            return (answer["error_code"],), words
        ((one,),) = [found["partitions"] for found in answer["topics"]]
        told = (one["leader_id"], one["leader_epoch"], one["partition_epoch"], one["isr"])
        return (one["error_code"], *told, one["leader_recovery_state"]), words

    def reassign(self, name, index, replicas, allow=True):
        partition = {"partition_index": index, "replicas": replicas}
        answer, words = self._ask(
            45, 1, topics=[{"name": name, "partitions": [partition]}],
            allow_replication_factor_change=allow, timeout=10_000,
        )  # fmt: skip
        ((one,),) = [found["partitions"] for found in answer["responses"]]
        return (one["error_code"],), words

    def elect(self, kind, name, indexes):
        answer, words = self._ask(
            43, 2, election_type=kind, timeout=10_000,
            topic_partitions=[{"topic": name, "partitions": indexes}],
        )  # fmt: skip
        (found,) = answer["replica_election_results"]
        return tuple(one["error_code"] for one in found["partition_result"]), words

    def configure(self, kind, name, key, value):
        operation = {"name": key, "config_operation": int(value is None), "value": value}
        resource = {"resource_type": kind, "resource_name": name, "configs": [operation]}
        answer, words = self._ask(44, 1, resources=[resource])
        (one,) = answer["responses"]
        return (one["error_code"],), words

    def assign(self, broker, directory, name, index):
        topic = {
            "topic_id": uuid(self.topic_id(name)), "partitions": [{"partition_index": index}]
        }  # fmt: skip
        answer, words = self._ask(
            73, 0, broker_id=broker, broker_epoch=self.epoch(broker),
            directories=[{"id_": uuid(directory), "topics": [topic]}],
        )  # fmt: skip
        if answer["error_code"] != "NONE":
            return (answer["error_code"],), words
        ((((one,),),),) = [
            [[found["partitions"] for found in place["topics"]] for place in answer["directories"]]
        ]
        return ("NONE", one["error_code"]), words

    def ids(self, broker):
        answer, words = self._ask(67, 0, broker_id=broker, broker_epoch=self.epoch(broker))
        if answer["error_code"] != "NONE":
            return (answer["error_code"],), words
        return ("NONE", answer["producer_id_start"]), words


def word(code):
    return ErrorCode(code).name.upper()


def uuid(value):
    return UUID(bytes=value)


def dotted(settings):
    return {key.replace("_", "."): value for key, value in settings.items()}


@contextlib.contextmanager
def controllers(directory: Path):
    """(Kafka's, ours), of which neither knows a broker."""
    node = Kafka(directory, heap="256m")
    node.controller_port = node.port
    listener = f"CONTROLLER://127.0.0.1:{node.port}"
    node.settings |= {
        "process.roles": "controller",
        "node.id": "100",
        "listeners": listener,
        "advertised.listeners": listener,
        "broker.session.timeout.ms": str(SESSION_MS),
        "metadata.max.idle.interval.ms": "0",
        "leader.imbalance.check.interval.seconds": "100000",
        "unclean.leader.election.interval.ms": "100000000",
    }
    with node:
        log = directory / "logs" / "__cluster_metadata-0" / f"{0:020}.log"
        theirs = Theirs(node.port, log)
        try:
            yield theirs, Ours()
        finally:
            theirs.close()
