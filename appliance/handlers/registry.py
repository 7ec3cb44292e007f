"""Every API a client may use, and who serves it. What is not in this list is not advertised.

The network process plans most of them itself; coordinators answer GROUPS and
TRANSACTIONS, control FORWARDED. The listeners of controllers serve `controllers_handlers` alone.
"""

from appliance.handlers import (
    forward,
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k17_sasl_handshake,
    k18_api_versions,
    k21_delete_records,
    k22_init_producer_id,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k34_alter_replica_log_dirs,
    k36_sasl_authenticate,
    k42_delete_groups,
    k47_offset_delete,
    k60_describe_cluster,
    k61_describe_producers,
    k65_describe_transactions,
    k66_list_transactions,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
    k71_get_telemetry_subscriptions,
    k72_push_telemetry,
    k75_describe_topic_partitions,
)
from appliance.handlers.exchange import Handler
from appliance.handlers.fetch_sessions import FetchSessions

GROUPS = tuple(
    module.HANDLER
    for module in (
        k08_offset_commit,
        k09_offset_fetch,
        k10_find_coordinator,
        k11_join_group,
        k12_heartbeat,
        k13_leave_group,
        k14_sync_group,
        k15_describe_groups,
        k16_list_groups,
        k28_txn_offset_commit,
        k42_delete_groups,
        k47_offset_delete,
        k68_consumer_group_heartbeat,
        k69_consumer_group_describe,
    )
)

TRANSACTIONS = (
    k22_init_producer_id.HANDLER,
    k24_add_partitions_to_txn.HANDLER,
    k25_add_offsets_to_txn.HANDLER,
    k26_end_txn.HANDLER,
    k65_describe_transactions.HANDLER,
    k66_list_transactions.HANDLER,
)

FORWARDED = (
    forward.handler(19, "CreateTopics", 2, 7),
    forward.handler(20, "DeleteTopics", 1, 6),
    forward.handler(29, "DescribeAcls", 1, 3),
    forward.handler(30, "CreateAcls", 1, 3),
    forward.handler(31, "DeleteAcls", 1, 3),
    forward.handler(32, "DescribeConfigs", 1, 4),
    forward.handler(33, "AlterConfigs", 0, 2),
    forward.handler(35, "DescribeLogDirs", 1, 5),
    forward.handler(37, "CreatePartitions", 0, 3),
    forward.handler(43, "ElectLeaders", 0, 2),
    forward.handler(44, "IncrementalAlterConfigs", 0, 1),
    forward.handler(45, "AlterPartitionReassignments", 0, 1),
    forward.handler(46, "ListPartitionReassignments", 0, 0),
    forward.handler(48, "DescribeClientQuotas", 0, 1),
    forward.handler(49, "AlterClientQuotas", 0, 1),
    forward.handler(50, "DescribeUserScramCredentials", 0, 0),
    forward.handler(51, "AlterUserScramCredentials", 0, 0),
    forward.handler(55, "DescribeQuorum", 0, 2),
    forward.handler(57, "UpdateFeatures", 0, 2),
    forward.handler(64, "UnregisterBroker", 0, 0),
    forward.handler(74, "ListConfigResources", 0, 1),
    forward.handler(80, "AddRaftVoter", 0, 1),
    forward.handler(81, "RemoveRaftVoter", 0, 0),
)

CONTROLLERS = tuple(
    forward.handler(*row, between_nodes=True)
    for row in (
        (1, "Fetch", 12, 18),
        (52, "Vote", 0, 2),
        (53, "BeginQuorumEpoch", 0, 1),
        (54, "EndQuorumEpoch", 0, 1),
        (56, "AlterPartition", 2, 3),
        (58, "Envelope", 0, 0),
        (59, "FetchSnapshot", 0, 1),
        (62, "BrokerRegistration", 0, 4),
        (63, "BrokerHeartbeat", 0, 2),
        (67, "AllocateProducerIds", 0, 0),
        (70, "ControllerRegistration", 0, 0),
        (73, "AssignReplicasToDirs", 0, 0),
        (82, "UpdateRaftVoter", 0, 0),
    )
)
"""What only controllers ask of each other, and brokers of their controller: served on no listener
of clients. Fetch is that of the metadata log."""

_BOTH = (19, 20, 29, 30, 31, 32, 33, 37, 43, 44, 45, 46, 49, 50, 51, 55, 57, 64, 80, 81)
"""Of FORWARDED: what Kafka's controllers serve, too."""


def controllers_handlers() -> dict[int, Handler]:
    """Handlers by API key for the listeners of controllers."""
    more = k60_describe_cluster.FOR_CONTROLLERS
    return _with_versions([*CONTROLLERS, more, *(row for row in FORWARDED if row.key in _BOTH)])


def handlers(sessions: FetchSessions) -> dict[int, Handler]:
    """Handlers by API key for one network process, for the listeners of clients and brokers."""
    rows = [
        k00_produce.HANDLER,
        k01_fetch.handler(sessions),
        k02_list_offsets.HANDLER,
        k03_metadata.HANDLER,
        k21_delete_records.HANDLER,
        k23_offset_for_leader_epoch.HANDLER,
        k27_write_txn_markers.HANDLER,
        k34_alter_replica_log_dirs.HANDLER,
        k60_describe_cluster.HANDLER,
        k61_describe_producers.HANDLER,
        k71_get_telemetry_subscriptions.HANDLER,
        k72_push_telemetry.HANDLER,
        k75_describe_topic_partitions.HANDLER,
        *GROUPS,
        *TRANSACTIONS,
        *FORWARDED,
    ]
    return _with_versions(rows)


def _with_versions(rows: list[Handler]) -> dict[int, Handler]:
    """These, those of logins, and ApiVersions, which tells of them."""
    rows += [k17_sasl_handshake.HANDLER, k36_sasl_authenticate.HANDLER]
    ranges = [(row.key, advertised_lowest(row), row.highest) for row in rows]
    ranges.append((k18_api_versions.KEY, k18_api_versions.LOWEST, k18_api_versions.HIGHEST))
    rows.append(k18_api_versions.handler(ranges))
    return {row.key: row for row in rows}


def advertised_lowest(row: Handler) -> int:
    """Produce is advertised from 0 although 0 to 2 are refused: librdkafka up to 2.11 compresses
    only then (KAFKA-18659)."""
    return 0 if row.key == k00_produce.HANDLER.key else row.lowest
