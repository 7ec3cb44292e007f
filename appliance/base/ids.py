"""The vocabulary of identities that every room shares."""

from typing import NewType

Offset = NewType("Offset", int)  # records since the partition began
LeaderEpoch = NewType("LeaderEpoch", int)
PartitionIndex = NewType("PartitionIndex", int)
BrokerId = NewType("BrokerId", int)
TopicId = NewType("TopicId", bytes)  # 16 bytes, RFC 4122 order
Handle = NewType("Handle", int)  # of a partition: a row of the shared table and its generation

NO_EPOCH = -1
NO_PRODUCER = -1
NO_TIMESTAMP = -1
ZERO_TOPIC_ID = TopicId(bytes(16))
METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})
