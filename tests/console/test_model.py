"""The console's model without a terminal: typed values of a real appliance, and failures that name
what, where and remedy."""

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import console.model
from console.model.asking import configs, names
from console.model.asking.failure import UNREACHABLE, Failure
from console.model.asking.link import Link, asking
from console.model.cluster import cluster
from console.model.groups import groups, lag
from console.model.groups.offsets import END, START, Place
from console.model.groups.seek import Move, commit_moves, plan, read_to
from console.model.quotas import quotas
from console.model.records import reading, writing
from console.model.records.filters import Filter
from console.model.records.seeking import Range, Seek
from console.model.storage import disk
from console.model.topics import partitions, topics

MODEL = Path(console.model.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(MODEL).with_suffix("").parts) for path in MODEL.rglob("*.py")
)
_numbers = itertools.count(1)


class Veiled(Link):
    """A link without requests of our own, as over SASL: only the client library asks."""

    is_asked = False


@pytest.fixture
def link(appliance):
    return Link(appliance.bootstrap, {}, 30)


@pytest.fixture
def topic(link):
    """A topic with two partitions and six records in the first."""
    name = f"model.{next(_numbers)}"
    assert topics.create(link, [name], partitions=2, settings={}, dry_run=False) == {name: None}
    records = ({"value": b"%d" % n, "key": b"k", "partition": 0} for n in range(6))
    count, places = writing.write_records(link, name, records, {}, keep=True)
    assert (count, [(one.partition, one.offset) for one in places[-1:]]) == (6, [(0, 5)])
    return name


def test_the_model_loads_neither_terminal_nor_client():
    code = (
        "import importlib, sys\n"
        f"for name in {MODULES}:\n"
        "    importlib.import_module(f'console.model.{name}')\n"
        "    heavy = {'click', 'rich', 'textual', 'confluent_kafka', 'pyspark'} & {*sys.modules}\n"
        "    assert not heavy, (name, heavy)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_topic_is_told_by_pages(link, topic, monkeypatch):
    whole = cluster.Topics(Veiled(link.bootstrap, {}, 30)).read_topics()
    assert whole[topic] == cluster.Seen(topic, 2, 1, 0)
    monkeypatch.setattr(partitions, "_PAGE", 3)  # a topic may go on in the next one
    breaths = []
    paged = cluster.Topics(link, lambda: breaths.append(1))
    assert paged.read_topics() == whole and list(paged.read_topics()) == sorted(whole)
    assert len(breaths) >= (sum(one.partitions for one in whole.values()) - 1) // 3


def test_a_broker_that_knows_no_pages_is_asked_for_all_at_once(link, topic, monkeypatch):
    asked = []

    def refuse(*request):
        asked.append(request)
        raise Failure("closed the connection")

    monkeypatch.setattr(partitions, "ask_server", refuse)
    seen = cluster.Topics(link)
    assert topic in seen.read_topics() and topic in seen.read_topics()
    assert len(asked) == 1, "it is not asked for them again"


def test_pages_that_do_not_end_are_not_read_for_ever(link, topic, monkeypatch):
    place = SimpleNamespace(topic_name=topic, partition_index=1)
    page = SimpleNamespace(topics=[], next_cursor=place)
    monkeypatch.setattr(partitions, "ask_server", lambda *request: page)
    assert topic in cluster.Topics(link).read_topics()


def test_a_topic_is_typed_values(link, topic):
    (found,) = topics.described(link, [topic])
    assert (found.name, found.partition_count, found.records) == (topic, 2, 6)
    assert [(one.partition, one.start, one.end) for one in found.partitions] == [
        (0, 0, 6),
        (1, 0, 0),
    ]
    listed = topics.choose(topics.listed(link), (topic,), None, internal=False)
    assert listed == {topic: topics.Listed(topic, (0, 1), 1)}
    assert topics.records(link, listed.values()) == {topic: 6}
    topics.add_partitions(link, topic, 3, dry_run=False)
    assert topics.partition_counts(link, [topic]) == {topic: 3}
    assert topics.trim(link, topic, {0: 2}) == {0: 2}
    refused = topics.create(link, [topic], settings={}, dry_run=True)[topic]
    assert refused is not None
    assert (refused.name, refused.where) == ("TOPIC_ALREADY_EXISTS", link.bootstrap)


def test_deleted_topics_are_told_and_come_back(link, topic):
    assert topics.delete(link, [topic]) == {topic: None}
    found = next(one for one in topics.deleted(link) if one.name == topic)
    assert (found.partitions, found.records) == (2, 6)
    assert topics.undelete(link, [topic], found.id, dry_run=False) == {topic: None}
    assert topics.described(link, [topic])[0].id == found.id


@pytest.mark.parametrize("kind", [Link, Veiled])
def test_settings_say_where_they_come_from_and_change(kind, appliance, topic):
    link = kind(appliance.bootstrap, {}, 30)
    target = configs.Target(configs.TOPIC, topic)
    (before,) = configs.settings(link, target, ("retention.ms",))
    assert (before.value, before.source) == ("604800000", "default")
    assert bool(before.doc) == link.is_asked
    wish = {"retention.ms": (configs.SET, "60000")}
    (checked,) = configs.change(link, target, wish, dry_run=True)
    assert checked == configs.Change("retention.ms", "604800000", None, None)
    (changed,) = configs.change(link, target, wish, dry_run=False)
    assert changed == configs.Change("retention.ms", "604800000", "60000", "topic")
    (undone,) = configs.change(
        link, target, {"retention.ms": (configs.DELETE, None)}, dry_run=False
    )
    assert (undone.after, undone.source) == ("604800000", "default")
    with pytest.raises(Failure, match=r"retention\.mss is not a setting") as told:
        configs.settings(link, target, ("retention.mss",))
    assert "retention.ms" in told.value.hint
    with pytest.raises(Failure) as told:
        configs.settings(link, configs.Target(configs.TOPIC, "not.there"))
    assert (told.value.name, told.value.kafka_code) == ("UNKNOWN_TOPIC_OR_PARTITION", 3)


def test_what_the_client_library_cannot_name_is_refused_over_sasl(appliance):
    link = Veiled(appliance.bootstrap, {}, 30)
    for target in (configs.CLUSTER, configs.Target(configs.GROUP, "g")):
        with pytest.raises(Failure, match="cannot be asked for over SASL"):
            configs.settings(link, target)


def test_a_group_is_where_it_was_moved_and_has_its_lag(link, topic):
    name = f"model.group.{next(_numbers)}"
    moves = plan(link, name, (topic,), to=read_to("start+4"))
    assert moves[0] == Move(topic, 0, None, 4, None)
    commit_moves(link, name, moves)
    (group,) = groups.described(link, [name])
    assert (group.state, group.members) == ("empty", ())
    assert groups.Listed(name, "empty", "classic", is_simple=True) in groups.listed(link)
    here, there = lag.places(link, [group])[name]
    assert (here.committed, here.end, here.lag) == (4, 6, 2)
    assert here.lag_s is not None
    assert lag.total([here, there]) == (2, here.lag_s)
    assert groups.delete_offsets(link, name, [(topic, 0)]) == {}
    assert groups.committed(link, [name])[name] == {(topic, 1): 0}
    assert groups.delete(link, [name]) == {name: None}


def test_records_are_read_from_a_place_and_as_a_member(link, topic):
    seek, name = Seek(Range(Place(START, 1))), f"model.group.{next(_numbers)}"
    found = reading.read(
        link, [topic], (), seek, Filter(), exit_at_end=True, count=None, remark=str
    )
    records = [one for some in found for one in some]
    assert [(one.offset, one.value, one.key) for one in records] == [
        (n, b"%d" % n, b"k") for n in range(1, 6)
    ]
    mine = reading.read_as_member(
        link, name, [topic], Place(START), exit_at_end=True, count=4, remark=str
    )
    assert sum(map(len, mine)) == 4
    assert groups.committed(link, [name])[name][topic, 0] == 4
    rest = reading.read_as_member(
        link, name, [topic], Place(END), exit_at_end=True, count=None, remark=str
    )
    assert [one.offset for some in rest for one in some] == [4, 5]


def test_quotas_are_set_told_and_taken_away(link):
    entity = (("client-id", "model"),)
    made = quotas.change(link, entity, {"producer_byte_rate": 1e6}, dry_run=False)
    assert made == [quotas.Change("producer_byte_rate", None, 1e6)]
    (effect,) = quotas.in_effect(link, entity, ("producer_byte_rate",))
    assert effect == quotas.Effect("producer_byte_rate", 1e6, entity)
    quotas.change(link, entity, {"producer_byte_rate": None}, dry_run=False)
    assert quotas.own_quotas(link, entity) == {}


def test_log_folders_are_told_with_what_they_hold(link, appliance, topic):
    (folder,) = disk.log_folders(link)
    assert folder.path == str(appliance.data_dir)
    assert folder.total_bytes >= folder.free_bytes > 0
    assert folder.used_bytes > 0
    assert disk.log_folders(link, used=False)[0].used_bytes == 0


def test_names_come_at_once_or_not_at_all(link, topic):
    assert topic in names.topics(link.bootstrap, 30)
    assert names.groups("127.0.0.1:1", 0.1) == []


def test_a_failure_says_what_where_and_remedy():
    link = Link("127.0.0.1:1", {}, 1)
    for ask in (topics.listed, groups.listed, quotas.all_quotas, disk.log_folders):
        with pytest.raises(Failure) as told, asking(link):
            ask(link)
        assert (told.value.code, told.value.name) == (UNREACHABLE, "UNREACHABLE")
        assert told.value.where == "127.0.0.1:1"
        assert "cannot be reached" in told.value.message
        assert "penstock up" in told.value.hint
