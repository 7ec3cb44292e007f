"""The table of APIs: one row for each API that is served.

ApiVersions, the handlers of network processes, control's decisions, what a caller must be allowed
and the page of APIs are derived from it. An API without code of its own in `appliance/handlers` is
a row here and nothing else.
"""

import re
from typing import Final, NamedTuple

from appliance.authorization.needs import (
    ACT_AS_BROKER,
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP,
    READ_GROUP,
    WRITE_MARKERS,
    Need,
)

NETPROC: Final = "network process"
GROUPS: Final = "coordinator of groups"
TRANSACTIONS: Final = "coordinator of transactions"
CONTROL: Final = "controller"
QUORUM: Final = "quorum"

CLIENTS: Final = 1
CONTROLLERS: Final = 2
BOTH: Final = CLIENTS | CONTROLLERS


class ApiRow(NamedTuple):
    """One API.

    lowest, highest: served versions, inclusive. decided: NETPROC, GROUPS, TRANSACTIONS, CONTROL or
    QUORUM, the voters of the metadata log. listeners: CLIENTS (and brokers), CONTROLLERS or BOTH.
    need: what a request needs as a whole, on the cluster or on the one group that it names; what
    each topic or group of a list needs, the code that walks the list asks for. reads: it changes
    nothing, so it may be sent again. in_order: as of `Handler`. advertised: the lowest version that
    ApiVersions tells of, None: `lowest`. legacy: the lowest one that is served, and told of, with
    penstock.legacy.protocol, None: `lowest`.
    """

    key: int
    name: str
    lowest: int
    highest: int
    decided: str
    listeners: int
    need: Need | None = None
    reads: bool = False
    in_order: bool = False
    advertised: int | None = None
    legacy: int | None = None

    @property
    def module(self) -> str:
        """The name of the file in `appliance/handlers` that has its code, if it has any."""
        return f"k{self.key:02}" + re.sub("[A-Z]", lambda found: "_" + found[0].lower(), self.name)


_ROWS: Final = (
    # Produce is advertised from 0 although 0 to 2 are refused: librdkafka up to 2.11 compresses
    # only then (KAFKA-18659).
    ApiRow(0, "Produce", 3, 13, NETPROC, CLIENTS, advertised=0, legacy=0),
    ApiRow(1, "Fetch", 4, 18, NETPROC, CLIENTS, reads=True, legacy=0),
    ApiRow(2, "ListOffsets", 1, 11, NETPROC, CLIENTS, reads=True, legacy=0),
    ApiRow(3, "Metadata", 0, 13, NETPROC, CLIENTS, reads=True),
    # 5: no retention time. 6: leader epoch. 7: group instance id. 9: member epochs,
    # GROUP_ID_NOT_FOUND (KIP-848). 10: topic ids.
    ApiRow(8, "OffsetCommit", 2, 10, GROUPS, CLIENTS, READ_GROUP, legacy=0),
    # 2: every topic when none are named. 5: leader epoch. 7: require_stable. 8: several groups.
    # 9: member id and epoch (KIP-848). 10: topic ids.
    ApiRow(9, "OffsetFetch", 1, 10, GROUPS, CLIENTS, DESCRIBE_GROUP, legacy=0),
    ApiRow(10, "FindCoordinator", 0, 6, NETPROC, CLIENTS),
    # 1: rebalance timeout. 4: a new member is given its id first (KIP-394). 5: group instance id
    # (KIP-345). 7: protocol type. 8: reason. 9: skip_assignment (KIP-814).
    ApiRow(11, "JoinGroup", 0, 9, GROUPS, CLIENTS, READ_GROUP),
    # 3: group instance id.
    ApiRow(12, "Heartbeat", 0, 4, GROUPS, CLIENTS, READ_GROUP),
    # 3: several members, with instance ids. 5: reason (KIP-800).
    ApiRow(13, "LeaveGroup", 0, 5, GROUPS, CLIENTS, READ_GROUP),
    # 3: group instance id. 5: protocol type and name (KIP-559).
    ApiRow(14, "SyncGroup", 0, 5, GROUPS, CLIENTS, READ_GROUP),
    # 3: authorized operations. 4: instance ids. 6: GROUP_ID_NOT_FOUND (KIP-1043).
    ApiRow(15, "DescribeGroups", 0, 6, GROUPS, CLIENTS, reads=True),
    # 4: filter by state (KIP-518). 5: filter by type (KIP-848).
    ApiRow(16, "ListGroups", 0, 5, GROUPS, CLIENTS, reads=True),
    ApiRow(17, "SaslHandshake", 0, 1, NETPROC, BOTH),
    ApiRow(18, "ApiVersions", 0, 4, NETPROC, BOTH, reads=True),
    ApiRow(19, "CreateTopics", 2, 7, CONTROL, BOTH),
    ApiRow(20, "DeleteTopics", 1, 6, CONTROL, BOTH),
    ApiRow(21, "DeleteRecords", 0, 2, NETPROC, CLIENTS),
    # Control decides it for producers without a transactional id.
    ApiRow(22, "InitProducerId", 0, 5, TRANSACTIONS, CLIENTS, in_order=True),
    ApiRow(23, "OffsetForLeaderEpoch", 2, 4, NETPROC, CLIENTS),
    ApiRow(24, "AddPartitionsToTxn", 0, 5, TRANSACTIONS, CLIENTS),
    # 2: PRODUCER_FENCED. 4: TRANSACTION_ABORTABLE.
    ApiRow(25, "AddOffsetsToTxn", 0, 4, TRANSACTIONS, CLIENTS),
    # 2: PRODUCER_FENCED. 4: TRANSACTION_ABORTABLE. 5: the producer's next id and epoch (KIP-890).
    ApiRow(26, "EndTxn", 0, 5, TRANSACTIONS, CLIENTS, in_order=True),
    ApiRow(27, "WriteTxnMarkers", 1, 2, NETPROC, CLIENTS, WRITE_MARKERS),
    ApiRow(28, "TxnOffsetCommit", 0, 5, GROUPS, CLIENTS, READ_GROUP, in_order=True),
    ApiRow(29, "DescribeAcls", 1, 3, CONTROL, BOTH, DESCRIBE_CLUSTER, reads=True),
    ApiRow(30, "CreateAcls", 1, 3, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(31, "DeleteAcls", 1, 3, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(32, "DescribeConfigs", 1, 4, CONTROL, BOTH, reads=True),
    ApiRow(33, "AlterConfigs", 0, 2, CONTROL, BOTH),
    ApiRow(34, "AlterReplicaLogDirs", 1, 2, NETPROC, CLIENTS, ALTER_CLUSTER),
    ApiRow(35, "DescribeLogDirs", 1, 5, CONTROL, CLIENTS, DESCRIBE_CLUSTER, reads=True),
    ApiRow(36, "SaslAuthenticate", 0, 2, NETPROC, BOTH),
    ApiRow(37, "CreatePartitions", 0, 3, CONTROL, BOTH),
    # KIP-48. 3: the owner may be somebody else (KIP-373).
    ApiRow(38, "CreateDelegationToken", 1, 3, CONTROL, BOTH),
    ApiRow(39, "RenewDelegationToken", 1, 2, CONTROL, BOTH),
    ApiRow(40, "ExpireDelegationToken", 1, 2, CONTROL, BOTH),
    # 3: who requested the token (KIP-373).
    ApiRow(41, "DescribeDelegationToken", 1, 3, CONTROL, CLIENTS, reads=True),
    ApiRow(42, "DeleteGroups", 0, 2, GROUPS, CLIENTS),
    ApiRow(43, "ElectLeaders", 0, 2, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(44, "IncrementalAlterConfigs", 0, 1, CONTROL, BOTH),
    ApiRow(45, "AlterPartitionReassignments", 0, 1, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(46, "ListPartitionReassignments", 0, 0, CONTROL, BOTH, DESCRIBE_CLUSTER, reads=True),
    ApiRow(47, "OffsetDelete", 0, 0, GROUPS, CLIENTS, DELETE_GROUP),
    ApiRow(
        48, "DescribeClientQuotas", 0, 1, CONTROL, CLIENTS, DESCRIBE_CLUSTER_CONFIGS, reads=True
    ),
    ApiRow(49, "AlterClientQuotas", 0, 1, CONTROL, BOTH, ALTER_CLUSTER_CONFIGS),
    ApiRow(50, "DescribeUserScramCredentials", 0, 0, CONTROL, BOTH, DESCRIBE_CLUSTER, reads=True),
    ApiRow(51, "AlterUserScramCredentials", 0, 0, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(52, "Vote", 0, 2, QUORUM, CONTROLLERS),
    ApiRow(53, "BeginQuorumEpoch", 0, 1, QUORUM, CONTROLLERS),
    ApiRow(54, "EndQuorumEpoch", 0, 1, QUORUM, CONTROLLERS),
    ApiRow(55, "DescribeQuorum", 0, 2, CONTROL, BOTH, DESCRIBE_CLUSTER, reads=True),
    ApiRow(56, "AlterPartition", 2, 3, CONTROL, CONTROLLERS, ACT_AS_BROKER),
    ApiRow(57, "UpdateFeatures", 0, 2, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(58, "Envelope", 0, 0, QUORUM, CONTROLLERS, ACT_AS_BROKER),
    ApiRow(59, "FetchSnapshot", 0, 1, QUORUM, CONTROLLERS),
    ApiRow(60, "DescribeCluster", 0, 2, NETPROC, BOTH, reads=True),
    ApiRow(61, "DescribeProducers", 0, 0, NETPROC, CLIENTS, reads=True),
    ApiRow(62, "BrokerRegistration", 0, 4, CONTROL, CONTROLLERS, ACT_AS_BROKER),
    ApiRow(63, "BrokerHeartbeat", 0, 2, CONTROL, CONTROLLERS, ACT_AS_BROKER),
    ApiRow(64, "UnregisterBroker", 0, 0, CONTROL, BOTH, ALTER_CLUSTER),
    # KIP-664.
    ApiRow(65, "DescribeTransactions", 0, 0, TRANSACTIONS, CLIENTS, reads=True),
    # KIP-664. 1: those open for longer (KIP-994). 2: ids that an expression fits (KIP-1152).
    ApiRow(66, "ListTransactions", 0, 2, TRANSACTIONS, CLIENTS, reads=True),
    ApiRow(67, "AllocateProducerIds", 0, 0, CONTROL, CONTROLLERS, ACT_AS_BROKER),
    # KIP-848. 1: regular expressions, member ids from the client (KIP-1082).
    ApiRow(68, "ConsumerGroupHeartbeat", 0, 1, GROUPS, CLIENTS, READ_GROUP),
    # KIP-848. 1: how each member speaks (KIP-1099).
    ApiRow(69, "ConsumerGroupDescribe", 0, 1, GROUPS, CLIENTS, reads=True),
    ApiRow(70, "ControllerRegistration", 0, 0, CONTROL, CONTROLLERS, ACT_AS_BROKER),
    ApiRow(71, "GetTelemetrySubscriptions", 0, 0, NETPROC, CLIENTS),
    ApiRow(72, "PushTelemetry", 0, 0, NETPROC, CLIENTS),
    ApiRow(73, "AssignReplicasToDirs", 0, 0, CONTROL, CONTROLLERS, ACT_AS_BROKER),
    ApiRow(74, "ListConfigResources", 0, 1, CONTROL, CLIENTS, DESCRIBE_CLUSTER_CONFIGS, reads=True),
    ApiRow(75, "DescribeTopicPartitions", 0, 0, NETPROC, CLIENTS, reads=True),
    ApiRow(80, "AddRaftVoter", 0, 1, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(81, "RemoveRaftVoter", 0, 0, CONTROL, BOTH, ALTER_CLUSTER),
    ApiRow(82, "UpdateRaftVoter", 0, 0, CONTROL, CONTROLLERS, ACT_AS_BROKER),
)

METADATA_FETCH: Final = ApiRow(1, "Fetch", 12, 18, QUORUM, CONTROLLERS, reads=True)
"""Fetch of the metadata log, on the listeners of controllers."""

APIS: Final[dict[int, ApiRow]] = {row.key: row for row in _ROWS}
"""By API key."""

NEEDS: Final[dict[int, Need]] = {row.key: row.need for row in _ROWS if row.need is not None}
"""What a request needs as a whole, by API key."""

READS: Final = frozenset(row.key for row in _ROWS if row.reads)
"""Keys of the APIs that change nothing."""


def declared(key: int) -> tuple[int, str, int, int]:
    """The first fields of a handler: key, name, lowest and highest version."""
    return APIS[key][:4]
