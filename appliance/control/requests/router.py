"""Routes requests to control: decided here, or by the active controller elsewhere.

Called by `shell.py`, which keeps the answers until they may be said.
"""

from collections.abc import Generator
from typing import Any

from appliance.authorization.rights import OURSELVES, Callers
from appliance.base.caller import Caller
from appliance.control.broker.broker_asker import Asking
from appliance.control.broker.channel import Values
from appliance.control.quorum.metadata_quorum import MetadataQuorum
from appliance.control.requests.admin_requests import AdminRequests, Elsewhere
from appliance.control.requests.contexts import Contexts
from appliance.control.requests.mutation_quotas import Mutations
from appliance.control.requests.parts import InParts
from appliance.control.requests.pending_answers import Decision, Unencoded
from appliance.control.requests.voter_probe import Probing
from appliance.controller.decision import NO_LIMIT
from appliance.handlers.admin import AdminContext
from appliance.quorum.messages import NOBODY
from appliance.ring.messages import ENSURE_TOPIC, Message
from appliance.ring.slots import read_forward
from appliance.shell.seat import Seat
from appliance.wire.build import build
from appliance.wire.messages import encode_request, request_type


class RequestRouter:
    """The parts that a decision takes."""

    __slots__ = ("_callers", "_contexts", "_mutations", "_quorum", "_requests", "_seat")

    def __init__(
        self,
        seat: Seat,
        quorum: MetadataQuorum,
        requests: AdminRequests,
        contexts: Contexts,
        mutations: Mutations,
        callers: Callers,
    ) -> None:
        self._seat = seat
        self._quorum = quorum
        self._requests = requests
        self._contexts = contexts
        self._mutations = mutations
        self._callers = callers

    def decide(
        self, netproc: int, message: Message, topic: bytes, context: AdminContext, controller: int
    ) -> Decision | Elsewhere | Probing | Asking | InParts:
        """A FORWARD, or an ENSURE_TOPIC of this topic. context: with the rights of who asks.
        controller: the active one, or NOBODY."""
        leads, alone = self._quorum.leadership.leads, self._quorum.alone
        caller = context.rights.caller
        request = read_forward(message)
        key, version = request.api >> 16, request.api & 0xFFFF
        context.situation.permit = NO_LIMIT
        if leads:
            context.situation.permit = self._mutations.permit(key, version, caller)
        if message.op == ENSURE_TOPIC:
            return self._requests.ensure_topic(message, topic, context, leads=leads, alone=alone)
        body = bytes(self._seat.arenas[netproc][request.position :][: request.length])
        if not (leads or alone or self._seat.config.is_controllers(caller.listener)):
            known = controller != NOBODY
            elsewhere = self._requests.elsewhere(key, version, body, context, known=known)
            if elsewhere is not None:
                return elsewhere
        return self._requests.decided(key, version, body, context, leads=leads)

    def decide_part(self, what: InParts, part: Any) -> Decision:
        """One part of a request of which `decide` has said that it is decided in parts."""
        return what.decide(part, self._contexts.context(), self._quorum.leadership.leads)

    def decode(self, netproc: int, message: Message) -> Generator[None, None, None]:
        """Steps that decode a long FORWARD, for the `decide` that follows."""
        request = read_forward(message)
        body = bytes(self._seat.arenas[netproc][request.position :][: request.length])
        return self._requests.ahead.decode(request.api >> 16, request.api & 0xFFFF, body)

    def forget_decoded(self) -> None:
        """It is decided."""
        self._requests.ahead.forget_decoded()

    def encode(self, answer: Unencoded) -> Generator[None, None, bytes]:
        """Steps that encode a long answer."""
        return self._requests.ahead.encode(answer)

    def become(self, context: AdminContext, caller: Caller, key: int, version: int) -> None:
        """The context is for this caller, whose request a broker has passed on."""
        context.rights = self._callers.of(caller.encode())
        context.situation.permit = self._mutations.permit(key, version, caller)

    def decide_own(self, key: int, version: int, values: Values) -> Decision:
        """Decides this node's own request, while it leads."""
        context = self._contexts.context()
        context.rights = OURSELVES
        body = encode_request(build(request_type(key, version), values))
        leads = self._quorum.leadership.leads
        decision = self._requests.decided(key, version, body, context, leads=leads)
        assert isinstance(decision, Decision), "who is there already needs not be asked"
        return decision
