"""A board for Grafana: rows of panels as declarations, and the JSON that they make.

Every query names metrics that `appliance/exporter` declares; the board asks for a data source and
an instance, and for topics.
"""

import json
from typing import Any, Final, NamedTuple

_HERE: Final = 'instance=~"$instance"'
_TOPIC: Final = f'{_HERE},topic=~"$topic"'
_RATE: Final = "[$__rate_interval]"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_HEIGHT: Final = 8
_STAT_HEIGHT: Final = 4


class Panel(NamedTuple):
    """unit: Grafana's name of it. queries: (PromQL, legend). stat: one big figure."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    stat: bool = False


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    ("At a glance", (
        Panel("Ready", "bool_yes_no", ((f"min(penstock_ready{{{_HERE}}})", ""),), stat=True),
        Panel("Warnings", "short", ((f"sum(penstock_warnings{{{_HERE}}})", ""),), stat=True),
        Panel("Partitions offline", "short", ((f"sum(penstock_partitions_offline{{{_HERE}}})", ""),), stat=True),
        Panel("Not in sync", "short", ((f"sum(penstock_partitions_under_replicated{{{_HERE}}})", ""),), stat=True),
        Panel("Connections", "short", ((f"sum(penstock_connections{{{_HERE}}})", ""),), stat=True),
        Panel("Throttled", "short", ((f"sum(penstock_connections_throttled{{{_HERE}}})", ""),), stat=True),
    )),
    ("Traffic", (
        Panel("Bytes", "Bps", (
            (f"sum(rate(penstock_received_bytes_total{{{_HERE}}}{_RATE}))", "in"),
            (f"sum(rate(penstock_sent_bytes_total{{{_HERE}}}{_RATE}))", "out"),
        )),
        Panel("Records in", "short", ((f"sum(rate(penstock_received_records_total{{{_HERE}}}{_RATE}))", "records/s"),)),
        Panel("Requests", "reqps", ((f"sum by (api) (rate(penstock_requests_total{{{_HERE}}}{_RATE}))", "{{api}}"),)),
        Panel("Errors", "short", ((f"sum by (api, error) (rate(penstock_request_errors_total{{{_HERE}}}{_RATE}))", "{{api}} {{error}}"),)),
    )),
    ("Latency", (
        Panel("Produce", "s", ((f'max by (quantile) (penstock_request_duration_quantile_seconds{{{_HERE},api="Produce"}})', "p{{quantile}}"),)),
        Panel("Fetch, waiting for records included", "s", ((f'max by (quantile) (penstock_request_duration_quantile_seconds{{{_HERE},api="Fetch"}})', "p{{quantile}}"),)),
        Panel("p99 of every API", "s", ((f'max by (api) (penstock_request_duration_quantile_seconds{{{_HERE},quantile="0.99"}})', "{{api}}"),)),
        Panel("Stages of Produce, p99", "s", ((f'max by (stage) (penstock_request_stage_quantile_seconds{{{_HERE},api="Produce",quantile="0.99"}})', "{{stage}}"),)),
        Panel("Stages of consumers' Fetch, p99", "s", ((f'max by (stage) (penstock_request_stage_quantile_seconds{{{_HERE},api="FetchConsumer",quantile="0.99"}})', "{{stage}}"),)),
        Panel("Stages of replicas' Fetch, p99", "s", ((f'max by (stage) (penstock_request_stage_quantile_seconds{{{_HERE},api="FetchFollower",quantile="0.99"}})', "{{stage}}"),)),
        Panel("A flush of logs to the disk", "s", ((f"sum by (process) (rate(penstock_log_flush_seconds_total{{{_HERE}}}{_RATE})) / sum by (process) (rate(penstock_log_flushes_total{{{_HERE}}}{_RATE}))", "{{process}}"),)),
        Panel("Requests that wait (purgatory)", "short", ((f"sum by (api) (penstock_delayed_requests{{{_HERE}}})", "{{api}}"),)),
        Panel("Longest turn of a loop", "s", ((f"max by (process) (penstock_process_longest_turn_seconds{{{_HERE}}})", "{{process}}"),)),
    )),
    ("Nodes and replicas", (
        Panel("Brokers", "short", (
            (f"max(penstock_brokers{{{_HERE}}})", "in use"),
            (f"max(penstock_brokers_fenced{{{_HERE}}})", "fenced"),
        )),
        Panel("Partitions", "short", (
            (f"sum(penstock_partitions_under_replicated{{{_HERE}}})", "not in sync everywhere"),
            (f"sum(penstock_partitions_under_min_isr{{{_HERE}}})", "under min.insync.replicas"),
            (f"max(penstock_cluster_partitions_leaderless{{{_HERE}}})", "without a leader"),
            (f"sum(penstock_partitions_reassigning{{{_HERE}}})", "moving"),
        )),
        Panel("Leaders", "short", ((f"penstock_partitions_led{{{_HERE}}}", "{{instance}}"),)),
        Panel("Replicas out of sync and back", "short", (
            (f"sum(rate(penstock_isr_shrinks_total{{{_HERE}}}{_RATE}))", "out"),
            (f"sum(rate(penstock_isr_expands_total{{{_HERE}}}{_RATE}))", "back"),
        )),
        Panel("Replicated", "Bps", ((f"sum by (instance) (rate(penstock_replication_received_bytes_total{{{_HERE}}}{_RATE}))", "{{instance}}"),)),
        Panel("Behind the leaders", "short", ((f"penstock_replication_lag_records{{{_HERE}}}", "{{instance}}"),)),
        Panel("Leader of the metadata", "short", ((f"max(penstock_metadata_leader{{{_HERE}}})", "node"), (f"max(penstock_metadata_epoch{{{_HERE}}})", "epoch"))),
        Panel("A change of the metadata", "s", ((f"sum(rate(penstock_metadata_commit_seconds_total{{{_HERE}}}{_RATE})) / sum(rate(penstock_metadata_commits_total{{{_HERE}}}{_RATE}))", "until it is agreed"),)),
    )),
    ("Topics", (
        Panel("Bytes in", "Bps", ((f"topk(20, sum by (topic) (rate(penstock_topic_received_bytes_total{{{_TOPIC}}}{_RATE})))", "{{topic}}"),)),
        Panel("Bytes out", "Bps", ((f"topk(20, sum by (topic) (rate(penstock_topic_sent_bytes_total{{{_TOPIC}}}{_RATE})))", "{{topic}}"),)),
        Panel("On the disk", "bytes", ((f"topk(20, sum by (topic) (penstock_topic_size_bytes{{{_TOPIC}}}))", "{{topic}}"),)),
        Panel("Held by open transactions", "short", ((f"sum by (topic) (penstock_topic_held_records{{{_TOPIC}}}) > 0", "{{topic}}"),)),
    )),
    ("Groups and clients", (
        Panel("Records behind", "short", ((f"topk(20, sum by (group, topic) (penstock_group_lag_records{{{_TOPIC}}}))", "{{group}} {{topic}}"),)),
        Panel("Committed", "short", ((f"topk(20, sum by (group, topic) (rate(penstock_group_committed_offset{{{_TOPIC}}}{_RATE})))", "{{group}} {{topic}}"),)),
        Panel("Records read of those acknowledged, over 10 minutes", "percentunit", ((f"topk(20, sum by (group, topic) (delta(penstock_group_committed_offset{{{_TOPIC}}}[10m])) / on (topic) group_left () (sum by (topic) (delta(penstock_topic_acknowledged_offset{{{_TOPIC}}}[10m])) > 0))", "{{group}} {{topic}}"),)),
        Panel("Acknowledged per minute", "short", ((f"topk(20, sum by (topic) (delta(penstock_topic_acknowledged_offset{{{_TOPIC}}}[1m])))", "{{topic}}"),)),
        Panel("Groups", "short", ((f"sum by (state) (penstock_groups{{{_HERE}}})", "{{state}}"),)),
        Panel("Members of groups", "short", ((f"topk(20, sum by (group) (penstock_group_members{{{_HERE}}}))", "{{group}}"),)),
        Panel("Clients", "short", ((f"sum by (software, version) (penstock_client_connections{{{_HERE}}})", "{{software}} {{version}}"),)),
        Panel("Share of a quota in use", "percentunit", ((f"topk(20, penstock_quota_rate{{{_HERE}}} / penstock_quota_limit{{{_HERE}}})", "{{kind}} {{user}} {{client_id}}"),)),
    )),
    ("Remote storage", (
        Panel("Not copied yet", "bytes", ((f"sum by (instance) (penstock_remote_copy_lag_bytes{{{_HERE}}})", "{{instance}}"),)),
        Panel("Copied and read", "Bps", (
            (f"sum(rate(penstock_remote_copied_bytes_total{{{_HERE}}}{_RATE}))", "copied"),
            (f"sum(rate(penstock_remote_fetched_bytes_total{{{_HERE}}}{_RATE}))", "read"),
        )),
        Panel("Requests to the store that failed", "short", (
            (f"sum(rate(penstock_remote_copy_errors_total{{{_HERE}}}{_RATE}))", "copies"),
            (f"sum(rate(penstock_remote_fetch_errors_total{{{_HERE}}}{_RATE}))", "reads"),
            (f"sum(rate(penstock_remote_delete_errors_total{{{_HERE}}}{_RATE}))", "deletions"),
        )),
    )),
    ("Host", (
        Panel("Disk free", "bytes", ((f"min by (folder) (penstock_disk_free_bytes{{{_HERE}}})", "{{folder}}"),)),
        Panel("CPU", "short", ((f"sum by (process) (rate(penstock_process_cpu_seconds_total{{{_HERE}}}{_RATE}))", "{{process}}"),)),
        Panel("Memory", "bytes", ((f"sum by (process) (penstock_process_memory_bytes{{{_HERE}}})", "{{process}}"),)),
        Panel("Disk traffic", "Bps", (
            (f"sum(rate(penstock_process_disk_written_bytes_total{{{_HERE}}}{_RATE}))", "written"),
            (f"sum(rate(penstock_process_disk_read_bytes_total{{{_HERE}}}{_RATE}))", "read"),
        )),
        Panel("Restarts", "short", ((f"sum by (process) (increase(penstock_process_restarts_total{{{_HERE}}}[1h]))", "{{process}}"),)),
        Panel("Idle", "percentunit", (
            (f"min(penstock_network_idle_ratio{{{_HERE}}})", "network processes"),
            (f"min(penstock_io_idle_ratio{{{_HERE}}})", "I/O processes"),
        )),
        Panel("Certificates end in", "s", ((f"min by (instance, listener) (penstock_certificate_expiry_timestamp_seconds{{{_HERE}}}) - time()", "{{instance}} {{listener}}"),)),
    )),
)  # fmt: skip


def text() -> str:
    """The board as JSON, to be imported."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append(_row(title, y, len(panels)))
        y += 1
        height = _STAT_HEIGHT if row[0].stat else _HEIGHT
        width = _WIDTH // (len(row) if row[0].stat else min(len(row), 4 if len(row) % 3 else 3))
        x = 0
        for panel in row:
            if x + width > _WIDTH:
                x, y = 0, y + height
            place = {"x": x, "y": y, "w": width, "h": height}
            panels.append(_panel(panel, place, len(panels)))
            x += width
        y += height
    board = {
        "title": "Penstock",
        "uid": "penstock",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }
    return json.dumps(board, indent=1) + "\n"


def _row(title: str, y: int, number: int) -> dict[str, Any]:
    place = {"x": 0, "y": y, "w": _WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []}


def _panel(panel: Panel, place: dict[str, int], number: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + n), "expr": expr, "legendFormat": legend}
            for n, (expr, legend) in enumerate(panel.queries)
        ],
    }


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        _variable("instance", "label_values(penstock_ready, instance)"),
        _variable("topic", 'label_values(penstock_topic_partitions{instance=~"$instance"}, topic)'),
    ]


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
        "allValue": ".*",
    }
