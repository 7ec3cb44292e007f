"""Certificates before anything is promised: a start, and a reload, are refused while a listener
that speaks TLS could not show one. The network processes load them themselves.

What was set while the appliance ran (`listener.name.NAME.ssl.…`) is metadata, which is not known
here: for listeners of the file, its settings must be good by themselves. Those that were opened
while it ran have their certificates from the same metadata, and are not looked at.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from appliance.base.clock import clock_here
from appliance.certificates.validation import check
from appliance.config.broker import BrokerConfig
from appliance.config.settings_reload import Changed
from appliance.shell.log import WARNING, Log

if TYPE_CHECKING:
    from appliance.certificates.context import Certificate


class TlsValidation:
    """Validates the TLS certificates of one appliance's settings."""

    __slots__ = ("_checked", "_log", "_own")

    def __init__(self, own: object, config: object, log: Log) -> None:
        """own: the settings of this start, config: with the listeners that were opened later.
        Settings that are not a broker's have no listeners. Raises ConfigError: setting, file,
        remedy."""
        self._log = log
        opened = own.opened() if isinstance(own, BrokerConfig) else []
        self._own = frozenset(one.name.lower() for one in opened)
        self._checked: Mapping[str, Certificate] = {}
        if isinstance(config, BrokerConfig):
            self.check(config)

    def check(self, config: BrokerConfig) -> list[Changed]:
        """Checks that these settings may replace the former ones. Returns the listeners whose
        certificate differs from the last check. Raises ConfigError.
        """
        before, found = self._checked, check(config, clock_here(), self._checked, self._own)
        for text in found.warnings:
            self._log.event(WARNING, "settings-warning", cause=text)
        self._checked = found.certificates
        return [
            Changed(f"certificate of {name}", _told(before[name]), _told(one), at_once=True)
            for name, one in found.certificates.items()
            if name in before and before[name] != one
        ]


def _told(one: "Certificate") -> str:
    return f"{one.subject}, until {one.until}"
