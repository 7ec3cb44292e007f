"""Logins and denials: the counters of `ring/security_table.py`; bounds: those of
`ring/bound_table.py`."""

from appliance.authorization.words import KINDS, OPERATIONS, word
from appliance.config.bounds import BOUNDS
from appliance.exporter.exposition import Page
from appliance.ring.bound_table import BoundTable
from appliance.ring.security_table import SecurityTable


def tell_security(page: Page, table: SecurityTable) -> None:
    """Adds the counters of all processes together."""
    for one in table.logins():
        who = (one.listener, one.mechanism)
        page.add("penstock_logins_total", one.succeeded, *who)
        page.add("penstock_login_failures_total", one.failed, *who)
        page.add("penstock_reauthentications_total", one.again, *who)
        page.add("penstock_reauthentication_failures_total", one.again_failed, *who)
    for (operation, kind), count in sorted(table.denials().items()):
        page.add("penstock_denials_total", count, word(operation, OPERATIONS), word(kind, KINDS))


def tell_bounds(page: Page, table: BoundTable) -> None:
    """Adds how often each bound was reached, 0 included: a first time is an increase."""
    times = {one.name: one.times for one in table.reached()}
    for bound in BOUNDS:
        page.add("penstock_bound_reached_total", times.get(bound.name, 0), bound.name)
