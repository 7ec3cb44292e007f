"""Logins: what a connection says of who it is, decided.

Invariant: a connection gets a principal here or by its certificate, and only with a session that is
`KNOWN` it is served. A refusal is told after a pause, without holding anybody else, and ends the
connection. As Apache Kafka's SaslServerAuthenticator, but that an unknown user of SCRAM is refused
where a wrong password is. Called by the intake and, through the host, by handlers 17 and 36.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Final

from appliance.authentication import oauthbearer, plain
from appliance.authentication.client_login import NodeCredentials
from appliance.authentication.mechanisms import (
    BY_NAME,
    BY_NUMBER,
    LEAST_ITERATIONS,
    OAUTHBEARER,
    PLAIN,
    SCRAMS,
    Scram,
)
from appliance.authentication.refused import LoginRefused
from appliance.authentication.scram import (
    Credential,
    First,
    ScramServer,
    is_password,
    made,
    parse_first,
)
from appliance.authentication.stand_in import stand_in
from appliance.authentication.tokens import Verified
from appliance.base.caller import Principal
from appliance.base.errors import (
    ILLEGAL_SASL_STATE,
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    ConfigError,
)
from appliance.config import logins as settings
from appliance.config import node_logins
from appliance.config.bounds import LOGINS_WAITING, setting_of
from appliance.config.broker import BrokerConfig
from appliance.controller.delegation_tokens import KIND as TOKEN
from appliance.handlers import k18_api_versions
from appliance.handlers.exchange import LATE, Exchange, Login
from appliance.metadata.changes import Change, ConfigChanged, KeptChanged
from appliance.metadata.image import MetadataImage
from appliance.netproc.connections.connection import Connection
from appliance.netproc.connections.connections_state import ConnectionsState
from appliance.netproc.connections.framing import SMALLEST_FRAME
from appliance.netproc.connections.login_session import (
    DEADLINE_NS,
    FIRST,
    GREETING,
    KNOWN,
    TOKENS,
    Doorkeeper,
    LoginSession,
)
from appliance.netproc.in_flight.exchanges import NO_NUMBER, Exchanges
from appliance.netproc.sasl.credential_hashing import CredentialHashing
from appliance.netproc.sasl.delegation_tokens import DelegationTokens
from appliance.netproc.sasl.oauth_bearer import Bearers
from appliance.ring.counters import API_KEYS
from appliance.shell.log import NOTICE, WARNING
from appliance.wire.kraft_records import UserScramCredentialRecord

API_VERSIONS: Final = k18_api_versions.KEY
HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
_NS: Final = 1_000_000
_AGAIN_NS: Final = 1_000_000_000
"""Nobody logs in again more often."""
_KEPT: Final = "scram"
"""First word of the identity of a credential in the metadata."""
_LEAST_LIFE_MS: Final = 1000
"""A token that ends within the clocks' skew holds so long: 0 would mean for ever."""
_TOO_MANY: Final = "too many logins wait for their passwords to be hashed"
assert max(API_VERSIONS, AUTHENTICATE) < API_KEYS

Likes = tuple[Scram, bytes, int]
"""(mechanism, salt, iterations) of a user that there is."""


class LoginDesk(Doorkeeper):
    """The logins of one network process. config(), image(): in force now. secret: stand-ins
    are made of it, the same in all network processes."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        image: Callable[[], MetadataImage],
        shared: "ConnectionsState[Connection]",
        exchanges: Exchanges,
        secret: bytes,
    ) -> None:
        self._config = config
        self._image = image
        self._shared = shared
        self._names = shared.listeners
        self._exchanges = exchanges
        self._hashing = CredentialHashing(shared.loop, config().int(setting_of(LOGINS_WAITING)))
        self._log = shared.log
        self._bearers = Bearers(shared.loop, self._hashing, shared.log)
        self._tokens = DelegationTokens(config, image, self._hashing)
        self._secret = secret
        self._likes: list[Likes] | None = None
        self._delay_ns = 0
        self._rules: dict[str, settings.Logins | None] = {}
        self._nodes: dict[str, NodeCredentials | None] = {}  # who logs in as a node, by listener
        self._made: dict[tuple[NodeCredentials, Scram], Credential] = {}
        self.renew()

    # Settings -------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Settings have changed, or listeners were added. What cannot be used does not take the
        place of what can; a listener that has nothing lets nobody in."""
        config = self._config()
        self._delay_ns = config.int(settings.DELAY) * _NS
        self._made.clear()
        for name in self._names:
            try:
                self._rules[name] = settings.of_listener(config, name)
                self._nodes[name] = node_logins.at_listener(config, name)
            except ConfigError as problem:
                self._rules.setdefault(name, settings.Logins((), {}, {}, SMALLEST_FRAME))
                self._log.event_of(WARNING, "logins-not-renewed", name, cause=str(problem))

    def follow_changes(self, changes: Iterable[Change]) -> None:
        """These were committed, and are in force."""
        for change in changes:
            if isinstance(change, KeptChanged):
                if change.identity[0] == _KEPT:
                    self._likes = None
                elif change.identity[0] == TOKEN:
                    self._tokens.forget_removed(change.identity[1])
            elif isinstance(change, ConfigChanged) and settings.concerns_logins(change.key):
                self.renew()

    def session(self, listener: int, now_ns: int) -> LoginSession | None:
        return None if self._of(listener) is None else LoginSession(listener, now_ns)

    def restore_login(
        self, session: LoginSession, mechanism: str, expires_ns: int, by_token: bool
    ) -> None:
        session.stage, session.mechanism, session.expires_ns = KNOWN, mechanism, expires_ns
        session.by_token = by_token

    def longest(self, session: LoginSession) -> int:
        """Bytes of the longest request before the login."""
        rules = self._of(session.listener)
        assert rules is not None, "a session where nobody logs in"
        return max(rules.longest, SMALLEST_FRAME)

    # Requests -------------------------------------------------------------------------------------

    def objection(
        self, connection: Connection, session: LoginSession, key: int, version: int, now_ns: int
    ) -> str:
        """Why a request of this API is not served to that connection now; "" when it is."""
        stage = session.stage
        if stage == KNOWN:
            if key == HANDSHAKE:
                self._begin_again(connection, session, now_ns)
            elif session.expires_ns and now_ns > session.expires_ns:
                return "its login has expired, and it has not logged in again"
            return ""
        if session.unlike and key == AUTHENTICATE:
            return f"it logs in again by another mechanism than {session.mechanism}"
        if stage == TOKENS and key in (AUTHENTICATE, HANDSHAKE):
            return ""
        if stage == FIRST and key == API_VERSIONS:
            if version <= k18_api_versions.HIGHEST:
                session.stage = GREETING  # else it asks again
            return ""
        if stage in (FIRST, GREETING) and key == HANDSHAKE:
            return ""
        return f"API key {key} before it has logged in"

    def _begin_again(self, connection: Connection, session: LoginSession, now_ns: int) -> None:
        if not session.expires_ns or (session.began_ns and now_ns - session.began_ns < _AGAIN_NS):
            return  # the handler says that it is out of turn
        session.began_ns = now_ns
        session.deadline_ns = now_ns + DEADLINE_NS
        session.again = True
        session.stage = GREETING
        connection.ask_again()

    def greet(self, x: Exchange, mechanism: str) -> tuple[int, tuple[str, ...]]:
        """Handler 17: error code and offered mechanisms."""
        connection: Connection = x.connection
        session = connection.session
        if session is None or session.stage not in (FIRST, GREETING):
            return ILLEGAL_SASL_STATE, ()
        rules = self._of(session.listener)
        offered = () if rules is None else rules.mechanisms
        if mechanism not in offered:
            self._tell(connection, session, f"it asks for mechanism {mechanism[:40]}")
            return UNSUPPORTED_SASL_MECHANISM, offered
        session.unlike = session.again and mechanism != session.mechanism
        if not session.unlike:
            session.mechanism = mechanism
        session.raw = x.version == 0
        session.server = None
        session.stage = TOKENS
        return NONE, offered

    def authenticate(self, x: Exchange, message: bytes) -> Login | None:
        """Handler 36: what is to be told; None: `x`, which has something pending by 0, is woken
        when that is known."""
        connection: Connection = x.connection
        session = connection.session
        if session is None or session.known:
            return Login(ILLEGAL_SASL_STATE, LATE)
        assert session.stage == TOKENS, "the intake lets no message in before"
        try:
            if session.mechanism == PLAIN:
                return self._plain(x, session, message)
            if session.mechanism == OAUTHBEARER:
                return self._bearer(x, session, message)
            return self._scram(x, session, message)
        except LoginRefused as refused:
            return self._refused(x, refused.told)

    def wait(self, x: Exchange, login: Login) -> None:
        """Tell what was decided: a refusal after a pause."""
        x.state = login
        self._wake(x, self._delay_ns if login.code else 0)

    def hold_back(self, x: Exchange) -> bool:
        """Tell a refusal after a pause; False: it is none of a login, and told at once."""
        connection: Connection = x.connection
        if connection.session is None or connection.session.known:
            return False
        connection.hold_login()
        self._wake(x, self._delay_ns)
        return True

    def _wake(self, x: Exchange, pause_ns: int) -> None:
        self._exchanges.wake_at(x, 0, self._now_ns() + pause_ns)

    def settle_login(self, x: Exchange, login: Login) -> None:
        """The client was told."""
        connection: Connection = x.connection
        session = connection.session
        if session is None or (session.known and not login.principal):
            return  # out of turn
        if login.code:
            connection.dismiss()
        elif login.principal:
            self._let_in(connection, session, login)
        else:
            connection.end_login(known=False)

    # Decisions ------------------------------------------------------------------------------------

    def _plain(self, x: Exchange, session: LoginSession, message: bytes) -> Login | None:
        claim = plain.parse(message)
        rules = self._of(session.listener)
        assert rules is not None, "a session where nobody logs in"
        if rules.users is not None:
            session.claimed = claim.user if claim.user in rules.users else ""
            if not plain.is_known(rules.users, claim.user, claim.password):
                raise LoginRefused(plain.NOT_VALID)
            claim.check_acts_as()
            return self._proved(session, claim.user, x)
        scram, credential, exists = self._any_of(claim.user)
        session.claimed = claim.user if exists else ""

        def then(same: bool) -> None:
            if x.number == NO_NUMBER:
                return  # it has gone
            try:
                if not (same and exists):
                    raise LoginRefused(plain.NOT_VALID)
                claim.check_acts_as()
                login = self._proved(session, claim.user, x)
            except LoginRefused as refused:
                login = self._refused(x, refused.told)
            self.wait(x, login)

        asked = self._hashing.ask_thread(
            lambda: is_password(scram, credential, claim.password), then
        )
        return self._hold(x, asked, plain.NOT_VALID)

    def _bearer(self, x: Exchange, session: LoginSession, message: bytes) -> Login | None:
        connection: Connection = x.connection
        if session.server == oauthbearer.INVALID_TOKEN and message == oauthbearer.ABORT:
            return Login(SASL_AUTHENTICATION_FAILED, oauthbearer.INVALID_TOKEN)
        session.server = None
        claim = oauthbearer.parse_bearer(message)
        rules = self._of(session.listener)
        if rules is None or rules.tokens is None:
            raise LoginRefused

        def then(found: Verified | None, why: str) -> None:
            if x.number == NO_NUMBER:
                return  # it has gone
            if found is None:
                self._tell(connection, session, f"the token is refused: {why}")
                session.server = oauthbearer.INVALID_TOKEN
                self.wait(x, Login(NONE, None, oauthbearer.INVALID_TOKEN.encode()))
                return
            try:
                claim.check_acts_as(found.user)
                left_ms = max(found.expires_ms - time.time_ns() // _NS, _LEAST_LIFE_MS)
                login = self._proved(session, found.user, x, left_ms=left_ms)
            except LoginRefused as refused:
                login = self._refused(x, refused.told)
            self.wait(x, login)

        return self._hold(x, self._bearers.verify_token(claim.token, *rules.tokens, then))

    def _scram(self, x: Exchange, session: LoginSession, message: bytes) -> Login | None:
        scram = BY_NAME[session.mechanism]
        server: ScramServer | None = session.server
        if server is None:
            first = parse_first(message)
            if first.by_token:
                return self._begin_by_token(x, session, scram, first)
            kept = self._credential(first.user, scram)
            if kept is None:
                kept = self._of_node(session.listener, first.user, scram)
            session.claimed = first.user if kept is not None else ""
            credential = kept or self._stand_in(first.user, scram)
            return _challenge(session, scram, first, credential, kept is not None)
        session.server = None
        answer = server.finish(message)
        if not server.by_token:
            return self._proved(session, server.user, x, answer)
        found = self._tokens.find_valid(server.user)
        if found is None:  # it was removed, or has expired meanwhile
            raise LoginRefused
        return self._proved(session, found.owner, x, answer, found.left_ms)._replace(by_token=True)

    def _begin_by_token(
        self, x: Exchange, session: LoginSession, scram: Scram, first: First
    ) -> Login | None:
        """The answer to the first message of a login by a delegation token. One that does not hold
        is refused at once, as by Apache Kafka: nobody guesses an id of 128 random bits."""
        found = self._tokens.find_valid(first.user)
        session.claimed = "" if found is None else found.owner
        if found is None:
            raise LoginRefused
        known = self._tokens.get_credential(first.user, scram)
        if known is not None:
            return _challenge(session, scram, first, known, True)

        def then(credential: Credential | None) -> None:
            if x.number != NO_NUMBER and credential is not None:  # else it has gone
                self.wait(x, _challenge(session, scram, first, credential, True))
            elif x.number != NO_NUMBER:
                self.wait(x, self._refused(x, None))

        return self._hold(x, self._tokens.make_credential(first.user, scram, then))

    def _hold(self, x: Exchange, asked: bool, told: str | None = None) -> Login | None:
        """Holds the login until the thread that was asked says more. Raises LoginRefused with
        `told` where too many wait."""
        if not asked:
            self._log.event_seldom(WARNING, "logins-refused", bound=LOGINS_WAITING, why=_TOO_MANY)
            raise LoginRefused(told)
        x.connection.hold_login()
        return None

    def _proved(
        self,
        session: LoginSession,
        user: str,
        x: Exchange,
        answer: bytes = b"",
        left_ms: int = 0,
    ) -> Login:
        """left_ms: until the credential ends, 0: never."""
        connection: Connection = x.connection
        before, now = connection.principal, Principal("User", user)
        if session.again and before != now:
            raise LoginRefused(
                "Cannot change principals during re-authentication from"
                f" {before.type}.{before.name}: {now.type}.{now.name}"
            )
        rules = self._of(session.listener)
        lifetime = 0 if rules is None else rules.lifetimes.get(session.mechanism, 0)
        lifetime = min(lifetime or left_ms, left_ms or lifetime)
        return Login(NONE, None, answer, lifetime, user)

    def _refused(self, x: Exchange, told: str | None) -> Login:
        connection: Connection = x.connection
        session = connection.session
        assert session is not None, "nobody logs in there"
        text = told or (
            f"Authentication failed during {'re-' if session.again else ''}authentication due to"
            f" invalid credentials with SASL mechanism {session.mechanism}"
        )
        self._tell(connection, session, text)
        return Login(SASL_AUTHENTICATION_FAILED, text)

    def _let_in(self, connection: Connection, session: LoginSession, login: Login) -> None:
        self._audit(connection, session, login.principal)
        session.stage = KNOWN
        session.by_token = login.by_token
        session.again = False
        session.server = None
        session.set_end(login.lifetime_ms, self._now_ns())
        connection.principal = Principal("User", login.principal)
        connection.rights = None
        connection.end_login(known=True)

    # Users ----------------------------------------------------------------------------------------

    def _credential(self, user: str, scram: Scram) -> Credential | None:
        kept = self._image().kept.get((_KEPT, user, str(scram.number)))
        if not isinstance(kept, UserScramCredentialRecord):
            return None
        return Credential(kept.salt, kept.stored_key, kept.server_key, kept.iterations)

    def _of_node(self, listener: int, user: str, scram: Scram) -> Credential | None:
        """The credential of the user that nodes log in as at that listener, made of the settings: a
        node has no metadata before it has logged in."""
        node = self._nodes.get(self._names[listener])
        if node is None or (node.user, node.mechanism) != (user, scram.name):
            return None
        found = self._made.get((node, scram))
        if found is None:
            salt = self._stand_in(user, scram).salt
            found = self._made[node, scram] = made(scram, node.password, salt, LEAST_ITERATIONS)
        return found

    def _any_of(self, user: str) -> tuple[Scram, Credential, bool]:
        """A credential of that user, of any mechanism; whether it is a real one."""
        for scram in SCRAMS:
            found = self._credential(user, scram)
            if found is not None:
                return scram, found, True
        likes = self._known()
        scram = likes[len(user) % len(likes)][0] if likes else SCRAMS[0]
        return scram, self._stand_in(user, scram), False

    def _stand_in(self, user: str, scram: Scram) -> Credential:
        likes = [(salt, count) for one, salt, count in self._known() if one is scram]
        return stand_in(scram, user, self._secret, likes)

    def _known(self) -> list[Likes]:
        """The credentials of all users, without their keys."""
        if self._likes is None:
            self._likes = [
                (BY_NUMBER[one.mechanism], one.salt, one.iterations)
                for one in self._image().kept.values()
                if isinstance(one, UserScramCredentialRecord) and one.mechanism in BY_NUMBER
            ]
        return self._likes

    def _of(self, listener: int) -> settings.Logins | None:
        name = self._names[listener]
        if name not in self._rules:
            self.renew()
        return self._rules[name]

    def _now_ns(self) -> int:
        return max(self._shared.now_ns, self._shared.loop.woke_ns)

    def _audit(
        self, connection: Connection, session: LoginSession, user: str, why: str = ""
    ) -> None:
        if (trail := self._log.trail) is not None:
            trail.note_login(
                (session.listener, self._names[session.listener]),
                session.mechanism or "none",
                f"User:{user}" if user else "",
                connection.address,
                (connection.client_id or b"").decode(errors="replace"),
                again=session.again,
                why=why,
            )

    def _tell(self, connection: Connection, session: LoginSession, why: str) -> None:
        self._audit(connection, session, session.claimed, why)
        self._log.event_from(
            NOTICE, "login-failed", connection.address,
            listener=self._names[session.listener], mechanism=session.mechanism or "none", why=why,
        )  # fmt: skip


def _challenge(
    session: LoginSession, scram: Scram, first: First, credential: Credential, exists: bool
) -> Login:
    """The answer to the first message of SCRAM. exists: False for a stand-in."""
    nonce = secrets.token_urlsafe(24)
    session.server = server = ScramServer(scram, first, credential, exists, nonce)
    return Login(NONE, None, server.challenge())
