"""A running appliance that tells how it is: one start, read as Prometheus, a probe and a person
would."""

import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from exporter_world import parse, series, value
from receiver import Receiver, points

from benchmarks import batches, requests
from benchmarks.peer import Wire
from penstock.local import Appliance, ApplianceError
from tests.compat.waiting import until
from tests.console_process import typing


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exporter")
    settings = {
        "penstock.metrics.listener": "127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
    }
    with Appliance(folder / "data", settings) as appliance:
        yield appliance


def url(appliance):
    return re.findall(r"at=(http://\S+)/metrics", appliance.log_text())[-1]


def get(appliance, path):
    """(status, text)."""
    try:
        with urllib.request.urlopen(url(appliance) + path, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as no:
        return no.code, no.read().decode()


def scrape(appliance):
    status, text = get(appliance, "/metrics")
    assert status == 200
    return parse(text)


def ask(appliance, *frames):
    wire = Wire(("127.0.0.1", appliance.port))
    try:
        return [wire.call(frame) for frame in frames]
    finally:
        wire.close()


def test_what_clients_did_is_told(running):
    produce = requests.produce("told", 0, batches.uniform(3, 50, 1_700_000_000_000), -1, 5)
    ask(running, requests.create_topic("told", 2, {}), *[produce] * 4)
    found = scrape(running)
    assert value(found, "penstock_topic_received_records_total", topic="told") == 12
    assert value(found, "kafka_topic_partition_current_offset", topic="told", partition="0") == 12
    assert value(found, "penstock_requests_total", api="Produce") == 4
    assert value(found, "penstock_request_duration_seconds_count", api="Produce") == 4
    assert value(found, "kafka_server_kafkaserver_brokerstate") == 3
    assert value(found, "penstock_controller_active") == 1
    (info,) = series(found, "penstock_info")
    assert info["cluster_id"] and info["node_id"] == "1"
    (broker,) = series(found, "kafka_broker_info")
    assert broker["address"].endswith(f":{running.port}")
    for name in ("control", "ioproc-0", "netproc-0"):
        assert value(found, "penstock_process_up", process=name) == 1
    for name in ("supervisor", "exporter"):
        assert value(found, "penstock_process_memory_bytes", process=name) > 1 << 20


def test_groups_of_both_protocols_are_told_by_state_and_with_their_members(running):
    ask(running, requests.create_topic("read", 4, {}))
    common = {"bootstrap.servers": running.bootstrap}
    new = {"group.id": "new", "group.protocol": "consumer"}
    members = [Consumer({**common, **own}) for own in ({"group.id": "old"}, new, new)]
    alone = Consumer({**common, "group.id": "left"})
    alone.commit(offsets=[TopicPartition("read", 0, 0)], asynchronous=False)
    alone.close()
    for one in members:
        one.subscribe(["read"])

    def told():
        for one in members:
            one.poll(0.05)
        found = scrape(running)
        counts = {group: of_group(found, group) for group in ("old", "new", "left")}
        assert counts == {"old": [1], "new": [2], "left": []}
        assert value(found, "penstock_groups", state="Stable") == 2
        assert value(found, "penstock_groups", state="Empty") == 1

    until(told, 100)
    for one in members:
        one.close()  # who has left is not told any more

    def gone():
        found = scrape(running)
        assert value(found, "penstock_groups", state="Empty") == 3
        assert not series(found, "kafka_consumergroup_members")

    until(gone, 100)


def of_group(found, group):
    """How many members it is told to have, if any number."""
    labels = frozenset({"group": group}.items())
    return [count for key, count in found.items() if key == ("penstock_group_members", labels)]


def test_a_pause_is_told_as_long_as_its_client_was_told_it_would_be(running):
    typing(running.bootstrap)("quota", "set", "--client-id", "slow", "produce=10kB/s", "--yes")
    ask(running, requests.create_topic("much", 1, {}))
    told = []
    settings = {
        "bootstrap.servers": running.bootstrap,
        "client.id": "slow",
        "throttle_cb": lambda event: told.append(event.throttle_time),
    }
    producer = Producer(settings)
    producer.produce("much", os.urandom(400_000))

    def paused():
        producer.poll(0.05)
        found = scrape(running)
        client = {"user": "", "client_id": "slow"}
        assert told and (pause_s := told[-1]) > 1
        assert value(found, "kafka_server_produce_throttle_time", **client) == pause_s * 1000
        assert value(found, "kafka_server_produce_byte_rate", **client) > 10_000

    until(paused, 100)
    producer.close()


def test_it_is_alive_and_ready(running):
    assert get(running, "/livez") == (200, '{"live": true, "dead": []}\n')
    status, text = get(running, "/readyz")
    assert (status, json.loads(text)["missing"]) == (200, [])
    assert value(scrape(running), "penstock_requests_total", api="ApiVersions") >= 1, "it knocked"


def test_a_probe_writes_reads_and_joins_a_group(running):
    assert wait(running, "--probe") == (0, "")
    wait(running)  # the first group makes many partitions, which open one by one
    status, text = get(running, "/readyz?probe=1")
    told = json.loads(text)
    assert (status, told["missing"], told["probed"]) == (200, [], True)
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    topic = ConfigResource(ConfigResource.Type.TOPIC, "__penstock_probe_1")
    (described,) = admin.describe_configs([topic]).values()
    found = described.result()
    assert (found["retention.ms"].value, found["cleanup.policy"].value) == ("600000", "delete")
    groups = admin.list_consumer_groups().result().valid
    assert not [one for one in groups if "probe" in one.group_id]
    homes = len(admin.list_topics("__penstock_probe_1").topics["__penstock_probe_1"].partitions)
    assert homes == sum(name.startswith("ioproc-") for name in processes(running))


def test_a_probe_finds_what_tables_do_not_show(running):
    wait(running, "--probe")
    admin = AdminClient({"bootstrap.servers": running.bootstrap})

    def largest(how, value=None):
        entry = ConfigEntry("max.message.bytes", value, incremental_operation=how)
        topic = ConfigResource(
            ConfigResource.Type.TOPIC, "__penstock_probe_1", incremental_configs=[entry]
        )
        (done,) = admin.incremental_alter_configs([topic]).values()
        done.result()

    largest(AlterConfigOpType.SET, "1")
    try:
        code, told = wait(running, "--probe", "--timeout", "0")
        assert code == 4 and "__penstock_probe_1-" in told and "MESSAGE_TOO_LARGE" in told
        assert wait(running) == (0, "")
        assert get(running, "/readyz")[0] == 200
        status, text = get(running, "/readyz?probe=1")
        assert status == 503 and "MESSAGE_TOO_LARGE" in json.loads(text)["missing"][0], text
    finally:
        largest(AlterConfigOpType.DELETE)


def processes(appliance):
    """By their names."""
    told = "penstock_process_memory_bytes"
    return [dict(labels)["process"] for labels in series(scrape(appliance), told)]


def wait(appliance, *args):
    command = [sys.executable, "-m", "console", "wait", "--data", str(appliance.data_dir), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_wait_says_what_is_missing(running, tmp_path):
    assert wait(running, "-b", running.bootstrap) == (0, "")
    code, told = wait(running, "-b", "127.0.0.1:1", "--timeout", "0", "-o", "json")
    assert code == 4 and "127.0.0.1:1" in json.loads(told)["missing"][0]
    code, told = wait(Appliance(tmp_path), "--timeout", "0")
    assert code == 3 and "no folder of an appliance" in told


def test_a_killed_exporter_comes_back_at_the_same_place_and_nobody_else_notices(running):
    before = scrape(running)
    (exporter,) = exporters(running)
    others = set(running.pids()) - {exporter}
    kill(exporter, exporter)
    after = scrape(running)  # connections wait at the door meanwhile
    assert exporters(running) != [exporter] and others <= set(running.pids())
    for name in ("control", "ioproc-0", "netproc-0"):
        assert value(after, "penstock_process_restarts_total", process=name) == 0
    told = "penstock_topic_received_records_total"
    assert series(after, told) == series(before, told)
    assert "exporter" in running.log_text() and "SIGKILL" in running.log_text()


def kill(pid, whose_end):
    """Returns when the second process is dead."""
    pidfd = os.pidfd_open(whose_end)
    os.kill(pid, signal.SIGKILL)
    assert select.select([pidfd], [], [], 60)[0]
    os.close(pidfd)


def exporters(appliance):
    """Processes beside the supervisor that have the listener open."""
    port = int(url(appliance).rpartition(":")[2])
    inode = next(
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    )
    return [
        pid
        for pid in appliance.pids()[1:]
        for fd in Path(f"/proc/{pid}/fd").iterdir()
        if os.path.islink(fd) and os.readlink(fd) == f"socket:[{inode}]"
    ]


def test_others_do_not_keep_its_door(running):
    assert len(exporters(running)) == 1


def test_without_the_setting_there_is_no_such_process(fresh_appliance):
    plain = fresh_appliance(penstock_net_processes=1, penstock_io_processes=1)
    assert "at=http" not in plain.log_text()
    assert len(plain.pids()) == 4, "the supervisor, control and one of each"


def test_it_dies_with_the_supervisor(fresh_appliance):
    killed = fresh_appliance(penstock_metrics_listener="127.0.0.1:0")
    (exporter,) = exporters(killed)
    kill(killed.pid, exporter)


@pytest.mark.parametrize(
    ("listener", "why"),
    [("nonsense", "penstock.metrics.listener"), ("127.0.0.1:{taken}", "penstock.metrics.listener")],
)
def test_a_place_that_cannot_be_had_is_refused_with_the_settings_name(
    running, tmp_path, listener, why
):
    taken = url(running).rpartition(":")[2]
    settings = {"penstock.metrics.listener": listener.format(taken=taken)}
    with pytest.raises(ApplianceError, match=why):
        Appliance(tmp_path / "data", settings).start()


def test_it_is_pushed_too_where_nobody_may_ask_and_again_when_the_receiver_is_back(
    tmp_path, monkeypatch
):
    pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    receiver = Receiver(503, 200)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    try:
        settings = {"penstock.otlp.interval.ms": "1000"}
        with Appliance(tmp_path / "data", settings) as appliance:
            ask(appliance, requests.create_topic("pushed", 2, {}))
            for count in itertools.count(2):
                receiver.wait(count)
                found, resource = points(receiver.got[count - 1][2])
                ready = found["penstock_ready", "gauge", frozenset()] == 1
                if ready and found["penstock_topics", "gauge", frozenset()] >= 1:
                    break  # the topic may be told after that
            assert "otlp-not-taken" in appliance.log_text()
    finally:
        receiver.close()
    assert receiver.got[-1][0] == "/v1/metrics"
    assert resource["service.name"] == "penstock" and resource["service.instance.id"] == "1"


def test_the_processes_have_names_of_their_own_in_ps(running):
    def named(pid):
        return Path(f"/proc/{pid}/comm").read_text().strip()

    names = [named(pid) for pid in running.pids()[1:]]
    assert {"penstock-ctl", "penstock-io-0", "penstock-net-0", "penstock-export"} <= set(names)
    assert all(one.startswith("penstock-") for one in names)
