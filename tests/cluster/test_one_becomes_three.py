"""What `penstock cluster invite` prints is typed as it stands, twice, while a stock producer
writes: one appliance alone is three then, and goes on without the first."""

import json
import shlex
import shutil
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from subprocess import PIPE
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from appliance.config.open_listeners import ALLOWED
from benchmarks.kafka import free_ports
from benchmarks.nodes import Place
from console.model.asking.failure import Failure
from console.model.asking.link import Link as Asking
from console.model.cluster import joining
from console.model.cluster.nodes import read_nodes
from console.model.topics import partitions
from tests.cluster.nodes import DESCRIBE_QUORUM, Node, Nodes
from tests.cluster.test_voters_come_and_go import METADATA
from tests.console_process import rows, started, typing
from tests.differential.link import Link

TOPIC, KEPT = "t", "joined.properties"
WHICH = 60, 0, {"include_cluster_authorized_operations": False}


class Typed(Node):
    """A node that is started as somebody types it: words behind `penstock up`."""

    words = ()

    def command(self):
        return [sys.executable, "-m", "console", "up", "--data", str(self.data), *self.words]


class Invited(Nodes):
    def __init__(self, folder):
        first = free_ports(6)
        places = tuple(Place(n, first + 2 * n - 2, first + 2 * n - 1) for n in (1, 2, 3))
        super().__init__(folder, places=places)
        self.all = {one.number: Typed(folder, one, places, {}) for one in places}

    def __enter__(self):
        self[1].words = ("--listen", f"127.0.0.1:{self[1].port}")
        try:
            return self.start(1)
        except BaseException:
            self.__exit__()
            raise

    def voters(self):
        """Number → directory id of each."""
        (told,) = self.ask(DESCRIBE_QUORUM, 2, METADATA)["topics"]
        return {one["replica_id"]: one["replica_directory_id"]
                for one in told["partitions"][0]["current_voters"]}  # fmt: skip

    def join(self, number, line):
        """The folder is somewhere else, everything else as it stands."""
        program, up, *words = shlex.split(line)
        assert (program, up) == ("penstock", "up")
        at = words.index("--data")
        del words[at : at + 2]
        self[number].words = words
        self.start(number)
        self.wait(lambda: number in self.voters(), f"{number} votes")


class Writing(threading.Thread):
    """Numbers, one after the other, until it is stopped; `said` are those that were acknowledged,
    more than that may be there."""

    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.said, self.failed = [], []
        self._ends = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        watched = {"statistics.interval.ms": 100, "stats_cb": self._seen}
        self.disconnects = 0  # from the first node, as a broker
        self._producer = Producer(settings | watched | {"topic.metadata.refresh.interval.ms": 500})

    def run(self):
        number = 0
        while not self._ends.wait(0.002):
            self._producer.produce(TOPIC, str(number), callback=self._heard)
            self._producer.poll(0)
            number += 1
        self._producer.flush(30)
        del self._producer

    def _seen(self, text):
        for one in json.loads(text)["brokers"].values():
            if one["nodeid"] == 1:
                self.disconnects = one["disconnects"]

    def _heard(self, error, message):
        (self.failed if error else self.said).append(message.value())

    def __enter__(self):
        self.start()
        return self

    def end(self):
        self._ends.set()
        self.join(60)
        assert not self.is_alive()

    def __exit__(self, *_):
        self.end()


class Reading(threading.Thread):
    """What is written, as it comes."""

    def __init__(self, bootstrap):
        super().__init__(daemon=True)
        self.found = []
        self._ends = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
        self._consumer = Consumer(settings | {"topic.metadata.refresh.interval.ms": 500})
        self._consumer.assign([TopicPartition(TOPIC, one, OFFSET_BEGINNING) for one in (0, 1)])

    def run(self):
        while not self._ends.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and not message.error():
                self.found.append(message.value())
        self._consumer.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self.join(60)
        assert not self.is_alive()


def everything(bootstrap, partitions):
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    places = [TopicPartition(TOPIC, one, OFFSET_BEGINNING) for one in range(partitions)]
    consumer.assign(places)
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append(message.value())
    consumer.close()
    return found


class Paying:
    """A transaction that commits a record and the offset of a group, before the cluster grows; and
    what is known of both later."""

    topic, group, offset = "paid", "shop", 7

    def __init__(self, bootstrap):
        self._settings = {"bootstrap.servers": bootstrap}

    def pay(self):
        producer = Producer(self._settings | {"transactional.id": "till"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(self.topic, "1")
        with self._reading() as reader:
            place = TopicPartition(self.topic, 0, self.offset)
            producer.send_offsets_to_transaction([place], reader.consumer_group_metadata(), 30)
        producer.commit_transaction(30)

    def known(self):
        """The offset of the group, and the next transaction of the same id goes on."""
        self.pay()
        with self._reading() as reader:
            (place,) = reader.committed([TopicPartition(self.topic, 0)], 30)
            reader.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
            found = [reader.poll(30).value() for _ in range(2)]
        return place.offset, found

    @contextmanager
    def _reading(self):
        consumer = Consumer(self._settings | {"group.id": self.group, "enable.auto.commit": False})
        try:
            yield consumer
        finally:
            consumer.close()


def who_may_lead(nodes, number):
    """Of "pair", as this node tells it: who leads, who is in sync, who is eligible."""
    (one,) = partitions.partitions(Asking(nodes[number].bootstrap, {}, 10), ["pair"])
    return one.leader, one.isr, one.elr


@contextmanager
def told_until(nodes, words, *command):
    """A command that waits, up to the line of its stderr that has these words: that line, and a
    function that gives the row it ends with."""
    with started(nodes.bootstrap, *command, "-o", "json", stdout=PIPE, stderr=PIPE,
                 text=True) as process:  # fmt: skip

        def end():
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
            (row,) = json.loads(out)
            return row

        said = []
        for line in process.stderr:
            said.append(line)
            if words in line:
                yield line, end
                return
        pytest.fail(f"it ended: {said} {process.stdout.read()}")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """One appliance, which the first test makes three of; the others go on with them."""
    with Invited(tmp_path_factory.mktemp("invited")) as nodes:
        yield nodes


def test_one_becomes_three_by_what_it_prints_and_goes_on_without_the_first(nodes):
    alone, everybody = typing(nodes[1].bootstrap), typing(nodes.bootstrap)
    nodes.create(TOPIC, partitions=2, factor=1)
    nodes.create(Paying.topic, factor=1)
    paying = Paying(nodes.bootstrap)
    paying.pay()
    held = Link(("127.0.0.1", nodes[1].port))
    with Writing(nodes[1].bootstrap) as writing, Reading(nodes[1].bootstrap) as reading:
        nodes.wait(lambda: len(reading.found) > 10, "it is read")
        for number in (2, 3):
            (line,) = alone("cluster", "invite").stdout.splitlines()
            nodes.join(number, line)
        planned = rows(everybody("cluster", "grow", "--dry-run", "-o", "json"))
        leads = Counter(one["after"][0] for one in planned)
        assert max(leads.values()) - min(leads.values()) <= 1 and len(leads) == 3, (
            "they share what is led"
        )
        assert not writing.disconnects, "the one that served alone was never left"
        assert held.ask(*WHICH)["error_code"] in ("NONE", "none")
        held.close()
        one_node = "4 topics are kept by one node only: penstock cluster grow"
        assert one_node in everybody("cluster", "status").stdout
        grown = everybody("cluster", "grow", "--yes").stderr
        assert "eligible.leader.replicas.version=1" in grown
        nodes.wait(lambda: nodes.whole(TOPIC, 2), "all are in sync")
        assert rows(everybody("cluster", "grow", "-o", "json")) == []
        everybody("topic", "create", "later")
        assert len(nodes.partition("later").replicas) == 3, "as the others have"
        cluster = rows(everybody("config", "list", "--cluster", "-o", "json"))
        told = {one["key"]: one["value"] for one in cluster}
        assert told["min.insync.replicas"] == "2"
        told = everybody("cluster", "status").stdout
        assert "3 nodes, whole" in told and "one node only" not in told
        nodes.create("pair", assignment=[[2, 1]])
        nodes.stop(3)
        nodes[3].words = ()  # it knows by its folder what it is
        nodes.start(3)
        nodes.wait(lambda: nodes.whole(TOPIC, 2), "all are in sync")
        nodes.kill(1)
        nodes.wait(lambda: nodes.quorum_leader(2) in (2, 3), "another one leads")
        before = len(writing.said)
        nodes.wait(lambda: len(writing.said) > before + 100, "it is written on")
        writing.end()
        nodes.wait(lambda: set(writing.said) <= set(reading.found), "it is read on")
    found = everything(nodes[2].bootstrap, 2)
    assert not writing.failed
    assert sorted(found) == sorted(writing.said), "nothing is lost and nothing there twice"
    assert paying.known() == (paying.offset, [b"1", b"1"])


def test_who_was_eligible_and_ended_without_order_is_no_candidate(nodes):
    """Node 1 was killed while it was eligible, and comes back: it may have lost what it had."""
    nodes.wait(lambda: who_may_lead(nodes, 2) == (2, (2,), (1,)), "1 is eligible")
    assert nodes.stop(2) == 0
    nodes.start(1)
    nodes.wait(lambda: who_may_lead(nodes, 3) == (-1, (), (2,)), "it is no candidate any more")
    nodes.start(2)
    nodes.wait(lambda: who_may_lead(nodes, 3)[0] == 2, "who ended in order leads")
    nodes.wait(lambda: nodes.whole("pair"), "1 fetches from it")


def test_a_lost_one_is_replaced_by_what_is_printed(nodes):
    before = nodes.voters()[3]
    nodes.kill(3)
    nodes.wait(lambda: nodes.voters() and 3 not in nodes.brokers(), "it is fenced")
    told = typing(nodes.bootstrap)("cluster", "replace", "3", "--check", "-o", "json")
    assert "--token" not in told.stderr
    assert [(one["status"], one["votes"]) for one in rows(told)] == [("can be replaced", False)]
    shutil.rmtree(nodes[3].data)
    with told_until(nodes, " up --join", "cluster", "replace", "3") as (line, end):
        nodes.join(3, "penstock up" + line.partition(" up")[2])  # as this interpreter calls it
        row = end()
    assert row["status"] == "whole" and row["votes"] and row["in_sync"] == row["partitions"] > 0
    votes = nodes.voters()
    assert set(votes) == {1, 2, 3} and votes[3] != before, "the folder that is there votes"
    invitations = nodes.ask(32, 4, {"include_synonyms": False, "include_documentation": False,
        "resources": [{"resource_type": 4, "resource_name": "",
                       "configuration_keys": ["penstock.invitations"]}]})  # fmt: skip
    (config,) = invitations["results"]
    assert not [one["value"] for one in config["configs"] if one["value"]], "the token is spent"


def test_a_voter_leaves_for_good(nodes):
    leave = ("cluster", "leave", "3", "--fewer-replicas", "--yes")
    with told_until(nodes, "stop it now", *leave) as (_, end):
        assert set(nodes.voters()) == {1, 2}, "its vote is taken while it runs"
        assert nodes.stop(3) == 0
        row = end()
    assert row["status"] == "gone" and row["partitions_moved"]
    assert nodes.brokers() == [1, 2]
    nodes.wait(lambda: nodes.whole(TOPIC, 2), "two keep everything")
    link = Asking(nodes.bootstrap, {}, 10)
    nodes.wait(lambda: set(read_nodes(link).all) == {1, 2}, "it is not heard of any more")
    assert "2 nodes, whole" in typing(nodes.bootstrap)("cluster", "status").stdout


@pytest.fixture
def cluster(monkeypatch):
    """directory: of its only voter. Gives what was asked of it."""

    def made(directory, *, reached=True):
        asked = []
        voter = SimpleNamespace(replica_id=1, replica_directory_id=directory)
        answer = SimpleNamespace(error_code=0, error_message=None, results=())
        node = SimpleNamespace(address="h:9092", lives=True)
        found = SimpleNamespace(cluster_id="id", brokers={1: node}, all={1: node})
        quorum = SimpleNamespace(current_voters=[voter])
        monkeypatch.setattr(joining, "read_nodes", lambda _: found)
        monkeypatch.setattr(joining, "let_others_in", lambda *_: "")
        monkeypatch.setattr(joining, "new_token", lambda *_: "secret")
        monkeypatch.setattr(joining, "invited", lambda _, token, number: number)
        monkeypatch.setattr(joining, "quorum_told", lambda _: quorum)
        monkeypatch.setattr(joining, "controllers", lambda _: {1: "h:9093"} if reached else {})
        monkeypatch.setattr(
            joining.features, "ask_server", lambda _, *told: asked.append(told) or answer
        )
        return asked

    return made


def test_an_old_folder_gets_voters_that_can_come_and_go_by_the_invitation(cluster, tmp_path):
    asked = cluster(None)
    link = SimpleNamespace(bootstrap="h:9092")
    kept = str(tmp_path / KEPT)
    with pytest.raises(Failure, match="fixed by its settings"):
        joining.prepare(link, kept, None, "", (), {})
    assert not asked and not list(tmp_path.iterdir())
    found = joining.invite(link)
    assert found.upgraded and not found.here
    line = "penstock up --join h:9092 --node-id 2 --cluster-id id --token secret --listen :9092"
    assert found.line == f"{line} -o {ALLOWED}"
    ((key, _, values),) = asked
    assert key == 57 and values["feature_updates"][0]["feature"] == "kraft.version"


@pytest.mark.parametrize(
    ("number", "cluster_id", "listen", "said"),
    [
        (1, "", (), "node 1 exists already"),
        (None, "other", (), "not to other"),
        (None, "", (":0",), "name a port"),
        (None, "", (":1", ":3"), "there is one --listen"),
    ],
)
def test_what_cannot_join(cluster, tmp_path, number, cluster_id, listen, said):
    cluster(SimpleNamespace(bytes=b"x" * 16))
    link = SimpleNamespace(bootstrap="h:9092")
    with pytest.raises(Failure, match=said):
        joining.prepare(link, str(tmp_path / KEPT), number, cluster_id, listen, {})
    assert not list(tmp_path.iterdir())


def test_a_folder_joins_once(cluster, tmp_path):
    cluster(SimpleNamespace(bytes=b"x" * 16))
    link = SimpleNamespace(bootstrap="h:9092")
    kept_at = str(tmp_path / KEPT)
    assert joining.prepare(link, kept_at, None, "", (), {"log.retention.ms": "1"}) == "id"
    kept = (tmp_path / KEPT).read_text()
    assert "node.id=2\n" in kept and "log.retention.ms=1\n" in kept
    (tmp_path / "meta.properties").touch()
    joining.prepare(link, kept_at, 7, "", (), {})
    assert (tmp_path / KEPT).read_text() == kept
    (tmp_path / KEPT).unlink()
    with pytest.raises(Failure, match="the folder of another node"):
        joining.prepare(link, kept_at, None, "", (), {})
