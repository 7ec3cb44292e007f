"""EndTxn, API key 26, versions 0 to 5. 2: PRODUCER_FENCED. 3: flexible. 4: TRANSACTION_ABORTABLE.
5: the producer's next id and epoch (KIP-890). Decided in `coordinators`.
"""

from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(TRANSACTIONS, 26, "EndTxn", 0, 5, in_order=True)
