"""Boards that were made for Apache Kafka, our own one, the alert rules and the page: all of them
ask for what is told.

What the first two ask is written down here as facts, name and labels: `kafka_exporter`'s overview
(Grafana 7589) and Strimzi's `strimzi-kafka`.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from exporter_world import World, series

from appliance.exporter.exposition import BY_NAME, FAMILIES
from appliance.exporter.families import HISTOGRAM, OWN
from appliance.exporter.kafka_names import MISSING
from appliance.ring.push_table import PushingClient
from appliance.ring.quota_table import Meter
from appliance.wire.compression import NONE
from console.model.monitoring import board, page, rules
from console.root import root

DOCS = Path(__file__).parents[2] / "docs"

KAFKA_EXPORTER = {
    "kafka_topic_partition_current_offset": {"topic"},
    "kafka_consumergroup_lag": {"topic", "consumergroup"},
    "kafka_consumergroup_current_offset": {"topic", "consumergroup"},
    "kafka_topic_partitions": {"topic"},
}
STRIMZI = {
    "kafka_server_replicamanager_leadercount": set(),
    "kafka_controller_controllerstats_uncleanleaderelections_total": set(),
    "kafka_controller_kafkacontroller_activecontrollercount": set(),
    "kafka_server_replicamanager_partitioncount": set(),
    "kafka_server_replicamanager_underreplicatedpartitions": set(),
    "kafka_cluster_partition_atminisr": set(),
    "kafka_cluster_partition_underminisr": set(),
    "kafka_cluster_partition_replicascount": set(),
    "kafka_controller_kafkacontroller_offlinepartitionscount": set(),
    "process_open_fds": set(),
    "kafka_server_brokertopicmetrics_bytesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_bytesout_total": {"topic"},
    "kafka_server_brokertopicmetrics_messagesin_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalproducerequests_total": {"topic"},
    "kafka_server_brokertopicmetrics_totalfetchrequests_total": {"topic"},
    "kafka_network_socketserver_networkprocessoravgidle_percent": set(),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": set(),
    "kafka_server_kafkaserver_linux_disk_write_bytes": set(),
    "kafka_server_kafkaserver_linux_disk_read_bytes": set(),
    "kafka_server_socket_server_metrics_connection_count": {"listener"},
    "kafka_log_log_size": {"topic", "partition"},
}
STRIMZI_NOT_TOLD = {
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "jvm_memory_used_bytes",
    "jvm_gc_collection_seconds_sum",
    "jvm_gc_collection_seconds_count",
    "jvm_threads_current",
}
"""Asked for by topic where errors have none, or of a JVM; container_* and kubelet_* are Kubernetes'
own."""

PUSHED = bytes.fromhex("0a14 1212 1210 0a016d 2a0b 0a09 31 0700000000000000")
"""A gauge `m` that is 7, as a client pushes it."""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("data"))
    world.serve()
    for handle in world.topic("orders", 2):
        world.set(handle, HIGH_WATERMARK=5, LOG_END=5)
    world.coordinate(0, {"Stable": 1}, [(2, "readers")])
    world.group((5, "readers", "orders", 100))
    world.tables.counters.errors[0].failed(0, 6)
    region = world.tables.security.regions["netproc-0"]
    region.count_login(0, "SASL", "PLAIN", 0)
    region.count_denial(3, 2)
    rows = world.tables.clients.rows[0]
    rows.clear_rows()
    rows.claim("::1", "PLAINTEXT", 0)
    who = PushingClient("ANONYMOUS", "loader", "::1", "a-client", "1")
    pushes = world.tables.pushes.rows[0]
    pushes.write_push(bytes(16), who, world.now_ns // 1_000_000, 300_000, NONE, False, PUSHED)
    for kind in range(3):
        world.tables.quotas.claim(0, Meter(kind, "", "loader"))
    world.look()
    world.tables.counters.answers[0].answered(0, 10, 10, 5000)
    world.turn(seconds=10)
    world.look()
    return world.scrape()


@pytest.mark.parametrize(
    "asked", [KAFKA_EXPORTER, STRIMZI], ids=["kafka_exporter", "strimzi-kafka"]
)
def test_a_board_made_for_kafka_finds_every_metric_with_its_labels(told, asked):
    for name, labels in asked.items():
        found = series(told, name)
        assert any(labels <= one.keys() for one in found), f"{name} by {labels}: {found}"


def test_what_a_board_does_not_find_is_said_with_the_reason(told):
    missing = " ".join(MISSING)
    for name in STRIMZI_NOT_TOLD:
        assert not any("topic" in one for one in series(told, name))
        word = (
            "jvm_*"
            if name.startswith("jvm_")
            else re.sub("(failed)[a-z]+_total", r"\1…requests_total", name)
        )
        assert word in missing


def test_every_metric_that_is_declared_is_told(told):
    names = {re.sub("_(bucket|sum|count)$", "", name) for name, _ in told} | {
        name for name, _ in told
    }
    only_of_a_follower = {
        "penstock_info",
        "kafka_broker_info",
        "penstock_partition_replication_lag_records",
        "kafka_server_fetcherlagmetrics_consumerlag",
    }
    only_over_tls = {"penstock_certificate_expiry_timestamp_seconds"}
    assert {family.name for family in FAMILIES} - names == only_of_a_follower | only_over_tls


def test_names_say_their_unit_and_their_kind():
    for one in OWN:
        assert one.name.startswith("penstock_")
        assert one.name.endswith("_total") == (one.kind == "counter"), one.name
        assert not re.search("_(ms|us|kb|mb|percent)(_|$)", one.name), "base units"
        assert one.meaning.endswith("."), one.name


NAME = re.compile(r"(penstock_[a-z0-9_]+)(?:\{([^}]*)\})?")


def asked_for(expr):
    """(name, labels that are compared, labels by which it is summed up) in a query: by those that
    stand next before it."""
    for found in NAME.finditer(expr):
        name, inside = found.groups()
        by = re.findall(r"by \(([^)]*)\)", expr[: found.start()])[-1:]
        yield (
            name,
            set(re.findall(r"([a-z_]+)[=!]", inside or "")),
            {w.strip() for one in by for w in one.split(",")},
        )


def check(expr):
    outside = {"instance", "job", ""}
    for name, compared, summed in asked_for(expr):
        family = BY_NAME[name]
        assert family.kind != HISTOGRAM
        assert compared | summed <= {*family.labels, *outside}, (
            f"{expr}: {name} has {family.labels}"
        )


def test_alerts_and_our_board_ask_for_what_is_told():
    for one in rules.ALERTS:
        check(one.expr)
        labels = {label for name, *_ in asked_for(one.expr) for label in BY_NAME[name].labels}
        used = set(re.findall(r"\$labels\.([a-z_]+)", one.summary + one.remedy))
        assert used <= labels | {"instance", "job"}, one.name
    for _, panels in board.ROWS:
        for panel in panels:
            for expr, _ in panel.queries:
                check(expr)


def test_panels_stand_beside_one_another():
    panels = json.loads(board.text())["panels"]
    taken = set()
    for one in panels:
        place = one["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24 and not cells & taken, one["title"]
        taken |= cells
    assert len({one["id"] for one in panels}) == len(panels)


@pytest.mark.parametrize(
    ("file", "made"),
    [
        ("metrics.md", page.text),
        ("metrics/alerts.yml", rules.text),
        ("metrics/board.json", board.text),
    ],
)
def test_what_is_generated_is_current(file, made):
    assert (DOCS / file).read_text() == made(), f"penstock metrics … > docs/{file}"


@pytest.mark.parametrize(
    ("words", "made"), [("page", page.text), ("rules", rules.text), ("board", board.text)]
)
def test_a_command_prints_it(words, made):
    done = CliRunner().invoke(root, ["metrics", words])
    assert (done.exit_code, done.output) == (0, made())


def test_a_command_lists_every_metric():
    done = CliRunner().invoke(root, ["metrics", "list", "-o", "json"])
    assert [one["name"] for one in json.loads(done.output)] == list(BY_NAME)


# promtool, of the Debian package prometheus -------------------------------------------------------


@pytest.fixture
def promtool():
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed")

    def run(*args, text=None):
        return subprocess.run(
            [found, *args], input=text, capture_output=True, text=True, check=False
        )

    return run


def test_each_rule_has_a_case_in_which_it_fires():
    rules = re.findall(r"alert: (\w+)", (DOCS / "metrics/alerts.yml").read_text())
    cases = Path(__file__).with_name("alerts.test.yml").read_text()
    fires = re.findall(r"alertname: (\w+)\n +exp_alerts:\n +- exp_labels", cases)
    assert sorted(rules) == sorted(fires)


def test_prometheus_takes_the_rules_and_they_fire(promtool):
    checked = promtool("check", "rules", str(DOCS / "metrics/alerts.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    fired = promtool("test", "rules", str(Path(__file__).with_name("alerts.test.yml")))
    assert fired.returncode == 0, fired.stdout + fired.stderr


def test_prometheus_takes_a_page(promtool, tmp_path):
    world = World(tmp_path)
    world.serve()
    world.topic("orders", 2)
    checked = promtool("check", "metrics", text=world.exporter.page(world.now_ns))
    ours = [line for line in checked.stderr.splitlines() if line.startswith("penstock_")]
    assert "error" not in checked.stderr.replace("_error_count", "") and not ours, checked.stderr
