"""AddPartitionsToTxn, API key 24, versions 0 to 5.

2: PRODUCER_FENCED. 3: flexible. 4: of brokers, who ask about several transactions and may only want
to know (KIP-890). 5: TRANSACTION_ABORTABLE. Decided in `coordinators`; whether a client may ask as
brokers do is decided here, as what this appliance asks itself does not come through here.
"""

from typing import Final

from appliance.authorization.apis import declared
from appliance.authorization.needs import ACT_AS_BROKER
from appliance.base import errors
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.coordinators.transactions.partitions import OF_BROKERS
from appliance.handlers import gather
from appliance.handlers.coordinate import Coordinate
from appliance.handlers.exchange import Exchange, Handler, Host

_COORDINATE: Final = Coordinate(TRANSACTIONS)


def begin_add_partitions_to_txn(host: Host, x: Exchange) -> None:
    """Ask the coordinators of the transactions."""
    code = errors.NONE if x.version < OF_BROKERS else x.rights.refusal(ACT_AS_BROKER)
    if code:
        refused = {"throttle_time": 0, "error_code": code, "results_by_transaction": []}
        gather.reply(host, x, refused)
    else:
        _COORDINATE.begin_request(host, x)


HANDLER: Final[Handler] = Handler(*declared(24), begin_add_partitions_to_txn, _COORDINATE.complete)
