"""Asking a node that is to vote, before it does: whether it is there, and which kraft.version it
can follow (KIP-853). One at a time; who asks meanwhile is told to come again.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from appliance.base.errors import NONE, UNKNOWN_SERVER_ERROR, PeerError
from appliance.control.quorum.connections import Place, Way
from appliance.control.requests.pending_answers import Decision
from appliance.handlers.admin import AdminContext
from appliance.handlers.voter_changes import VoterProbe
from appliance.peers.conversation import NEVER

_API_VERSIONS: Final = 18
_FEATURE: Final = "kraft.version"


class Probing(NamedTuple):
    """A decision that needs an answer of this node. go_on: decides with it."""

    node_id: int
    place: Place
    go_on: Callable[[AdminContext, VoterProbe], Decision]


class Prober:
    """connect: makes a link. heard: gets netproc, token, what was to be decided and what was said;
    nothing when the netproc is dead."""

    __slots__ = ("_connect", "_heard", "_timeout_ms", "_under_way", "_way")

    def __init__(
        self,
        connect: Callable[[int, Place, str], Way],
        heard: Callable[[int, int, Probing, VoterProbe], None],
        timeout_ms: int,
    ) -> None:
        self._connect = connect
        self._heard = heard
        self._timeout_ms = timeout_ms
        self._under_way: tuple[int, int, Probing] | None = None
        self._way: Way | None = None

    @property
    def busy(self) -> bool:
        """Somebody is asked."""
        return self._way is not None

    def probe_node(self, netproc: int, token: int, what: Probing) -> None:
        """Ask the node; `heard` follows in a later turn."""
        assert not self.busy, "one at a time"
        self._under_way = netproc, token, what
        self._way = way = self._connect(what.node_id, what.place, "probe")
        values = {"client_software_name": "penstock", "client_software_version": "1"}
        way.ask_peer(_API_VERSIONS, 4, values, self._told, self._timeout_ms, 3)

    def forget_netproc(self, netproc: int) -> None:
        """It is dead: nobody hears what it asked for."""
        if self._under_way is not None and self._under_way[0] == netproc:
            self._under_way = None

    def run_once(self) -> int:
        """In how many ms to come again."""
        return NEVER if self._way is None else self._way.run_once()

    def _told(self, answer: Any) -> None:
        way, self._way = self._way, None
        under_way, self._under_way = self._under_way, None
        said = VoterProbe(UNKNOWN_SERVER_ERROR)
        try:
            said = _said(answer)
        finally:
            if way is not None:
                way.close()
            if under_way is not None:
                self._heard(*under_way, said)


def _said(answer: Any) -> VoterProbe:
    if isinstance(answer, PeerError):
        return VoterProbe(answer.code)
    if answer.error_code != NONE:
        return VoterProbe(int(answer.error_code))
    named = (one for one in answer.supported_features if one.name == _FEATURE)
    levels = ((one.min_version, one.max_version) for one in named)
    return VoterProbe(NONE, *next(levels, (0, 0)))
