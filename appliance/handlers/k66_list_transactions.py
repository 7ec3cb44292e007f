"""ListTransactions, API key 66, versions 0 to 2 (KIP-664). 1: those that have been open for longer
(KIP-994). 2: ids that an expression fits (KIP-1152). Decided in `coordinators`.
"""

from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(TRANSACTIONS, 66, "ListTransactions", 0, 2)
