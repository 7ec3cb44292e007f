"""Logs of followers that begin where their leader's local log does: what lies before it is in the
remote store alone, and so are the producers of there (KIP-405).

The manifest and a snapshot of producers are fetched first; then the journal, then the log changes,
so that a start in between finds a log that can be fetched on. Called by
`replica_fetcher/divergence.py`.
"""

from typing import Final

from appliance.base.dataclass import dataclass
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.remote.link import AnswerRoutes, StoreAnswer
from appliance.ioproc.remote.manifest_steps import ask_start, entries_in, snapshot_in
from appliance.ioproc.remote.remote_chain import epochs_of
from appliance.ioproc.remote.tiering import Tiering
from appliance.logstore.remote_start import know_epochs, start_behind_remote
from appliance.remotelog.expiry import select_chain_to, whole_end
from appliance.remotelog.manifests import Term
from appliance.shell.log import WARNING, Log

_PAUSE_NS: Final = 1_000_000_000


@dataclass(slots=True, eq=False)
class TieredStart:
    """A log that is to begin at an offset. answer: what it needs, when that has come."""

    offset: int
    answer: StoreAnswer | None = None
    again_ns: int = 0


class TieredStarts:
    """tiering: whose journals and partitions they are."""

    def __init__(self, routes: AnswerRoutes, tiering: Tiering, events: Log) -> None:
        self._store = routes.channel_for(self._take_answer)
        self._tiering = tiering
        self._events = events
        self._under_way: dict[Partition, TieredStart] = {}

    def is_ready(self, partition: Partition, offset: int, now_ns: int) -> bool:
        """True if all that a log needs is here that is to begin at this offset; else it is asked
        for."""
        start = self._under_way.get(partition)
        if start is None or start.offset != offset:
            self._ask(partition, offset)
            return False
        answer, again_ns = start.answer, start.again_ns
        if answer is not None and answer.failure and now_ns >= again_ns:
            self._ask(partition, offset)
            return False
        return answer is not None and not answer.failure

    def _ask(self, partition: Partition, offset: int) -> None:
        start = self._under_way[partition] = TieredStart(offset)
        key = partition.topic_id, partition.index
        self._store.ask_store((partition, start), ask_start(key, self._tiering.node, offset))

    def _take_answer(self, answer: StoreAnswer, now_ns: int, now_ms: int) -> None:
        partition: Partition = answer.tag[0]
        start: TieredStart = answer.tag[1]
        if start is not self._under_way.get(partition):
            return
        start.answer = answer
        if answer.failure:
            start.again_ns = now_ns + _PAUSE_NS
            self._events.event_seldom(
                WARNING, "remote-read-failed", partition=partition, cause=answer.failure
            )

    def begin_log(self, partition: Partition, now_ms: int) -> None:
        """The log begins anew, empty, and knows what lies before it. It `is_ready`. Raises
        StorageFailed."""
        start = self._under_way.pop(partition)
        assert start.answer is not None
        fields, log = start.answer.fields, partition.log
        known = self._tiering.take_over(partition, entries_in(fields), Term(*fields["term"]))
        start_behind_remote(log, start.offset, snapshot_in(fields), now_ms)
        know_epochs(log, epochs_of(known))
        log.write_epochs()
        finished = known.finished()
        end = max(map(whole_end, finished), default=start.offset)
        log.join_remote(select_chain_to(finished, start.offset), end)
