"""Access to the exporter: by a password of HTTP's basic authentication (RFC 7617), by a
certificate, or for everybody; and the TLS that it speaks. A renewed certificate is read within ten
seconds."""

import base64
import binascii
import hashlib
import hmac
import re
import socket
from typing import TYPE_CHECKING, Final

from appliance.base.errors import ConfigError
from appliance.certificates import files
from appliance.certificates.holder import NOT_RENEWED, RENEWED
from appliance.certificates.settings import TlsSettings, of_listener
from appliance.config.broker import BrokerConfig
from appliance.config.logins import DELAY
from appliance.config.metrics_door import NAME, speaks_tls, user_info
from appliance.ring.security_table import SUCCEEDED
from appliance.shell.audit import Trail
from appliance.shell.log import NOTICE, WARNING, Log

if TYPE_CHECKING:
    from ssl import SSLContext

    from appliance.certificates.context import Certificate
    from appliance.certificates.principal_mapping import Rules

_LOOK_NS: Final = 10_000_000_000
_AGAIN_NS: Final = 3600 * 1_000_000_000
"""A scraper logs in with every scrape; the audit tells of it once in this time."""
_MOST_TOLD: Final = 256
_WRONG: Final = "Authentication failed: Invalid username or password"
_AUTHORIZATION: Final = re.compile(
    rb"\r\nAuthorization:[ \t]*Basic[ \t]+([A-Za-z0-9+/=]+)[ \t]*\r\n", re.IGNORECASE
)


class MetricsDoor:
    """Lets in callers as the settings say."""

    def __init__(self, config: BrokerConfig, log: Log, trail: Trail | None = None) -> None:
        """trail: of logins, taken or refused. Raises ConfigError for a certificate of its own that
        it cannot show."""
        told = user_info(config)
        self._user = told.partition(":")[0]
        self._wanted = _digest(told.encode()) if told else b""
        self._log = log
        self._trail = trail
        self.delay_ns = config.int(DELAY) * 1_000_000
        self._settings: TlsSettings | None = None
        self._context: SSLContext | None = None
        self._shown: Certificate | None = None
        self._rules: Rules | None = None
        self._told_ns: dict[tuple[str, str, str], int] = {}
        self._cause = ""  # why what is in the files is not shown
        self._stamps: tuple[files.Stamp, ...] = ()
        self._look_ns = 0
        if speaks_tls(config):
            self._settings = of_listener(config, NAME)
            self._load(self._settings)

    def wrapped(self, sock: socket.socket, now_ns: int) -> socket.socket:
        """A new connection as it is spoken over: TLS, or the socket itself. now_ns: monotonic.
        Raises OSError: it has ended."""
        settings = self._settings
        if settings is not None and now_ns >= self._look_ns:
            self._look_ns = now_ns + _LOOK_NS
            if files.changed(self._stamps):
                self._renew(settings)
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def lets_in(self, request: bytes) -> bool:
        """True if the head of a request has the password, or needs none. Both are compared by their
        digests, so that the time tells nothing of either."""
        return not self._wanted or hmac.compare_digest(_digest(_given(request)), self._wanted)

    def refuses(self, request: bytes, address: str) -> bool:
        """True if a request that is not let in has shown a password: its answer is held back for
        `delay_ns`. The audit is told, with the user's name if that is the right one."""
        given = _given(request)
        if given and self._trail is not None:
            name = given.partition(b":")[0].decode(errors="replace")
            principal = f"User:{name}" if name == self._user else ""
            self._trail.note_login((0, NAME), "BASIC", principal, address, "", why=_WRONG)
        return bool(given)

    def note_caller(self, sock: socket.socket, request: bytes, address: str, now_ns: int) -> None:
        """Counts the logins of a whole request: by its certificate, by its password. The audit is
        told of each principal at an address once an hour. now_ns: monotonic."""
        if self._trail is None:
            return
        if self._rules is not None and (der := _certificate(sock)) is not None:
            self._note(self._trail, "SSL", _principal(der, self._rules), address, now_ns)
        if self._wanted and self.lets_in(request):
            self._note(self._trail, "BASIC", f"User:{self._user}", address, now_ns)

    def _note(
        self, trail: Trail, mechanism: str, principal: str, address: str, now_ns: int
    ) -> None:
        cause = (mechanism, principal, address)
        told_ns = self._told_ns.get(cause)
        if told_ns is not None and now_ns - told_ns < _AGAIN_NS:
            trail.region.count_login(0, NAME, mechanism, SUCCEEDED)
            return
        if len(self._told_ns) >= _MOST_TOLD:
            self._told_ns.clear()
        self._told_ns[cause] = now_ns
        trail.note_login((0, NAME), mechanism, principal, address, "")

    def tell_handshake(self, problem: OSError, address: str) -> None:
        """A connection has ended before its first byte. Where TLS is why, a certificate that is
        missing or not believed among the reasons, the audit is told."""
        if self._context is None or self._trail is None:
            return
        from ssl import SSLEOFError, SSLError

        from appliance.netproc.transport.tls import why

        if isinstance(problem, SSLError) and not isinstance(problem, SSLEOFError):
            self._trail.note_login((0, NAME), "SSL", "", address, "", why=why(problem))

    def _renew(self, settings: TlsSettings) -> None:
        """Take what is in the files now, if it can be shown."""
        before = self._shown
        try:
            self._load(settings)
        except ConfigError as problem:
            cause = str(problem)
            if cause != self._cause:
                self._log.event(WARNING, NOT_RENEWED, listener=NAME, cause=cause)
            self._cause = cause
            return
        self._cause = ""
        if self._shown is not None and self._shown != before:
            told = {"subject": self._shown.subject, "valid_until": self._shown.until}
            self._log.event(NOTICE, RENEWED, listener=NAME, **told)

    def _load(self, settings: TlsSettings) -> None:
        """Load it, and show it from now on. Raises ConfigError."""
        from appliance.certificates.context import load
        from appliance.exporter.tls_socket import TlsSocket

        self._stamps = files.stamps(settings.files())
        loaded = load(settings)
        loaded.context.sslsocket_class = TlsSocket
        self._context, self._shown = loaded.context, loaded.certificate
        self._rules = loaded.rules


def _given(request: bytes) -> bytes:
    """NAME:PASSWORD of a request, b"" of one without."""
    found = _AUTHORIZATION.search(request)
    try:
        return b"" if found is None else base64.b64decode(found[1], validate=True)
    except binascii.Error:
        return b""


def _certificate(sock: socket.socket) -> bytes | None:
    """The certificate of the other side (DER), None without one."""
    from ssl import SSLSocket

    return sock.getpeercert(binary_form=True) if isinstance(sock, SSLSocket) else None


def _principal(der: bytes, rules: "Rules") -> str:
    """`User:NAME` of a certificate, "" where no rule names it."""
    from appliance.certificates.principal_mapping import principal_name

    try:
        return f"User:{principal_name(der, rules)}"
    except ValueError:
        return ""


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
