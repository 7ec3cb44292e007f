"""Checks that an appliance would start in a folder, without changing anything: also beside one that
runs there.
"""

import os
import socket
from collections.abc import Sequence

from appliance.base.clock import clock_here
from appliance.base.errors import ConfigError, StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.config import kept_listeners
from appliance.config.broker import BrokerConfig
from appliance.config.settings_reload import METRICS_LISTENER
from appliance.metadata.identity import META_PROPERTIES
from appliance.shell import bind_address
from appliance.supervisor.succession import OWN_PORTS
from console.model.asking.failure import Failure, usage


def check(folders: Sequence[str], broker: BrokerConfig, cluster_id: str) -> str:
    """The remarks on the first folder, "" or that it is new. folders: as the settings name them.
    Raises Failure with the words of a start.
    """
    from appliance.supervisor import relations

    relations.assert_relations()
    _look_at_ports(broker)
    _look_at_certificates(broker)
    first = folders[0]
    if not os.path.exists(f"{first}/{META_PROPERTIES}"):
        return " (new)"
    if not os.access(first, os.W_OK | os.X_OK):
        raise Failure(f"{first} is not to be written", "start it as the user that owns it")
    try:
        _look_at_listeners(first, broker)
        _look(first, broker, cluster_id)
    except ConfigError as problem:
        raise usage(str(problem)) from None
    except StorageFailed as problem:
        raise Failure(str(problem), name="CANNOT_START") from None
    return ""


def _look_at_ports(broker: BrokerConfig) -> None:
    """Only where somebody says which are its own and will be free: else they may be in use by the
    appliance in that very folder."""
    told = os.environ.get(OWN_PORTS)
    if told is None:
        return
    own = {int(port) for port in told.split(",") if port}
    metrics = broker.endpoint(METRICS_LISTENER)
    for one in [*broker.opened(), *([] if metrics is None else [metrics])]:
        if why := bind_address.why_not(one.host, one.port, own):
            raise Failure(why, name="CANNOT_START")


def _look_at_certificates(broker: BrokerConfig) -> None:
    """Checks the certificates of every TLS listener."""
    from appliance.certificates.validation import check as check_certificates

    try:
        check_certificates(broker, clock_here())
    except ConfigError as problem:
        raise usage(str(problem)) from None


def _look_at_listeners(folder: str, broker: BrokerConfig) -> None:
    """Checks the listeners that were opened while the appliance served. Raises ConfigError,
    StorageFailed."""
    kept = kept_listeners.read(OsDisk(), folder)
    kept_listeners.check_open(broker, kept_listeners.over(broker, kept, socket.getfqdn))


def _look(folder: str, broker: BrokerConfig, cluster_id: str) -> None:
    """Identity, voters, and levels that a feature has. Raises ConfigError, StorageFailed."""
    from appliance.control.folder.format import check_metadata_is_there, open_or_format
    from appliance.control.folder.startup import check_features
    from appliance.control.quorum import log_repair as repair

    disk = OsDisk()
    open_or_format(disk, folder, broker, os.urandom, 0, cluster_id)  # it is formatted
    check_metadata_is_there(disk, folder)
    check_features(repair.plan(disk, folder).image, folder)
