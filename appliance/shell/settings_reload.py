"""A process hears that the settings file was read again: its configuration has the new values in
place, then who goes by them is told, as of settings that clients change.

Called by the loop when something has happened to the appliance (`ProcessTable.epoch`).
"""

from collections.abc import Callable

from appliance.config.broker import BrokerConfig
from appliance.config.settings_reload import decode
from appliance.metadata.changes import Change, ConfigChanged
from appliance.metadata.image_state import BROKER
from appliance.ring.settings_area import SettingsArea

Follow = Callable[[list[Change]], None]


class SettingsReload:
    """The settings reload of one process."""

    def __init__(self, area: SettingsArea, config: BrokerConfig) -> None:
        """config: as of what the area says by now; whoever has it has the new values."""
        self._area = area
        self._config = config
        self._seen = area.number
        self._followers: list[Follow] = []

    def then(self, follow: Follow) -> None:
        """Tell it of what has changed, in the loop's turn."""
        self._followers.append(follow)

    def apply_settings(self) -> None:
        """Take what is new."""
        if self._area.number == self._seen:
            return
        self._seen, encoded = self._area.read_settings()
        entries = decode(encoded)
        self._config.renew(entries)
        changes: list[Change] = [ConfigChanged(BROKER, "", key) for key in entries]
        for follow in self._followers:
            follow(changes)
