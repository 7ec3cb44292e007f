"""The names that boards made for Apache Kafka ask for: those of kafka_exporter, those that the JMX
exporter gives by Strimzi's rules, and the usual ones of a process.

Each tells again what one of ours says (`like`), or is told beside it. What would have to be made up
is not there: `MISSING` says what, and why.
"""

from typing import Final

from appliance.exporter.families import COUNTER, GAUGE, Family

_TOPIC: Final = ("topic",)
_PARTITION: Final = ("topic", "partition")
_GROUP: Final = ("consumergroup", "topic")
_CLIENT: Final = ("user", "client_id")
_NONE: Final = ()

NUMBERED: Final = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead")
"""States that have a count of their own in Kafka; those of the consumer protocol have none there."""

_LOGINS: Final = (
    ("successful_authentication", "logins"),
    ("failed_authentication", "login_failures"),
    ("successful_reauthentication", "reauthentications"),
    ("failed_reauthentication", "reauthentication_failures"),
)
"""Kafka's name and ours."""

_TIERED: Final = (
    ("remotecopybytes_total", "copied_bytes_total"),
    ("remotecopyerrors_total", "copy_errors_total"),
    ("remotedeleteerrors_total", "delete_errors_total"),
    ("remotecopylagbytes", "copy_lag_bytes"),
    ("remotecopylagsegments", "copy_lag_segments"),
    ("remotefetchbytes_total", "fetched_bytes_total"),
    ("remotefetchrequests_total", "fetches_total"),
    ("remotefetcherrors_total", "fetch_errors_total"),
)


_STAGES: Final = (
    ("requestqueuetimems", "queue"),
    ("localtimems", "local"),
    ("remotetimems", "remote"),
    ("responsesendtimems", "send"),
)


def _again(
    name: str, labels: tuple[str, ...], *like: str, kind: str = GAUGE, scale: float = 1.0
) -> Family:
    return Family(name, kind, labels, f"As {' and '.join(like)}{f', times {scale:g}' if scale != 1 else ''}.", like, scale)  # fmt: skip


_EXPORTER: Final = (
    Family("kafka_broker_info", GAUGE, ("id", "address"), "1 for each broker, with the address that it tells clients."),
    _again("kafka_brokers", _NONE, "penstock_brokers"),
    _again("kafka_topic_partitions", _TOPIC, "penstock_topic_partitions"),
    _again("kafka_topic_partition_current_offset", _PARTITION, "penstock_partition_high_watermark"),
    _again("kafka_topic_partition_oldest_offset", _PARTITION, "penstock_partition_log_start_offset"),
    _again("kafka_topic_partition_leader", _PARTITION, "penstock_partition_leader"),
    _again("kafka_topic_partition_replicas", _PARTITION, "penstock_partition_replicas"),
    _again("kafka_topic_partition_in_sync_replica", _PARTITION, "penstock_partition_in_sync_replicas"),
    _again("kafka_topic_partition_leader_is_preferred", _PARTITION, "penstock_partition_leader_preferred"),
    _again("kafka_topic_partition_under_replicated_partition", _PARTITION, "penstock_partition_under_replicated"),
    Family("kafka_consumergroup_current_offset", GAUGE, _GROUP, "As penstock_group_committed_offset; 0 without labels while no group has committed anything, so that boards find the appliance by it.", ("penstock_group_committed_offset",)),
    _again("kafka_consumergroup_current_offset_sum", _GROUP, "penstock_group_committed_offset"),
    _again("kafka_consumergroup_lag", _GROUP, "penstock_group_lag_records"),
    _again("kafka_consumergroup_lag_sum", _GROUP, "penstock_group_lag_records"),
    _again("kafka_consumergroup_members", ("consumergroup",), "penstock_group_members"),
)  # fmt: skip

_JMX: Final = (
    Family("kafka_server_kafkaserver_brokerstate", GAUGE, _NONE, "1 starting, 2 opening logs, 3 serving, 6 ending."),
    _again("kafka_controller_kafkacontroller_activecontrollercount", _NONE, "penstock_controller_active"),
    _again("kafka_controller_kafkacontroller_activebrokercount", _NONE, "penstock_brokers"),
    _again("kafka_controller_kafkacontroller_fencedbrokercount", _NONE, "penstock_brokers_fenced"),
    _again("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", _NONE, "penstock_cluster_partitions_not_preferred"),
    _again("kafka_controller_kafkacontroller_globaltopiccount", _NONE, "penstock_topics"),
    _again("kafka_controller_kafkacontroller_globalpartitioncount", _NONE, "penstock_cluster_partitions"),
    Family("kafka_controller_kafkacontroller_offlinepartitionscount", GAUGE, _NONE, "penstock_partitions_offline and penstock_cluster_partitions_leaderless together."),
    _again("kafka_server_replicamanager_partitioncount", _NONE, "penstock_partitions"),
    _again("kafka_server_replicamanager_leadercount", _NONE, "penstock_partitions_led"),
    _again("kafka_server_replicamanager_underreplicatedpartitions", _NONE, "penstock_partitions_under_replicated"),
    _again("kafka_server_replicamanager_underminisrpartitioncount", _NONE, "penstock_partitions_under_min_isr"),
    _again("kafka_server_replicamanager_atminisrpartitioncount", _NONE, "penstock_partitions_at_min_isr"),
    _again("kafka_server_replicamanager_offlinereplicacount", _NONE, "penstock_partitions_offline"),
    _again("kafka_server_replicamanager_reassigningpartitions", _NONE, "penstock_partitions_reassigning"),
    _again("kafka_server_replicamanager_isrshrinks_total", _NONE, "penstock_isr_shrinks_total", kind=COUNTER),
    _again("kafka_server_replicamanager_isrexpands_total", _NONE, "penstock_isr_expands_total", kind=COUNTER),
    Family("kafka_server_replicafetchermanager_maxlag", GAUGE, ("clientId",), "As penstock_replication_lag_records; its label is always Replica."),
    _again("kafka_server_fetcherlagmetrics_consumerlag", _PARTITION, "penstock_partition_replication_lag_records"),
    _again("kafka_server_brokertopicmetrics_replicationbytesin_total", _NONE, "penstock_replication_received_bytes_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_replicationbytesout_total", _NONE, "penstock_replication_sent_bytes_total", kind=COUNTER),
    _again("kafka_controller_controllerstats_leaderelectionrateandtimems_count", _NONE, "penstock_leader_elections_total", kind=COUNTER),
    _again("kafka_controller_controllerstats_uncleanleaderelections_total", _NONE, "penstock_unclean_leader_elections_total", kind=COUNTER),
    _again("kafka_server_raftmetrics_current_leader", _NONE, "penstock_metadata_leader"),
    _again("kafka_server_raftmetrics_current_epoch", _NONE, "penstock_metadata_epoch"),
    _again("kafka_server_raftmetrics_high_watermark", _NONE, "penstock_metadata_offset"),
    _again("kafka_server_brokermetadatametrics_metadata_load_error_count", _NONE, "penstock_metadata_load_errors"),
    Family("kafka_server_raftmetrics_commit_latency_avg", GAUGE, _NONE, "ms that a commit took on average in the last minute, 0 where none was timed: penstock_metadata_commit_seconds_total by penstock_metadata_commits_total."),
    _again("kafka_cluster_partition_replicascount", _PARTITION, "penstock_partition_replicas"),
    _again("kafka_cluster_partition_underminisr", _PARTITION, "penstock_partition_under_min_isr"),
    _again("kafka_cluster_partition_atminisr", _PARTITION, "penstock_partition_at_min_isr"),
    _again("kafka_log_log_size", _PARTITION, "penstock_partition_size_bytes"),
    _again("kafka_log_log_logstartoffset", _PARTITION, "penstock_partition_log_start_offset"),
    _again("kafka_log_log_logendoffset", _PARTITION, "penstock_partition_log_end_offset"),
    Family("kafka_log_logflushstats_logflushrateandtimems_count", COUNTER, _NONE, "penstock_log_flushes_total over all processes."),
    Family("kafka_server_delayedoperationpurgatory_purgatorysize", GAUGE, ("delayedoperation",), "penstock_delayed_requests over all processes: Produce and Fetch."),
    *(Family(f"kafka_server_brokertopicmetrics_{name}", GAUGE if "lag" in name else COUNTER, _NONE, f"penstock_remote_{ours} over all processes.") for name, ours in _TIERED),
    _again("kafka_log_logcleanermanager_uncleanable_partitions_count", _NONE, "penstock_partitions_uncleanable"),
    _again("kafka_log_logcleaner_max_clean_time_secs", _NONE, "penstock_compaction_longest_seconds"),
    _again("kafka_log_logcleaner_max_compaction_delay_secs", _NONE, "penstock_compaction_delay_seconds"),
    _again("kafka_server_brokertopicmetrics_bytesin_total", _TOPIC, "penstock_topic_received_bytes_total", "penstock_received_bytes_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_bytesout_total", _TOPIC, "penstock_topic_sent_bytes_total", "penstock_sent_bytes_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_messagesin_total", _TOPIC, "penstock_topic_received_records_total", "penstock_received_records_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_totalproducerequests_total", _TOPIC, "penstock_topic_received_batches_total", "penstock_received_batches_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_totalfetchrequests_total", _TOPIC, "penstock_topic_fetches_total", "penstock_fetches_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_failedproducerequests_total", _NONE, "penstock_produce_errors_total", kind=COUNTER),
    _again("kafka_server_brokertopicmetrics_failedfetchrequests_total", _NONE, "penstock_fetch_errors_total", kind=COUNTER),
    _again("kafka_network_requestmetrics_requests_total", ("request",), "penstock_requests_total", kind=COUNTER),
    _again("kafka_network_requestmetrics_errors_total", ("request", "error"), "penstock_request_errors_total", kind=COUNTER),
    _again("kafka_network_requestmetrics_totaltimems", ("request", "quantile"), "penstock_request_duration_quantile_seconds", scale=1000.0),
    *(Family(f"kafka_network_requestmetrics_{name}", GAUGE, ("request", "quantile"), f"penstock_request_stage_quantile_seconds of {stage} in ms.", scale=1000.0) for name, stage in _STAGES),
    _again("kafka_network_socketserver_networkprocessoravgidle_percent", _NONE, "penstock_network_idle_ratio"),
    _again("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", _NONE, "penstock_io_idle_ratio"),
    _again("kafka_server_socket_server_metrics_connection_count", ("listener",), "penstock_connections"),
    _again("kafka_server_socketservermetrics_connections", ("client_software_name", "client_software_version"), "penstock_client_connections"),
    *(_again(f"kafka_server_socket_server_metrics_{name}_total", ("listener", "mechanism"), f"penstock_{ours}_total", kind=COUNTER) for name, ours in _LOGINS),
    Family("kafka_coordinator_group_groupmetadatamanager_numgroups", GAUGE, _NONE, "penstock_groups over all states."),
    *(Family(f"kafka_coordinator_group_groupmetadatamanager_numgroups{state.lower()}", GAUGE, _NONE, f"penstock_groups with the state {state}.") for state in NUMBERED),
    Family("kafka_server_produce_byte_rate", GAUGE, _CLIENT, "penstock_quota_rate of producer_byte_rate: of clients that have such a quota."),
    Family("kafka_server_fetch_byte_rate", GAUGE, _CLIENT, "The same of consumer_byte_rate."),
    Family("kafka_server_request_request_time", GAUGE, _CLIENT, "The same of request_percentage."),
    Family("kafka_server_produce_throttle_time", GAUGE, _CLIENT, "penstock_quota_pause_seconds of producer_byte_rate in ms: the last pause, where Kafka tells the average of its windows."),
    Family("kafka_server_fetch_throttle_time", GAUGE, _CLIENT, "The same of consumer_byte_rate."),
    Family("kafka_server_request_throttle_time", GAUGE, _CLIENT, "The same of request_percentage."),
    Family("kafka_server_kafkaserver_linux_disk_read_bytes", COUNTER, _NONE, "penstock_process_disk_read_bytes_total over all processes."),
    Family("kafka_server_kafkaserver_linux_disk_write_bytes", COUNTER, _NONE, "penstock_process_disk_written_bytes_total over all processes."),
)  # fmt: skip

_PROCESS: Final = (
    Family("process_cpu_seconds_total", COUNTER, _NONE, "penstock_process_cpu_seconds_total over all processes."),
    Family("process_resident_memory_bytes", GAUGE, _NONE, "penstock_process_memory_bytes over all processes."),
    Family("process_open_fds", GAUGE, _NONE, "penstock_process_open_files over all processes."),
    _again("process_start_time_seconds", _NONE, "penstock_start_time_seconds"),
)  # fmt: skip

KAFKAS: Final = (*_EXPORTER, *_JMX, *_PROCESS)

MISSING: Final = {
    "jvm_*": "there is no JVM here",
    "kafka_network_requestmetrics_responsequeuetimems": "an answer is in no queue between threads; one that waits for those before it on its connection does so in its stage of that time",
    "kafka_network_requestmetrics_throttletimems": "pauses are told by client and quota, as kafka_server_{produce,fetch,request}_throttle_time; whom none holds back is told of none",
    "kafka_server_brokertopicmetrics_failed…requests_total by topic": "errors are counted by API and code, not by topic",
    "the quantiles of kafka_log_logflushstats_logflushrateandtimems": "the sum of the times is told: penstock_log_flush_seconds_total",
    "kafka_server_delayedoperationpurgatory_purgatorysize of other operations": "joins, syncs and deletions of records wait at their coordinators and partitions, and are not counted",
    "the time of kafka_controller_controllerstats_leaderelectionrateandtimems": "elections are counted where they are replayed; penstock_metadata_commit_seconds_total says how long it took to write them",
    "the label partition of kafka_consumergroup_*": "coordinators tell sums over a topic's partitions; penstock group describe asks for each",
    "a lag in seconds (kafka_consumergroup_group_lag_seconds)": "it is the age of a record that would have to be read from each partition at each look; penstock group lag reads it, and penstock_group_lag_records / rate(penstock_group_committed_offset[5m]) says how many seconds the rest takes at the group's present rate",
    "the time until unread records expire": "the same, with the ages of segments; the console's page of a group tells it",
    "the label version of kafka_network_requestmetrics_requests_total": "versions are not counted",
}
"""What boards ask for and do not get → why."""
