"""The certificates of one process: loaded, looked after, and who shows one.

Invariant: a connection gets the newest certificate that could be used. One that cannot be used
never takes the place of one that can, and a listener that has none serves nobody, least of all in
plaintext. Where no listener speaks TLS nothing of it is imported. Called by the loop of a network
process.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from appliance.base.caller import ANONYMOUS, Principal
from appliance.base.clock import Clock
from appliance.base.errors import ConfigError
from appliance.certificates import files, validation
from appliance.certificates.principal_mapping import principal_name
from appliance.certificates.settings import TLS, TlsSettings, concerns, of_listener
from appliance.config.broker import BrokerConfig
from appliance.metadata.changes import Change
from appliance.shell.log import NOTICE, WARNING, Log

if TYPE_CHECKING:
    from ssl import SSLContext

    from appliance.certificates.context import Certificate, LoadedContext

RENEWED: Final = "certificate-renewed"
"""Event: listener, subject, valid_until. Another one is shown from now on."""
NOT_RENEWED: Final = "certificate-not-renewed"
"""Event: listener, cause. What there is now cannot be used; the one before is shown on."""
NOT_VALID: Final = "certificate-not-valid"
"""Event: listener, subject, cause. It is shown, and clients refuse it for its time."""
MISSING: Final = "certificate-missing"
"""Event: listener, cause. There is none that could be shown: nobody is served there."""

_LOOK_NS: Final = 10_000_000_000


class _Listener:
    """loaded: what is shown, None: nothing could be used yet. settings: what it was loaded by.
    cause: why what is there now is not used, "" when it is."""

    __slots__ = ("cause", "loaded", "settings", "tried", "warned")

    def __init__(self) -> None:
        self.loaded: LoadedContext | None = None
        self.settings: TlsSettings | None = None
        self.tried: tuple[files.Stamp, ...] = ()
        self.cause = ""
        self.warned = ""


class Certificates:
    """The certificates of one process."""

    __slots__ = ("_clock", "_config", "_listeners", "_log", "_look_ns", "_plain", "_tells")

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        names: Sequence[str],
        log: Log | None,
        clock: Clock,
        *,
        tells: bool = True,
    ) -> None:
        """config(): the settings in force, with those that were set while it runs. names: of the
        listeners. log: None for who shows nothing. tells: whether this one, of several processes
        that read the same files, says how it goes; the others only keep what went wrong."""
        self._config = config
        self._log = log
        self._clock = clock
        self._tells = tells
        self._look_ns = 0
        self._listeners: dict[str, _Listener] = {}
        self._plain: set[str] = set()
        self.add(names)

    # Asked by connections -------------------------------------------------------------------------

    def context(self, listener: str) -> "SSLContext | None":
        """Returns the SSLContext of a new connection, None for plaintext. Raises ConfigError
        without a usable certificate: the connection is to be closed."""
        if listener in self._plain:
            return None
        loaded = self._listeners[listener].loaded
        if loaded is None:
            raise ConfigError(self._listeners[listener].cause)
        return loaded.context

    def certificate(self, listener: str) -> "Certificate | None":
        """Returns the certificate of that listener, None without one."""
        one = self._listeners.get(listener)
        return None if one is None or one.loaded is None else one.loaded.certificate

    def principal(self, listener: str, der: bytes | None) -> Principal:
        """Returns the principal of a client with this certificate (DER; None: none) on this
        listener. Raises ValueError (NoRule, NameUnreadable) if no rule maps it: the connection is
        to be closed."""
        one = self._listeners.get(listener)
        if der is None or one is None or one.loaded is None:
            return ANONYMOUS
        return Principal("User", principal_name(der, one.loaded.rules))

    # Looked after ---------------------------------------------------------------------------------

    def add(self, names: Iterable[str]) -> None:
        """These listeners are there, too."""
        config = self._config()
        protocols = config.protocols()
        for name in names:
            if protocols.get(name) not in TLS:
                self._plain.add(name)
            elif name not in self._listeners:
                self._listeners[name] = one = _Listener()
                self._take(name, one, of_listener(config, name))

    def reload_changed(self, now_ns: int) -> None:
        """Read files again that have changed, every ten seconds."""
        if not self._listeners or now_ns < self._look_ns:
            return
        self._look_ns = now_ns + _LOOK_NS
        for name, one in self._listeners.items():
            if one.settings is not None and files.changed(one.tried):
                self._take(name, one, one.settings)
            self._warn(name, one)

    def follow(self, changes: Iterable[Change], node_id: int) -> None:
        """These were committed, and are in force."""
        if concerns(changes, node_id):
            self.renew()

    def renew(self) -> None:
        """Settings have changed, or somebody asks for it: read everything again."""
        if not self._listeners:
            return
        config = self._config()
        for name, one in self._listeners.items():
            self._take(name, one, of_listener(config, name), asked=True)

    def check(self, wanted: BrokerConfig, only: Collection[str] | None = None) -> None:
        """Checks that these settings could replace those in force. only: for these listeners, in
        lower case. Raises ConfigError."""
        shown = {name: one.loaded.certificate for name, one in self._listeners.items()
                 if one.loaded is not None}  # fmt: skip
        validation.check(wanted, self._clock, shown, only)

    def _take(
        self, name: str, one: _Listener, settings: TlsSettings, *, asked: bool = False
    ) -> None:
        """Load, and show it when it can be. asked: somebody wants to hear how that went."""
        from appliance.certificates.context import check_same, load

        before, stamps = (one.settings, one.tried), files.stamps(settings.files())
        one.settings, one.tried = settings, stamps
        if one.loaded is not None and not one.cause and before == (settings, stamps):
            return  # a large key in PKCS12 takes a second
        try:
            loaded = load(settings)
            if one.loaded is not None:
                check_same(one.loaded.certificate, loaded.certificate, settings)
        except ConfigError as problem:
            cause = str(problem)
            if cause != one.cause or asked:
                one.cause = cause
                self._wrong(MISSING if one.loaded is None else NOT_RENEWED, name, cause)
            return
        last, one.loaded, one.cause = one.loaded, loaded, ""
        shown = loaded.certificate
        if last is not None and last.certificate != shown:
            told = {"subject": shown.subject, "valid_until": shown.until}
            self._say(NOTICE, RENEWED, listener=name, **told)
        self._warn(name, one)

    def _warn(self, name: str, one: _Listener) -> None:
        """Once of each certificate."""
        if one.loaded is None:
            return
        shown = one.loaded.certificate
        cause = shown.trouble(self._clock.wall_ms())
        if cause and one.warned != shown.digest:
            self._say(WARNING, NOT_VALID, listener=name, subject=shown.subject, cause=cause)
        one.warned = shown.digest if cause else ""

    def _say(self, priority: int, event: str, **fields: object) -> None:
        if self._log is not None and self._tells:
            self._log.event(priority, event, **fields)

    def _wrong(self, event: str, listener: str, cause: str) -> None:
        if self._log is not None:
            say = self._log.event if self._tells else self._log.note_event
            say(WARNING, event, listener=listener, cause=cause)
