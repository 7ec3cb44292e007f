"""Prometheus itself, beside a running appliance with clients: each query of our board, each rule,
and what boards that were made for Apache Kafka select and sum by.

Skipped where Debian's package prometheus is not installed.
"""

import json
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from confluent_kafka import Consumer
from exporter_world import parse
from test_boards import DOCS, KAFKA_EXPORTER, NAME, STRIMZI

from appliance.exporter.exposition import BY_NAME
from appliance.exporter.families import COUNTER
from benchmarks import batches, requests
from benchmarks.kafka import free_port
from benchmarks.peer import Wire
from console.model.monitoring import board, rules
from penstock.local import Appliance
from tests.compat.waiting import until
from tests.console_process import typing
from tests.tls_front import DAY, Authority, keystore

LIMIT_S = 110  # of a busy machine
SETTINGS = {"penstock.metrics.listener": "127.0.0.1:0", "group.initial.rebalance.delay.ms": "0"}
LABELS = {"namespace": "penstock", "strimzi_io_cluster": "it", "kubernetes_pod_name": "it-1"}
"""What Kubernetes adds for Strimzi's board, and elsewhere the scrape configuration."""
LAST = (
    "penstock_certificate_expiry_timestamp_seconds",
    "penstock_network_idle_ratio",
    "penstock_group_members",
    "penstock_quota_limit",
)
"""What is told some seconds after the rest: by a handshake, of ten seconds, by coordinators, of a
quota."""
ONLY_SOMETIMES = "penstock_topic_held_records", "FetchFollower", "acknowledged_offset"
"""Of topics in which a transaction holds records back, of other replicas, of what rises."""

CONFIG = """
global: {{scrape_interval: 500ms, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: ["{target}"], labels: {labels}}}]
"""


class Prometheus:
    """One that scrapes `target` twice a second."""

    def __init__(self, program, folder, target):
        config = folder / "prometheus.yml"
        labels = json.dumps(LABELS)
        alerts = DOCS / "metrics/alerts.yml"
        config.write_text(CONFIG.format(rules=alerts, target=target, labels=labels))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    program,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address={self.url.removeprefix('http://')}",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, path, **values):
        """What the answer has as `data`; a query that it cannot read is an AssertionError."""
        assert self.process.poll() is None, self.log.read_text()
        target = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(values)}"
        try:
            with urllib.request.urlopen(target, timeout=LIMIT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as no:
            raise AssertionError(f"{values}: {no.read().decode()}") from no
        except urllib.error.URLError as no:
            raise AssertionError(f"{path}: {no}: {self.log.read_text()}") from no

    def found(self, expr):
        """The series of an instant query."""
        return self.ask("query", query=expr)["result"]

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT_S)


def use(appliance):
    """What clients do: a topic with traffic, an error, a quota, a group; its member is returned."""
    typing(appliance.bootstrap)("quota", "set", "--default", "client-id", "produce=9MB/s", "--yes")
    batch = batches.uniform(3, 50, 1_700_000_000_000)
    member = Consumer(
        {
            "bootstrap.servers": appliance.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
        }
    )
    with Wire(("127.0.0.1", appliance.port)) as wire:
        wire.call(requests.create_topic("orders", 2, {}))
        wire.call(requests.produce("nowhere", 0, batch, -1, 1))
        for _ in range(3):
            wire.call(requests.produce("orders", 0, batch, -1, 1))
        member.subscribe(["orders"])
        until(lambda: member.poll(0.1) is not None, LIMIT_S)
        wire.call(requests.produce("orders", 1, batch, -1, 1))
    return member


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A Prometheus that has scraped everything at least twice."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path_factory.mktemp("prometheus")
    tls = keystore(Authority(folder), "broker", "127.0.0.1", lasts=20 * DAY)
    tls["listeners"] = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    with Appliance(folder / "appliance", SETTINGS | tls) as appliance:
        target = re.findall(r"at=http://(\S+)/metrics", appliance.log_text())[-1]
        prometheus = Prometheus(program, folder, target)
        try:
            member = use(appliance)

            def complete():
                member.poll(0.2)
                twice = (f"count_over_time({name}[1m]) > 1" for name in LAST)
                return all(prometheus.found(expr) for expr in twice)

            until(complete, LIMIT_S)
            yield prometheus
            member.close()
        finally:
            prometheus.close()


def test_it_takes_every_series_of_the_page(asked):
    (target,) = asked.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    with urllib.request.urlopen(target["scrapeUrl"], timeout=LIMIT_S) as answer:
        told = {name for name, _ in parse(answer.read().decode())}

    def stored():
        counts = asked.found('count by (__name__) ({job="penstock"})')
        assert told <= {one["metric"]["__name__"] for one in counts}

    until(stored, LIMIT_S)


def filled(expr):
    """As Grafana fills in a board's variables."""
    for name, value in (("instance", ".*"), ("topic", ".*"), ("__rate_interval", "1m")):
        expr = expr.replace(f"${name}", value)
    return expr


def test_every_query_of_our_board_has_data(asked):
    panels = json.loads(board.text())["panels"]
    exprs = [query["expr"] for panel in panels for query in panel.get("targets", ())]
    empty = {expr for expr in exprs if not asked.found(filled(expr))}
    assert len(exprs) > 40 and all(any(one in expr for one in ONLY_SOMETIMES) for expr in empty), (
        empty
    )


def values_of(asked, query):
    """What a variable offers: label_values(series, label)."""
    series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", filled(query)).groups()
    return asked.ask(f"label/{label}/values", **{"match[]": series})


def test_the_variables_of_boards_offer_something(asked):
    for one in json.loads(board.text())["templating"]["list"]:
        assert one["type"] == "datasource" or values_of(asked, one["query"]["query"])
    by_job = "label_values(kafka_consumergroup_current_offset, job)"
    assert values_of(asked, by_job) == ["penstock"], "kafka_exporter's finds the appliance by it"
    topics = 'label_values(kafka_topic_partition_current_offset{topic!=""}, topic)'
    assert "orders" in values_of(asked, topics)


def test_every_rule_is_evaluated_over_metrics_that_are_there(asked):
    until(lambda: all(one["health"] == "ok" for one in evaluated(asked)), LIMIT_S)
    found = evaluated(asked)
    assert {one["name"] for one in found} == {one.name for one in rules.ALERTS}
    assert not [one["name"] for one in found if one["state"] == "firing"], "nothing is wrong"
    for one in rules.ALERTS:
        for name, matched in NAME.findall(one.expr):
            assert asked.found(f"{name}{{{matched}}}"), f"{one.name}: {name}{{{matched}}}"


def evaluated(asked):
    (group,) = asked.ask("rules")["groups"]
    return group["rules"]


def of_board(name, labels):
    """A query as such a board has it: chosen by its scrape's labels, summed up by the metric's."""
    chosen = "".join(f',{label}=~".+"' for label in sorted(labels))
    series = f'{name}{{job="penstock",{board_labels()}{chosen}}}'
    value = f"rate({series}[1m])" if BY_NAME[name].kind == COUNTER else series
    return f"sum by ({', '.join(sorted(labels | {'kubernetes_pod_name'}))}) ({value})"


def board_labels():
    return ",".join(f'{name}=~"{value}"' for name, value in LABELS.items())


@pytest.mark.parametrize(
    "board", [KAFKA_EXPORTER, STRIMZI], ids=["kafka_exporter", "strimzi-kafka"]
)
def test_what_a_board_made_for_kafka_sums_up_is_there(asked, board):
    for name, labels in board.items():
        found = asked.found(of_board(name, labels))
        assert found, of_board(name, labels)
        assert all(labels <= one["metric"].keys() for one in found)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ('kafka_consumergroup_members{consumergroup="readers"}', "1"),
        ("kafka_coordinator_group_groupmetadatamanager_numgroups", "1"),
        ("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", "1"),
        ('sum(penstock_groups{state!="Stable"})', "0"),
    ],
)
def test_a_group_with_a_member_is_seen(asked, expr, value):
    until(lambda: [one["value"][1] for one in asked.found(expr)] == [value], LIMIT_S)
