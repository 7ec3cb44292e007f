"""A member of a classic group: what it told when it joined, what it was given, when it is due."""

from operator import attrgetter
from typing import Any, Final

from appliance.base.dataclass import dataclass
from appliance.coordinators.groups.records import MemberMetadata
from appliance.coordinators.runtime.call import NEVER

_PROTOCOL: Final = attrgetter("name", "metadata")
Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the order of the member's preference."""


PROTOCOL_BYTES: Final = 128
"""Of memory that a protocol takes besides its name and metadata."""


def bytes_of(protocols: Protocols) -> int:
    """Bytes that they take in memory."""
    content = sum(len(name) + len(metadata) for name, metadata in protocols)
    return content + PROTOCOL_BYTES * len(protocols)


_MEMBER_BYTES: Final = 512
"""Of memory that a member takes besides what it says."""


@dataclass(slots=True)
class Member:
    """Timeouts and deadlines in ms. is_new: has not been through a rebalance yet."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    deadline_ms: int = NEVER

    def metadata(self, protocol: str | None) -> bytes:
        """Its subscription under a protocol, empty when it has none."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def held_bytes(self) -> int:
        """Bytes of memory that it takes, its protocols and its assignment included."""
        texts = (self.member_id, self.instance_id, self.client_id)
        names = sum(len(text) for text in texts if text)
        return _MEMBER_BYTES + names + len(self.assignment) + bytes_of(self.protocols)

    def vote(self, candidates: dict[str, None]) -> str:
        """The first of its protocols that every member supports."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"{self.member_id} supports none of {list(candidates)}")


def recorded(member: Member, protocol: str | None, assignment: bytes) -> MemberMetadata:
    """The member as its group's record holds it."""
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )


def restored(found: MemberMetadata, protocol: str | None) -> Member:
    """The member of a record: of its protocols only the chosen one is known."""
    timeout = found.rebalance_timeout
    return Member(
        member_id=found.member_id,
        instance_id=found.group_instance_id,
        client_id=found.client_id,
        client_host=found.client_host,
        rebalance_timeout_ms=found.session_timeout if timeout == -1 else timeout,
        session_timeout_ms=found.session_timeout,
        protocols=((protocol or "", found.subscription),),
        assignment=found.assignment,
    )


def protocols_of(request: Any) -> Protocols:
    """The protocols of a JoinGroup request, as (name, metadata)."""
    return tuple(map(_PROTOCOL, request.protocols))
