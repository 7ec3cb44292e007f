"""Certificates before anything is promised: a start, and a reload, are refused while a listener
that speaks TLS could not show one. The network processes load them themselves.

What was set while the appliance ran (`listener.name.NAME.ssl.…`) is metadata, which is not known
here: the settings of the file must be good by themselves, since a start has nothing else.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from appliance.base.clock import clock_here
from appliance.certificates.checking import check
from appliance.config.broker import BrokerConfig
from appliance.config.rereading import Changed
from appliance.shell.log import WARNING, Log

if TYPE_CHECKING:
    from appliance.certificates.context import Certificate


class Showing:
    """Of one appliance."""

    __slots__ = ("_checked", "_log")

    def __init__(self, config: object, log: Log) -> None:
        """Raises ConfigError: setting, file, remedy. Settings that are not a broker's have no
        listeners."""
        self._log = log
        self._checked: Mapping[str, Certificate] = {}
        if isinstance(config, BrokerConfig):
            self.check(config)

    def check(self, config: BrokerConfig) -> list[Changed]:
        """Whether these settings may take the place of those of before: listeners that are to show
        another certificate than when this was asked last. Raises ConfigError."""
        before, found = self._checked, check(config, clock_here(), self._checked)
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
