"""Entry of the control process: format or open the folder, then `shell.Control` until the appliance
drains."""

import os
import select
from functools import partial

from appliance.base.clock import OsClock, clock_here
from appliance.base.disk import Disk
from appliance.base.os_disk import OsDisk
from appliance.base.reserve import ReservedDisk
from appliance.control.folder.startup import start_control
from appliance.control.history.audit_writer import FILES, MAX_BYTES, AuditFile, Auditor
from appliance.control.history.history_writer import Keeper
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.control.shell import Control
from appliance.shell import sandbox
from appliance.shell.denials import tell_denials
from appliance.shell.flusher import Flusher
from appliance.shell.links import Links
from appliance.shell.log import Log
from appliance.shell.loop import Loop
from appliance.shell.seat import ANEW, UNBEGUN, Seat


def run(seat: Seat) -> int:
    """Control until the appliance drains; 0 is an orderly end, UNBEGUN one before the cluster has
    heard that this node may have lost something."""
    log = seat.log()
    sandbox.enter(files=True)  # netprocs tell what is missing
    tell_denials(seat.authorizer, log)
    links = Links(seat, log)
    loop = Loop(seat, links)
    folders = [path for one in seat.log_dirs for path in (one, os.path.abspath(one))]
    disk = ReservedDisk(OsDisk(), folders)
    threads = Flusher(3)  # a sync does not wait for a snapshot, nor for a note
    started = start_control(seat, disk, clock_here(), os.urandom, log)
    control = Control(seat, links, log, started, threads, loop)
    loop.on_failure = control.barrier.hang_up
    loop.register(threads.fd, select.EPOLLIN, control)
    one = Flusher(1)  # of the history: nothing waits for it
    loop.register(one.fd, select.EPOLLIN, one)
    control.keeper = Keeper(seat, disk, OsClock(), partial(_name, started.quorum), one, log)
    control.auditor = _auditor(seat, disk, loop, log)
    control.open_for_business()
    loop.run(control)
    begun = control.close()
    if control.doors.anew and not seat.processes.drain:
        return ANEW
    return 0 if begun or seat.clean else UNBEGUN


def _auditor(seat: Seat, disk: Disk, loop: Loop, log: Log) -> Auditor:
    config = seat.config
    opened = partial(
        AuditFile, disk, seat.data_dir, config.int(MAX_BYTES), config.int(FILES), log.reach
    )
    one = Flusher(1)
    loop.register(one.fd, select.EPOLLIN, one)
    return Auditor(seat.security, opened, OsClock(), one, log)


def _name(quorum: MetadataQuorum, topic_id: bytes) -> str:
    """The name of a committed topic, "" when there is none."""
    topic = quorum.images.committed.topics_by_id.get(topic_id)
    return "" if topic is None else topic.name
