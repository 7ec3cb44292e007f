"""What is told of the tables, as Prometheus reads it."""

import random
from zlib import crc32

import pytest
from exporter_world import SECOND, World, parse, series, value

from appliance.exporter import layout
from appliance.exporter.exposition import BY_NAME, Buckets, Columns, Page
from appliance.exporter.requests import _BOUNDS_US
from appliance.metadata.parts import BrokerImage
from appliance.ring import partition_table as columns
from appliance.ring.counters import FOLLOWER_FETCH
from appliance.ring.partition_table import ROW_MASK
from appliance.ring.process_table import IOPROC, NETPROC, Peer, RemoteFigures
from appliance.ring.push_table import PushingClient
from appliance.ring.quota_table import Meter
from appliance.wire.compression import NONE
from appliance.wire.kraft_records import PartitionChangeRecord


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


# The format ---------------------------------------------------------------------------------------


def test_a_label_says_what_it_holds_whatever_that_is():
    page = Page()
    hostile = 'a"b\\c\nd{e}=f,g'
    page.add("penstock_group_lag_records", 7, hostile, "")
    found = parse(page.text())
    assert value(found, "penstock_group_lag_records", group=hostile, topic="") == 7
    assert value(found, "kafka_consumergroup_lag", consumergroup=hostile, topic="") == 7


def test_what_repeats_a_metric_has_its_labels_and_its_unit():
    page = Page()
    page.add("penstock_request_duration_quantile_seconds", 0.25, "Fetch", "0.99")
    page.add("penstock_received_bytes_total", 5)
    page.add("penstock_topic_received_bytes_total", 3, "t")
    found = parse(page.text())
    jmx = "kafka_server_brokertopicmetrics_bytesin_total"
    assert (
        value(found, "kafka_network_requestmetrics_totaltimems", request="Fetch", quantile="0.99")
        == 250
    )
    assert (value(found, jmx), value(found, jmx, topic="t")) == (5, 3)


def test_columns_are_told_anew_when_they_change_and_only_then():
    told = Columns([("a", "0"), ("a", "1")])
    for values in ([1, 2], [1, 2], [1, 3]):
        page = Page()
        told.write_columns(page, "penstock_partition_high_watermark", list(values))
        found = parse(page.text())
        for name in ("penstock_partition_high_watermark", "kafka_topic_partition_current_offset"):
            assert [value(found, name, topic="a", partition=n) for n in "01"] == values


def test_clients_metrics_are_told_again_and_only_so_many(world, monkeypatch):
    metrics = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    common = pytest.importorskip("opentelemetry.proto.common.v1.common_pb2")
    node = common.KeyValue(key="node.id", value=common.AnyValue(int_value=1))
    points = [metrics.NumberDataPoint(as_double=1.5, attributes=[node]),
              metrics.NumberDataPoint(as_int=7)]  # fmt: skip
    told = metrics.Metric(name="a.b", gauge=metrics.Gauge(data_points=points))
    scope = metrics.ScopeMetrics(metrics=[told])
    whole = metrics.MetricsData(resource_metrics=[metrics.ResourceMetrics(scope_metrics=[scope])])
    monkeypatch.setattr("appliance.exporter.pushed.SERIES_MAX", 3)
    for n, payload in enumerate((whole.SerializeToString(), whole.SerializeToString(), b"\xff")):
        who = PushingClient("alice", f"c{n}", "127.0.0.1", "a-client", "1.2")
        rows = world.tables.pushes.rows[n % 2]
        rows.write_push(bytes([n]) * 16, who, world.now_ns // 1_000_000, 9000, NONE, False, payload)
    found = world.scrape()
    name, client = "penstock_client_metric", {"client_id": "c0", "instance": "A" * 22}
    assert value(found, name, metric="a.b", attributes="node.id=1", **client) == 1.5
    assert value(found, name, metric="a.b", attributes="", **client) == 7
    assert len(series(found, name)) == 2, "of the second one all or none"
    assert value(found, "penstock_client_instances_left_out") == 2
    assert value(found, "penstock_client_instances", software="a-client", version="1.2") == 3


def test_a_histogram_ends_in_all_there_is():
    lines = Buckets("penstock_request_duration_seconds", ("Fetch",), [0.5, 1.0]).lines(
        [1, 2, 4], 9.5
    )
    assert lines.splitlines() == [
        'penstock_request_duration_seconds_bucket{api="Fetch",le="0.5"} 1',
        'penstock_request_duration_seconds_bucket{api="Fetch",le="1.0"} 2',
        'penstock_request_duration_seconds_bucket{api="Fetch",le="+Inf"} 4',
        'penstock_request_duration_seconds_sum{api="Fetch"} 9.5',
        'penstock_request_duration_seconds_count{api="Fetch"} 4',
    ]


def test_prometheus_own_reader_takes_a_page(world):
    parser = pytest.importorskip("prometheus_client.parser")
    world.serve()
    world.topic("orders", 2)
    world.tables.counters.answers[0].answered(0, 10, 10, 5000)
    world.look()
    found = {
        one.name: one
        for one in parser.text_string_to_metric_families(world.exporter.page(world.now_ns))
    }
    for name in ("penstock_ready", "penstock_partition_high_watermark", "kafka_log_log_size"):
        assert found[name].type == BY_NAME[name].kind
    assert found["penstock_requests"].type == "counter", "the reader takes _total away"


# Partitions and topics ----------------------------------------------------------------------------


def test_partitions_and_topics_are_told_as_their_rows_say(world):
    first, second = world.topic("orders", 2)
    (other,) = world.topic("bills", 1)
    world.set(
        first,
        LOG_START=10,
        HIGH_WATERMARK=50,
        LOG_END=60,
        LAST_STABLE=45,
        SIZE_BYTES=7,
        BYTES_IN=100,
        RECORDS_IN=9,
        BATCHES_IN=2,
    )
    world.set(second, HIGH_WATERMARK=5, LAST_STABLE=5, LOG_END=5, SIZE_BYTES=3, BYTES_IN=11)
    world.set(other, BYTES_IN=1000)
    for netproc, part in enumerate(world.tables.partitions.served):
        part[(second & ROW_MASK) * 2 + columns.BYTES_OUT] = 20 + netproc
    found = world.scrape()
    for name, told in (
        ("penstock_partition_log_start_offset", 10),
        ("kafka_topic_partition_oldest_offset", 10),
        ("kafka_topic_partition_current_offset", 50),
        ("kafka_log_log_logendoffset", 60),
        ("kafka_log_log_size", 7),
        ("penstock_partition_leader", 1),
        ("kafka_topic_partition_in_sync_replica", 1),
    ):
        assert value(found, name, topic="orders", partition="0") == told, name
    for name, told in (
        ("penstock_topic_partitions", 2),
        ("penstock_topic_size_bytes", 10),
        ("penstock_topic_records", 45),
        ("penstock_topic_held_records", 5),
        ("penstock_topic_received_bytes_total", 111),
        ("kafka_server_brokertopicmetrics_bytesout_total", 41),
    ):
        assert value(found, name, topic="orders") == told, name
    assert value(found, "penstock_received_bytes_total") == 1111
    assert (value(found, "penstock_partitions"), value(found, "penstock_topics")) == (3, 2)
    assert value(found, "penstock_partition_series") == 1


def test_replicas_that_are_away_are_seen(world):
    world.image.configs[2, "strict"] = {"min.insync.replicas": "2"}
    world.topic("strict", 1, replicas=(1, 2, 3), isr=(1,))
    world.topic("easy", 1, replicas=(1, 2), isr=(1,))
    world.topic("elsewhere", 1, replicas=(2, 1), isr=(2,))
    found = world.scrape()
    assert value(found, "kafka_cluster_partition_underminisr", topic="strict", partition="0") == 1
    assert value(found, "kafka_cluster_partition_atminisr", topic="strict", partition="0") == 0
    assert value(found, "penstock_partition_under_min_isr", topic="easy", partition="0") == 0
    assert value(found, "penstock_partition_at_min_isr", topic="easy", partition="0") == 1
    assert (
        value(found, "kafka_cluster_partition_underminisr", topic="elsewhere", partition="0") == 0
    )
    assert value(found, "kafka_cluster_partition_atminisr", topic="elsewhere", partition="0") == 0
    assert value(found, "kafka_server_replicamanager_leadercount") == 2
    assert value(found, "penstock_partitions_under_replicated") == 2, "of those led here"


def test_a_cluster_is_told_by_kafkas_names(world):
    processes, table = world.tables.processes, world.tables.partitions
    world.image.configs[2, "strict"] = {"min.insync.replicas": "2"}
    world.topic("strict", 2, replicas=(1, 2, 3), isr=(1,))
    world.topic("short", 1, replicas=(1, 2), isr=(1,))
    followed, late = world.topic("followed", 2, replicas=(2, 1), status=columns.FOLLOWING)
    world.topic("moves", 1, replicas=(1, 2))
    moves = world.image.topics_by_name["moves"].partitions
    moves[0] = moves[0]._replace(leader=2, replicas=(1, 2, 3), adding_replicas=(3,))
    strict = world.image.topics_by_name["strict"].partitions
    strict[1] = strict[1]._replace(adding_replicas=(3,))
    world.set(followed, LEADERS_MARK=90, LOG_END=100, REPLICATED=7)
    world.set(late, LEADERS_MARK=90, LOG_END=40, REPLICATED=5)
    table.served[0][columns.TO_FOLLOWERS + columns.BYTES_OUT] = 11
    table.served[1][columns.TO_FOLLOWERS + columns.BYTES_OUT] = 4
    processes.publish_leader(3, 12)
    world.look()
    processes.add_commits(2, 8_000_000)
    found = world.scrape()
    for name, told in (
        ("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", 1),
        ("kafka_server_replicamanager_underreplicatedpartitions", 3),
        ("kafka_server_replicamanager_underminisrpartitioncount", 2),
        ("kafka_server_replicamanager_atminisrpartitioncount", 1),
        ("kafka_server_replicamanager_reassigningpartitions", 1),
        ("kafka_server_brokertopicmetrics_replicationbytesin_total", 12),
        ("kafka_server_brokertopicmetrics_replicationbytesout_total", 15),
        ("kafka_controller_kafkacontroller_activecontrollercount", 0),
        ("kafka_server_raftmetrics_current_leader", 3),
        ("kafka_server_raftmetrics_current_epoch", 12),
        ("kafka_server_raftmetrics_commit_latency_avg", 4),
        ("penstock_metadata_commit_seconds_total", 0.008),
        ("penstock_received_bytes_total", 0),
    ):
        assert value(found, name) == told, name
    assert value(found, "kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 50
    lag = "kafka_server_fetcherlagmetrics_consumerlag"
    assert [value(found, lag, topic="followed", partition=str(n)) for n in range(2)] == [0, 50]
    assert value(found, lag, topic="strict", partition="0") == 0, "it leads"
    world.set(late, STATUS=columns.ONLINE)
    assert value(world.scrape(), "penstock_replication_lag_records") == 0, "of followers alone"


def test_remote_storage_is_told_by_process_and_by_kafkas_names(world):
    table = world.tables.processes
    for index, figures in enumerate(([10, 1, 2, 30, 3, 40, 4, 5], [1, 1, 1, 1, 1, 1, 1, 1])):
        table.set_remote_figures(Peer(IOPROC, index), RemoteFigures(*figures))
    found = world.scrape()
    assert value(found, "penstock_remote_copied_bytes_total", process="ioproc-0") == 10
    assert value(found, "penstock_remote_copy_lag_segments", process="ioproc-0") == 3
    assert value(found, "penstock_remote_fetch_errors_total", process="ioproc-1") == 1
    for name, told in (
        ("remotecopybytes_total", 11), ("remotecopyerrors_total", 2),
        ("remotedeleteerrors_total", 3), ("remotecopylagbytes", 31), ("remotecopylagsegments", 4),
        ("remotefetchbytes_total", 41), ("remotefetchrequests_total", 5),
        ("remotefetcherrors_total", 6),
    ):  # fmt: skip
        assert value(found, f"kafka_server_brokertopicmetrics_{name}") == told


def test_flushes_and_delayed_requests_are_told_by_kafkas_names(world):
    table = world.tables.processes
    for index, took_ns in ((0, 2_000_000), (0, 1_000_000), (1, 500_000)):
        table.count_flush(Peer(IOPROC, index), took_ns)
    table.set_delayed(Peer(NETPROC, 0), 3, 20)
    table.set_delayed(Peer(NETPROC, 1), 0, 4)
    found = world.scrape()
    assert value(found, "penstock_log_flush_seconds_total", process="ioproc-0") == 0.003
    assert value(found, "kafka_log_logflushstats_logflushrateandtimems_count") == 3
    size = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert value(found, size, delayedoperation="Produce") == 3
    assert value(found, size, delayedoperation="Fetch") == 24


def test_compaction_is_told_by_kafkas_names(world):
    sound, failed = world.topic("compacted", 2)
    (gone,) = world.topic("deleted", 1)
    world.set(sound, CLEANING_MS=2500, CLEANING_LATE_MS=0)
    world.set(failed, CLEANING_MS=1500, UNCLEANABLE=3, CLEANING_LATE_MS=61_000)
    world.set(gone, CLEANING_MS=9000, UNCLEANABLE=1, CLEANING_LATE_MS=99_000)
    world.tables.partitions.retire(gone, 1)
    found = world.scrape()
    assert value(found, "kafka_log_logcleanermanager_uncleanable_partitions_count") == 1
    assert value(found, "kafka_log_logcleaner_max_clean_time_secs") == 2.5
    assert value(found, "kafka_log_logcleaner_max_compaction_delay_secs") == 61


def test_elections_are_counted_by_the_controller(world):
    world.topic("t", 2, replicas=(1, 2, 3))
    image, agreement = world.image, world.exporter._agreement

    def change(index, **values):
        topic_id = image.topics_by_name["t"].topic_id
        record = PartitionChangeRecord(partition_id=index, topic_id=topic_id, **values)
        return image.apply(image.applied_offset + 1, record)

    def counted():
        found = world.scrape()
        return (
            value(found, "kafka_controller_controllerstats_leaderelectionrateandtimems_count"),
            value(found, "kafka_controller_controllerstats_uncleanleaderelections_total"),
        )

    world.tables.processes.publish_leader(2, 7)
    agreement.changed(image, change(0, leader=2))
    assert counted() == (0, 0), "node 2 counts it"
    world.tables.processes.publish_leader(1, 8)
    agreement.changed(image, [
        *change(0, leader=1, isr=(1,)),  # clean
        *change(0, leader=-1, isr=(1,), eligible_leader_replicas=(2,)),  # nobody
        *change(0, leader=2, isr=(2,), eligible_leader_replicas=()),  # it was eligible
        *change(0, leader=2, isr=(2, 1)),  # a new epoch of the same leader
        *change(0, leader=3, isr=(3,)),  # unclean
    ])  # fmt: skip
    assert counted() == (3, 1)


def test_who_falls_out_of_sync_is_counted_by_who_leads_record_by_record(world):
    world.topic("ours", 2, replicas=(1, 2, 3))
    world.topic("theirs", 1, replicas=(2, 1))
    image, agreement = world.image, world.exporter._agreement

    def change(name, index, **values):
        topic_id = image.topics_by_name[name].topic_id
        record = PartitionChangeRecord(partition_id=index, topic_id=topic_id, **values)
        return image.apply(image.applied_offset + 1, record)

    agreement.changed(image, [
        *change("ours", 0, isr=(1, 2)), *change("ours", 0, isr=(1,)),
        *change("ours", 0, isr=(1, 2, 3)), *change("ours", 1, replicas=(1, 2, 4)),
        *change("theirs", 0, isr=(2,)), *change("ours", 1, isr=(3,), leader=3),
    ])  # fmt: skip
    found = world.scrape()
    assert value(found, "kafka_server_replicamanager_isrshrinks_total") == 2
    assert value(found, "kafka_server_replicamanager_isrexpands_total") == 1


def test_more_partitions_than_wanted_are_summed_up_by_topic(tmp_path):
    world = World(tmp_path, penstock_metrics_partitions_max=2)
    handles = world.topic("orders", 3)
    for n, handle in enumerate(handles):
        world.set(handle, HIGH_WATERMARK=10 + n, SIZE_BYTES=1)
    found = world.scrape()
    assert value(found, "penstock_partition_series") == 0
    assert value(found, "kafka_topic_partition_current_offset", topic="orders") == 33
    assert value(found, "kafka_topic_partition_replicas", topic="orders") == 3
    assert not series(found, "penstock_partition_leader"), "a sum of node numbers means nothing"
    assert all("partition" not in labels for name, labels in found for labels in [dict(labels)])


def test_brokers_that_are_fenced_are_told_apart(world):
    for number, fenced in ((1, False), (2, False), (3, True)):
        world.image.brokers[number] = BrokerImage(
            broker_id=number, incarnation_id=b"i" * 16, epoch=1, endpoints=(), fenced=fenced
        )
    world.exporter._node_id = 2  # no address of ours is known in this world
    world.exporter._advertised = ("here", 9092)
    found = world.scrape()
    assert (value(found, "kafka_brokers"), value(found, "penstock_brokers_fenced")) == (2, 1)
    assert value(found, "kafka_broker_info", id="2", address="here:9092") == 1


def test_partitions_without_a_leader_are_told_wherever_they_are(world):
    (offline,) = world.topic("here", 1)
    world.set(offline, STATUS=columns.OFFLINE)
    world.topic("nobodys", 2, replicas=(-1, 2), isr=())
    found = world.scrape()
    assert value(found, "penstock_cluster_partitions_leaderless") == 2
    assert value(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 3


def test_of_too_many_topics_the_heaviest_are_told(tmp_path):
    world = World(tmp_path, penstock_metrics_topics_max=2)
    first, second, third = (world.topic(name)[0] for name in ("light", "heavy", "large"))
    world.set(first, BYTES_IN=5)
    world.set(second, BYTES_IN=50)
    world.set(third, SIZE_BYTES=40)
    found = world.scrape()
    assert {one["topic"] for one in series(found, "penstock_topic_size_bytes")} == {
        "heavy",
        "large",
    }
    assert {one["topic"] for one in series(found, "kafka_log_log_size")} == {"heavy", "large"}
    assert value(found, "penstock_topics_left_out") == 1
    assert value(found, "penstock_received_bytes_total") == 55, "of all of them"
    world.set(first, BYTES_IN=500)
    assert "light" not in str(series(world.scrape(), "penstock_topic_size_bytes")), (
        "it is seldom sorted"
    )
    world.now_ns += 601 * SECOND
    world.look()
    found = world.scrape()
    assert {one["topic"] for one in series(found, "penstock_topic_size_bytes")} == {
        "heavy",
        "light",
    }


def test_totals_do_not_go_back_when_topics_go(world):
    (gone,) = world.topic("gone")
    (stays,) = world.topic("stays")
    world.set(gone, BYTES_IN=100)
    world.set(stays, BYTES_IN=7)
    assert value(world.scrape(), "penstock_received_bytes_total") == 107
    topic = world.image.topics_by_name.pop("gone")
    del world.image.topics_by_id[topic.topic_id]
    world.exporter._version += 1
    world.tables.partitions.retire(gone, 5)
    found = world.scrape()
    assert value(found, "penstock_received_bytes_total") == 107
    assert [one["topic"] for one in series(found, "penstock_topic_size_bytes")] == ["stays"]
    fresh = world.tables.partitions.reuse(gone & ROW_MASK, topic.topic_id[:-1] + b"2", 0)
    world.set(fresh, BYTES_IN=1)
    found = world.scrape()
    assert value(found, "penstock_received_bytes_total") == 108
    assert value(found, "penstock_partitions") == 2, "whose topic nobody knows yet counts as one"


@pytest.mark.parametrize("seed", range(4))
def test_topics_that_come_and_go_are_told_as_a_plain_sum_over_them_would(tmp_path, seed):
    chance = random.Random(seed)
    world = World(tmp_path, penstock_metrics_partitions_max=chance.choice((0, 10, 1000)))
    table, alive, everything = world.tables.partitions, {}, 0
    for number in range(60):
        deed = chance.random()
        if deed < 0.3 and len(alive) < 12:
            alive[f"t{number}"] = [
                [handle, 0] for handle in world.topic(f"t{number}", chance.randint(1, 4))
            ]
        elif deed < 0.45 and alive:
            name = chance.choice(sorted(alive))
            for handle, _ in alive.pop(name):
                table.retire(handle, number)
            del world.image.topics_by_id[world.image.topics_by_name.pop(name).topic_id]
            world.exporter._version += 1
        for partitions in alive.values():
            for one in partitions:
                more = chance.randint(0, 3)
                one[1] += more
                everything += more
                world.set(one[0], BYTES_IN=one[1], HIGH_WATERMARK=one[1])
        for _ in range(chance.randrange(4)):
            world.exporter.prepare()  # slices, however many there is time for, change nothing
        found = world.scrape()
        assert value(found, "penstock_received_bytes_total") == everything
        told = {one["topic"] for one in series(found, "penstock_topic_received_bytes_total")}
        assert told == alive.keys()
        for name, partitions in alive.items():
            here = [count for _, count in partitions]
            assert value(found, "penstock_topic_received_bytes_total", topic=name) == sum(here)
            marks = [
                one for one in series(found, "penstock_partition_high_watermark")
                if one["topic"] == name
            ]  # fmt: skip
            whole = value(found, "penstock_partition_series")
            assert len(marks) == (len(here) if whole else 1)
            if not whole:
                assert value(found, "kafka_topic_partition_current_offset", topic=name) == sum(here)


def test_what_is_new_is_written_before_somebody_asks_and_the_rest_stays_written(tmp_path):
    world, written = World(tmp_path), set()
    names = [f"topic-{n}" for n in range(60)]
    border = next(name for name in names if crc32(name.encode()) % layout.TOPICS_OF_A_BLOCK == 0)
    for name in ("aaa", border, "zzz"):
        world.topic(name)
    partitions = world.exporter._partitions
    while world.exporter.prepare():
        blocks = partitions._layout.blocks
    assert [one.written for one in blocks] == [True, True]
    assert [len(one.topics) for one in blocks] == [1, 2]
    world.topic("bbb")
    world.look()
    assert world.exporter.prepare(), "a slice: who has changed"
    first, last = partitions._layout.blocks
    assert last is blocks[1] and first is not blocks[0]
    assert not first.written
    while world.exporter.prepare():
        written.add(len(partitions._layout.blocks))
    assert written == {2} and first.written
    told = series(world.scrape(), "penstock_topic_size_bytes")
    assert {one["topic"] for one in told} == {"aaa", "bbb", border, "zzz"}
    assert partitions._layout.blocks == [first, last], "a scrape makes none of it again"


# Requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_histogram_counts_what_was_not_slower_than_its_bounds(world, seed):
    chance = random.Random(seed)
    took = [int(chance.lognormvariate(7, 3)) for _ in range(500)]
    for n, us in enumerate(took):
        world.tables.counters.answers[n % 2].answered(0, 100, 10, us * 1000)
    found = world.scrape()
    name = "penstock_request_duration_seconds"
    for bound in _BOUNDS_US:
        told = value(found, f"{name}_bucket", api="Produce", le=repr(bound / 1e6))
        assert told == sum(us < bound for us in took)
    assert value(found, f"{name}_count", api="Produce") == len(took)
    real = sum(min(us, 134_000_000) for us in took) / 1e6
    assert value(found, f"{name}_sum", api="Produce") == pytest.approx(real, rel=0.02)


def test_quantiles_are_about_the_last_minute(world):
    answers = world.tables.counters.answers[0]
    name = "penstock_request_duration_quantile_seconds"
    world.look()
    for _ in range(1000):
        answers.answered(0, 1, 1, 5_000_000_000)
    assert value(world.scrape(), name, api="Produce", quantile="0.50") == pytest.approx(5, rel=0.02)
    for _ in range(7):
        world.now_ns += 10 * SECOND
        world.look()
    assert series(world.scrape(), name) == [], "nobody asked for a minute"
    answers.answered(0, 1, 1, 2_000_000)
    found = world.scrape()
    assert value(found, name, api="Produce", quantile="0.999") == pytest.approx(0.002, rel=0.02)
    assert value(found, "penstock_requests_total", api="Produce") == 1001


def test_stages_are_told_by_both_names_and_fetches_of_followers_apart(world):
    answers = world.tables.counters.answers[0]
    world.look()
    ms = 1_000_000
    answers.answered(0, 1, 1, 10 * ms, 0, 20 * ms, 12 * ms, 14 * ms)
    answers.answered(1, 1, 1, 40 * ms, 1, 50 * ms, 0, 20 * ms)
    answers.answered(1, 1, 1, 500 * ms, FOLLOWER_FETCH, 600 * ms, 0, 100 * ms)
    answers.sent_late(1, 7 * ms)
    found, name = world.scrape(), "penstock_request_stage_quantile_seconds"
    kafkas = "kafka_network_requestmetrics"

    def told(api, stage):
        return pytest.approx(value(found, name, api=api, stage=stage, quantile="0.99"), rel=0.001)

    def near(seconds):
        return pytest.approx(seconds, rel=0.125)

    for stage, kafka, seconds in (
        ("queue", "requestqueuetimems", 0.002),
        ("local", "localtimems", 0.002),
        ("remote", "remotetimems", 0.006),
        ("send", "responsesendtimems", 0),
    ):
        mine = value(found, f"{kafkas}_{kafka}", request="Produce", quantile="0.99") / 1000
        assert mine == told("Produce", stage) == near(seconds)
    apis = ("FetchConsumer", 0.04, 0.03), ("FetchFollower", 0.5, 0.5)
    for api, total, remote in apis:
        mine = value(found, f"{kafkas}_totaltimems", request=api, quantile="0.50") / 1000
        assert mine == near(total) and told(api, "remote") == near(remote)
        assert value(found, f"{kafkas}_requests_total", request=api) == 1
    assert told("FetchConsumer", "send") == near(0.007) and told("FetchFollower", "send") == 0
    assert value(found, f"{kafkas}_requests_total", request="Fetch") == 2
    total = value(found, "penstock_request_stage_seconds_total", api="Produce", stage="total")
    assert total == near(0.01)
    assert value(found, "penstock_requests_total", api="Fetch") == 2, "both, as ever"


def test_what_was_acknowledged_is_told_by_who_leads(world):
    """Its rise beside that of a group's committed offsets says how complete the group reads."""
    first, second = world.topic("orders", 2)
    world.set(first, HIGH_WATERMARK=50, LOG_END=60)
    world.set(second, HIGH_WATERMARK=7, LOG_END=7)
    found = world.scrape()
    assert value(found, "penstock_topic_acknowledged_offset", topic="orders") == 57


def test_errors_have_kafkas_names(world):
    for process in (0, 3):
        world.tables.counters.errors[process].failed(0, 6)
    found = world.scrape()
    assert (
        value(found, "penstock_request_errors_total", api="Produce", error="NOT_LEADER_OR_FOLLOWER")
        == 2
    )
    assert value(found, "kafka_server_brokertopicmetrics_failedproducerequests_total") == 2


# Clients, groups, quotas --------------------------------------------------------------------------


def test_connections_are_counted_by_listener_and_software_as_it_becomes_known(world):
    rows = world.tables.clients.rows[1]
    rows.clear_rows()
    first = rows.claim("::1", "PLAINTEXT", 0)
    rows.claim("::1", "PLAINTEXT", 0)
    found = world.scrape()
    assert (
        value(found, "kafka_server_socket_server_metrics_connection_count", listener="PLAINTEXT")
        == 2
    )
    assert value(found, "penstock_client_connections", software="", version="") == 2
    rows.software(first, "librdkafka", "2.6")
    rows.pause(first, 0, world.now_ns // 1_000_000 + 50, 50)
    found = world.scrape()
    assert value(found, "penstock_client_connections", software="librdkafka", version="2.6") == 1
    assert value(found, "penstock_connections_throttled") == 1


def test_groups_are_told_and_boards_find_the_appliance_without_any(world):
    board = "kafka_consumergroup_current_offset"
    assert series(world.scrape(), board) == [{}]
    world.group(
        (5, "readers", "orders", 100), (0, "g" * 300, "orders", 7), (1, "g" * 301, "orders", 7)
    )
    found = world.scrape()
    assert value(found, "kafka_consumergroup_lag", consumergroup="readers", topic="orders") == 5
    assert value(found, board, consumergroup="readers", topic="orders") == 100
    assert len(series(found, board)) == 2, "names that are cut to the same one are one"


def test_groups_are_counted_by_state_and_members_over_all_processes(world):
    kafkas = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    found = world.scrape()
    assert value(found, kafkas) == value(found, "penstock_groups", state="Stable") == 0
    world.coordinate(0, {"Stable": 3, "Reconciling": 1}, [(12, "readers"), (1, 'a "b"')], 5)
    world.coordinate(1, {"Stable": 2, "Empty": 4, "PreparingRebalance": 1}, [(2, "others")], 1)
    found = world.scrape()
    assert value(found, "penstock_groups", state="Stable") == 5
    assert value(found, "penstock_groups", state="Reconciling") == 1
    assert value(found, "penstock_groups", state="Assigning") == 0
    assert value(found, kafkas) == 11
    assert value(found, f"{kafkas}stable") == 5 and value(found, f"{kafkas}empty") == 4
    assert value(found, f"{kafkas}preparingrebalance") == 1
    assert value(found, f"{kafkas}dead") == value(found, f"{kafkas}completingrebalance") == 0
    assert value(found, "penstock_group_members", group="readers") == 12
    assert value(found, "kafka_consumergroup_members", consumergroup="others") == 2
    assert value(found, "kafka_consumergroup_members", consumergroup='a "b"') == 1
    assert value(found, "penstock_group_members_left_out") == 6
    world.coordinate(0, {"Stable": 1}, [(9, "50 %s")])
    world.group((4, 'the "50 %d"', "orders", 8))
    found = world.scrape()
    told = "kafka_consumergroup_members"
    assert value(found, told, consumergroup="50 %s") == 9
    assert value(found, "penstock_group_lag_records", group='the "50 %d"', topic="orders") == 4
    assert len(series(found, told)) == 2, "who is gone is not told"
    world.coordinate(0, {})
    world.coordinate(1, {})
    assert not series(world.scrape(), told)


def test_a_pause_is_told_until_it_is_long_over(world):
    quotas, now_ms = world.tables.quotas, world.now_ns // 1_000_000
    for kind, ended_ms in ((0, now_ms - 20_000), (1, now_ms - 5000), (2, now_ms + 200)):
        at, _ = quotas.claim(0, Meter(kind, "", "loader"))
        quotas.pause(at, ended_ms - 250, 250, 100)
    elsewhere, _ = quotas.claim(1, Meter(2, "", "loader"))
    quotas.pause(elsewhere, now_ms - 3000, 700, 100)  # an older one of the same client
    found = world.scrape()
    client = {"user": "", "client_id": "loader"}
    labels = {"kind": "consumer_byte_rate", **client}
    assert value(found, "penstock_quota_pause_seconds", **labels) == 0.25
    assert value(found, "kafka_server_produce_throttle_time", **client) == 0
    assert value(found, "kafka_server_fetch_throttle_time", **client) == 250
    assert value(found, "kafka_server_request_throttle_time", **client) == 250


def test_quotas_are_told_over_all_processes(world):
    quotas = world.tables.quotas
    meter = Meter(0, "", "loader")
    slot = world.now_ns // SECOND
    for region in (0, 1):
        at, _ = quotas.claim(region, meter)
        quotas.set_limit(at, 1000.0, 0)
        quotas.add(at, slot, 5000, 1)
        quotas.pause(at, 0, 10, 100)
    found = world.scrape()
    labels = {"kind": "producer_byte_rate", "user": "", "client_id": "loader"}
    assert value(found, "penstock_quota_limit", **labels) == 1000
    assert value(found, "penstock_quota_rate", **labels) == 1000, "10,000 over ten seconds"
    assert value(found, "penstock_quota_pauses_total", **labels) == 2
    assert value(found, "kafka_server_produce_byte_rate", user="", client_id="loader") == 1000


# The host -----------------------------------------------------------------------------------------


def test_a_process_that_is_replaced_goes_on_counting(world):
    world.serve()
    world.look()
    before = value(world.scrape(), "penstock_process_cpu_seconds_total", process="ioproc-0")
    assert before > 0, "it is this process"
    peer = Peer(IOPROC, 0)
    world.tables.processes.vacate(peer)
    world.look()
    found = world.scrape()
    assert value(found, "penstock_process_cpu_seconds_total", process="ioproc-0") >= before
    assert value(found, "penstock_process_up", process="ioproc-0") == 0
    assert value(found, "penstock_process_memory_bytes", process="ioproc-0") == 0
    assert value(found, "process_resident_memory_bytes") > 0


def test_a_disk_is_told_and_said_to_be_full_when_records_are_refused(tmp_path):
    full = World(tmp_path, penstock_disk_free_min_bytes=1 << 60)
    full.serve()
    found = full.scrape()
    assert value(found, "penstock_disk_full", folder=str(tmp_path)) == 1
    assert value(found, "penstock_disk_size_bytes", folder=str(tmp_path)) > 0
    assert value(found, "penstock_warnings") == 1


# Logins and denials -------------------------------------------------------------------------------


def test_logins_and_denials_are_told_by_our_names_and_kafkas(world):
    for process, outcome in (("netproc-0", 0), ("netproc-0", 1), ("control", 1), ("netproc-0", 2)):
        region = world.tables.security.regions[process]
        region.count_login(0, "SASL_SSL", "SCRAM-SHA-256", outcome)
        region.count_denial(3, 2)
    found = world.scrape()
    who = {"listener": "SASL_SSL", "mechanism": "SCRAM-SHA-256"}
    names = ("successful_authentication", "failed_authentication", "successful_reauthentication",
             "failed_reauthentication")  # fmt: skip
    kafkas = [f"kafka_server_socket_server_metrics_{name}_total" for name in names]
    assert [value(found, name, **who) for name in kafkas] == [1, 2, 1, 0]
    assert value(found, "penstock_login_failures_total", **who) == 2
    assert value(found, "penstock_denials_total", operation="READ", resource="TOPIC") == 4
