"""Decodes and decides requests that netprocs forward to control: `AdminRequests`.

Decides over the image that the context brings and appends; says nothing to the peer before the
records are committed, so it returns the answer for the shell to keep until then, and what to answer
should this node lose its leadership first.
"""

import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from appliance.authorization import needs
from appliance.authorization.apis import NEEDS
from appliance.authorization.operations import TEXTS
from appliance.authorization.rights import Rights
from appliance.base import errors
from appliance.base.caller import Caller
from appliance.base.clock import Clock
from appliance.base.errors import DiskFull, MalformedRequest, PeerError
from appliance.base.ids import INTERNAL_TOPICS
from appliance.config import bounds
from appliance.config.internal_topics import DECLARED, InternalTopic
from appliance.control.broker.broker_asker import Asking, Said
from appliance.control.broker.forwarding import (
    DESCRIBE_QUORUM,
    ControllerRequest,
    Refuse,
    creation,
    creation_code,
)
from appliance.control.broker.forwarding import enveloped as in_envelope
from appliance.control.history.changed_things import audited, named
from appliance.control.requests import envelopes as enveloped
from appliance.control.requests.auto_creation import SETTING, AutoCreations
from appliance.control.requests.long_requests import DecodedAhead
from appliance.control.requests.parts import InParts
from appliance.control.requests.pending_answers import FULL, LOST, UNDONE, Body, Decision, Unencoded
from appliance.control.requests.refusals import refused
from appliance.control.requests.voter_probe import Probing
from appliance.controller.decision import NO_LIMIT, MutationPermit, Record
from appliance.controller.registration import Incarnation, registration_records
from appliance.controller.topics import NewTopic, create_topics, internal_topic
from appliance.handlers.admin import AdminContext, Answer, Api
from appliance.handlers.admin_apis import APIS
from appliance.handlers.voter_changes import VoterProbe
from appliance.ring.counters import ErrorCounts
from appliance.ring.messages import Message
from appliance.ring.slots import read_ensure_topic
from appliance.shell.audit import Trail
from appliance.wire.build import response
from appliance.wire.envelope import ENVELOPE
from appliance.wire.messages import decode_request, encode_response

Append = Callable[[list[Record]], None]
Report = Callable[[str, Mapping[str, object]], None]
Become = Callable[[AdminContext, Caller, int, int], None]
"""Lets a context be that of a caller who asks with this API key and version."""
CHANGED: Final = "metadata-changed"
AUTO_CREATED: Final = "topic-auto-created"
USUAL: Final = (CHANGED, AUTO_CREATED)
"""Events that say who did what; the others tell of something wrong."""

_NO_LEADER: Final = (
    "This node is not the controller, and no controller is known at the moment. Try again."
)
_TOPIC_MS: Final = 1_000
"""Who names a missing topic in a Metadata request waits so long for it, then asks again."""
_NO_ANSWER: Final = "The controller of the cluster did not do this: it is not known, or late."


class Elsewhere(NamedTuple):
    """A request that another node decides. timeout_ms: how long the client waits, 0: unknown.
    refuse: the answer if it is never decided.
    """

    question: ControllerRequest
    refuse: Refuse
    timeout_ms: int


class AdminRequests:
    """append: stages and replays records. report: logs an event with its fields. blocked_ms: for
    how long a name must not be created just because a consumer goes on asking for it. full: what to
    say when append raised DiskFull: then nothing of the records is there. counts: of the errors
    that are answered. become: for requests that come in an envelope. trail: of the audit."""

    __slots__ = ("_append", "_become", "_blocked_ms", "_creations", "_full", "_report", "_trail",
                 "ahead")  # fmt: skip

    def __init__(
        self,
        append: Append,
        report: Report,
        blocked_ms: Callable[[str], int],
        full: Callable[[], str],
        counts: ErrorCounts,
        become: Become,
        clock: Clock,
        trail: Trail | None = None,
    ) -> None:
        self._append = append
        self.ahead = DecodedAhead(counts)
        self._trail = trail
        self._become = become
        self._creations = AutoCreations(clock)
        self._full = full
        self._report = report
        self._blocked_ms = blocked_ms

    def decided(
        self, key: int, version: int, body: bytes, context: AdminContext, *, leads: bool
    ) -> Decision | Probing | Asking | InParts:
        """Answer a request. A code other than NONE has no body: the netproc closes the connection.
        leads: whether this node is the controller; if not, nothing is appended."""
        if (key, version) == (ENVELOPE, 0):
            return self._enveloped(body, context, leads=leads)
        api = APIS.get(key)
        if api is None or not api.lowest <= version <= api.highest:
            self._report("not-served", {"cause": f"API key {key} version {version}"})
            return _final(errors.UNSUPPORTED_VERSION)
        try:
            request = self.ahead.request(key, version, body)
        except MalformedRequest as cause:
            return self._malformed(api.name, context, cause)
        if leads and (first := self._first(api, version, body, request, context)) is not None:
            return first
        if parts := self.ahead.parts(api, version, body, request):
            who = context.rights, context.situation.permit
            return InParts.of(key, version, parts, partial(self._part, api, version, *who))
        return self._decided(api, version, body, request, context, leads=leads)

    def _part(
        self, api: Api, version: int, rights: Rights, permit: MutationPermit, part: Any,
        context: AdminContext, leads: bool,
    ) -> Decision:  # fmt: skip
        """Decide on one part of a request, for who has asked."""
        context.rights, context.situation.permit = rights, permit
        return self._decided(api, version, None, part, context, leads=leads)

    def _decided(
        self, api: Api, version: int, body: bytes | None, request: Any, context: AdminContext, *,
        leads: bool,
    ) -> Decision:  # fmt: skip
        """Decide on a request, or on a part of one: then `body` is None."""
        denied = _refusal(api, context) if api.controllers and not leads else errors.NONE
        try:
            if api.controllers and not leads:
                text = TEXTS.get(denied, _NO_LEADER)
                answer = _told(api, request, denied or api.not_controller, text)
            else:
                answer = _decide(api, request, version, context)
            if context.situation.permit.pause_ms:
                answer.values["throttle_time"] = context.situation.permit.pause_ms
                answer = answer._replace(encoded=b"")
            encoded = answer.encoded or self.ahead.answer(api.key, version, body, answer.values)
        except Exception as why:  # nothing was changed yet: one request must not end the process
            return self._failed(api, version, context, why)
        self._tell_full(context)
        refuse = partial(self._refuse, api, version, answer.values, body is None)
        here = api.any_node or api.own(request) or api.here(context)
        here = here or _of_own_files(api, request, context, answer)
        if not (leads or denied) and (answer.records or not here):
            return Decision(*refuse(LOST), refuse)
        if answer.records:
            try:
                self._change(api, answer.records, context)
            except DiskFull:
                return Decision(*refuse(FULL), refuse)
        if answer.things and self._trail is not None:
            self._trail.note_change(api.name, answer.things, 0, context.rights.caller)
        self.ahead.count(encoded, api.key, version, answer.values)
        return Decision(errors.NONE, encoded, refuse, answer.at_once)

    def _change(self, api: Api, records: list[Record], context: AdminContext) -> None:
        """Append records of a request, and tell what they change. Raises DiskFull."""
        if api.controllers:
            self._append(records)
            return
        told = audited(self._trail, api.name, records, context)
        self._append(records)
        told()
        self._report(CHANGED, {"request": api.name, **named(records), **_who(context)})

    def _first(
        self, api: Api, version: int, body: bytes, request: Any, context: AdminContext
    ) -> Probing | Asking | None:
        """The node or the brokers to ask before this is decided, or None."""
        key, rights = api.key, context.rights
        if (where := _probe(api, request, context)) is not None:
            return Probing(where[0], where[1:], partial(self._probed, key, version, body, rights))
        if api.seeks is None or context.asked or not (names := api.seeks(request, context)):
            return None
        permit = context.situation.permit
        return Asking(names, partial(self._said, key, version, body, rights, permit))

    def _probed(
        self,
        key: int,
        version: int,
        body: bytes,
        rights: Rights,
        context: AdminContext,
        said: VoterProbe,
    ) -> Decision:
        """The same request, once it is known what somebody said of itself."""
        context.rights, context.probed = rights, said
        leads = context.electing is not None
        decision = self.decided(key, version, body, context, leads=leads)
        assert isinstance(decision, Decision), "nobody is asked twice"
        return decision

    def _said(
        self,
        key: int,
        version: int,
        body: bytes,
        rights: Rights,
        permit: MutationPermit,
        context: AdminContext,
        said: Said,
    ) -> Decision:
        """The same request, once it is known what other nodes keep of deleted topics."""
        own, me = context.kept, context.situation.node_id
        context.kept = lambda name: {
            me: own(name)[me],
            **{node: kept.get(name, ()) for node, kept in said.items()},
        }
        context.rights, context.situation.permit, context.asked = rights, permit, True
        leads = context.electing is not None
        decision = self.decided(key, version, body, context, leads=leads)
        assert isinstance(decision, Decision), "nobody is asked twice"
        return decision

    def _malformed(self, name: str, context: AdminContext, cause: object) -> Decision:
        self._report("malformed-request", {"request": name, **_who(context), "cause": cause})
        return _final(errors.INVALID_REQUEST)

    def _failed(self, api: Api, version: int, context: AdminContext, why: Exception) -> Decision:
        if isinstance(why, MalformedRequest):  # which its layout alone does not tell
            return self._malformed(api.name, context, why)
        return self._bug(api, version, context)

    def _bug(self, api: Api, version: int, context: AdminContext) -> Decision:
        why = f"{api.name} v{version}: {traceback.format_exc()}"
        self._report("bug", {**_who(context), "cause": why})
        return _final(errors.UNKNOWN_SERVER_ERROR)

    def _enveloped(
        self, body: bytes, context: AdminContext, *, leads: bool
    ) -> Decision | Probing | Asking | InParts:
        """Answer what a broker passes on from a client of its own: decided for that client."""
        try:
            request = decode_request(ENVELOPE, 0, body)
        except MalformedRequest as cause:
            return self._malformed("Envelope", context, cause)
        code = context.rights.refusal(NEEDS[ENVELOPE])
        if code == errors.NONE and not leads:
            code = errors.NOT_CONTROLLER
        if code != errors.NONE:
            return enveloped.refused(code)
        try:
            enclosed, caller = enveloped.opened(request)
        except PeerError as cause:
            self._report("malformed-request", {"request": "Envelope", "cause": cause.message})
            return enveloped.refused(cause.code)
        key, version = enclosed.api_key, enclosed.version
        api = APIS.get(key)
        if api is None or api.controllers:
            return enveloped.refused(errors.INVALID_REQUEST)
        self._become(context, caller, key, version)
        decision = self.decided(key, version, enclosed.body, context, leads=True)
        if isinstance(decision, Decision):
            return enveloped.answer(enclosed, decision)
        if isinstance(decision, InParts):
            return decision.enclosed_in(partial(enveloped.whole_answer, enclosed))
        inner = decision.go_on
        return decision._replace(go_on=lambda *said: enveloped.answer(enclosed, inner(*said)))

    def elsewhere(
        self, key: int, version: int, body: bytes, context: AdminContext, *, known: bool
    ) -> Elsewhere | None:
        """The request to send to the active controller, if that is another node, known or not; None
        when this node has the answer.
        """
        api = APIS.get(key)
        if api is None or not api.lowest <= version <= api.highest or api.controllers:
            return None
        if api.any_node and not (key == DESCRIBE_QUORUM and known):
            return None
        try:
            request = self.ahead.request(key, version, body)
        except MalformedRequest:
            return None
        if api.own(request) or api.here(context):
            return None
        if self._refuses(api, request, version, context):
            return None
        timeout = getattr(request, "timeout", timedelta())
        return Elsewhere(
            in_envelope(key, version, context.rights.caller, body),
            partial(self._not_done, api, request, version, context),
            timeout // timedelta(milliseconds=1),
        )

    def _refuses(self, api: Api, request: Any, version: int, context: AdminContext) -> bool:
        """True if this node's own files make a change invalid that another node would decide."""
        if not api.files(request, context.situation.node_id):
            return False
        try:
            answer = _decide(api, request, version, context)
        except Exception:  # whoever decides says what it is
            return False
        return _of_own_files(api, request, context, answer)

    def _not_done(
        self, api: Api, request: Any, version: int, context: AdminContext, code: int
    ) -> tuple[int, bytes]:
        """The answer to a request that another node did not decide: of the shape that it would have
        here."""
        try:
            answer = _decide(api, request, version, context)
        except Exception:
            self._bug(api, version, context)
            return errors.UNKNOWN_SERVER_ERROR, b""
        told = refused(answer.values, _NO_ANSWER, code, whole=True)
        self.ahead.count(b"", api.key, version, told)
        return errors.NONE, encode_response(response(api.key, version, told))

    def _refuse(
        self, api: Api, version: int, values: Mapping[str, Any], in_parts: bool, why: int
    ) -> tuple[int, Body]:
        """The answer to a request, or a part of one, of which nothing comes true."""
        if why == LOST:
            told = refused(values, _NO_LEADER, api.not_controller, whole=True)
        else:
            self._report("disk-full", {"cause": f"{api.name} refused: {self._full()}"})
            told = refused(values, self._full(), whole=why == UNDONE)
        if in_parts:
            return errors.NONE, Unencoded(api.key, version, told)
        self.ahead.count(b"", api.key, version, told)
        return errors.NONE, encode_response(response(api.key, version, told))

    def ensure_topic(
        self, message: Message, name: bytes, context: AdminContext, *, leads: bool, alone: bool
    ) -> Decision | Elsewhere:
        """Answer an ENSURE_TOPIC with the topic's name. alone: when this node is not the
        controller, nobody is."""
        refuse = partial(_refuse_topic, name)
        code, topic = self._missing(message, name, context)
        if topic is None:
            return Decision(code, name, refuse)
        if leads:
            return Decision(self._create(topic, context), name, refuse)
        if alone:
            return Decision(*refuse(LOST), refuse)
        caller = None if topic.name in DECLARED else context.rights.caller
        return Elsewhere(creation(topic, caller), refuse, _TOPIC_MS)

    def register(self, incarnation: Incarnation, context: AdminContext, next_offset: int) -> None:
        """This node's registration as a broker and controller, which it asks itself for once it
        leads. Raises DiskFull."""
        self._append(registration_records(context.situation, incarnation, next_offset))

    def _missing(
        self, message: Message, name: bytes, context: AdminContext
    ) -> tuple[int, NewTopic | None]:
        """The topic that is to be created for an ENSURE_TOPIC; without one the code to answer."""
        situation = context.situation
        try:
            text = name.decode()
        except UnicodeDecodeError:
            return errors.INVALID_TOPIC_EXCEPTION, None
        if text in situation.image.topics_by_name:
            return errors.NONE, None
        declared = DECLARED.get(text)
        if declared is not None:  # a coordinator needs it, whatever is allowed to clients
            situation.permit = NO_LIMIT
            return errors.NONE, internal_topic(situation, declared)
        if text in INTERNAL_TOPICS or not situation.config.bool("auto.create.topics.enable"):
            return errors.UNKNOWN_TOPIC_OR_PARTITION, None
        if code := context.rights.refusal(needs.CREATE_TOPIC, text):
            return code, None
        most = situation.config.int(SETTING)
        if read_ensure_topic(message).asked_before == 1 and (blocked_ms := self._blocked_ms(text)):
            cause = _why_not(text, context.rights.caller, blocked_ms)
            self._report("topic-not-created", {"topic": text, **_who(context), "cause": cause})
            return errors.UNKNOWN_TOPIC_OR_PARTITION, None
        if not self._creations.admit(context.rights.caller, most):
            cause = f"this client has had {most} topics created in a minute ({SETTING})"
            told = {"bound": bounds.AUTO_CREATED, "topic": text, **_who(context), "cause": cause}
            self._report("topic-not-created", told)
            return errors.UNKNOWN_TOPIC_OR_PARTITION, None
        return errors.NONE, NewTopic(text)

    def _create(self, topic: NewTopic, context: AdminContext) -> int:
        try:
            records, [(_, result, _)] = create_topics(context.situation, [topic])
        except PeerError as error:
            return error.code
        self._tell_full(context)
        if result.code == errors.NONE:
            told = audited(self._trail, "Metadata", records, context)
            try:
                self._append(records)
            except DiskFull:
                return errors.LEADER_NOT_AVAILABLE
            declared = DECLARED.get(topic.name)
            if declared is None:
                told()
                self._report(AUTO_CREATED, {"topic": topic.name, **_who(context)})
            else:
                self._say_fewer(topic, declared, context)
        return creation_code(result.code)

    def _tell_full(self, context: AdminContext) -> None:
        rows = context.situation.node_rows
        if rows is not None and rows.refused:
            told = {"bound": bounds.PARTITIONS, **_who(context), "cause": rows.refused}
            self._report("partition-table-full", told)

    def _say_fewer(self, topic: NewTopic, declared: InternalTopic, context: AdminContext) -> None:
        """An internal topic never asks for more replicas than there can be."""
        wanted = context.situation.config.int(declared.replication_factor)
        if topic.replication_factor < wanted:
            cause = (
                f"{topic.name} has a replication factor of {topic.replication_factor}, not"
                f" {declared.replication_factor}={wanted}: there are no more brokers"
            )
            self._report("fewer-replicas", {"topic": topic.name, "cause": cause})


def _probe(api: Api, request: Any, context: AdminContext) -> tuple[int, str, int] | None:
    """The node to ask before this is decided, if the caller may request it at all."""
    if api.probe is None or context.probed is not None:
        return None
    need = NEEDS.get(api.key)
    allowed = need is None or context.rights.may(need)
    return api.probe(request, context) if allowed else None


def _decide(api: Api, request: Any, version: int, context: AdminContext) -> Answer:
    """The API's decision, if the caller may request it at all."""
    if code := _refusal(api, context):
        return _told(api, request, code, TEXTS[code])
    return api.decide(request, version, context)


def _refusal(api: Api, context: AdminContext) -> int:
    """The error code for a caller who may not request this API at all, or NONE."""
    need = NEEDS.get(api.key)
    return errors.NONE if need is None else context.rights.refusal(need)


def _of_own_files(api: Api, request: Any, context: AdminContext, answer: Answer) -> bool:
    """True if the answer refuses a change because of this node's own files."""
    about = api.files(request, context.situation.node_id)
    return about and any(row["error_code"] for row in answer.values["responses"])


def _told(api: Api, request: Any, code: int, text: str) -> Answer:
    """An answer of which the caller has nothing but this error."""
    assert api.refused is not None, f"{api.name} needs something and cannot refuse it"
    told = {"error_code": code, "error_message": text}
    return Answer([], {"throttle_time": 0, **api.refused(request, told)})


def _who(context: AdminContext) -> dict[str, object]:
    """The caller's fields in an event."""
    caller = context.rights.caller
    return {"client": caller.client_id, "user": caller.principal.name, "peer": caller.address}


def _final(code: int) -> Decision:
    """An answer that nothing changes any more."""
    return Decision(code, b"", lambda _: (code, b""))


def _refuse_topic(name: bytes, why: int) -> tuple[int, bytes]:
    return errors.LEADER_NOT_AVAILABLE, name  # which every client asks again after


def _why_not(name: str, caller: Caller, blocked_ms: int) -> str:
    return (
        f"{name} was deleted and {caller.address}, client id {caller.client_id[:200]!r}, still"
        f" asks for it, which does not create it for another {-(-blocked_ms // 1000)} s; a producer"
        " creates it, a new connection, and CreateTopics"
    )
