"""A job's position as the committed offsets of a consumer group of its name, so that every tool
that shows the lag of groups shows the job's. Spark itself joins no group and never reads it.
"""

from contextlib import suppress
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

_TIMEOUT_S: Final = 10.0


class GroupOffsets:
    """Of one job. Publishing may fail, while the broker is away for one; the next one says more."""

    def __init__(self, group: str, bootstrap: str) -> None:
        self._group = group
        self._bootstrap = bootstrap
        self._admin: AdminClient | None = None
        self._last: dict[tuple[str, str], int] = {}

    def publish(self, positions: dict[tuple[str, str], int]) -> bool:
        """(topic, partition) → next offset. Whether they were taken."""
        if positions == self._last:
            return True
        if self._admin is None:
            config: dict[str, Any] = {"bootstrap.servers": self._bootstrap, "log_level": 0}
            self._admin = AdminClient(config)
        places = [TopicPartition(t, int(p), at) for (t, p), at in sorted(positions.items())]
        with suppress(KafkaException, TimeoutError):
            asked = self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(self._group, places)], request_timeout=_TIMEOUT_S
            )
            asked[self._group].result(_TIMEOUT_S + 1)
            self._last = dict(positions)
            return True
        return False
