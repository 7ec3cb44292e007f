"""The listeners that this node was given while it serves: what its metadata say of them is kept
beside its identity, and the supervisor opens them.

Invariant: `anew` only when what is kept has changed; then control ends, and its successor has them
(`shell/seat.py:ANEW`). Called by `shell.py` when something of that was agreed.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from appliance.base.disk import Disk
from appliance.base.errors import ConfigError, DiskFull
from appliance.config import kept_listeners, open_listeners
from appliance.config.broker import BrokerConfig
from appliance.control.requests.tls_validation import ListenerTlsCheck
from appliance.metadata.changes import Change, ConfigChanged
from appliance.metadata.effective import broker_config
from appliance.metadata.image import BROKER, MetadataImage
from appliance.shell import bind_address
from appliance.shell.log import ERROR, NOTICE, Log

_REMEDY: Final = "penstock config set --broker N listeners=… with others"


class DynamicListeners:
    """anew: other listeners are kept than this process was started with."""

    __slots__ = ("_config", "_disk", "_folder", "_kept", "_log", "_looked", "_name", "_showing",
                 "anew")  # fmt: skip

    def __init__(self, disk: Disk, folder: str, config: BrokerConfig, log: Log) -> None:
        """folder: the data folder. Raises StorageFailed."""
        self._disk = disk
        self._folder = folder
        self._config = config
        self._log = log
        self._name = str(config.int("node.id"))
        self._kept: Mapping[str, str] = kept_listeners.read(disk, folder)
        self._looked = False
        self._showing = ListenerTlsCheck(config)
        self.anew = False

    def apply_changes(self, changes: Iterable[Change], image: MetadataImage) -> None:
        """This was committed, and is in the image. Raises StorageFailed."""
        self._showing.check_image(image)
        if self._looked and not any(self._mine(one) for one in changes):
            return
        self._looked = True
        said = image.config(BROKER, self._name)
        wanted = {key: said[key] for key in kept_listeners.KEYS if key in said}
        if wanted == self._kept:
            return
        try:
            kept_listeners.check(self._config, self._kept, wanted)
            list(open_listeners.check(broker_config(image, self._config)))
            kept_listeners.write_listeners(self._disk, self._folder, wanted)
        except (ConfigError, DiskFull) as problem:
            self._log.event(ERROR, "listeners-refused", cause=str(problem), action=_REMEDY)
            return
        before, self._kept = self._kept, wanted
        if not any(before.get(key) != wanted.get(key) for key in kept_listeners.OPENING):
            return  # protocols of names that are not open: they hold once one is opened
        self.anew = True
        self._log.event(NOTICE, "listeners-kept", listeners=wanted.get("listeners", ""))

    def why_not(self, host: str, port: int) -> str:
        """Why this node cannot listen there, "" when it can."""
        return bind_address.why_not(host, port, {one.port for one in self._config.opened()})

    def check_shown(self, wanted: BrokerConfig, only: Collection[str] | None) -> None:
        """Checks that this node's listeners, or only these, could present certificates by these
        settings. Raises ConfigError.
        """
        self._showing.check(wanted, only)

    def _mine(self, change: Change) -> bool:
        return (
            isinstance(change, ConfigChanged)
            and change.resource_type == BROKER
            and change.resource_name == self._name
            and change.key in kept_listeners.KEYS
        )
