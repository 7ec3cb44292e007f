"""The shared memory of an appliance and the places in it, without a process: what the supervisor
makes and hands to each child, made and handed over by hand."""

import os

from appliance.config.broker import BrokerConfig
from appliance.shell.links import Links
from appliance.shell.log import Log
from appliance.shell.seat import Seat
from appliance.shell.settings_reload import SettingsReload
from appliance.supervisor.memory import SharedMemory


def log_file(path, process):
    """(descriptor, log) of a file in the folder `path`; who asks closes the descriptor."""
    fd = os.open(path / "log", os.O_RDWR | os.O_CREAT)
    return fd, Log(process, fd=fd, journal=False)


class Seats:
    """memory, table (of processes), bells (by peer) and the supervisor's own."""

    def __init__(self, layout, log, config=None, data_dir=""):
        self.layout = layout
        self.log = log
        self.config = config or BrokerConfig()
        self.data_dir = data_dir
        self.memory = SharedMemory(layout, log)
        log.bounds = self.memory.tables.bounds.regions["netproc-0"]
        self.table = self.memory.processes
        self.bells = {peer: os.eventfd(0, os.EFD_NONBLOCK) for peer in self.table.peers}
        self.own = os.eventfd(0, os.EFD_NONBLOCK)

    def seat(self, peer, **options):
        """A process takes this place: the next generation of it."""
        generation = self.table.occupy(peer)
        self.table.move_epoch()
        given = {
            "kind": peer.kind,
            "index": peer.index,
            "generation": generation,
            "config": self.config,
            "run_id": b"one run of it ..",
            "data_dir": self.data_dir,
            "clean": False,
            "processes": self.table,
            "partitions": self.memory.partitions,
            "quotas": self.memory.quotas,
            "counters": self.memory.counters,
            "clients": self.memory.clients,
            "lags": self.memory.lags,
            "pushes": self.memory.pushes,
            "rereading": SettingsReload(self.memory.settings, self.config),
            "events": self.memory.events,
            "security": self.memory.tables.security,
            "bounds": self.memory.tables.bounds,
            "arenas": self.memory.arenas,
            "doorbell": self.bells[peer],
            "doorbells": {other: bell for other, bell in self.bells.items() if other != peer},
            "supervisor_doorbell": self.own,
            "rings": self.memory.rings_of(peer),
            "ioprocs": self.layout.ioprocs,
            "netprocs": self.layout.netprocs,
            "ring_slots": self.layout.ring_slots,
        }
        return Seat(**given | options)

    def links(self, peer):
        """Its rings, for a new process in this place."""
        return Links(self.seat(peer), self.log)

    def rung(self, peer):
        """How often its bell was rung since; that is forgotten."""
        try:
            return os.eventfd_read(self.bells[peer])
        except BlockingIOError:
            return 0

    def close(self):
        for bell in (self.own, *self.bells.values()):
            os.close(bell)
