"""The local client: defaults that are safe, and errors that are not swallowed."""

import subprocess
import sys

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

import penstock
from benchmarks.kafka import free_port


@pytest.fixture(scope="module")
def link(appliance):
    return penstock.connect(appliance.bootstrap)


def test_what_was_produced_can_be_read_when_the_block_is_left(link):
    with link.producer() as producer:
        for number in range(100):
            producer.produce("client.a", b"%d" % number, key=b"k")
    read = list(link.read("client.a"))
    assert [m.value() for m in read] == [b"%d" % n for n in range(100)]
    assert [m.offset() for m in link.read("client.a", offset=98)] == [98, 99]


def test_a_record_that_is_refused_is_told(link):
    producer = link.producer(message_max_bytes=5_000_000)
    with pytest.raises(ck.KafkaException) as told, producer as one:
        one.produce("client.b", b"x" * 2_000_000)
    assert told.value.args[0].code() == ck.KafkaError.MSG_SIZE_TOO_LARGE


def test_a_topic_that_is_not_there_is_told_and_not_made(link):
    with pytest.raises(ck.KafkaException) as told:
        link.consumer("client.none")
    assert told.value.args[0].code() == ck.KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "client.none" not in link.admin().list_topics(timeout=10).topics


def test_more_than_the_queue_holds_is_waited_for(link):
    with link.producer(queue_buffering_max_messages=100) as producer:
        for number in range(5000):
            producer.produce("client.many", b"%d" % number)
    assert sum(1 for _ in link.read("client.many")) == 5000


def test_an_appliance_that_is_down_is_told_at_once_in_one_sentence():
    port = free_port()
    code = f"""
import penstock
link = penstock.connect("127.0.0.1:{port}")
with link.producer() as producer:
    producer.produce("hello", b"world")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    (told,) = [line for line in done.stderr.splitlines() if "127.0.0.1" in line]
    assert f"127.0.0.1:{port} cannot be reached: Connection refused; `penstock up` starts" in told
    assert not [line for line in done.stderr.splitlines() if "rdkafka" in line]
    down = penstock.connect(f"127.0.0.1:{port}")
    for use in (down.admin, down.consumer, lambda: down.partitions("hello")):
        with pytest.raises(ck.KafkaException, match="cannot be reached"):
            use()
    with pytest.raises(ck.KafkaException, match="cannot be reached"):
        next(down.read("hello"))


def test_one_that_goes_away_in_between_is_told_with_the_reason(fresh_appliance, capfd):
    one = fresh_appliance()
    link = penstock.connect(one.bootstrap)

    def lose():
        with link.producer(message_timeout_ms=300) as producer:
            one.stop()
            producer.produce("hello", b"world")

    with pytest.raises(ck.KafkaException) as told:
        lose()
    assert "1 record not acknowledged" in str(told.value)
    assert f"{one.bootstrap} cannot be reached" in str(told.value)
    said = capfd.readouterr().err.splitlines()  # other tests' clients may still look for theirs
    assert not [line for line in said if one.bootstrap in line]


def test_reading_can_follow(link):
    link.create_topic("client.follow", 2)
    with link.producer() as producer:
        producer.produce("client.follow", b"1", partition=0)
        producer.flush(30)
        follower = link.read("client.follow", follow=True)
        assert next(follower).value() == b"1"
        producer.produce("client.follow", b"2", partition=1)
        producer.flush(30)
        assert next(follower).value() == b"2"
        follower.close()


def test_what_is_damaged_is_not_given_away(link, appliance):
    with link.producer() as producer:
        producer.produce("client.damaged", b"precious")
    (segment,) = (appliance.data_dir / "client.damaged-0").glob("*.log")
    with segment.open("r+b") as file:
        file.seek(file.read().index(b"precious"))
        file.write(b"#")
    with pytest.raises(ck.KafkaException) as told:
        list(link.read("client.damaged"))
    assert told.value.args[0].code() == ck.KafkaError._BAD_MSG


def test_a_topic_is_made_with_its_settings_and_only_once(link):
    link.create_topic("client.made", 3, retention_ms=60_000)
    assert len(link.partitions("client.made")) == 3
    resource = ConfigResource(ResourceType.TOPIC, "client.made")
    admin = link.admin()
    settings = admin.describe_configs([resource])[resource].result(30)
    assert settings["retention.ms"].value == "60000"
    link.create_topic("client.made", exist_ok=True)
    with pytest.raises(ck.KafkaException) as told:
        link.create_topic("client.made")
    assert told.value.args[0].code() == ck.KafkaError.TOPIC_ALREADY_EXISTS


def test_a_connection_shows_where_it_goes():
    assert repr(penstock.connect("two:2")) == "<penstock.Connection to two:2>"


def test_the_address_comes_from_the_argument_the_environment_or_the_default(monkeypatch):
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP", "one:1")
    assert penstock.connect("two:2").bootstrap == "two:2"
    assert penstock.connect().bootstrap == "one:1"
    monkeypatch.delenv("PENSTOCK_BOOTSTRAP")
    assert penstock.connect().bootstrap == "localhost:9092"


def test_a_file_of_the_users_named_as_ours_is_not_taken_for_it(tmp_path):
    (tmp_path / "console.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "mine.py").write_text(
        "from penstock.local import Appliance\n"
        "with Appliance('data') as appliance:\n    print(appliance.port)\n"
    )
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
