"""One partition of `__consumer_offsets` as a group coordinator: a value machine.

How the shell drives it, for every partition of the topic that lives in its ioproc:

1. `Shard(partition, settings, image, new_id)` is LOADING: every request is answered at once with
   COORDINATOR_LOAD_IN_PROGRESS. Read the partition from its start to the high watermark and call
   `replay(key, value, offset)` for each record of it, in order (skip control batches).
2. `activate(now_ms)` makes it ACTIVE and gives the loaded members a fresh session.
3. `handle(call, request, now_ms)` for a request, `tick(now_ms)` when `next_deadline_ms` has come,
   `on_topic_deleted(...)` when the image lost a topic: each gives an Outcome. Append its records as
   one batch before the next call; never call `replay` for them, they are applied already. Send its
   responses when the high watermark has reached the log end offset of that moment. An Outcome
   without records waits for what is in flight in the same way: nobody is told of what a power loss
   could take back.
4. A parked request (JoinGroup, SyncGroup) is answered by a later Outcome under its own token. A
   token whose connection is gone may come: drop the answer.
5. When an append fails, or the partition goes away: `resign()`, whose responses are sent at once.
   A resigned shard answers NOT_COORDINATOR; replace it by a new one to serve again.

Invariant: `apply` is the only thing that changes durable state, live (called by `Turn.write`, with
the typed record) and at load (called by `replay`, with the decoded one). Members that wait and
deadlines are volatile and change directly.
"""

from collections.abc import Callable
from typing import Any, Final

from appliance.coordinators.call import NEVER, Call, Outcome
from appliance.coordinators.settings import Settings
from appliance.metadata.image import MetadataImage

LOADING: Final = "loading"
ACTIVE: Final = "active"
RESIGNED: Final = "resigned"


class Shard:
    """The groups of one partition of `__consumer_offsets`.

    partition: its index. image: the metadata that this process follows (topic names and ids).
    new_id: gives 16 random bytes for a member id.
    """

    def __init__(
        self,
        partition: int,
        settings: Settings,
        image: MetadataImage,
        new_id: Callable[[], bytes],
    ) -> None:
        self.partition = partition
        self.settings = settings
        self.image = image
        self.new_id = new_id
        self.state = LOADING

    @property
    def next_deadline_ms(self) -> int:
        """When `tick` wants to be called at the latest, NEVER when nothing is due."""
        return NEVER

    def replay(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Apply one record of the partition while loading; value None removes.

        Raises PeerError(CORRUPT_MESSAGE) for bytes that are no record of a group; types that nobody
        here knows are skipped. offset: of the record, for the text of an error.
        """
        raise NotImplementedError

    def activate(self, now_ms: int) -> Outcome:
        """All was replayed: begin to serve. Loaded members have a whole session timeout to come."""
        raise NotImplementedError

    def resign(self) -> Outcome:
        """Stop serving: every parked request is answered NOT_COORDINATOR."""
        raise NotImplementedError

    def handle(self, call: Call, request: Any, now_ms: int) -> Outcome:  # noqa: ANN401
        """Decide a request. request: the decoded message (`wire.messages.decode_request`).

        A request for several groups (DescribeGroups, DeleteGroups, OffsetFetch from version 8 on,
        ListGroups) goes to every shard concerned as it is: each answers for its own groups, and
        `routing.merge` makes one answer of them.
        """
        raise NotImplementedError

    def tick(self, now_ms: int) -> Outcome:
        """Do what is due: sessions, rebalances, expiry of offsets."""
        raise NotImplementedError

    def on_topic_deleted(self, name: str, topic_id: bytes, now_ms: int) -> Outcome:
        """Remove the offsets committed for a topic that exists no more."""
        raise NotImplementedError
