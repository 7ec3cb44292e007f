"""Validation of TLS settings: every TLS listener can present a certificate. It runs before a start,
before a reload, and for a file. Nothing is kept.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from appliance.base.clock import Clock
from appliance.certificates.principal_mapping import NoRule
from appliance.certificates.settings import TLS, of_listener, speaking
from appliance.config import acl_checks, between_nodes, metrics_door
from appliance.config.broker import BrokerConfig
from appliance.config.listener_settings import key_of
from appliance.config.logins import PROTOCOLS

if TYPE_CHECKING:
    from appliance.certificates.context import Certificate, LoadedContext


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
    if metrics_door.speaks_tls(config) and (only is None or metrics_door.NAME.lower() in only):
        from appliance.certificates.context import load

        found.warnings += load(of_listener(config, metrics_door.NAME)).warnings
    found.warnings += _between_nodes(config)
    return found


def _between_nodes(config: BrokerConfig) -> list[str]:
    """Warnings about connections to other nodes. Raises ConfigError if TLS cannot be spoken
    there."""
    warnings: list[str] = []
    if not config.several:
        return warnings
    ways = {between_nodes.to_controllers(config)}
    if config.is_broker:
        ways.add(between_nodes.to_brokers(config))
    for way in sorted(ways):
        if way.protocol not in TLS:
            continue
        from appliance.certificates.context import load_client

        settings = of_listener(config, way.listener)
        warnings += _own_principal(config, way, load_client(settings))
        if settings.truststore_location is None and settings.truststore_certificates is None:
            warnings.append(
                f"{key_of(way.listener, 'ssl.truststore.location')}: without a trust store only"
                " other nodes whose certificates come from a public authority are believed"
            )
    return warnings


def _own_principal(
    config: BrokerConfig, way: between_nodes.NodeRoute, own: "LoadedContext"
) -> list[str]:
    """A warning where the certificate that this node shows makes no node of it: the others, with
    the same settings, refuse it."""
    principals, listeners = acl_checks.nodes(config)
    if not principals or way.listener not in listeners or way.protocol in PROTOCOLS:
        return []
    subject = own.certificate.subject
    try:
        principal = f"User:{own.rules.apply(subject)}"
        shown = f"{subject} is {principal} there"
    except NoRule:
        principal, shown = "", f"no rule of ssl.principal.mapping.rules fits {subject}"
    if principal in principals:
        return []
    return [
        f"{acl_checks.NODES}: this node's own certificate at {way.listener} is of none of"
        f" {'; '.join(principals)}, so other nodes with these settings refuse it: {shown}. Sign"
        " another one (penstock secure server), or name its principal"
    ]
