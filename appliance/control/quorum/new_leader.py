"""First steps of a new leader: begin its epoch in the log, write the records of every new
controller, and request its own registration as any other change.

    lead ──▶ (elected) ──▶ begin ──▶ begun
                 resign: waits to be elected again

Invariant: until `begun` nothing that a client asks for is appended, and the node serves what the
log holds. A full disk stops the way anywhere; it goes on when there is room, in the same epoch,
unless another voter leads by then (`full_disk_resignation.py`).
Called by `shell.py`.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import DiskFull
from appliance.config.between_nodes import NUMBERS
from appliance.config.broker import BrokerConfig
from appliance.control.folder.format import BOOTSTRAP
from appliance.control.quorum.leadership import NotController
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.controller.decision import Record
from appliance.controller.registration import (
    Incarnation,
    bootstrap_records,
    records_of_several,
    registered,
)
from appliance.metadata import checkpoint
from appliance.metadata.checkpoint import CheckpointBroken
from appliance.metadata.identity import Identity, new_uuid
from appliance.metadata.parts import Endpoint
from appliance.shell.log import ERROR, NOTICE, Log
from appliance.shell.seat import Seat
from appliance.wire import kraft_records as kraft

_AGAIN_NS: Final = 1_000_000_000

Register = Callable[[Incarnation], None]
"""Asks for this node's registration; raises DiskFull."""


class Leading:
    """alone: the only voter asks at once for its own registration; where there are several, a
    broker asks the controller, wherever that is (`broker/node.py`).
    begun: requests are decided here. incarnation: this start of this node."""

    __slots__ = ("_again_ns", "_alone", "_besides", "_data_dir", "_disk", "_identity", "_lacking",
                 "_log", "_quorum", "_register", "begun", "incarnation")  # fmt: skip

    def __init__(
        self,
        seat: Seat,
        disk: Disk,
        quorum: MetadataQuorum,
        identity: Identity,
        random: Callable[[int], bytes],
        register: Register,
        log: Log,
    ) -> None:
        self._data_dir = seat.data_dir
        self._disk = disk
        self._quorum = quorum
        self._identity = identity
        self._register = register
        self._log = log
        self._again_ns = 0  # 0: a second behind the turn that finds no room
        self._lacking = False  # room, as far as is known
        self._alone = not seat.config.several
        self._besides = [] if self._alone else records_of_several(seat.config)
        self.begun = False
        rack = seat.config.get_value("broker.rack")
        self.incarnation = Incarnation(
            controller_id=new_uuid(random),
            broker_id=seat.run_id,
            endpoints=_endpoints(seat.config, seat.ports),
            rack=rack if isinstance(rack, str) else None,
            records_may_be_missing=not seat.clean and seat.generation == 1,
        )

    def lead(self, now_ms: int) -> None:
        """This node was elected. A full disk is no reason not to serve, unless there is nothing to
        serve yet. Raises StorageFailed."""
        try:
            self._begin(now_ms)
        except DiskFull as full:
            if not self._quorum.images.committed.metadata_version:
                raise
            self.lacks_room(full)

    def lacks_room(self, full: DiskFull) -> None:
        """Something was not appended. An only voter that has begun refuses that and goes on."""
        if self._lacking or (self.begun and self._alone):
            return
        self._lacking = True
        self._log.event(ERROR, "metadata-read-only", cause=full, action="refuse-changes")

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Around what appends. Raises as `check`."""
        self.check()
        try:
            yield
        except DiskFull as full:
            self.lacks_room(full)
            raise

    def resign(self) -> None:
        """This node does not lead any more."""
        epoch = self._quorum.leadership.epoch
        self._quorum.resign()
        self.begun = self._lacking = False
        self._log.event(NOTICE, "metadata-resigned", epoch=epoch)

    def again(self, now_ns: int, now_ms: int, *, low: bool = False) -> bool:
        """Go on where there was no room, once a second: whether there has been none, or little, for
        that long. low: the disk is nearly full. Raises StorageFailed."""
        if not (self._lacking or low) or not self._quorum.leadership.leads:
            self._again_ns = 0
            return False
        if now_ns < self._again_ns:
            return False
        first, self._again_ns = not self._again_ns, now_ns + _AGAIN_NS
        if first or not self._lacking:
            return not first
        try:
            if self.begun:  # what is refused may be larger, or nobody asks for it any more
                self._quorum.append([kraft.NoOpRecord()], now_ms)
            else:
                self._begin(now_ms)
        except DiskFull:
            return True
        self._lacking = False
        self._log.event(NOTICE, "metadata-writable", epoch=self._quorum.leadership.epoch)
        return low

    def check_registered(self) -> None:
        """Brokers have changed: somebody may have unregistered the only one, which lives."""
        if not self.begun or not self._alone:
            return
        try:
            if not registered(self._quorum.image, self._identity.node_id, self.incarnation):
                self._register(self.incarnation)
        except DiskFull as full:
            self.begun = False  # and goes on when there is room
            self.lacks_room(full)

    def check(self) -> None:
        """Raises NotController while this node does not lead, and DiskFull while it has no room
        to."""
        if not self._quorum.leadership.leads:
            raise NotController
        if not self.begun:
            raise DiskFull(self._data_dir, errno.ENOSPC, "no room to lead the metadata log")

    def _begin(self, now_ms: int) -> None:
        quorum = self._quorum
        if not quorum.active:
            quorum.activate(now_ms)
        if not quorum.image.metadata_version:
            first = [*_bootstrap(self._disk, self._data_dir), *self._besides]
            quorum.append(first, now_ms)
        self.begun = True
        try:
            if self._alone and not registered(
                quorum.image, self._identity.node_id, self.incarnation
            ):
                self._register(self.incarnation)
        except DiskFull:
            self.begun = False
            raise


def _endpoints(config: BrokerConfig, ports: Sequence[int]) -> tuple[Endpoint, ...]:
    """The endpoints of our registration; clients of a single node get the address that their own
    socket reached.
    """
    protocols = config.protocols()
    found = []
    for number, one in enumerate(config.endpoints()):
        host, port = config.advertised(one.name) or (one.host, one.port)
        protocol = protocols.get(one.name, "PLAINTEXT")
        found.append(
            Endpoint(
                name=one.name,
                host=host or "localhost",
                port=port or (ports[number] if number < len(ports) else 0),
                security_protocol=NUMBERS.get(protocol, 0),
            )
        )
    return tuple(found)


def _bootstrap(disk: Disk, data_dir: str) -> list[Record]:
    """The first records of a cluster: those of the format step, or the same again if they are
    lost."""
    path = f"{data_dir}/{BOOTSTRAP}"
    if not disk.exists(path):
        return bootstrap_records()
    try:
        values = checkpoint.read(read_file(disk, path)).values
    except CheckpointBroken:
        return bootstrap_records()
    return [kraft.decode(value) for value in values]
