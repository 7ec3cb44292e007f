"""Where a client that asked the wrong node should go (KIP-951): from Produce 10 and Fetch 16 on the
answer says at once who leads, so that the client need not ask for metadata first.

Told of every partition whose error is about who leads it, this node's own ones too: then its client
knows that nothing is to be gained elsewhere. But not while this node is cut off from the others:
then somebody else knows who leads, and a client that is told (librdkafka) asks nobody. From the
image, as routes are.
"""

from typing import Final

from appliance.base import errors
from appliance.handlers import nodes
from appliance.handlers.exchange import Exchange, Host
from appliance.handlers.gather import partition_of
from appliance.wire import fetch, leaders
from appliance.wire.fetch import PartitionData
from appliance.wire.leaders import OF_FETCH, OF_PRODUCE, NodeEndpoint

NO_TAGS: Final = b"\0"
_OF_FETCHES: Final = (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)


class CurrentLeaders:
    """The leaders named in one answer; each node once. known: the caller knows their addresses, as
    other nodes do.
    """

    __slots__ = ("_found", "_host", "_known", "_x")

    def __init__(self, host: Host, x: Exchange, *, known: bool = False) -> None:
        self._host = host
        self._x = x
        self._known = known
        self._found: dict[int, NodeEndpoint | None] = {}

    def of_produce(self, topic: bytes, partition: int, by_id: bool) -> bytes:
        """The tagged fields of a partition in an answer to Produce."""
        return self._current(OF_PRODUCE, topic, partition, by_id)

    def of_fetch(self, data: PartitionData) -> bytes:
        """The tagged fields of a partition in an answer to Fetch, be there an error or not; nothing
        in a version without such fields."""
        if self._x.version < fetch.FIRST_LEADER or data.error not in _OF_FETCHES:
            return fetch.tail(self._x.version)
        return self._current(OF_FETCH, data.topic, data.partition, by_id=True)

    def _current(self, tag: int, topic: bytes, partition: int, by_id: bool) -> bytes:
        image = partition_of(self._host, topic, partition, by_id)
        if image is None or nodes.deserts(self._host, image):
            return NO_TAGS
        if image.leader not in self._found:
            self._found[image.leader] = nodes.living(self._host, self._x, image.leader)
        return leaders.current(tag, image.leader, image.leader_epoch)

    def endpoints(self, nothing: bytes = NO_TAGS) -> bytes:
        """The tagged fields of the body, when all partitions are told; `nothing`: when there is
        nobody to tell of."""
        told = [one for one in self._found.values() if one is not None]
        return leaders.endpoints(told) if told and not self._known else nothing
