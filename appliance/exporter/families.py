"""Metric families: one declaration per metric, with name and unit, labels and meaning. The page
`docs/metrics.md`, the alert rules and the board are made of these.

Counters begin at the start of the appliance. A metric of Kafka's exporters (`kafka_names.py`)
repeats the values of ours under the name, and with the labels, that existing boards ask for.
"""

from typing import Final, NamedTuple

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"


class Family(NamedTuple):
    """labels: names, in the order of the values. like: metrics of ours whose values are told again
    under this name, times `scale`; labels go by their place, surplus ones of ours are left out."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    like: tuple[str, ...] = ()
    scale: float = 1.0


_TOPIC: Final = ("topic",)
_PARTITION: Final = ("topic", "partition")
_PROCESS: Final = ("process",)
_NONE: Final = ()

_APPLIANCE: Final = (
    Family("penstock_info", GAUGE, ("cluster_id", "node_id"), "1; the labels say which appliance this is."),
    Family("penstock_start_time_seconds", GAUGE, _NONE, "When the appliance started, in seconds since 1970."),
    Family("penstock_ready", GAUGE, _NONE, "1 while `/readyz` would say so of what the tables show, else 0."),
    Family("penstock_warnings", GAUGE, _NONE, "How many warnings `/readyz` has: it serves, and something is wrong."),
    Family("penstock_controller_active", GAUGE, _NONE, "1 on the node that leads the metadata log."),
    Family("penstock_brokers", GAUGE, _NONE, "Brokers of the cluster that clients are sent to."),
    Family("penstock_brokers_fenced", GAUGE, _NONE, "Brokers that have registered and are fenced: away, starting or ending. Every node says the same."),
    Family("penstock_topics", GAUGE, _NONE, "Topics of the cluster."),
    Family("penstock_cluster_partitions", GAUGE, _NONE, "Partitions of the cluster."),
    Family("penstock_cluster_partitions_leaderless", GAUGE, _NONE, "Those of them that nobody leads, so that nobody can read or write them. Every node says the same."),
    Family("penstock_cluster_partitions_not_preferred", GAUGE, _NONE, "Those that the first of their replicas does not lead. Every node says the same."),
    Family("penstock_metadata_leader", GAUGE, _NONE, "Node that leads the metadata log, the controller of the cluster; -1 while this node knows of none."),
    Family("penstock_metadata_epoch", GAUGE, _NONE, "Since which election, as this node knows it."),
    Family("penstock_metadata_offset", GAUGE, _NONE, "Offset behind the last committed metadata record."),
    Family("penstock_metadata_load_errors", GAUGE, _NONE, "Metadata records that do not replay and were skipped, as the exporter has read them."),
    Family("penstock_metadata_commits_total", COUNTER, _NONE, "Commits of the metadata log that were timed while this node led it: one at a time, so not all."),
    Family("penstock_metadata_commit_seconds_total", COUNTER, _NONE, "What they took together, from the append until a majority had it on its disks."),
    Family("penstock_isr_shrinks_total", COUNTER, _NONE, "How often a replica of a partition that this node leads then fell out of those in sync, by itself or because its node is gone. From the start of the exporter."),
    Family("penstock_isr_expands_total", COUNTER, _NONE, "How often one came back."),
    Family("penstock_leader_elections_total", COUNTER, _NONE, "How often a partition of the cluster got another leader while this node was the controller. From the start of the exporter."),
    Family("penstock_unclean_leader_elections_total", COUNTER, _NONE, "Those of them that chose a replica that was neither in sync nor eligible: what it lacked is lost."),
)  # fmt: skip

_PARTITIONS: Final = (
    Family("penstock_partitions", GAUGE, _NONE, "Partitions with a replica here."),
    Family("penstock_partitions_led", GAUGE, _NONE, "Those of them that this node leads."),
    Family("penstock_partitions_opening", GAUGE, _NONE, "Those that are not open yet."),
    Family("penstock_partitions_offline", GAUGE, _NONE, "Those that cannot be used since their disk failed."),
    Family("penstock_partitions_stalled", GAUGE, _NONE, "Those with records that have been written and not visible for 5 seconds: the disk, or a replica, keeps acks=all waiting."),
    Family("penstock_partitions_under_replicated", GAUGE, _NONE, "Those led here of which not every replica is in sync."),
    Family("penstock_partitions_under_min_isr", GAUGE, _NONE, "Those led here with fewer in sync than min.insync.replicas: acks=all is refused."),
    Family("penstock_partitions_at_min_isr", GAUGE, _NONE, "Those led here with just as many in sync as min.insync.replicas asks for, or as there are replicas. With one replica always."),
    Family("penstock_partitions_reassigning", GAUGE, _NONE, "Those led here whose replicas are being moved to other nodes."),
    Family("penstock_replication_lag_records", GAUGE, _NONE, "Records that the furthest of the replicas here lacks of what its leader said, with its last answer, to be visible."),
    Family("penstock_replication_sent_bytes_total", COUNTER, _NONE, "Bytes of batches that were sent to other nodes' replicas."),
    Family("penstock_replication_received_bytes_total", COUNTER, _NONE, "Bytes of batches that replicas here took from their leaders; none of it is in penstock_received_bytes_total."),
    Family("penstock_partitions_uncleanable", GAUGE, _NONE, "Those of compacted topics whose last compaction failed; it is tried again, later each time."),
    Family("penstock_compaction_longest_seconds", GAUGE, _NONE, "The longest of the last compactions of each partition here."),
    Family("penstock_compaction_delay_seconds", GAUGE, _NONE, "For how long the record here that has waited longest for compaction has done so beyond max.compaction.lag.ms; 0 where that is not set."),
    Family("penstock_partition_series", GAUGE, _NONE, "1 while there are series for each partition; 0 when there are more of them than penstock.metrics.partitions.max, so that these series are sums over a topic's partitions, without the label `partition`."),
    Family("penstock_topics_left_out", GAUGE, _NONE, "Topics here that have no series, because there are more than penstock.metrics.topics.max: those with the fewest bytes, sorted out anew every ten minutes."),
    Family("penstock_partition_log_start_offset", GAUGE, _PARTITION, "First offset that can be read."),
    Family("penstock_partition_high_watermark", GAUGE, _PARTITION, "Offset behind the last record that consumers see."),
    Family("penstock_partition_log_end_offset", GAUGE, _PARTITION, "Offset behind the last record that was written."),
    Family("penstock_partition_replication_lag_records", GAUGE, _PARTITION, "Records that the replica here lacks of what its leader said with its last answer; 0 for one that leads. Only on nodes where a replica follows."),
    Family("penstock_partition_size_bytes", GAUGE, _PARTITION, "Bytes of its log on the disk."),
    Family("penstock_partition_leader", GAUGE, _PARTITION, "Node that leads it, -1 for none. Not summed up."),
    Family("penstock_partition_replicas", GAUGE, _PARTITION, "Its replicas."),
    Family("penstock_partition_in_sync_replicas", GAUGE, _PARTITION, "Those of them that are in sync."),
    Family("penstock_partition_leader_preferred", GAUGE, _PARTITION, "1 while its first replica leads it."),
    Family("penstock_partition_under_replicated", GAUGE, _PARTITION, "1 while a replica is not in sync."),
    Family("penstock_partition_under_min_isr", GAUGE, _PARTITION, "1 while this node leads it and fewer are in sync than min.insync.replicas: acks=all is refused."),
    Family("penstock_partition_at_min_isr", GAUGE, _PARTITION, "1 while this node leads it and just as many are in sync as min.insync.replicas asks for, or as there are replicas. With one replica always."),
)  # fmt: skip

_TOPICS: Final = (
    Family("penstock_topic_partitions", GAUGE, _TOPIC, "Partitions of the topic."),
    Family("penstock_topic_size_bytes", GAUGE, _TOPIC, "Bytes of its logs here on the disk."),
    Family("penstock_topic_records", GAUGE, _TOPIC, "Offsets that consumers can read: records, where nothing was compacted."),
    Family("penstock_topic_acknowledged_offset", GAUGE, _TOPIC, "Sum of the high watermarks of its partitions that this node leads: its rise is what producers were acknowledged; beside that of penstock_group_committed_offset it says how complete a group reads."),
    Family("penstock_topic_held_records", GAUGE, _TOPIC, "Those of them that read_committed does not get, because a transaction is open."),
    Family("penstock_topic_received_bytes_total", COUNTER, _TOPIC, "Bytes of batches that were appended."),
    Family("penstock_topic_received_records_total", COUNTER, _TOPIC, "Records that were appended."),
    Family("penstock_topic_received_batches_total", COUNTER, _TOPIC, "Batches that were appended."),
    Family("penstock_topic_sent_bytes_total", COUNTER, _TOPIC, "Bytes of batches that were sent to consumers."),
    Family("penstock_topic_fetches_total", COUNTER, _TOPIC, "Partitions with records in answers to fetches."),
    Family("penstock_received_bytes_total", COUNTER, _NONE, "penstock_topic_received_bytes_total over all topics, deleted ones too."),
    Family("penstock_received_records_total", COUNTER, _NONE, "The same of records."),
    Family("penstock_received_batches_total", COUNTER, _NONE, "The same of batches."),
    Family("penstock_sent_bytes_total", COUNTER, _NONE, "The same of bytes sent."),
    Family("penstock_fetches_total", COUNTER, _NONE, "The same of partitions in answers to fetches."),
)  # fmt: skip

_REQUESTS: Final = (
    Family("penstock_requests_total", COUNTER, ("api",), "Requests that were answered."),
    Family("penstock_request_errors_total", COUNTER, ("api", "error"), "Errors that answers told of, once for each partition, group, … that has one."),
    Family("penstock_request_received_bytes_total", COUNTER, ("api",), "Bytes of requests, frames and all."),
    Family("penstock_request_sent_bytes_total", COUNTER, ("api",), "Bytes of answers, frames and all."),
    Family("penstock_request_duration_seconds", HISTOGRAM, ("api",), "From the moment a loop saw the request's bytes to the turn that sends its answer; fetches that wait for records included. Bounds are powers of two of a microsecond, which are exact; the sum is within 1.6 %."),
    Family("penstock_request_duration_quantile_seconds", GAUGE, ("api", "quantile"), "The same over the last minute, as quantiles (0.50, 0.99, 0.999) within 1.6 %; nothing for what was not asked."),
    Family("penstock_request_stage_seconds_total", COUNTER, ("api", "stage"), "What a stage of requests took together, within 12.5 %: queue, until an I/O process took the last batch of a Produce; local, what this node did; remote, the time for which a Produce waited for a sync of the disk or for replicas, a Fetch for records or the remote store, and any other for a coordinator, the controller or another node; total, these three; send, from the turn that began to send the answer to the one that sent the last of it, 0 in the same turn. Fetch stands as FetchConsumer and FetchFollower."),
    Family("penstock_request_stage_quantile_seconds", GAUGE, ("api", "stage", "quantile"), "The same over the last minute, as quantiles within 12.5 %; nothing for what was not asked."),
    Family("penstock_logins_total", COUNTER, ("listener", "mechanism"), "Clients that logged in, by SASL mechanism; SSL: with a certificate."),
    Family("penstock_login_failures_total", COUNTER, ("listener", "mechanism"), "Failed logins; SSL: failed TLS handshakes. penstock audit names who, from where and why."),
    Family("penstock_reauthentications_total", COUNTER, ("listener", "mechanism"), "Re-authentications (KIP-368)."),
    Family("penstock_reauthentication_failures_total", COUNTER, ("listener", "mechanism"), "Failed re-authentications."),
    Family("penstock_denials_total", COUNTER, ("operation", "resource"), "Requests or parts of them that the authorizer denied, by operation and kind of resource, in Kafka's words."),
    Family("penstock_bound_reached_total", COUNTER, ("bound",), "How often a bound of what clients may use was reached; docs/reference/bounds.md says what each is, and which setting moves it."),
    Family("penstock_produce_errors_total", COUNTER, _NONE, "penstock_request_errors_total of Produce, all errors."),
    Family("penstock_fetch_errors_total", COUNTER, _NONE, "penstock_request_errors_total of Fetch, all errors."),
)  # fmt: skip

_CLIENTS: Final = (
    Family("penstock_connections", GAUGE, ("listener",), "Connections that are open."),
    Family("penstock_client_connections", GAUGE, ("software", "version"), "The same by the client's software, as ApiVersions tells it (KIP-511)."),
    Family("penstock_connections_throttled", GAUGE, _NONE, "Connections that wait because of a quota."),
    Family("penstock_connections_left_out", GAUGE, _NONE, "Connections of which nothing is told, because they are too many (4,096 for each network process)."),
    Family("penstock_client_instances", GAUGE, ("software", "version"), "Clients that push metrics of their own, because a subscription asks for them (KIP-714)."),
    Family("penstock_client_metric", GAUGE, ("client_id", "instance", "metric", "attributes"), "What clients said of themselves last: the metric's name and attributes are theirs, counters are totals since the client began. 5,000 series at most, of each client all or none."),
    Family("penstock_client_instances_left_out", GAUGE, _NONE, "Clients that push and of which nothing is told, because they are too many or cannot be read."),
    Family("penstock_group_lag_records", GAUGE, ("group", "topic"), "Records that a group's committed offsets are behind, over all partitions; as of some seconds ago."),
    Family("penstock_group_committed_offset", GAUGE, ("group", "topic"), "Sum of a group's committed offsets over the topic's partitions."),
    Family("penstock_group_lags_left_out", GAUGE, _NONE, "Topics of groups of which nothing is told, because they are too many (336 for each I/O process): those that are least behind."),
    Family("penstock_groups", GAUGE, ("state",), "Groups of both protocols that this node coordinates, by Kafka's word for their state; as of some seconds ago. Who only commits offsets and never joined is in Empty."),
    Family("penstock_group_members", GAUGE, ("group",), "Members of a group, with those that are about to join it; nothing of a group that has none."),
    Family("penstock_group_members_left_out", GAUGE, _NONE, "Groups with members of which nothing is told, because they are too many (336 for each I/O process): those with the fewest."),
    Family("penstock_quota_pauses_total", COUNTER, ("kind", "user", "client_id"), "How often a client was told to wait by a quota of this kind."),
    Family("penstock_quota_pause_seconds", GAUGE, ("kind", "user", "client_id"), "How long it was told to wait last; 0 once no pause has been under way for as long as the quota's windows are together."),
    Family("penstock_quota_limit", GAUGE, ("kind", "user", "client_id"), "What the quota allows per second, in its unit (bytes; percent of a CPU for request)."),
    Family("penstock_quota_rate", GAUGE, ("kind", "user", "client_id"), "What the client uses of it per second, over all windows."),
)  # fmt: skip

_HOST: Final = (
    Family("penstock_certificate_expiry_timestamp_seconds", GAUGE, ("listener",), "When the certificate ends that clients of a listener with TLS are shown, in seconds since 1970; by a handshake with it once a minute, nothing while that fails."),
    Family("penstock_disk_size_bytes", GAUGE, ("folder",), "Size of the file system that a log folder lies in."),
    Family("penstock_disk_free_bytes", GAUGE, ("folder",), "Bytes free there."),
    Family("penstock_disk_full", GAUGE, ("folder",), "1 while so little is free there that records are refused."),
    Family("penstock_disk_log_bytes", GAUGE, ("folder",), "Bytes of the logs in it."),
    Family("penstock_process_up", GAUGE, _PROCESS, "1 while the process serves, 0 while it is down, starts or ends."),
    Family("penstock_process_restarts_total", COUNTER, _PROCESS, "How often another process took its place."),
    Family("penstock_process_turns_total", COUNTER, _PROCESS, "Turns of its loop."),
    Family("penstock_process_longest_turn_seconds", GAUGE, _PROCESS, "Longest turn of its loop since it began, waiting left out."),
    Family("penstock_log_flushes_total", COUNTER, _PROCESS, "Flushes of logs to the disk by an I/O process; a write of its journal counts once for all logs in it."),
    Family("penstock_log_flush_seconds_total", COUNTER, _PROCESS, "What they took together: divided by penstock_log_flushes_total, the time of one."),
    Family("penstock_remote_copied_bytes_total", COUNTER, _PROCESS, "Tiered storage: bytes of segments that an I/O process has copied to the remote store."),
    Family("penstock_remote_copy_errors_total", COUNTER, _PROCESS, "Copies to the remote store that failed; each is tried again after 1 to 60 s."),
    Family("penstock_remote_delete_errors_total", COUNTER, _PROCESS, "Deletions in the remote store that failed; each is tried again."),
    Family("penstock_remote_copy_lag_bytes", GAUGE, _PROCESS, "Bytes of closed segments of tiered topics that are not copied yet. As of the last second."),
    Family("penstock_remote_copy_lag_segments", GAUGE, _PROCESS, "How many segments these are."),
    Family("penstock_remote_fetched_bytes_total", COUNTER, _PROCESS, "Bytes that reads have fetched from the remote store."),
    Family("penstock_remote_fetches_total", COUNTER, _PROCESS, "Requests of reads to the remote store."),
    Family("penstock_remote_fetch_errors_total", COUNTER, _PROCESS, "Those of them that failed."),
    Family("penstock_delayed_requests", GAUGE, ("process", "api"), "Requests of clients and followers that wait in a network process: Produce for its partitions and replicas, Fetch also for records to come (Kafka's purgatories). As of the last second."),
    Family("penstock_process_silent_seconds", GAUGE, _PROCESS, "For how long its loop has not turned; an idle one turns five times a second. Seen once a second."),
    Family("penstock_process_metadata_lag_records", GAUGE, _PROCESS, "Committed metadata records that it has not replayed."),
    Family("penstock_process_cpu_seconds_total", COUNTER, _PROCESS, "CPU time that it, and who had its place before, has used."),
    Family("penstock_process_memory_bytes", GAUGE, _PROCESS, "Memory of its own and its part of what it shares (PSS), as of the last minute."),
    Family("penstock_process_open_files", GAUGE, _PROCESS, "Open descriptors, as of the last minute."),
    Family("penstock_process_disk_read_bytes_total", COUNTER, _PROCESS, "Bytes that it made the disk read."),
    Family("penstock_process_disk_written_bytes_total", COUNTER, _PROCESS, "Bytes that it made the disk write."),
    Family("penstock_network_idle_ratio", GAUGE, _NONE, "1 when the network processes have used no CPU for ten seconds, 0 when all have used a whole one."),
    Family("penstock_io_idle_ratio", GAUGE, _NONE, "The same of the I/O processes."),
    Family("penstock_scrape_seconds", GAUGE, _NONE, "CPU time that the answer before this one took to make."),
)  # fmt: skip

OWN: Final = (*_APPLIANCE, *_PARTITIONS, *_TOPICS, *_REQUESTS, *_CLIENTS, *_HOST)
"""In the order in which they are told."""
