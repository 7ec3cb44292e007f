"""The way of the files that reads of remote segments need: by the process that talks to the store.

Called by `remote_reads/remote_files.py`, whose `FileFetcher` this is.
"""

from collections.abc import Callable
from typing import Final

from appliance.ioproc.remote.failures import PROCESS
from appliance.ioproc.remote.link import StoreChannel, ask_file, ask_remove
from appliance.ioproc.remote_reads.remote_files import FileArrival
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord

_REMOVED: Final = 0
"""The number of a question whose answer nobody waits for."""


class StoreFiles:
    """channel: one of its own (`AnswerRoutes.make_queue`). rate: bytes per second that reads may
    fetch, as it is now."""

    def __init__(self, channel: StoreChannel, rate: Callable[[], float]) -> None:
        self._channel = channel
        self._rate = rate

    def fetch_file(
        self,
        number: int,
        one: RemoteLogSegmentMetadataRecord,
        kind: str,
        span: tuple[int, int],
        path: str,
    ) -> None:
        """Bring a file. span: begin and end of a chunk of the log."""
        self._channel.ask_store((number,), ask_file(one, kind, span, path, self._rate()))

    def remove_file(self, path: str) -> None:
        """Remove a file of the cache."""
        self._channel.ask_store((_REMOVED,), ask_remove(path))

    def take_arrivals(self) -> list[FileArrival]:
        """Files that have come, or have not, since the last call."""
        return [
            FileArrival(
                answer.tag[0],
                answer.fields.get("bytes", 0),
                answer.fields.get("end", -1),
                answer.failure,
                answer.kind == PROCESS,
            )
            for answer in self._channel.take_answers()
            if answer.tag[0] != _REMOVED
        ]
