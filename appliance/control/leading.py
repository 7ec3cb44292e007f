"""Becoming the leader of the metadata log, and saying so in it: at the start, or later when the
disk was too full for that.

Invariant: until `begin` has returned once nothing is appended, and the node serves what the log
holds; beginning twice only takes another epoch. Called by `startup.py` and `main.py`.
"""

import errno
from collections.abc import Callable
from typing import Final

from appliance.base.disk import Disk, read_file
from appliance.base.errors import DiskFull
from appliance.config.broker import BrokerConfig
from appliance.control.format import BOOTSTRAP
from appliance.control.metadata_log import MetadataLog
from appliance.controller.decision import Record, Situation
from appliance.controller.registration import (
    Incarnation,
    bootstrap_records,
    registration_records,
)
from appliance.metadata import checkpoint
from appliance.metadata.changes import Change
from appliance.metadata.checkpoint import CheckpointBroken
from appliance.metadata.identity import Identity, new_uuid
from appliance.metadata.log_dirs import LogDirs
from appliance.metadata.parts import Endpoint
from appliance.shell.log import ERROR, NOTICE, Log
from appliance.shell.seat import Seat
from appliance.wire import kraft_records as kraft

_SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_AGAIN_NS: Final = 1_000_000_000


class Leading:
    """begun: this node leads the log and has registered itself."""

    __slots__ = ("_again_ns", "_dirs", "_disk", "_identity", "_incarnation", "_log", "_metadata",
                 "_random", "_seat", "begun")  # fmt: skip

    def __init__(
        self,
        seat: Seat,
        disk: Disk,
        metadata: MetadataLog,
        identity: Identity,
        dirs: LogDirs,
        random: Callable[[int], bytes],
        log: Log,
    ) -> None:
        self._seat = seat
        self._disk = disk
        self._metadata = metadata
        self._identity = identity
        self._dirs = dirs
        self._random = random
        self._log = log
        self._again_ns = 0
        self.begun = False
        rack = seat.config.get("broker.rack")
        self._incarnation = Incarnation(
            controller_id=new_uuid(random),
            broker_id=new_uuid(random),
            endpoints=_endpoints(seat.config),
            rack=rack if isinstance(rack, str) else None,
            records_may_be_missing=not seat.clean and seat.generation == 1,
        )

    def start(self, now_ms: int) -> None:
        """The first try. A full disk is no reason not to serve, unless there is nothing to serve
        yet. Raises StorageFailed."""
        try:
            self._begin(now_ms)
        except DiskFull as full:
            if not self._metadata.image.metadata_version:
                raise
            self._log.event(ERROR, "metadata-read-only", cause=full, action="refuse-changes")

    def again(self, now_ns: int, now_ms: int) -> list[Change]:
        """The next try, once a second: what it changed. Raises StorageFailed."""
        if now_ns < self._again_ns:
            return []
        self._again_ns = now_ns + _AGAIN_NS
        try:
            changes = self._begin(now_ms)
        except DiskFull:
            return []
        self._log.event(NOTICE, "metadata-writable", epoch=self._metadata.epoch)
        return changes

    def check(self) -> None:
        """Raises DiskFull while nothing can be changed."""
        if not self.begun:
            raise DiskFull(self._seat.data_dir, errno.ENOSPC, "no room to lead the metadata log")

    def _begin(self, now_ms: int) -> list[Change]:
        metadata = self._metadata
        metadata.lead(now_ms)
        changes: list[Change] = []
        if not metadata.image.metadata_version:
            changes += metadata.append(_bootstrap(self._disk, self._seat.data_dir), now_ms)
        situation = Situation(
            image=metadata.image,
            config=self._seat.config,
            node_id=self._identity.node_id,
            directory_id=self._identity.directory_id,
            new_id=lambda: new_uuid(self._random),
            free_rows=0,
            directories=tuple(one for one in self._dirs.ids if one is not None),
        )
        records = registration_records(situation, self._incarnation, metadata.end_offset)
        changes += metadata.append(records, now_ms)
        self.begun = True
        return changes


def _endpoints(config: BrokerConfig) -> tuple[Endpoint, ...]:
    """What the registration says of our listeners; clients are told what their own socket
    reached."""
    protocols = dict(item.split(":", 1) for item in config.list("listener.security.protocol.map"))
    found = []
    for number, one in enumerate(config.endpoints()):
        host, port = config.advertised(number) or (one.host, one.port)
        protocol = protocols.get(one.name, "PLAINTEXT").strip().upper()
        found.append(
            Endpoint(
                name=one.name,
                host=host or "localhost",
                port=port,
                security_protocol=_SECURITY_PROTOCOLS.get(protocol, 0),
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
