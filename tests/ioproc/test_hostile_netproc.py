"""A network process that was taken over writes lies into its rings and its arena: the I/O process
and control go on, serve the other network process, and tell it once."""

import os
import random
import struct

import pytest

from appliance.base import errors
from appliance.base.caller import ANONYMOUS, Caller
from appliance.ring import messages
from appliance.ring import partition_table as columns
from appliance.ring.messages import SENT, Message
from appliance.ring.process_table import CONTROL, IOPROC, NETPROC, Peer
from appliance.shell.bugs import Bugs
from appliance.supervisor.layout import MIB, Layout
from appliance.wire.batch import NewRecord, build_batch
from tests.netproc.netproc_world import CTL, IO, World
from tests.netproc.test_fetched_files import fetch, produce

LAYOUT = Layout(netprocs=2, arena_bytes=MIB * 8, partition_rows=256)
TAKEN = Peer(NETPROC, 1)
"""Network process 0 is sound, and has a client."""
SLOTS_AT = 128
CALLER = Caller(ANONYMOUS, "c", "127.0.0.1", "PLAINTEXT").encode()
BATCH = build_batch([NewRecord(1, None, b"of a taken process")])
SEEDS = range(int(os.environ.get("PENSTOCK_TEST_LIES", "8")))
EDGES = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 7, 8, 255, 256, 65536, 8 * MIB - 1, 8 * MIB,
         2**31 - 1, 2**32, 2**63 - 1]  # fmt: skip


class TakenOver:
    """The memory of a network process, and what its peers do with it. lives: how many took its
    place."""

    def __init__(self, world):
        self.world = world
        self.lives = 0
        self.begin()

    def begin(self):
        self.lives += 1
        self.links = self.world.seats.links(TAKEN)
        self.everybody()

    def everybody(self):
        world = self.world
        self.links.changed_peers()
        self.links.confirm()
        for links, shell in ((world.io, world.shell), (world.control_links, world.control)):
            shell.peers_changed(links.changed_peers())
            links.confirm()
        world.links.changed_peers()
        world.links.confirm()

    def die(self):
        """As the supervisor replaces it."""
        table = self.world.table
        table.vacate(TAKEN)
        table.move_epoch()
        self.everybody()
        self.world.memory.clear_rings_of(TAKEN)
        self.begin()

    @property
    def is_accused(self):
        """By whom."""
        return [one for one in (IO, CTL) if self.world.table.accused(one) == (TAKEN, self.lives)]

    def say(self, kind, op, payload=None, **fields):
        writer = self.links.writer(kind, 0)
        if payload is None:
            slot = Message(op, *[0] * 13)._replace(**fields)
            assert writer.push(*slot[:14])
        else:
            slot = {"flags": 0, "handle": 0, "token": 0} | fields
            assert writer.push_with_payload(op, payload=payload, **slot)
        self.links.flush()

    def turns(self, count=2):
        for _ in range(count):
            self.world.turn()
            self.world.io_turn()

    def said(self, event):
        """Lines of the log that tell of this event."""
        with open(f"/proc/self/fd/{self.world.fd}") as log:
            return [line for line in log if f" {event} " in line]


@pytest.fixture
def taken(tmp_path):
    world = World(tmp_path, layout=LAYOUT)
    world.io_process().raise_barriers(Bugs(world.log))
    world.sound = world.client()
    produce(world, world.sound, 2)
    yield TakenOver(world)
    world.close()


def is_sound(taken):
    """The client of the other network process is served what it writes."""
    world = taken.world
    end = world.memory.partitions.read_column(0, columns.LOG_END)
    produce(world, world.sound, 1)
    return b"v" * 100_000 in bytes(fetch(world, world.sound, end).records)


def random_slot(chance, op):
    """Fields of an operation that a network process may send; half of them as a sound one has
    them."""
    fields = {name: chance.choice(EDGES) for name in "abcdgh"}
    fields |= {
        name: chance.choice([one for one in EDGES if one.bit_length() < 32]) for name in "ef"
    }
    fields |= {
        "flags": chance.choice([0, 1, 2, 3, 255, 65535]),
        "handle": chance.choice([0, 0, 0, 1, 2, 255, 256, 2**31, 2**32 - 1]),
        "token": chance.choice([0, 1, 1 << 32, 2**64 - 1]),
    }
    if op in (messages.FORWARD, messages.COORDINATE):
        fields |= {
            "b": chance.randrange(95) << 16 | chance.randrange(18),
            "a": chance.choice([0, 1]),
        }
        fields["e"] = chance.choice([1, 30, len(CALLER), 4096])
    elif op == messages.APPEND and chance.random() < 0.5:
        fields |= {
            "a": 0,
            "e": chance.choice([61, 100, len(BATCH)]),
            "f": chance.choice([-1, 0, 1]),
        }
    return fields


def random_payload(chance):
    caller = chance.choice([CALLER, CALLER, b"ours", CALLER[:20], b""])
    return caller + chance.randbytes(chance.choice([0, 0, 8, 40, 99]))


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_slot_says_nobody_ends(taken, seed):
    chance = random.Random(seed)
    arena = taken.world.memory.arenas[1]
    for _ in range(150):
        arena[:4096] = chance.randbytes(4096)
        if chance.random() < 0.5:
            arena[: len(BATCH)] = BATCH
            arena[chance.randrange(61)] ^= chance.choice([0, 0, 1, 255])
        kind = chance.choice([CONTROL, IOPROC])
        op = chance.choice(sorted(SENT[NETPROC, kind]))
        for _ in range(chance.choice([1, 1, 3, 7])):
            fields, payload = random_slot(chance, op), None
            if op in messages.WITH_PAYLOAD:
                payload = random_payload(chance)
                fields = {key: fields[key] for key in ("flags", "handle", "token", *"abef")}
            taken.say(kind, op, payload, **fields)
        taken.turns(1)
        if taken.is_accused:
            taken.die()
    assert is_sound(taken)
    told = taken.said("bug")
    assert all(f"message {messages.MARK} " in line for line in told), told


# Lies that no sound process tells: one event, and the supervisor replaces the process -------------


def push(kind, op, payload=None, **fields):
    return lambda taken: taken.say(kind, op, payload, **fields)


def write(kind, at, data):
    """Bytes of the ring to that process, as they lie there."""

    def lie(taken):
        taken.say(
            kind,
            messages.CANCEL if kind == IOPROC else messages.FORWARD,
            None if kind == IOPROC else CALLER,
            **({} if kind == IOPROC else {"e": 1}),
        )
        out = taken.world.memory.rings_of(TAKEN)[Peer(kind, 0)].out
        out[at : at + len(data)] = data

    return lie


def word(number):
    return struct.pack("=Q", number)


BODY = {"e": 30, "b": 19 << 16 | 5}
LIES = {
    "a marker was written": push(IOPROC, messages.APPENDED, flags=1, token=1),
    "nobody knows the transaction": push(IOPROC, messages.KNOWN, flags=1, token=1),
    "does somebody know it": push(IOPROC, messages.KNOWS),
    "an answer": push(IOPROC, messages.ANSWERED, b"x"),
    "ids for producers": push(IOPROC, messages.PRODUCER_ID_BLOCK, e=1),
    "in-sync replicas": push(CONTROL, messages.ISR_CHANGE, b"x"),
    "a failed folder": push(CONTROL, messages.FOLDER_FAILED),
    "no operation": push(CONTROL, 3000),
    "a batch behind the arena": push(IOPROC, messages.APPEND, a=8 * MIB - 60, e=61, f=-1),
    "a batch before the arena": push(IOPROC, messages.APPEND, a=-61, e=61, f=-1),
    "a batch of no bytes": push(IOPROC, messages.APPEND, e=0),
    "a request behind the arena": push(CONTROL, messages.FORWARD, CALLER, a=2**62, e=2**31 - 1),
    "a payload behind its area": push(CONTROL, messages.FORWARD, e=1, i=MIB, j=1),
    "a payload before its area": push(IOPROC, messages.COORDINATE, i=-1, j=1),
    "a payload of less than nothing": push(IOPROC, messages.WATCH, i=8, j=-8),
    "rows to watch that are none": push(IOPROC, messages.WATCH, b"1234567"),
    "in the appliance's own name": push(CONTROL, messages.FORWARD, b"ours", **BODY),
    "a topic in the appliance's own name": push(CONTROL, messages.ENSURE_TOPIC, b"oursx", e=4),
    "a caller that is none": push(CONTROL, messages.FORWARD, CALLER[:-1], **BODY),
    "a caller longer than all": push(CONTROL, messages.ENSURE_TOPIC, CALLER, e=len(CALLER) + 1),
    "a caller of less than nothing": push(CONTROL, messages.ENSURE_TOPIC, CALLER, e=-1),
    "more slots than there are": write(IOPROC, 0, word(LAYOUT.ring_slots + 1)),
    "fewer slots than were read": write(CONTROL, 0, word(2**64 - 1)),
    "slots of another ring": write(IOPROC, SLOTS_AT, word(77 << 48)),
    "slots that nobody wrote": write(CONTROL, 0, word(2)),
}  # fmt: skip


@pytest.mark.parametrize("what", LIES)
def test_a_lie_is_told_once_and_costs_the_liar_its_place(taken, what):
    topics = set(taken.world.control._quorum.image.topics_by_name)
    LIES[what](taken)
    taken.turns(3)
    assert len(taken.is_accused) == 1
    assert len(taken.said("ring-broken")) == 1 and not taken.said("bug")
    assert set(taken.world.control._quorum.image.topics_by_name) == topics
    assert is_sound(taken)
    taken.die()
    taken.say(IOPROC, messages.LIST_OFFSET, a=-1, b=-1, token=5)
    taken.turns()
    [(_, [answer])] = taken.links.poll()
    assert (answer.op, answer.token, answer.flags) == (messages.LISTED, 5, errors.NONE + 1)


def test_an_impossible_counter_of_answers_that_were_read(taken):
    into = taken.world.memory.rings_of(TAKEN)[IO].into
    taken.say(IOPROC, messages.LIST_OFFSET, a=-1, b=-1)
    taken.turns(1)
    into[64:72] = word(2**40)
    for token in range(2 * LAYOUT.ring_slots):
        if token % 200 == 0:
            taken.turns(1)
        if taken.is_accused:
            break
        taken.say(IOPROC, messages.LIST_OFFSET, a=-1, b=-1, token=token)
    assert taken.is_accused == [IO]
    assert len(taken.said("ring-broken")) == 1
    assert is_sound(taken)


def test_what_it_names_is_its_own_memory(taken):
    """The same place in the arena of the sound process holds a batch; in its own there is none."""
    arenas = taken.world.memory.arenas
    arenas[0][: len(BATCH)] = BATCH
    end = taken.world.memory.partitions.read_column(0, columns.LOG_END)
    taken.say(IOPROC, messages.APPEND, e=len(BATCH), f=1, token=9)
    taken.turns()
    [(_, [answer])] = taken.links.poll()
    assert (answer.op, answer.token) == (messages.APPENDED, 9)
    assert answer.flags - 1 == errors.INVALID_RECORD
    assert taken.world.memory.partitions.read_column(0, columns.LOG_END) == end


def test_pieces_without_an_end_are_given_up(taken):
    """Of a request that never ends no more is kept than an arena can hold."""
    piece = bytes(1 << 16)
    told = []
    for _ in range(3 * (8 * MIB >> 16)):
        taken.say(IOPROC, messages.COORDINATE, piece, a=1, token=4, e=len(CALLER))
        taken.turns(1)
        told += [one for _, arrived in taken.links.poll() for one in arrived]
    assert {one.flags - 1 for one in told} == {errors.INVALID_REQUEST}
    assert is_sound(taken)
