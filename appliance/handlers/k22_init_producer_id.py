"""InitProducerId, API key 22, versions 0 to 5.

2: flexible. 3: the producer's present id and epoch (KIP-360). 4: PRODUCER_FENCED. 5:
TRANSACTION_ABORTABLE. With a transactional id its coordinator decides (`coordinators`). Without one
control does (`API`): a new id is given in any case, without a controller while the block lasts,
then COORDINATOR_LOAD_IN_PROGRESS.
"""

from typing import Final

from appliance.authorization import needs
from appliance.authorization.apis import APIS, declared
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.errors import PeerError
from appliance.coordinators.transactions.kind import TRANSACTIONS
from appliance.handlers import forward
from appliance.handlers.admin import AdminContext, Answer, Api
from appliance.handlers.admin import Message as Request
from appliance.handlers.coordinate import Coordinate, Coordinated
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.ring.messages import Message

_FLEXIBLE_SINCE: Final = 2
_COORDINATE: Final = Coordinate(TRANSACTIONS)


def begin_init_producer_id(host: Host, x: Exchange) -> None:
    """A request begins with its transactional id."""
    if _is_null(bytes(host.memory[x.position : x.end][:2]), x.version):
        forward.forward_request(host, x)
    else:
        _COORDINATE.begin_request(host, x)


def _is_null(head: bytes, version: int) -> bool:
    return head[:1] == b"\0" if version >= _FLEXIBLE_SINCE else head == b"\xff\xff"


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """A piece of the answer, by whoever was asked."""
    if isinstance(x.state, Coordinated):
        _COORDINATE.complete(host, x, index, message, payload)
    else:
        forward.complete(host, x, index, message, payload)


HANDLER: Final[Handler] = Handler(
    *declared(22), begin_init_producer_id, complete, keeps_body=True, in_order=APIS[22].in_order
)


def decide(request: Request, version: int, context: AdminContext) -> Answer:
    """The answer of control."""
    if code := _refusal(context.rights):
        return _refused(code)
    assert request.transactional_id is None, "its coordinator decides"
    if version >= 3 and (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(errors.INVALID_REQUEST)
    try:
        records, producer_id = context.producer_ids.take_id(context.situation)
    except PeerError as error:
        return _refused(error.code)
    values = {
        "throttle_time": 0,
        "error_code": errors.NONE,
        "producer_id": producer_id,
        "producer_epoch": 0,
    }
    return Answer(records, values)


def _refusal(rights: Rights) -> int:
    """The error code of a caller who may neither write any topic nor write idempotently
    (KIP-679).
    """
    if rights.some(needs.WRITE_TOPIC):
        return errors.NONE
    return rights.refusal(needs.WRITE_IDEMPOTENTLY)


def _refused(code: int) -> Answer:
    values = {"throttle_time": 0, "error_code": code, "producer_id": -1, "producer_epoch": -1}
    return Answer([], values)


API: Final = Api(
    *declared(22), decide,
    any_node=True, not_controller=errors.COORDINATOR_LOAD_IN_PROGRESS,
)  # fmt: skip
