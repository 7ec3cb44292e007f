"""Reading the settings file again while everything runs: SIGHUP.

What may change holds from then on in every process; of the rest one line says that it waits for a
restart. A file that is wrong changes nothing. It is done when every process that turns has taken
it; who asks reads that in the events (`console/model/local/reloading.py`). Called by
`supervisor/main.py`.
"""

from collections.abc import Callable
from typing import Final

from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig, Entry
from appliance.config.settings_reload import Changed, compare, encode, taken
from appliance.ring.settings_area import MOST, SettingsArea
from appliance.shell.log import ERROR, INFO, WARNING, Log
from appliance.supervisor.fleet import Fleet
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.tls_validation import TlsValidation

Take = Callable[[], None]
Prepare = Callable[[BrokerConfig, frozenset[str]], Take]
"""Of the settings as they are to be, and the names of those that change at once: what takes them
over. Raises ConfigError where they cannot be had, and nothing has changed then."""
Read = Callable[[], tuple[BrokerConfig, list[str]]]
"""The settings as a start would have them now, and warnings. Raises ConfigError."""

CHANGED: Final = "setting-changed"
"""Event: key, before, after, at_once (yes, no). One for each, before the one that ends it."""
DONE: Final = "settings-reloaded"
REFUSED: Final = "settings-not-reloaded"


class ReloadRequest:
    """Reloads the settings of an appliance. own: its settings as last read, without those set at
    run time; renewed in place.
    """

    def __init__(
        self,
        own: BrokerConfig,
        read: Read,
        area: SettingsArea,
        fleet: Fleet,
        reporting: ServiceManager,
        log: Log,
        prepare: Prepare,
        showing: TlsValidation,
    ) -> None:
        """prepare: whatever needs more than to be told. showing: certificates, which are read again
        even when no setting has changed."""
        self._own = own
        self._read = read
        self._prepare = prepare
        self._showing = showing
        self._area = area
        self._fleet = fleet
        self._reporting = reporting
        self._log = log
        self._taken: dict[str, Entry | None] = {}
        self._epoch = 0  # that all have to confirm
        self._changes: list[Changed] = []

    def begin_reload(self, now_ns: int, given: object) -> None:
        """Read the file, and tell everybody. given: the settings that new processes get, renewed in
        place, too."""
        self._reporting.reloads(now_ns)
        try:
            config, warnings = self._read()
            changes = compare(self._own, config)
            found = taken(config, changes)
            encoded = encode(self._taken | found)
            if len(encoded) > MOST:
                raise ConfigError("more has changed than a reload takes: restart the appliance")
            if isinstance(given, BrokerConfig):
                changes += self._showing.check(given.renewed(found))
            take = self._prepare(config, frozenset(found))
        except ConfigError as wrong:
            self._log.event(ERROR, REFUSED, cause=str(wrong))
            self._reporting.reloaded()
            return
        for text in warnings:
            self._log.event(WARNING, "settings-warning", cause=text)
        self._taken |= found
        self._own.renew(found)
        if isinstance(given, BrokerConfig):
            given.renew(found)
        take()
        self._changes = changes
        self._area.write_settings(encoded)
        self._epoch = self._fleet.tell_all()

    def finish_reload(self) -> None:
        """Say that it is done, when it is."""
        if not self._epoch or not self._fleet.all_confirmed(self._epoch):
            return
        self._epoch = 0
        for one in self._changes:
            at_once = "yes" if one.at_once else "no"
            self._log.note_event(
                INFO, CHANGED, key=one.key, before=one.before, after=one.after, at_once=at_once
            )
        now = [str(one) for one in self._changes if one.at_once]
        later = [one for one in self._changes if not one.at_once]
        said = {"changed": "; ".join(now) or "nothing"}
        if later:
            said["needs_restart"] = "; ".join(map(str, later))
        self._log.event(WARNING if later else INFO, DONE, **said)
        self._reporting.standing.needs_restart = tuple(one.key for one in later)
        self._reporting.reloaded()
