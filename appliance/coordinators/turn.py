"""One turn of a shard: what its decisions may look at and where their results go.

Everything that decides takes a Turn, reads `shard` and `now_ms`, writes records and answers. A
record is applied the moment it is written, so the next line of the decision sees its effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from appliance.coordinators.call import Call, Outcome
from appliance.coordinators.group import Group
from appliance.coordinators.records import encode_key, encode_value

if TYPE_CHECKING:
    from appliance.coordinators.shard import Shard


@dataclass(slots=True)
class Turn:
    """now_ms: wall clock, read once."""

    shard: "Shard"
    now_ms: int
    outcome: Outcome = field(default_factory=Outcome)

    def write(self, key: Any, value: Any, version: int = 0) -> None:
        """Append a record in this version of its value, and apply it. value None: a tombstone."""
        encoded = None if value is None else encode_value(value, version)
        self.outcome.records.append((encode_key(key), encoded))
        self.shard.apply(key, value)

    def answer(self, call: Call, values: Mapping[str, Any]) -> None:
        """Answer a request, now or one that was parked."""
        self.outcome.responses.append((call.token, values))

    def wake(self, group: Group, deadline_ms: int) -> None:
        """See to it that the group's `expire` is called by then."""
        if deadline_ms < group.scheduled_ms:
            self.shard.schedule(group, deadline_ms)
