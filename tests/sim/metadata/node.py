"""A machine whose control process is today's `Control`, whole: its requests, its quorum of one, its
threads that end when chance says so; over shared memory that outlives the process, and a disk that
outlives the machine. A thin netproc hands on what clients ask."""

import errno
import os
from typing import NamedTuple

from sim.node import Node

from appliance.base.errors import CannotServe, StorageFailed
from appliance.config.broker import BrokerConfig
from appliance.control.folder.startup import start_control
from appliance.control.shell import Control
from appliance.metadata.follower import Follower
from appliance.ring.messages import FORWARD
from appliance.ring.partition_table import PartitionTable
from appliance.ring.process_table import CONTROL, NETPROC, Peer
from appliance.shell.flusher import run
from appliance.shell.links import Links
from appliance.shell.log import Log
from appliance.supervisor.layout import MIB, Layout
from tests.callers import caller
from tests.seats import Seats

DATA = "/data"
LAYOUT = Layout(arena_bytes=MIB, partition_rows=64, payload_bytes=MIB // 16)
CONFIG = BrokerConfig.of({"metadata.log.max.record.bytes.between.snapshots": "4000"})
CALLER = caller().encode()
CTL, NET = Peer(CONTROL, 0), Peer(NETPROC, 0)
SLOT, SLOTS = 2048, 512  # of the arena
TICK_MS = 10
TWIN_MS = 60


class Ask(NamedTuple):
    token: int
    key: int
    version: int
    body: bytes


class Answer(NamedTuple):
    """code: not NONE when the connection is closed over it."""

    token: int
    code: int
    body: bytes


class Jobs:
    """The threads of control."""

    def __init__(self, node):
        self.node = node
        self.done = []

    def submit(self, tag, job):
        self.node.after(self.node.world.rng.uniform(0.05, 5), self.end, tag, job)

    def end(self, tag, job):
        self.done.append(self.node.run(tag, job))
        self.node.turn_soon()

    def take_ended(self):
        done, self.done = self.done, []
        return done

    def hush(self):
        pass


class Metadata(Node):
    """told: what clients were told; it is asked at the start of each life."""

    ends_with_storage = True

    def __init__(self, world, name, told):
        super().__init__(world, name)
        self.told = told
        self.seats = None
        self.epoch = 0  # the newest that was led
        self.log_fd = os.open(os.devnull, os.O_WRONLY)
        self.log = Log(name, fd=self.log_fd, journal=False)
        self.disk.mkdir(DATA)
        self.disk.sync_dir("/")

    def close(self):
        if self.seats is not None:
            self.seats.close()
        os.close(self.log_fd)

    # A life ---------------------------------------------------------------------------------------

    def begin(self):
        try:
            self.live()
        except CannotServe as cause:
            failure = cause.__cause__
            if not isinstance(failure, StorageFailed) or failure.errno != errno.EIO:
                raise
            raise failure from cause  # whoever started it starts it again

    def live(self):
        self.control = None
        self.asked = {}  # token → (end of the connection, the client's token)
        self.pieces = {}  # token → what has come of its answer
        self.tokens = 0
        self.turns = False
        if self.seats is None:
            self.seats = Seats(LAYOUT, self.log, CONFIG, DATA)
            self.net = self.seats.links(NET)
        else:
            self.bury()
        seat = self.seats.seat(CTL)
        self.links = Links(seat, self.log)
        started = start_control(
            seat, self.disk, self.world.clock, self.world.rng.randbytes, self.log
        )
        control = Control(seat, self.links, self.log, started, Jobs(self))
        control.open_for_business()
        self.control = self.made(control)
        self.settle()
        self.leads()
        self.told.still_true(self.image(), self)
        self.after(TICK_MS, self.tick)
        self.after(TWIN_MS, self.compare)

    def made(self, control):
        """A control that is about to be asked."""
        return control

    def bury(self):
        """What the supervisor does with the place of a process that died."""
        self.seats.table.vacate(CTL)
        self.seats.table.move_epoch()
        self.net.changed_peers()
        self.net.confirm()
        self.seats.memory.clear_rings_of(CTL)

    def stop(self, *, power):
        if power and self.seats is not None:
            self.seats.close()
            self.seats = None
        super().stop(power=power)

    def settle(self):
        for links in (self.net, self.links):
            links.changed_peers()
            links.confirm()
        self.seats.table.set_applied(NET, self.seats.table.metadata_offset)

    def run(self, tag, job):
        return run(tag, job)

    def image(self, table=None):
        """What whoever follows the file has, up to what is published."""
        table = table or PartitionTable(memoryview(bytearray(PartitionTable.bytes_needed(4))), 4)
        follower = Follower(self.disk, DATA, table)
        follower.catch_up(self.seats.table.metadata_offset)
        return follower.image

    def compare(self):
        """The image that lives is the one that the file gives."""
        assert self.control._quorum.images.committed == self.image()
        self.after(TWIN_MS, self.compare)

    # Leadership -----------------------------------------------------------------------------------

    def leads(self):
        _, epoch = self.seats.table.leader
        assert epoch > self.epoch, "an epoch was led twice"
        self.epoch = epoch

    def lose_leadership(self, cut):
        """For a while somebody else leads, who, if `cut`, has not all that stands in the log."""
        quorum = self.control._quorum
        if not quorum.leadership.leads:
            return
        self.world.reached("the leadership is lost")
        self.say("resigns")
        self.control.resign()
        self.turn_soon()
        if cut:
            self.cut()
        self.after(self.world.rng.uniform(1, 40), self.lead)

    def cut(self):
        """As soon as no sync is under way, which begins with each change."""
        quorum = self.control._quorum
        if quorum.leadership.leads:
            return
        if self.control._syncing:
            self.after(0.5, self.cut)
            return
        agreed = quorum.replica.high_watermark  # its image may be behind that
        ends = [header.base_offset for header, _ in
                quorum.log.read(agreed, quorum.log.end_offset)]  # fmt: skip
        if ends:
            quorum.truncate(self.world.rng.choice(ends), self.world.clock.wall_ms())
            self.world.reached("a log is cut")
            self.say(f"has its log cut to {quorum.log.end_offset}")

    def lead(self):
        self.control.lead()
        self.leads()
        self.turn_soon()

    # Turns ----------------------------------------------------------------------------------------

    def tick(self):
        self.turn_soon()
        self.after(TICK_MS, self.tick)

    def turn_soon(self):
        if not self.turns:
            self.turns = True
            self.after(self.world.rng.uniform(0.01, 0.2), self.turn)

    def turn(self):
        self.turns = False
        self.net.flush()
        for peer, messages in self.links.poll():
            self.control.handle(peer, messages)
        self.control.run_once(self.world.clock.now_ns)
        self.seats.table.set_applied(NET, self.seats.table.metadata_offset)
        for _, messages in self.net.poll():
            for message in messages:
                self.answered(message)

    def received(self, end, message):
        self.tokens += 1
        self.asked[self.tokens] = end, message.token
        at = self.tokens % SLOTS * SLOT
        assert len(message.body) <= SLOT
        self.seats.memory.arenas[0][at : at + len(message.body)] = message.body
        assert self.net.writer(CONTROL, 0).push_with_payload(
            FORWARD, 0, 0, self.tokens, at, message.key << 16 | message.version,
            e=len(message.body), payload=CALLER,
        )  # fmt: skip
        self.turn_soon()

    def answered(self, message):
        body = self.pieces.pop(message.token, b"") + message.payload
        if message.a == 1:
            self.pieces[message.token] = body
            return
        end, token = self.asked.pop(message.token)
        end.send(Answer(token, message.flags - 1, body))
