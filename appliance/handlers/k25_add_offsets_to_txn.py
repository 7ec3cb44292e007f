"""AddOffsetsToTxn, API key 25, versions 0 to 4. 2: PRODUCER_FENCED. 3: flexible. 4:
TRANSACTION_ABORTABLE. Decided in `coordinators`. The topic of committed offsets is created first,
because a partition of it is added to the transaction.
"""

from appliance.base.ids import OFFSETS_TOPIC
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.handlers import coordinate
from appliance.handlers.exchange import Handler

HANDLER: Handler = coordinate.handler(
    TRANSACTIONS, 25, "AddOffsetsToTxn", 0, 4, others=(OFFSETS_TOPIC,)
)
