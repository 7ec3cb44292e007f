"""The leader of a partition, in the tagged fields of Produce and Fetch responses (KIP-951).

CurrentLeader stands behind a partition (Produce: tag 0, from version 10 on; Fetch: tag 1, told from
version 16 on), NodeEndpoints (tag 0) behind the body.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from appliance.wire.varint import uvarint

OF_PRODUCE: Final = 0
OF_FETCH: Final = 1
"""Tags of CurrentLeader."""

_CURRENT: Final = Struct(">BBBiiB")  # one field, its tag and size, node, epoch, no tags within
_CURRENT_SIZE: Final = 9
_I32: Final = Struct(">i")


class NodeEndpoint(NamedTuple):
    """Where a node is reached by whoever is told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None


def current(tag: int, leader: int, epoch: int) -> bytes:
    """The tagged fields of a partition that this node leads in this epoch; leader -1: nobody."""
    return _CURRENT.pack(1, tag, _CURRENT_SIZE, leader, epoch, 0)


def endpoints(nodes: Iterable[NodeEndpoint]) -> bytes:
    """The tagged fields of a body, when there is somebody to be told of."""
    rows = [_row(node) for node in nodes]
    field = b"".join((uvarint(len(rows) + 1), *rows))
    return b"".join((b"\1\0", uvarint(len(field)), field))


def _row(node: NodeEndpoint) -> bytes:
    host = node.host.encode()
    rack = None if node.rack is None else node.rack.encode()
    where = (_I32.pack(node.node_id), uvarint(len(host) + 1), host, _I32.pack(node.port))
    told = (b"\0",) if rack is None else (uvarint(len(rack) + 1), rack)
    return b"".join((*where, *told, b"\0"))
