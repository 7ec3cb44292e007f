"""Toy children that never stop talking: `python toy_traffic.py DATA_DIR`.

Netprocs send numbered messages to control and ioprocs, which send them back; every answer must be
the next one since the last death of either side.
"""

import random
import sys

from toy_appliance import ToyControl, ToyIoproc, ToyNetproc, on_ready

from appliance.ring.messages import ANSWERED, FORWARD, FOUND, READ
from appliance.ring.process_table import CONTROL, NETPROC
from appliance.supervisor import Layout, run

MOST_UNANSWERED = 500


class Echo:
    def handle(self, peer, messages):
        writer = self.links.writer(*peer)
        for m in messages:
            if m.op == FORWARD:
                writer.push_with_payload(ANSWERED, 1, 0, m.token, payload=m.payload)
            else:
                writer.push(FOUND, 1, m.handle, m.token, m.a)


class EchoControl(Echo, ToyControl):
    pass


class EchoIoproc(Echo, ToyIoproc):
    pass


class Talker(ToyNetproc):
    def __init__(self, seat):
        super().__init__(seat)
        self.random = random.Random(seat.generation)
        self.peers = [p for p in seat.processes.peers if p.kind != NETPROC]
        self.sent = dict.fromkeys(self.peers, 0)
        self.answered = dict.fromkeys(self.peers, 0)

    def peers_changed(self, peers):
        for peer in peers:
            self.sent[peer] = self.answered[peer] = 0

    def handle(self, peer, messages):
        for m in messages:
            assert m.token == self.answered[peer], (peer, m.token, self.answered[peer])
            self.answered[peer] = m.token + 1
            assert m.payload == body(m.token) if m.op == ANSWERED else m.a == 3 * m.token

    def run_once(self, now_ns):
        wait = super().run_once(now_ns)
        if not self.begun or wait < 0:
            return wait
        for peer in self.peers:
            for _ in range(self.random.choice((1, 5, 50, 600))):
                if not self.send(peer):
                    break
        return self.random.choice((0, 0, 1))

    def send(self, peer):
        token = self.sent[peer]
        writer = self.links.writer(*peer)
        if token - self.answered[peer] > MOST_UNANSWERED:
            return False
        if peer.kind == CONTROL:
            pushed = writer.push_with_payload(FORWARD, 0, 0, token, 0, e=5, payload=body(token))
        else:
            pushed = writer.push(READ, 0, 3, token, 3 * token)
        self.sent[peer] += pushed
        return pushed


def body(token):
    return bytes([token % 256]) * (token % 999)


def main():
    layout = Layout(
        netprocs=2,
        ioprocs=2,
        listeners=(("127.0.0.1", 0),),
        arena_bytes=1 << 22,
        partition_rows=64,
        crash_limit=1_000_000,
        crash_window_seconds=0.001,  # every restart is a first one: no pauses
    )
    entries = {
        kind: (lambda seat, toy=toy: toy(seat).run())
        for kind, toy in enumerate((EchoControl, EchoIoproc, Talker))
    }
    return run(None, data_dir=sys.argv[1], on_ready=on_ready, layout=layout, entries=entries)


if __name__ == "__main__":
    sys.exit(main())
