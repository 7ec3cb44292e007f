"""TxnOffsetCommit, API key 28. Versions 0 to 5. 2: leader epoch. 3: member and generation
(KIP-447). 4: TRANSACTION_ABORTABLE. 5: the group's partition of `__consumer_offsets` is added to
the transaction on the way (KIP-890). Decided in `coordinators`.

The home of the group decides at once when it knows the producer's transaction as open. Else it
gives a guard (UNVERIFIED); the coordinator of the transaction is asked, and the home again with
what that said.
"""

from typing import Final

from appliance.authorization.apis import APIS, declared
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.base.ids import OFFSETS_TOPIC
from appliance.coordinators.groups.kind import GROUPS
from appliance.coordinators.groups.transactional_offsets import ABORTABLE_SINCE, ADDING_SINCE
from appliance.handlers.coordinate import Coordinate, Coordinated
from appliance.handlers.exchange import Exchange, Handler, Host
from appliance.handlers.transaction_verification import TransactionalProducer, VerificationRequest
from appliance.ring.messages import TRUSTED_GUARD, UNVERIFIED, Message
from appliance.ring.slots import read_unverified
from appliance.wire import messages

_KEY: Final = 28
_QUESTION: Final = 1 << 31
"""Its index, behind those of all parts of a request."""
_PLAN: Final = Coordinate(GROUPS)


@dataclass(slots=True)
class Verifying:
    """index: of the part of the request that waits for it. guard: what the home said. question: to
    the coordinator of the transaction."""

    index: int
    guard: int
    question: VerificationRequest


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    """Takes the answer of the ioproc or of the transaction's coordinator."""
    if index == _QUESTION:
        state: Coordinated = x.state
        asked: Verifying = state.more
        if asked.question.take_completion(host, x, index, message, payload):
            (code,) = asked.question.codes.values()
            _decide(host, x, asked.index, code, asked.guard)
    elif message is not None and message.op == UNVERIFIED:
        _verify(host, x, index, read_unverified(message).guard)
    else:
        _PLAN.complete(host, x, index, message, payload)


def _verify(host: Host, x: Exchange, index: int, guard: int) -> None:
    state: Coordinated = x.state
    if x.version < ADDING_SINCE and not host.verifies:
        _decide(host, x, index, errors.NONE, TRUSTED_GUARD)
        return
    partition, body, *_ = state.asked[index]
    request = messages.decode_request(_KEY, x.version, body)
    question = VerificationRequest(
        TransactionalProducer(
            request.transactional_id, request.producer_id, request.producer_epoch
        ),
        [(OFFSETS_TOPIC, partition)],
        adds=x.version >= ADDING_SINCE,
        abortable=x.version >= ABORTABLE_SINCE,
        patient=x.version >= ADDING_SINCE,
    )
    state.more = Verifying(index, guard, question)
    question.ask_coordinator(host, x, _QUESTION)


def _decide(host: Host, x: Exchange, index: int, code: int, guard: int) -> None:
    """Now the home knows enough."""
    if code == errors.NETWORK_EXCEPTION:  # nobody looks for a coordinator anew because of that
        code = errors.COORDINATOR_LOAD_IN_PROGRESS
    state: Coordinated = x.state
    partition, body, *_ = state.asked[index]
    route = host.route(OFFSETS_TOPIC.encode(), partition, by_id=False)
    if route is None:
        _PLAN.complete(host, x, index, None, b"")
    else:
        host.coordinate_within(x, index, route, body, code, guard)


HANDLER: Final = Handler(
    *declared(_KEY), _PLAN.begin_request, complete, in_order=APIS[_KEY].in_order
)
