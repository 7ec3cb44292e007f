"""The appliance of a data folder as its own tables and metadata tell of it, without asking it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.metadata.follower import LOG_FOLDER, Follower, MetadataUnreadable, skip_silently
from appliance.observer.door import NotThere, Observer
from appliance.ring.bound_table import ReachedBound
from appliance.ring.event_ring import EventTable
from appliance.ring.security_table import LoginCount
from console.model.doctor.facts import RefusedLogin
from console.model.doctor.host import Host

_TLS: Final = (1, 3)  # SSL and SASL_SSL, as BrokerRegistration has them
LOGIN_REFUSED: Final = "node-login-refused"
"""The event (`peers/between.py`)."""
_RECENT_MS: Final = 30_000
"""Links try again at least every second, and events of a cause are written once a second."""


@dataclass(slots=True, frozen=True)
class Running:
    """pids: by the process's name, the supervisor's first. folders: log folders that it holds.
    endpoints: (node, host, port, whether it is one with TLS) of every listener of the brokers that
    are not fenced."""

    pids: Mapping[str, int]
    folders: tuple[str, ...]
    started_ms: int
    node: int
    partitions: int
    endpoints: tuple[tuple[int, str, int, bool], ...]
    remarks: tuple[str, ...] = ()
    logins: tuple[LoginCount, ...] = ()
    refused_logins: tuple[RefusedLogin, ...] = ()
    bounds: tuple[ReachedBound, ...] = ()


def find_running(host: Host, data_dir: str) -> tuple[Running | None, str]:
    """Reads the appliance that runs in the folder; None and the reason when none can be seen."""
    try:
        observer = Observer(data_dir)
    except (NotThere, FileNotFoundError) as why:
        return None, str(why)
    except OSError as why:
        return None, f"{data_dir}: {why.strerror}"
    table = observer.tables.processes
    pids = {"supervisor": observer.head.pid}
    pids |= {str(peer): table.pid(peer) for peer in table.peers if table.pid(peer)}
    folders = _held(host, observer.head.pid) or (host.real(data_dir),)
    # The first of them has the metadata, whichever was named.
    home = next((one for one in folders if LOG_FOLDER in host.names(one)), data_dir)
    follower = Follower(OsDisk(), home, observer.tables.partitions, skip_silently)
    remarks: tuple[str, ...] = ()
    node = -1
    try:
        node = follower.identity.node_id
        follower.catch_up(table.metadata_offset)
        if follower.faults:
            remarks = (f"{follower.faults} metadata records do not replay and are skipped",)
    except (MetadataUnreadable, StorageFailed, ConfigError) as why:
        remarks = (f"where it sends clients is not known: {why}",)
    return Running(
        pids=pids,
        folders=folders,
        started_ms=observer.head.started_ms,
        node=node,
        partitions=sum(holder & 1 for holder in observer.tables.partitions.holders()),
        endpoints=tuple(
            (broker.broker_id, one.host, one.port, one.security_protocol in _TLS)
            for broker in follower.image.brokers.values()
            if not broker.fenced
            for one in broker.endpoints
        ),
        remarks=remarks,
        logins=tuple(observer.tables.security.logins()),
        refused_logins=_refused_logins(observer.tables.events, host.wall_s()),
        bounds=tuple(observer.tables.bounds.reached()),
    ), ""


def _refused_logins(events: EventTable, now_s: float) -> tuple[RefusedLogin, ...]:
    """The refused logins of the last half minute, once for each address and listener."""
    found: dict[tuple[str, str], RefusedLogin] = {}
    for process in events.names:
        for one in events.reader(process).read_events()[0]:
            if one.event == LOGIN_REFUSED and one.at_ms >= now_s * 1000 - _RECENT_MS:
                said = dict(one.fields)
                where = said.get("peer", ""), said.get("listener", "")
                found[where] = RefusedLogin(*where, said.get("cause", ""))
    return tuple(found[where] for where in sorted(found))


def _held(host: Host, supervisor: int) -> tuple[str, ...]:
    """The supervisor keeps the lock of each of its folders open."""
    folder = f"/proc/{supervisor}/fd"
    targets = (host.target(f"{folder}/{number}") for number in host.names(folder))
    return tuple(
        sorted({os.path.dirname(one) for one in targets if os.path.basename(one) == ".lock"})
    )
