"""The roles and topics of each connection: a consumer that only goes on asking for a deleted topic
does not create it again, and a client that means it does.

A connection is left over for a topic when it, or another one of its client, was asking for the
topic or reading it at the moment of the deletion, and it belongs to a consumer: it reads and does
not write. A client is known by its address and client id. Connections that come later begin with no
habits. Called by the server; docs/decisions/0006 says why.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from appliance.handlers.exchange import Partitions
from appliance.metadata.changes import TopicRemoved

_SEEN: Final = 1
_WRITES: Final = 2
_READS: Final = 4
_WRITING: Final = (0, 22)  # Produce, InitProducerId
_READING: Final = (1, 11, 12, 14, 68)  # Fetch, and being a member of a group

ROLES: Final = bytes(
    _SEEN | _WRITES * (key in _WRITING) | _READS * (key in _READING) for key in range(128)
)
"""By API key: what a request of it shows of who sends it."""

_MOST: Final = 256
"""Topics that are remembered of one connection; those asked for lately stay."""


class ClientActivity:
    """Roles and topics of one connection. address: of its client. roles: the sum of `ROLES` of
    its requests. reading: partitions of its last fetch, or of its whole fetch session."""

    __slots__ = ("_asked", "_gone", "address", "client_id", "reading", "roles")

    def __init__(self, address: str) -> None:
        self.address = address
        self.client_id: bytes | None = None
        self.roles = 0
        self.reading: Partitions = ()
        self._asked: dict[str, None] = {}
        self._gone: dict[str, None] = {}  # deleted while they were asked for

    def learn(self, role: int, client_id: bytes | None) -> None:
        """It has sent a request of this role."""
        self.roles |= role
        self.client_id = client_id

    def remembered(self) -> tuple[list[str], list[str]]:
        """Topics that it has asked for, and those of them that were deleted; the newest last."""
        return list(self._asked), list(self._gone)

    def continue_habits(
        self, roles: int, client_id: bytes | None, asked: Iterable[str], gone: Iterable[str]
    ) -> None:
        """As those were, in another process."""
        self.roles, self.client_id = roles, client_id
        self._asked, self._gone = dict.fromkeys(asked), dict.fromkeys(gone)

    def asks(self, name: str) -> None:
        """It has asked for a topic that exists."""
        _remember(self._asked, name)

    def lose(self, names: Iterable[str]) -> None:
        """Topics that its client asks for were deleted."""
        for name in names:
            _remember(self._gone, name)

    def asked_for(self, names: set[str], removed: dict[bytes, str]) -> set[str]:
        """Those of the removed topics that it asks for or reads. removed: their names by name and
        by id, both as Fetch has them."""
        found = self._asked.keys() & names
        found.update(removed[one[0]] for one in self.reading if one[0] in removed)
        return found

    def same_client(self, other: "ClientActivity") -> bool:
        """True if both are connections of one client: equal address and client id."""
        return self.address == other.address and self.client_id == other.client_id

    def left_over(self, name: str, everybody: Iterable["ClientActivity"]) -> bool:
        """True if it asks for this deleted topic only out of habit. everybody: the habits of all
        connections, because a connection for metadata alone does not show its client's roles."""
        if name not in self._gone:
            return False
        roles = self.roles
        if not roles & (_READS | _WRITES):
            for other in everybody:
                if other.same_client(self):
                    roles |= other.roles
        return roles & (_READS | _WRITES) == _READS


def topics_removed(everybody: Sequence[ClientActivity], removed: Iterable[TopicRemoved]) -> None:
    """Topics were deleted: note who was asking for them."""
    known: dict[bytes, str] = {}
    for one in removed:
        known[one.name.encode()] = known[one.topic_id] = one.name
    names = set(known.values())
    clients: dict[tuple[str, bytes | None], set[str]] = {}
    for habits in everybody:
        found = habits.asked_for(names, known)
        if found:
            clients.setdefault((habits.address, habits.client_id), set()).update(found)
    if clients:
        for habits in everybody:
            habits.lose(clients.get((habits.address, habits.client_id), ()))


def _remember(names: dict[str, None], name: str) -> None:
    """As the newest one."""
    names.pop(name, None)
    names[name] = None
    if len(names) > _MOST:
        del names[next(iter(names))]
