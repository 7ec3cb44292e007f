"""The kinds of coordinators that there are. Another one is a folder beside `groups`, and a line
here."""

from typing import Final

from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.runtime.kind import Kind
from appliance.coordinators.transactions.kind import TRANSACTIONS

KINDS: Final[tuple[Kind, ...]] = (GROUPS, TRANSACTIONS)
BY_KEY_TYPE: Final = {kind.KEY_TYPE: kind for kind in KINDS}
"""By the key type of FindCoordinator."""

assert sum(len(kind.APIS) for kind in KINDS) == len(frozenset().union(*(k.APIS for k in KINDS)))
