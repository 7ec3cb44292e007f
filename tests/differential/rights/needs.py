"""What each API needs, from Apache Kafka's documentation ("Authorization Primitives").

Each API has alternatives; each alternative is the rules that together suffice. An alternative is
the whole of what one user has, and a user more has each one less one rule.
"""

from typing import NamedTuple

TOPIC, GROUP, CLUSTER, TRANSACTION, USER = 2, 3, 4, 5, 7
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, ACTION = range(3, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, CREATE_TOKENS, DESCRIBE_TOKENS = range(10, 15)

WRITES, READS, SEES = (WRITE, TOPIC), (READ, TOPIC), (DESCRIBE, TOPIC)
JOINS, SEES_GROUP, DELETES_GROUP = (READ, GROUP), (DESCRIBE, GROUP), (DELETE, GROUP)
TRANSACTS, SEES_TRANSACTION = (WRITE, TRANSACTION), (DESCRIBE, TRANSACTION)
ALTERS, SEES_CLUSTER, IS_BROKER = (ALTER, CLUSTER), (DESCRIBE, CLUSTER), (ACTION, CLUSTER)

NOTHING = ((),)
NEEDS = {
    "Produce": ((WRITES,), (WRITES, TRANSACTS)),
    "Fetch": ((READS,), (IS_BROKER,)),
    "ListOffsets": ((SEES,),),
    "Metadata": ((SEES,), (SEES, (CREATE, TOPIC)), ((CREATE, CLUSTER),)),
    "OffsetCommit": ((JOINS, READS),),
    "OffsetFetch": ((SEES_GROUP, SEES),),
    "FindCoordinator": ((SEES_GROUP,), (SEES_TRANSACTION,)),
    "JoinGroup": ((JOINS,),),
    "Heartbeat": ((JOINS,),),
    "LeaveGroup": ((JOINS,),),
    "SyncGroup": ((JOINS,),),
    "DescribeGroups": ((SEES_GROUP,),),
    "ListGroups": ((SEES_GROUP,), (SEES_CLUSTER,)),
    "CreateTopics": (((CREATE, TOPIC),), ((CREATE, CLUSTER),),
                     ((CREATE, TOPIC), (DESCRIBE_CONFIGS, TOPIC))),
    "DeleteTopics": (((DELETE, TOPIC),), ((DELETE, CLUSTER),)),
    "DeleteRecords": (((DELETE, TOPIC),),),
    "InitProducerId": (((IDEMPOTENT_WRITE, CLUSTER),), (WRITES,), (TRANSACTS,)),
    "OffsetForLeaderEpoch": ((SEES,), (IS_BROKER,)),
    "AddPartitionsToTxn": ((TRANSACTS, WRITES), (IS_BROKER,)),
    "AddOffsetsToTxn": ((TRANSACTS, JOINS),),
    "EndTxn": ((TRANSACTS,),),
    "WriteTxnMarkers": ((IS_BROKER,), (ALTERS,)),
    "TxnOffsetCommit": ((TRANSACTS, JOINS, READS),),
    "DescribeAcls": ((SEES_CLUSTER,),),
    "CreateAcls": ((ALTERS,),),
    "DeleteAcls": ((ALTERS,),),
    "DescribeConfigs": (((DESCRIBE_CONFIGS, TOPIC),), ((DESCRIBE_CONFIGS, GROUP),),
                        ((DESCRIBE_CONFIGS, CLUSTER),)),
    "AlterConfigs": (((ALTER_CONFIGS, TOPIC),), ((ALTER_CONFIGS, GROUP),),
                     ((ALTER_CONFIGS, CLUSTER),)),
    "IncrementalAlterConfigs": (((ALTER_CONFIGS, TOPIC),), ((ALTER_CONFIGS, GROUP),),
                                ((ALTER_CONFIGS, CLUSTER),)),
    "AlterReplicaLogDirs": ((ALTERS,),),
    "DescribeLogDirs": ((SEES_CLUSTER,),),
    "CreatePartitions": (((ALTER, TOPIC),),),
    "CreateDelegationToken": (((CREATE_TOKENS, USER),),),
    "RenewDelegationToken": NOTHING,
    "ExpireDelegationToken": NOTHING,
    "DescribeDelegationToken": (((DESCRIBE_TOKENS, USER),),),
    "DeleteGroups": ((DELETES_GROUP,),),
    "ElectLeaders": ((ALTERS,),),
    "AlterPartitionReassignments": ((ALTERS,),),
    "ListPartitionReassignments": ((SEES_CLUSTER,),),
    "OffsetDelete": ((DELETES_GROUP, READS),),
    "DescribeClientQuotas": (((DESCRIBE_CONFIGS, CLUSTER),),),
    "AlterClientQuotas": (((ALTER_CONFIGS, CLUSTER),),),
    "DescribeUserScramCredentials": ((SEES_CLUSTER,),),
    "AlterUserScramCredentials": ((ALTERS,),),
    "DescribeQuorum": ((SEES_CLUSTER,),),
    "UpdateFeatures": ((ALTERS,),),
    "DescribeCluster": NOTHING,
    "DescribeProducers": ((READS,),),
    "UnregisterBroker": ((ALTERS,),),
    "DescribeTransactions": ((SEES_TRANSACTION,), (SEES_TRANSACTION, SEES)),
    "ListTransactions": ((SEES_TRANSACTION,),),
    "ConsumerGroupHeartbeat": ((JOINS, SEES),),
    "ConsumerGroupDescribe": ((SEES_GROUP,), (SEES_GROUP, SEES)),
    "ListConfigResources": (((DESCRIBE_CONFIGS, CLUSTER),),),
    "DescribeTopicPartitions": ((SEES,),),
    "AddRaftVoter": ((ALTERS,),),
    "RemoveRaftVoter": ((ALTERS,),),
}  # fmt: skip
BEFORE_LOGIN = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
"""APIs that nobody needs a right for and that every login asks."""


class User(NamedTuple):
    """Somebody who logs in. rules: (operation, kind) of the names that are `mine`. may: whether
    they suffice for some request."""

    name: str
    rules: tuple
    may: bool


def users(api):
    """Who has an alternative, and who has one of several rules less, of an API."""
    found = {}
    for rules in NEEDS[api]:
        found.setdefault(rules, True)
    for rules in NEEDS[api]:
        for left_out in rules if len(rules) > 1 else ():
            found.setdefault(tuple(one for one in rules if one != left_out), False)
    return [
        User(f"{'may' if may else 'lacks'}{number}_{api}", rules, may)
        for number, (rules, may) in enumerate(found.items())
        if rules
    ]
