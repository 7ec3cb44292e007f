"""Alert rules for Prometheus: one declaration each, and the rule file that they make.

A rule says what to do. What may come right by itself within a restart or a slow minute waits for
longer.
"""

import json
from typing import Final, NamedTuple

CRITICAL: Final = "critical"
WARNING: Final = "warning"


class Alert(NamedTuple):
    """expr: PromQL. minutes: for how long it must hold. summary: what is wrong, with templates for
    labels and value. remedy: what to do."""

    name: str
    expr: str
    minutes: int
    severity: str
    summary: str
    remedy: str


ALERTS: Final = (
    Alert("PenstockDown", 'up{job=~".*penstock.*"} == 0', 1, CRITICAL, "{{ $labels.instance }} tells nothing.", "See whether it runs: systemctl status penstock, and the end of its log."),
    Alert("PenstockNotReady", "penstock_ready == 0", 2, CRITICAL, "{{ $labels.instance }} runs and does not serve.", "GET /readyz says what is missing; penstock event list says what happened."),
    Alert("PenstockWarns", "penstock_warnings > 0", 10, WARNING, "{{ $labels.instance }} serves, and something is wrong.", "GET /readyz lists it under warnings."),
    Alert("PenstockPartitionsOffline", "penstock_partitions_offline > 0", 1, CRITICAL, "{{ $value }} partitions of {{ $labels.instance }} are offline.", "Their disk failed, or their folder is away: penstock event list --level error; a start verifies them."),
    Alert("PenstockPartitionsLeaderless", "max by (job) (penstock_cluster_partitions_leaderless) > 0", 1, CRITICAL, "{{ $value }} partitions of {{ $labels.job }} have no leader.", "Bring back a node that has them in sync."),
    Alert("PenstockPartitionsStalled", "penstock_partitions_stalled > 0", 1, CRITICAL, "Records in {{ $value }} partitions of {{ $labels.instance }} do not become visible.", "The disk does not take them, or a replica does not follow: look at the disk's latency and at the other nodes."),
    Alert("PenstockUnderReplicated", "penstock_partitions_under_replicated > 0", 5, WARNING, "{{ $value }} partitions that {{ $labels.instance }} leads are not in sync everywhere.", "See whether the other nodes run and keep up."),
    Alert("PenstockUnderMinIsr", "penstock_partitions_under_min_isr > 0", 1, CRITICAL, "{{ $value }} partitions have fewer replicas in sync than min.insync.replicas: acks=all is refused.", "Bring the other nodes back."),
    Alert("PenstockBrokerFenced", "max by (job) (penstock_brokers_fenced) > 0", 2, WARNING, "{{ $value }} brokers of {{ $labels.job }} are fenced.", "See which node is down or cannot reach the controller; unregister one that does not come back."),
    Alert("PenstockNoController", "sum by (job) (penstock_controller_active) < 1", 1, CRITICAL, "No node of {{ $labels.job }} leads the metadata log.", "Topics and settings cannot be changed: see why there is no majority of controllers."),
    Alert("PenstockTwoControllers", "sum by (job) (penstock_controller_active) > 1", 1, CRITICAL, "{{ $value }} nodes of {{ $labels.job }} say that they lead the metadata log.", "Look at what cuts the nodes off from each other; the one with the lower penstock_metadata_epoch decides nothing any more."),
    Alert("PenstockIsrFlaps", "increase(penstock_isr_shrinks_total[5m]) > 0 and increase(penstock_isr_shrinks_total[5m] offset 5m) > 0 and increase(penstock_isr_shrinks_total[5m] offset 10m) > 0", 0, WARNING, "Replicas of partitions that {{ $labels.instance }} leads fall behind and come back, again and again.", "Look at the disk and the network of the followers, and at what is written: replica.lag.time.max.ms says how late is too late."),
    Alert("PenstockUncleanElection", "increase(penstock_unclean_leader_elections_total[15m]) > 0", 0, CRITICAL, "A controller, {{ $labels.instance }}, has elected leaders that were not in sync: records may be lost.", "No replica in sync or eligible was left: the last known leader came back (KIP-966), or unclean.leader.election.enable or kafka-leader-election --election-type unclean allowed it. See what took all of them away."),
    Alert("PenstockUncleanable", "penstock_partitions_uncleanable > 0", 15, WARNING, "Compaction of {{ $value }} partitions of {{ $labels.instance }} fails: their logs grow.", "penstock event list --level warning says why (cleaning-failed)."),
    Alert("PenstockCompactionLate", "penstock_compaction_delay_seconds > 3600", 15, WARNING, "A record of {{ $labels.instance }} has waited for compaction for {{ $value | humanizeDuration }} beyond max.compaction.lag.ms.", "Give the cleaner more memory or rate: log.cleaner.dedupe.buffer.size, log.cleaner.io.max.bytes.per.second."),
    Alert("PenstockReplicaFarBehind", "min_over_time(penstock_replication_lag_records[15m]) > 0 and delta(penstock_replication_lag_records[15m]) >= 0", 15, WARNING, "For a quarter of an hour a replica on {{ $labels.instance }} has lacked {{ $value }} records of its leader's or more, and gains nothing.", "It takes less than is written: look at its disk and its network, or throttle what writes."),
    Alert("PenstockNotPreferred", "max by (job) (penstock_cluster_partitions_not_preferred) > 0.1 * max by (job) (penstock_cluster_partitions)", 60, WARNING, "{{ $value }} partitions of {{ $labels.job }} are not led by the first of their replicas: some nodes do the work of others.", "When all nodes are back and in sync: kafka-leader-election --election-type preferred --all-topic-partitions."),
    Alert("PenstockMetadataSlow", "rate(penstock_metadata_commit_seconds_total[5m]) / rate(penstock_metadata_commits_total[5m]) > 1", 5, WARNING, "A change of the metadata takes {{ $value }} s to be agreed.", "Look at the disks of the controllers, and at the network between them."),
    Alert("PenstockDiskFull", "penstock_disk_full == 1", 1, CRITICAL, "{{ $labels.folder }} is full: records are refused.", "Free room, or shorten retention; fetches, deletions and groups continue."),
    Alert("PenstockDiskFillsUp", "predict_linear(penstock_disk_free_bytes[6h], 86400) < 0 and penstock_disk_free_bytes < 0.5 * penstock_disk_size_bytes", 30, WARNING, "{{ $labels.folder }} is full within a day at its present rate.", "Free room, shorten retention, or add a folder to log.dirs."),
    Alert("PenstockCertificateEndsSoon", "penstock_certificate_expiry_timestamp_seconds - time() < 14 * 86400", 15, WARNING, "The certificate of listener {{ $labels.listener }} of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}.", "Renew it: a file that changes is read again without a restart. penstock doctor says what clients are shown."),
    Alert("PenstockCertificateEnds", "penstock_certificate_expiry_timestamp_seconds - time() < 2 * 86400", 5, CRITICAL, "The certificate of listener {{ $labels.listener }} of {{ $labels.instance }} ends in {{ $value | humanizeDuration }}; clients do not connect then.", "Renew it now; penstock event list --level warning says why one that was renewed is not used."),
    Alert("PenstockProcessDown", "penstock_process_up == 0", 2, CRITICAL, "{{ $labels.process }} of {{ $labels.instance }} is down.", "It died too often: penstock event list --level error has its last words."),
    Alert("PenstockProcessRestarts", "increase(penstock_process_restarts_total[15m]) > 2", 0, WARNING, "{{ $labels.process }} of {{ $labels.instance }} dies again and again.", "penstock event list --level warning has its last words."),
    Alert("PenstockProcessSilent", "penstock_process_silent_seconds > 5", 0, WARNING, "{{ $labels.process }} of {{ $labels.instance }} has stood still for {{ $value }} s.", "The host is overloaded or its disk hangs; after ten seconds the process is replaced."),
    Alert("PenstockProduceErrors", 'rate(penstock_produce_errors_total[5m]) / ignoring (api) rate(penstock_requests_total{api="Produce"}[5m]) > 0.01', 10, WARNING, "More than one in a hundred produce requests to {{ $labels.instance }} fails.", 'penstock stats names the errors; so does penstock_request_errors_total{api="Produce"}.'),
    Alert("PenstockProduceSlow", 'penstock_request_duration_quantile_seconds{api="Produce",quantile="0.99"} > 1', 10, WARNING, "One in a hundred produce requests to {{ $labels.instance }} takes more than {{ $value }} s.", "Look at the disk's latency and at penstock_io_idle_ratio."),
    Alert("PenstockGroupStuck", "penstock_group_lag_records > 0 and delta(penstock_group_committed_offset[30m]) == 0", 10, WARNING, "{{ $labels.group }} has not moved in {{ $labels.topic }} for half an hour; it is {{ $value }} records behind.", "See whether its members run: penstock group describe {{ $labels.group }}."),
    Alert("PenstockGroupIncomplete", "(sum by (job, group, topic) (penstock_group_committed_offset) - sum by (job, group, topic) (penstock_group_committed_offset offset 15m) > 0) / on (job, topic) group_left () (sum by (job, topic) (penstock_topic_acknowledged_offset) - sum by (job, topic) (penstock_topic_acknowledged_offset offset 15m) > 0) < 0.9", 15, WARNING, "In a quarter of an hour {{ $labels.group }} has read {{ $value | humanizePercentage }} of what was acknowledged in {{ $labels.topic }}: it falls behind.", "Add members, up to one for each partition, or see what holds them up: penstock group describe {{ $labels.group }}."),
    Alert("PenstockRemoteCopyLate", "min_over_time(penstock_remote_copy_lag_segments[30m]) > 2 and increase(penstock_remote_copied_bytes_total[30m]) == 0", 0, WARNING, "{{ $labels.process }} of {{ $labels.instance }} has copied nothing to the remote store for half an hour; {{ $value }} closed segments or more wait, and stay on the disk.", "penstock storage remote says what waits, and penstock event list (remote-copy-failed) why; see whether the store answers and has room."),
    Alert("PenstockRemoteCopyBehind", "min_over_time(penstock_remote_copy_lag_bytes[1h]) > 0 and delta(penstock_remote_copy_lag_bytes[1h]) > 0 and increase(penstock_remote_copied_bytes_total[1h]) > 0", 60, WARNING, "{{ $labels.process }} of {{ $labels.instance }} copies less to the remote store than is written: {{ $value }} bytes wait at least.", "Raise remote.log.manager.copy.max.bytes.per.second, or remote.log.manager.copier.thread.pool.size."),
    Alert("PenstockRemoteReadsFail", "increase(penstock_remote_fetch_errors_total[10m]) > 0 and increase(penstock_remote_fetch_errors_total[10m] offset 10m) > 0", 0, WARNING, "Reads of {{ $labels.process }} of {{ $labels.instance }} fail at the remote store again and again.", "Consumers below the local log start wait and try again: penstock event list (remote-read-failed) says why."),
    Alert("PenstockBoundReached", "increase(penstock_bound_reached_total[10m]) > 0 and increase(penstock_bound_reached_total[10m] offset 10m) > 0", 0, WARNING, "Clients of {{ $labels.instance }} reach the bound {{ $labels.bound }} again and again.", "penstock doctor names its setting; penstock event list says which client it was."),
    Alert("PenstockClientsThrottled", "penstock_connections_throttled > 0", 30, WARNING, "{{ $value }} connections to {{ $labels.instance }} wait because of a quota.", "penstock quota usage says whose, and how much it allows."),
)  # fmt: skip


def text() -> str:
    """The rule file: YAML, whose texts are JSON strings."""
    lines = ["groups:", "- name: penstock", "  rules:"]
    for one in ALERTS:
        lines += [
            f"  - alert: {one.name}",
            f"    expr: {json.dumps(one.expr)}",
            f"    for: {one.minutes}m",
            "    labels:",
            f"      severity: {one.severity}",
            "    annotations:",
            f"      summary: {json.dumps(one.summary)}",
            f"      remedy: {json.dumps(one.remedy)}",
        ]
    return "\n".join(lines) + "\n"
