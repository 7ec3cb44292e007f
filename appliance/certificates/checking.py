"""Validation of TLS settings: every TLS listener can present a certificate. It runs before a start,
before a reload, and for a file. Nothing is kept.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from appliance.base.clock import Clock
from appliance.certificates.settings import of_listener, speaking
from appliance.config.broker import BrokerConfig

if TYPE_CHECKING:
    from appliance.certificates.context import Certificate


class Checked:
    """The result of a validation. certificates: by listener. warnings: for who starts it."""

    __slots__ = ("certificates", "warnings")

    def __init__(self) -> None:
        self.certificates: dict[str, Certificate] = {}
        self.warnings: list[str] = []


def check(
    config: BrokerConfig,
    clock: Clock,
    before: "Mapping[str, Certificate] | None" = None,
    only: Collection[str] | None = None,
) -> Checked:
    """Load all there are. before: that are shown, whose names must stay where settings do not allow
    others. only: these listeners, in lower case. Raises ConfigError: setting, file, remedy."""
    found = Checked()
    for listener in speaking(config):
        if only is not None and listener.lower() not in only:
            continue
        from appliance.certificates.context import check_same, load

        settings = of_listener(config, listener)
        loaded = load(settings)
        shown = loaded.certificate
        if before is not None and listener in before:
            check_same(before[listener], shown, settings)
        found.certificates[listener] = shown
        found.warnings += loaded.warnings
        if trouble := shown.trouble(clock.wall_ms()):
            found.warnings.append(
                f"listeners: the certificate of {listener} ({shown.subject}) is refused by clients:"
                f" {trouble}"
            )
    return found
