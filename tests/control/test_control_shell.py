"""Control over real shared memory and files: requests in, answers and published metadata out."""

import os

import pytest
from kio.index import load_request_schema
from sim.threads import Threads

from appliance.base import errors
from appliance.base.clock import OsClock
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.control.folder.startup import start_control
from appliance.control.shell import Control
from appliance.handlers.admin_apis import APIS
from appliance.metadata.follower import Follower
from appliance.ring.messages import ENSURE_TOPIC, FORWARD
from appliance.ring.partition_table import SIZE_BYTES
from appliance.ring.process_table import CONTROL, NETPROC, Peer
from appliance.shell.links import Links
from appliance.supervisor.layout import MIB, Layout
from appliance.wire.messages import decode_response, encode_request
from tests.callers import caller
from tests.seats import Seats, log_file

LAYOUT = Layout(arena_bytes=MIB, partition_rows=256)
CALLER = caller().encode()
CTL, NET = Peer(CONTROL, 0), Peer(NETPROC, 0)


class Appliance:
    """Control and one netproc's ends of the rings, in one process and turn by turn."""

    def __init__(self, path, settings=None, other_dirs=(), disk=None, data_dir="") -> None:
        self.other_dirs = other_dirs
        self.disk = disk or OsDisk()
        self.path = data_dir or str(path)
        self.config = BrokerConfig.of(settings or {})
        self.fd, self.log = log_file(path, "control")
        self.seats = Seats(LAYOUT, self.log, self.config, self.path)
        self.memory, self.table = self.seats.memory, self.seats.table
        self.tokens = 0
        self.now_ns = 0
        self.net = self.seats.links(NET)
        self.start_control()

    def start_control(self) -> None:
        seat = self.seats.seat(CTL, other_dirs=self.other_dirs)
        self.links = Links(seat, self.log)
        started = start_control(seat, self.disk, OsClock(), os.urandom, self.log)
        self.threads = Threads()
        self.control = Control(seat, self.links, self.log, started, self.threads)
        self.control.open_for_business()
        self.settle()

    def settle(self) -> None:
        for links in (self.net, self.links):
            links.changed_peers()
            links.confirm()

    def kill_control(self) -> None:
        """What the supervisor does when control died: discard its rings, start a successor."""
        self.table.vacate(CTL)
        self.table.move_epoch()
        self.settle()
        self.memory.clear_rings_of(CTL)
        self.start_control()

    def turn(self) -> None:
        self.net.flush()
        for peer, messages in self.links.poll():
            self.control.handle(peer, messages)
        self.control.run_once(self.now_ns)

    def forward(self, key: int, version: int, body: bytes) -> int:
        self.tokens += 1
        self.memory.arenas[0][: len(body)] = body
        pushed = self.net.writer(CONTROL, 0).push_with_payload(
            FORWARD, 0, 0, self.tokens, 0, key << 16 | version, e=len(body), payload=CALLER
        )
        assert pushed
        return self.tokens

    def answers(self) -> dict:
        """token → (error code, body), all pieces joined."""
        found: dict[int, list] = {}
        for _ in range(100):
            self.turn()
            messages = [one for _, batch in self.net.poll() for one in batch]
            if not messages and not self.control._paced.busy:
                break
            for message in messages:
                row = found.setdefault(message.token, [message.flags - 1, b""])
                row[1] += message.payload
        return {token: tuple(row) for token, row in found.items()}

    def ask(self, key: int, version: int, **fields):
        """One request, whole: the decoded answer."""
        cls = load_request_schema(key, version)
        token = self.forward(key, version, encode_request(build(cls, fields)))
        code, body = self.answers()[token]
        assert code == errors.NONE
        return decode_response(key, version, body)

    def ensure(self, name: str) -> int:
        self.tokens += 1
        writer = self.net.writer(CONTROL, 0)
        payload = CALLER + name.encode()
        writer.push_with_payload(ENSURE_TOPIC, 0, 0, self.tokens, e=len(CALLER), payload=payload)
        return self.answers()[self.tokens][0]

    def followed(self) -> Follower:
        follower = Follower(self.disk, self.path, self.memory.partitions)
        follower.catch_up(self.table.metadata_offset)
        return follower

    def close(self) -> None:
        self.seats.close()
        os.close(self.fd)


def build(cls, fields):
    """A request from plain values; lists of dicts become the nested messages."""
    from appliance.wire.build import build as build_message

    return build_message(cls, fields)


@pytest.fixture
def appliance(tmp_path):
    appliance = Appliance(tmp_path)
    yield appliance
    appliance.close()


def new(name, partitions=1, factor=1, configs=()):
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [],
        "configs": [{"name": key, "value": value} for key, value in configs],
    }


def create(appliance, *topics, version=7, validate_only=False):
    return appliance.ask(19, version, topics=topics, timeout=1000, validate_only=validate_only)


def test_a_topic_is_published_before_it_is_answered(appliance):
    assert appliance.followed().image.metadata_version == 30
    [topic] = create(appliance, new("a", 2, configs=[("retention.ms", "5")])).topics
    assert topic.error_code == 0 and topic.num_partitions == 2
    assert {c.name: c.value for c in topic.configs}["retention.ms"] == "5"
    follower = appliance.followed()
    image = follower.image.topics_by_name["a"]
    assert image.topic_id == topic.topic_id.bytes
    assert follower.handles == {(image.topic_id, 0): 0, (image.topic_id, 1): 1}
    assert follower.image == appliance.control._quorum.image


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics_in_every_version(appliance, version):
    [topic] = create(appliance, new("a"), version=version).topics
    assert topic.error_code == 0
    [topic] = create(appliance, new("a"), version=version).topics
    assert topic.error_code == errors.TOPIC_ALREADY_EXISTS


def test_validate_only_changes_nothing(appliance):
    before = appliance.table.metadata_offset
    [topic] = create(appliance, new("a"), validate_only=True).topics
    assert topic.error_code == 0 and topic.topic_id is None
    assert appliance.table.metadata_offset == before
    assert appliance.memory.partitions.row_count == 0


def test_rows_of_deleted_partitions_come_back_when_everybody_knows_of_the_deletion(appliance):
    rows = appliance.memory.partitions.rows

    def fill():
        [topic] = create(appliance, {**new("a"), "num_partitions": rows}).topics
        return topic.error_code

    for _ in range(3):
        assert fill() == 0
        before = set(appliance.followed().handles.values())
        assert len(before) == rows
        [result] = appliance.ask(20, 5, topic_names=["a"], timeout=1000).responses
        assert result.error_code == 0
        assert fill() == errors.INVALID_PARTITIONS, "somebody may still speak of the old ones"
        appliance.kill_control()
        assert fill() == errors.INVALID_PARTITIONS, "a successor knows that too"
        appliance.table.set_applied(NET, appliance.table.metadata_offset)
    assert fill() == 0
    assert not before & set(appliance.followed().handles.values())


def test_control_that_dies_before_it_gives_rows_has_a_successor_that_gives_them(
    appliance, monkeypatch
):
    rows = appliance.memory.partitions.rows
    create(appliance, {**new("a"), "num_partitions": rows})
    appliance.ask(20, 5, topic_names=["a"], timeout=1000)
    appliance.table.set_applied(NET, appliance.table.metadata_offset)
    with monkeypatch.context() as patch:
        patch.setattr(type(appliance.control._rows), "apply", killed)
        with pytest.raises(Killed):
            create(appliance, {**new("b"), "num_partitions": rows})
    appliance.kill_control()
    assert len(appliance.followed().handles) == rows, "every row is b's now"


def test_a_successor_waits_for_who_is_late_with_the_deletion(appliance, monkeypatch):
    rows = appliance.memory.partitions.rows
    create(appliance, {**new("a"), "num_partitions": rows})
    appliance.ask(20, 5, topic_names=["a"], timeout=1000)
    published = appliance.table.metadata_offset
    appliance.table.set_applied(NET, published)
    with monkeypatch.context() as patch:
        patch.setattr(type(appliance.control._rows), "apply", killed)
        with pytest.raises(Killed):
            create(appliance, {**new("b"), "num_partitions": rows})
    appliance.table.set_applied(NET, 0)  # it died, too: its successor has replayed nothing yet
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            appliance.table.set_applied(NET, published)

    monkeypatch.setattr("appliance.control.folder.startup.time.sleep", sleep)
    appliance.kill_control()
    assert len(waits) == 3
    assert len(appliance.followed().handles) == rows


def test_rows_promised_to_a_topic_are_there_when_a_process_starts_anew_meanwhile(appliance):
    rows = appliance.memory.partitions.rows
    create(appliance, {**new("a"), "num_partitions": rows})
    appliance.ask(20, 5, topic_names=["a"], timeout=1000)
    appliance.table.set_applied(NET, appliance.table.metadata_offset)
    assert appliance.control._rows.free_rows == rows
    appliance.table.set_applied(NET, 0)  # a successor: it will begin with what is published
    [topic] = create(appliance, {**new("b"), "num_partitions": rows}).topics
    assert topic.error_code == 0


class Killed(BaseException):
    """The process ends here."""


def killed(*_):
    raise Killed


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_in_every_version(appliance, version):
    [topic] = create(appliance, new("a")).topics
    asked = {"topic_names": ["a"]}
    if version == 6:
        asked = {"topics": [{"name": None, "topic_id": topic.topic_id.bytes}]}
    [result] = appliance.ask(20, version, timeout=1000, **asked).responses
    assert (result.name, result.error_code) == ("a", 0)
    assert appliance.followed().handles == {}
    assert not appliance.memory.partitions.in_use(0)


def test_requests_of_one_turn_share_one_sync(appliance, monkeypatch):
    syncs = []
    log = appliance.control._quorum.log
    monkeypatch.setattr(type(log), "begin_sync", counted(type(log).begin_sync, syncs))
    cls = load_request_schema(19, 7)
    at = 0
    for number in range(5):
        request = {"topics": [new(f"t{number}")], "timeout": 1000, "validate_only": False}
        body = encode_request(build(cls, request))
        appliance.tokens += 1
        appliance.memory.arenas[0][at : at + len(body)] = body
        appliance.net.writer(CONTROL, 0).push_with_payload(
            FORWARD, 0, 0, appliance.tokens, at, 19 << 16 | 7, e=len(body), payload=CALLER
        )
        at += len(body)
    answers = appliance.answers()
    assert len(answers) == 5 and len(syncs) == 1
    assert len(appliance.followed().image.topics_by_name) == 5


def counted(function, calls):
    def wrapper(self):
        calls.append(self)
        return function(self)

    return wrapper


def test_a_successor_goes_on_with_the_rows_that_are_there(appliance):
    create(appliance, new("a", 3))
    rows = dict(appliance.followed().handles)
    producer = appliance.ask(22, 5, **INIT).producer_id
    appliance.kill_control()
    assert appliance.followed().handles == rows
    assert appliance.ask(22, 5, **INIT).producer_id > producer
    create(appliance, new("b"))
    assert len(appliance.followed().handles) == 4
    partition = appliance.followed().image.topics_by_name["a"].partitions[0]
    assert partition.leader_epoch == 0, "the partitions' homes did not die"


def test_a_whole_restart_keeps_everything(tmp_path):
    first = Appliance(tmp_path)
    create(first, new("a", 3, configs=[("retention.ms", "5")]))
    cluster, epoch = first.followed().cluster_id, first.followed().image.epoch
    first.close()
    second = Appliance(tmp_path)
    follower = second.followed()
    assert follower.cluster_id == cluster
    assert follower.image.epoch == epoch + 1
    assert follower.image.config(2, "a") == {"retention.ms": "5"}
    assert sorted(follower.handles.values()) == [0, 1, 2]
    assert follower.image.topics_by_name["a"].partitions[0].leader_epoch == 1
    second.close()


INIT = {
    "transactional_id": None,
    "transaction_timeout": 1000,
    "producer_id": -1,
    "producer_epoch": -1,
}


@pytest.mark.parametrize("version", range(6))
def test_producer_ids(appliance, version):
    first = appliance.ask(22, version, **INIT)
    second = appliance.ask(22, version, **INIT)
    assert (first.producer_id, first.producer_epoch) == (0, 0)
    assert second.producer_id == 1


def test_ensure_topic(appliance):
    assert appliance.ensure("auto") == errors.NONE
    assert appliance.ensure("auto") == errors.NONE
    assert appliance.ensure("a/b") == errors.INVALID_TOPIC_EXCEPTION
    assert appliance.ensure("__share_group_state") == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert "auto" in appliance.followed().image.topics_by_name


def test_the_offsets_topic_is_created_for_those_who_need_it(tmp_path):
    settings = {"offsets.topic.num.partitions": "7", "offsets.topic.replication.factor": "3"}
    appliance = Appliance(tmp_path, {"auto.create.topics.enable": "false", **settings})
    assert appliance.ensure("__consumer_offsets") == errors.NONE
    image = appliance.followed().image
    partitions = image.topics_by_name["__consumer_offsets"].partitions
    assert [len(one.replicas) for one in partitions] == [1] * 7
    assert image.config(2, "__consumer_offsets") == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    said = (tmp_path / "log").read_text()
    assert "fewer-replicas" in said
    assert "offsets.topic.replication.factor=3" in said
    appliance.close()


def test_ensure_topic_where_that_is_switched_off(tmp_path):
    appliance = Appliance(tmp_path, {"auto.create.topics.enable": "false"})
    assert appliance.ensure("auto") == errors.UNKNOWN_TOPIC_OR_PARTITION
    appliance.close()


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_configs_in_every_version(appliance, version):
    create(appliance, new("a", configs=[("retention.ms", "5")]))
    asked = {"include_synonyms": True, "include_documentation": True}
    rows = [(2, "a", ["retention.ms"]), (4, "1", None), (4, "", None), (2, "no", None)]
    results = appliance.ask(
        32,
        version,
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
            for kind, name, keys in rows
        ],
        **asked,
    ).results
    assert [one.error_code for one in results] == [0, 0, 0, 3]
    [retention] = results[0].configs
    assert (retention.value, retention.config_source, retention.read_only) == ("5", 1, False)
    assert [s.name for s in retention.synonyms][:2] == ["retention.ms", "log.retention.hours"]
    if version >= 3:
        assert retention.config_type == 5 and retention.documentation
    broker = {one.name: one for one in results[1].configs}
    assert broker["node.id"].read_only and broker["node.id"].value == "1"
    assert broker["ssl.key.password"].is_sensitive and broker["ssl.key.password"].value is None


def test_alter_configs_and_incremental_alter_configs(appliance):
    create(appliance, new("a"))

    def settings():
        return appliance.followed().image.config(2, "a")

    def change(version, *operations):
        configs = [
            {"name": name, "config_operation": kind, "value": value}
            for name, kind, value in operations
        ]
        resource = {"resource_type": 2, "resource_name": "a", "configs": configs}
        [result] = appliance.ask(44, version, resources=[resource], validate_only=False).responses
        return result.error_code

    assert change(0, ("retention.ms", 0, "9"), ("cleanup.policy", 2, "compact")) == 0
    assert settings() == {"retention.ms": "9", "cleanup.policy": "delete,compact"}
    assert change(1, ("retention.ms", 1, None)) == 0
    assert change(1, ("retention.ms", 0, "x")) == errors.INVALID_CONFIG
    assert settings() == {"cleanup.policy": "delete,compact"}
    resource = {
        "resource_type": 2,
        "resource_name": "a",
        "configs": [{"name": "segment.ms", "value": "7"}],
    }
    for version in range(3):
        appliance.ask(33, version, resources=[resource], validate_only=False)
        assert settings() == {"segment.ms": "7"}


@pytest.mark.parametrize("version", range(4))
def test_create_partitions_in_every_version(appliance, version):
    create(appliance, new("a"))
    topic = {"name": "a", "count": 3, "assignments": None}
    asked = {"topics": [topic], "timeout": 1000}
    [result] = appliance.ask(37, version, validate_only=True, **asked).results
    assert result.error_code == 0 and len(appliance.followed().handles) == 1
    [result] = appliance.ask(37, version, validate_only=False, **asked).results
    assert result.error_code == 0 and len(appliance.followed().handles) == 3


@pytest.mark.parametrize("version", range(1, 6))
def test_describe_log_dirs_in_every_version(appliance, version):
    create(appliance, new("a", 2))
    appliance.memory.partitions.set(1, SIZE_BYTES, 4321)
    [directory] = appliance.ask(35, version, topics=None).results
    assert directory.log_dir == appliance.path
    [topic] = directory.topics
    assert [p.partition_size for p in topic.partitions] == [0, 4321]
    if version >= 4:
        assert 0 < directory.usable_bytes <= directory.total_bytes
    some = [{"topic": "a", "partitions": [1, 7]}, {"topic": "no", "partitions": [0]}]
    [directory] = appliance.ask(35, version, topics=some).results
    assert [(t.name, len(t.partitions)) for t in directory.topics] == [("a", 1)]


@pytest.mark.parametrize("version", range(3))
def test_describe_quorum_in_every_version(appliance, version):
    partitions = [{"partition_index": 0}]
    topics = [
        {"topic_name": "__cluster_metadata", "partitions": partitions},
        {"topic_name": "x", "partitions": partitions},
    ]
    mine, other = appliance.ask(55, version, topics=topics).topics
    [row] = mine.partitions
    assert (row.leader_id, row.leader_epoch, row.error_code) == (1, 1, 0)
    assert row.high_watermark == appliance.table.metadata_offset
    assert [one.replica_id for one in row.current_voters] == [1]
    assert other.partitions[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(3))
def test_update_features_in_every_version(appliance, version):
    def ask(level):
        update = {
            "feature": "metadata.version",
            "max_version_level": level,
            "allow_downgrade": False,
            "upgrade_type": 1,
        }
        answer = appliance.ask(
            57, version, timeout=1000, feature_updates=[update], validate_only=False
        )
        assert version >= 2 or answer.error_code or answer.results[0].error_code == 0
        return answer.error_code

    assert ask(30) == 0
    assert ask(31) == errors.INVALID_UPDATE_VERSION
    assert ask(29) == errors.INVALID_UPDATE_VERSION


def test_bytes_that_are_no_request_are_refused_and_change_nothing(appliance):
    before = appliance.table.metadata_offset
    for body in (b"\xff" * 4, b"\x7f\xff\xff\xff" * 9, b"\x00"):
        for key, api in APIS.items():
            token = appliance.forward(key, api.highest, body)
            code, answer = appliance.answers()[token]
            assert (code, answer) == (errors.INVALID_REQUEST, b"") or code == 0
    token = appliance.forward(1, 4, b"x")
    assert appliance.answers()[token] == (errors.UNSUPPORTED_VERSION, b"")
    assert appliance.table.metadata_offset == before


def test_an_answer_larger_than_the_ring_comes_in_pieces(appliance):
    topics = [new(f"topic-{number:04d}-{'x' * 200}") for number in range(200)]
    answer = create(appliance, *topics, version=7)
    assert len(answer.topics) == 200 and all(t.error_code == 0 for t in answer.topics)
    [topic] = create(appliance, new("one", 57)).topics
    assert topic.error_code == errors.INVALID_PARTITIONS and "room for 56" in topic.error_message


def test_a_netproc_that_died_is_not_answered(appliance):
    cls = load_request_schema(19, 7)
    request = {"topics": [new("a")], "timeout": 1000, "validate_only": False}
    appliance.forward(19, 7, encode_request(build(cls, request)))
    appliance.net.flush()
    for peer, messages in appliance.links.poll():
        appliance.control.handle(peer, messages)
    appliance.control.peers_changed([NET])
    appliance.control.run_once(0)
    assert appliance.net.poll() == []
    assert "a" in appliance.followed().image.topics_by_name


def test_snapshots_let_old_segments_go(tmp_path):
    settings = {"metadata.log.max.record.bytes.between.snapshots": "4096"}
    appliance = Appliance(tmp_path, settings)
    late = Follower(OsDisk(), appliance.path, appliance.memory.partitions)
    late.catch_up(appliance.table.metadata_offset)
    for number in range(60):
        create(appliance, new(f"t{number}", 2), version=2)
        appliance.ask(20, 1, topic_names=[f"t{number}"], timeout=1000)
    create(appliance, new("last"))
    names = [n for n in os.listdir(tmp_path / "__cluster_metadata-0") if n.endswith(".checkpoint")]
    assert len(names) == 2
    late.catch_up(appliance.table.metadata_offset)
    assert list(late.image.topics_by_name) == ["last"]
    appliance.kill_control()
    assert list(appliance.followed().image.topics_by_name) == ["last"]
    appliance.close()


def test_the_folder_of_another_node_is_refused(tmp_path):
    Appliance(tmp_path).close()
    with pytest.raises(Exception, match=r"belongs to node\.id=1, the settings say node\.id=7"):
        Appliance(tmp_path, {"node.id": "7"})
