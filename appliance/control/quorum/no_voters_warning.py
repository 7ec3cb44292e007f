"""Says when nobody votes: a node that asks others for the voters, and none of them knows any. All
nodes of a new cluster may be started so, each waiting for the others.

Called by `voter_duties.py` in every turn.
"""

from typing import Final

from appliance.config.broker import BrokerConfig
from appliance.config.cluster_checks import BEGINS
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.ring.process_table import ProcessTable
from appliance.shell.log import WARNING, Log

_PATIENCE_MS: Final = 5_000


class Unvoted:
    """Warns while this node waits for voters of the quorum."""

    __slots__ = ("_asked", "_log", "_processes", "_quorum", "_said", "_since_ms")

    def __init__(
        self, quorum: MetadataQuorum, config: BrokerConfig, processes: ProcessTable, log: Log
    ) -> None:
        self._quorum = quorum
        self._asked = ",".join(config.list("controller.quorum.bootstrap.servers"))
        self._processes = processes
        self._log = log
        self._since_ms = -1
        self._said = False
        processes.set_unvoted(False)  # what a predecessor has said

    def warn_once(self, now_ms: int) -> None:
        """Once, and that it is over, in the process table."""
        quorum = self._quorum
        if quorum.electing.latest.voters or quorum.leadership.leader_id >= 0:
            self._since_ms = -1
            if self._said:
                self._said = False
                self._processes.set_unvoted(False)
            return
        if self._since_ms < 0:
            self._since_ms = now_ms
        if not self._said and now_ms - self._since_ms >= _PATIENCE_MS:
            self._said = True
            self._processes.set_unvoted(True)
            cause = f"none of {self._asked} answers with voters"
            self._log.event(WARNING, "nobody-votes", cause=cause, action=BEGINS)
