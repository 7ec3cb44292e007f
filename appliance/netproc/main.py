"""Entry of a network process: wait until the appliance can serve, then turn until told to drain.

Where other controllers vote, they can be heard before that: without them nobody knows what is
committed, and there is nothing to serve.
"""

import signal

from appliance.base.clock import clock_here
from appliance.base.os_disk import OsDisk
from appliance.metadata.follower import Follower
from appliance.netproc.server import Server, can_serve
from appliance.ring.messages import Message
from appliance.ring.process_table import Peer
from appliance.shell import sandbox
from appliance.shell.denials import tell_denials
from appliance.shell.handed_connection import LEAVE, PART
from appliance.shell.links import Links
from appliance.shell.log import WARNING
from appliance.shell.loop import STOP, Loop
from appliance.shell.metadata_faults import tell_faults
from appliance.shell.seat import ANEW, Seat

_LOOK_AGAIN_MS = 2


class _Waiting:
    """The shell until control and every ioproc are ready: it only turns."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def peers_changed(self, peers: list[Peer]) -> None:
        """Ignore dead peers: no request is under way yet."""

    def handle(self, peer: Peer, messages: list[Message]) -> None:
        """Completions of a predecessor's requests: nobody waits for them."""

    def run_once(self, now_ns: int) -> int:
        table = self._seat.processes
        if table.drain or can_serve(table):
            return STOP
        return _LOOK_AGAIN_MS


def _let_go(seat: Seat, links: Links) -> None:
    """Confirm the death of peers: no request is under way yet, so nothing is to be forgotten."""
    links.beat()
    links.changed_peers()
    seat.rereading.apply_settings()
    links.confirm()


def run(seat: Seat) -> int:
    """Serve until the appliance drains; 0 is an orderly end."""
    log = seat.log()
    if missing := sandbox.enter():
        log.event(WARNING, "sandbox-incomplete", missing=",".join(missing))
    tell_denials(seat.authorizer, log)
    links = Links(seat, log)
    loop = Loop(seat, links)
    if not seat.config.several:
        loop.run(_Waiting(seat))
    if seat.processes.drain:
        return 0
    follower = Follower(OsDisk(), seat.data_dir, seat.partitions, tell_faults(log))
    committed = seat.processes.metadata_offset
    follower.catch_up(committed, lambda: _let_go(seat, links))
    seat.processes.set_applied(seat.me, committed)
    server = Server(seat, links, loop, follower, clock_here(), log)
    loop.on_failure = server.failed
    if can_serve(seat.processes):
        server.open_for_business()
    else:
        server.open_for_controllers(seat.config)
    server.adopt(seat.guests)
    signal.signal(PART, lambda _number, _frame: server.begin_handover())
    signal.signal(LEAVE, lambda _number, _frame: server.begin_handover(for_good=True))
    loop.run(server)
    server.close()
    return ANEW if server.parted else 0
