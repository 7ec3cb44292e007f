"""A job's position as the committed offsets of a consumer group of its name, so that every tool
that shows the lag of groups shows the job's. Spark itself joins no group and never reads it.
"""

from spark_local.client_settings import ClientSettings
from spark_local.engine.clients import CLIENTS, ClientError


class GroupOffsets:
    """Committed offsets of one job's group. Publishing may fail, for example while the broker is
    away; the next one covers it.
    """

    def __init__(self, group: str, kafka: ClientSettings) -> None:
        self._group = group
        self._kafka = kafka
        self._last: dict[tuple[str, str], int] = {}

    def publish(self, positions: dict[tuple[str, str], int]) -> bool:
        """(topic, partition) → next offset. Whether they were taken."""
        if positions == self._last:
            return True
        try:
            CLIENTS.call("commit", self._kafka, self._group, positions)
        except ClientError:
            return False
        self._last = dict(positions)
        return True
