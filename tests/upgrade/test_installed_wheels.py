"""A data folder that goes from an earlier version's wheel to this one's and back, with a stock
producer that goes on meanwhile."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.upgrade.clients import Load, read
from tests.upgrade.installed import Installed, install, sources
from tests.upgrade.versions import earlier as versions

pytestmark = pytest.mark.timeout(600)
EARLIER = versions(2)
PARTITIONS = 3
GROUP = "readers"


@pytest.fixture(scope="module")
def now(tmp_path_factory):
    place = tmp_path_factory.mktemp("now")
    return install(sources(None, place / "tree"), place / "env")


@pytest.fixture(scope="module", params=EARLIER)
def earlier(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("earlier")
    tree = sources(request.param, place / "tree")
    if tree is None:
        pytest.skip(f"this repository has no {request.param}")
    return install(tree, place / "env")


@pytest.fixture
def appliance(tmp_path):
    found = Installed(tmp_path / "data", "flush.policy=group")
    yield found
    found.close()


def transaction(bootstrap, value, *, commit):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "teller"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("bank", value)
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def commit(bootstrap, offset):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("bank", 0, offset)], asynchronous=False)
    consumer.close()


def test_a_folder_goes_on_with_the_other_version_and_back(appliance, earlier, now):
    appliance.start(earlier)
    admin = AdminClient({"bootstrap.servers": appliance.bootstrap})
    for made in admin.create_topics(
        [NewTopic("kept", PARTITIONS, 1), NewTopic("bank", 1, 1, config={"retention.ms": "-1"})]
    ).values():
        made.result(30)
    transaction(appliance.bootstrap, b"one", commit=True)
    transaction(appliance.bootstrap, b"lost", commit=False)
    commit(appliance.bootstrap, 1)
    load = Load(appliance.bootstrap)
    load.start()
    expected = [b"one"]
    try:
        for step, program in enumerate((now, earlier, now)):
            load.go_on()
            assert appliance.stop() == 0
            appliance.start(program)
            load.go_on()
            transaction(appliance.bootstrap, b"%d" % step, commit=True)
            transaction(appliance.bootstrap, b"lost", commit=False)
            expected.append(b"%d" % step)
            assert read(appliance.bootstrap, "bank") == expected
            assert read(appliance.bootstrap, "bank", GROUP) == expected[1:]
    finally:
        load.end()
    print(f"longest silence {load.longest_silence_s():.2f} s, {load.sent} records")
    assert load.failed == []
    assert read(appliance.bootstrap, "kept") == [b"%d" % number for number in range(load.sent)]
    assert appliance.stop() == 0
