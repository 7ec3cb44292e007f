"""AddOffsetsToTxn, API key 25, versions 0 to 4. 2: PRODUCER_FENCED. 3: flexible. 4:
TRANSACTION_ABORTABLE. Decided in `coordinators`.
"""

from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(TRANSACTIONS, 25, "AddOffsetsToTxn", 0, 4)
