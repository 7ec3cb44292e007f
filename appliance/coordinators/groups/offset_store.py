"""The committed offsets of a shard's groups, in memory: what replaying their records gives.

Invariant: only `Shard.apply` calls `put` and `remove`; no empty dictionaries are kept.
"""

from collections.abc import Iterator

from appliance.coordinators.groups.records import OffsetCommitValue

Topics = dict[str, dict[int, OffsetCommitValue]]


class OffsetStore:
    """by_group: group → topic → partition → the newest commit."""

    def __init__(self) -> None:
        self.by_group: dict[str, Topics] = {}

    def put_offset(self, group: str, topic: str, partition: int, value: OffsetCommitValue) -> None:
        """The newest commit of a partition."""
        self.by_group.setdefault(group, {}).setdefault(topic, {})[partition] = value

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Forget a commit, if there is one."""
        topics = self.by_group.get(group, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is None:
            return
        if not partitions:
            del topics[topic]
        if not topics:
            del self.by_group[group]

    def clear(self) -> None:
        """Forget all."""
        self.by_group.clear()

    def find_offset(self, group: str, topic: str, partition: int) -> OffsetCommitValue | None:
        """The newest commit of a partition."""
        return self.by_group.get(group, {}).get(topic, {}).get(partition)

    def topics(self, group: str) -> Topics:
        """Topic → partition → commit."""
        return self.by_group.get(group, {})

    def of_group(self, group: str) -> Iterator[tuple[str, int, OffsetCommitValue]]:
        """(topic, partition, commit) of a group, as of now: the store may change meanwhile."""
        found = [
            (topic, partition, value)
            for topic, partitions in self.topics(group).items()
            for partition, value in partitions.items()
        ]
        yield from found
