"""Which scripts there are.

A script is a function of a Scene under `@script("ApiName")` in one of the files of scripts/. It
runs once for each advertised version of that API, on both brokers.
"""

import importlib
from pathlib import Path
from typing import NamedTuple

APIS = {
    "Produce": 0, "Fetch": 1, "ListOffsets": 2, "Metadata": 3, "OffsetCommit": 8, "OffsetFetch": 9,
    "FindCoordinator": 10, "JoinGroup": 11, "Heartbeat": 12, "LeaveGroup": 13, "SyncGroup": 14,
    "DescribeGroups": 15, "ListGroups": 16, "ApiVersions": 18, "CreateTopics": 19,
    "DeleteTopics": 20, "DeleteRecords": 21, "InitProducerId": 22, "OffsetForLeaderEpoch": 23,
    "AddPartitionsToTxn": 24, "AddOffsetsToTxn": 25, "EndTxn": 26, "WriteTxnMarkers": 27,
    "TxnOffsetCommit": 28, "DescribeAcls": 29, "CreateAcls": 30, "DeleteAcls": 31,
    "DescribeConfigs": 32, "AlterConfigs": 33, "AlterReplicaLogDirs": 34, "DescribeLogDirs": 35,
    "CreatePartitions": 37, "CreateDelegationToken": 38, "RenewDelegationToken": 39,
    "ExpireDelegationToken": 40, "DescribeDelegationToken": 41, "DeleteGroups": 42,
    "ElectLeaders": 43, "IncrementalAlterConfigs": 44,
    "AlterPartitionReassignments": 45, "ListPartitionReassignments": 46, "OffsetDelete": 47,
    "DescribeClientQuotas": 48, "AlterClientQuotas": 49, "DescribeUserScramCredentials": 50,
    "AlterUserScramCredentials": 51, "SaslHandshake": 17, "SaslAuthenticate": 36,
    "DescribeQuorum": 55, "UpdateFeatures": 57, "DescribeCluster": 60, "DescribeProducers": 61,
    "UnregisterBroker": 64, "DescribeTransactions": 65, "ListTransactions": 66,
    "ConsumerGroupHeartbeat": 68, "ConsumerGroupDescribe": 69, "ListConfigResources": 74,
    "DescribeTopicPartitions": 75, "AddRaftVoter": 80, "RemoveRaftVoter": 81,
}  # fmt: skip
"""API keys by Kafka's name. Whatever the appliance advertises must stand here and have a script."""

SCRIPTS = []


class Script(NamedTuple):
    """versions: the only ones it runs for, None for all that both brokers serve."""

    name: str
    api: str
    play: object
    versions: range | None

    @property
    def key(self):
        return APIS[self.api]


def script(api, versions=None):
    """Register a function as a script of `api`. versions: (lowest, highest) when not all."""
    assert api in APIS, api

    def register(play):
        assert all(play.__name__ != other.name for other in SCRIPTS), play.__name__
        only = None if versions is None else range(versions[0], versions[1] + 1)
        SCRIPTS.append(Script(play.__name__, api, play, only))
        return play

    return register


def load():
    """All scripts, in the order of their files' names."""
    for path in sorted((Path(__file__).parent / "scripts").glob("*.py")):
        importlib.import_module(f"tests.differential.scripts.{path.stem}")
    return SCRIPTS
