"""DescribeTransactions, API key 65, version 0 (KIP-664). Decided in `coordinators`."""

from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(TRANSACTIONS, 65, "DescribeTransactions", 0, 0)
