"""The folder that `penstock secure` keeps: an authority, a server's certificate and settings, and a
folder for each client.

    ca.pem, ca.key, server.pem, server.properties
    clients/NAME/: ca.pem, NAME.pem, client.properties, java.properties

With logins the only client here is `admin`, without a NAME.pem: others are users of the appliance.

Everything in it belongs to its owner alone. `ca.key` signs: whoever has it can be anybody.
"""

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from appliance.config.listeners import in_url
from console.model.access import client_files
from console.model.access.users import generated_password
from console.model.asking.failure import Failure, unreadable, usage
from console.model.secure.authority import LONGEST_NAME, Authority, Issued, new_authority
from console.model.secure.server_settings import ADMIN, NODES_UNIT, Place, server_settings

DEFAULT_FOLDER: Final = "penstock-secure"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_FILES: Final = {"librdkafka": "client", "java": "java"}
"""Form of a client's properties → the name of its file."""


class Client(NamedTuple):
    """Files of a client. librdkafka, java: its properties in the words of each."""

    folder: Path
    librdkafka: Path
    java: Path
    ends: datetime.datetime


class SecureFolder:
    """One folder. Every method raises Failure for what cannot be written or read."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def settings(self) -> Path:
        """The settings file of an appliance with these certificates."""
        return self.path / "server.properties"

    def create(
        self, hosts: Sequence[str], port: int, now: datetime.datetime, *, logins: bool = False
    ) -> Client:
        """Makes the authority, the server's certificate for `hosts` and for this host, its settings
        and the client `admin`, which is returned. Refuses a folder that has an authority.

        logins: clients log in with a password (SASL_SSL) and ACLs say what they may do; else each
        one has a certificate.
        """
        if (self.path / "ca.key").exists():
            raise usage(
                f"{self.path} has an authority already, and its clients know that one",
                "penstock secure server renews the server's certificate,"
                " penstock secure client NAME makes one more client",
            )
        issued = new_authority(f"Penstock authority of {hosts[0]}"[:LONGEST_NAME], now)
        authority = Authority(*issued)
        server = _issued(authority, hosts, now, NODES_UNIT)
        _make_private(self.path)
        self._write("ca.key", issued.key)
        self._write("ca.pem", issued.certificate)
        self._write("server.pem", server.key + server.certificate)
        bootstrap = f"{in_url(hosts[0])}:{port}"
        password = generated_password() if logins else None
        place = Place(str(self.path), in_url(hosts[0]), port)
        self._write("server.properties", server_settings(place, password).encode())
        if password is None:
            return self.add_client(ADMIN, bootstrap, now)
        return self._add_admin(bootstrap, password, issued.certificate)

    def renew_server(
        self, hosts: Sequence[str], now: datetime.datetime, to: Path | None = None
    ) -> Path:
        """Signs a new certificate for a server with these names, in place of the one in the folder
        or into the file `to`. Returns the file."""
        server = _issued(self.authority(), hosts, now, self._unit())
        target = (self.path / "server.pem") if to is None else to.absolute()
        _write_private(target, server.key + server.certificate)
        return target

    def add_client(self, name: str, bootstrap: str, now: datetime.datetime) -> Client:
        """Signs a certificate for the client `name` and writes its properties; one that is there is
        renewed. bootstrap: HOST:PORT that the client connects to."""
        if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise usage(
                f"{name!r} is no name of a client",
                f"at most {LONGEST_NAME} letters, digits and . _ - @, a letter or digit first",
            )
        authority = self.authority()
        issued = authority.issue_client(name, now)
        folder = self.path / "clients" / name
        _make_private(folder.parent)
        _make_private(folder)
        own, trusted = folder / f"{name}.pem", folder / "ca.pem"
        _write_private(own, issued.key + issued.certificate)
        _write_private(trusted, authority.certificate)
        librdkafka, java = folder / "client.properties", folder / "java.properties"
        _write_private(librdkafka, _librdkafka_properties(bootstrap, own, trusted).encode())
        _write_private(java, _java_properties(bootstrap, issued, authority.certificate).encode())
        return Client(folder, librdkafka, java, authority.end_of(issued.certificate))

    def _add_admin(self, bootstrap: str, password: str, trusted: bytes) -> Client:
        """Writes the properties of the administrator, who logs in by PLAIN over TLS."""
        folder = self.path / "clients" / ADMIN
        _make_private(folder.parent)
        _make_private(folder)
        ca = folder / "ca.pem"
        _write_private(ca, trusted)
        at = client_files.Place(bootstrap, "SASL_SSL", str(ca))
        files = {form: folder / f"{name}.properties" for form, name in _FILES.items()}
        for form, file in files.items():
            told = client_files.FORMS[form](at, "PLAIN", ADMIN, password)
            _write_private(file, told.encode())
        ends = Authority.end_of(trusted)
        return Client(folder, files["librdkafka"], files["java"], ends)

    def bootstrap(self) -> str:
        """Returns HOST:PORT of the listener in TLS, as the settings advertise it."""
        from appliance.base.errors import ConfigError
        from appliance.config.load import load
        from appliance.config.tls_checks import SSL
        from console.model.access.jaas_file import of_jaas_file

        try:
            text, name = self.settings.read_text(), str(self.settings)
            environment = of_jaas_file(text, {}, {}, file_name=name)
            config, _ = load(text, {}, file_name=name, environment=environment)
        except (OSError, UnicodeDecodeError) as problem:
            raise unreadable(str(self.settings), problem) from None
        except ConfigError as wrong:
            raise usage(str(wrong)) from None
        for one in config.endpoints():
            told = config.advertised(one.name)
            if config.protocols().get(one.name) == SSL and told is not None:
                return f"{in_url(told[0])}:{told[1]}"
        raise usage(
            f"{self.settings} advertises no listener in TLS",
            "say where the client connects to with --bootstrap HOST:PORT",
        )

    def authority(self) -> Authority:
        """The one that signs here."""
        try:
            return Authority(
                (self.path / "ca.pem").read_bytes(), (self.path / "ca.key").read_bytes()
            )
        except FileNotFoundError:
            raise usage(
                f"{self.path} has no authority",
                "penstock secure init --host NAME makes one; --folder names another folder",
            ) from None
        except (OSError, ValueError) as problem:
            raise Failure(f"the authority in {self.path} cannot be used: {problem}") from None

    def keep_node(self, key: bytes, certificate: bytes, authority: bytes) -> None:
        """Writes what a node shows, and the authority that it believes; the authority's key is
        elsewhere. All are PEM, certificate with the authority's behind it."""
        _make_private(self.path)
        self._write("ca.pem", authority)
        self._write("server.pem", key + certificate)

    def write_settings(self, settings: Mapping[str, str]) -> None:
        """Writes server.properties."""
        lines = []
        for key, value in settings.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
            lines.append(f"{key}={escaped}\n")
        self._write("server.properties", "".join(lines).encode())

    def _unit(self) -> str | None:
        """The unit in the subjects of servers here; None where none is a node: a server's new
        certificate has the subject of the one before."""
        try:
            text = self.settings.read_text()
        except (OSError, UnicodeDecodeError):
            return NODES_UNIT
        return NODES_UNIT if f"OU={NODES_UNIT}" in text else None

    def _write(self, name: str, data: bytes) -> None:
        _write_private(self.path / name, data)


def _issued(
    authority: Authority, hosts: Sequence[str], now: datetime.datetime, unit: str | None
) -> Issued:
    try:
        return authority.issue_server([*hosts, *LOCAL], now, unit=unit)
    except ValueError as wrong:
        raise usage(str(wrong)) from None


def _librdkafka_properties(bootstrap: str, own: Path, trusted: Path) -> str:
    return (
        f"bootstrap.servers={bootstrap}\n"
        "security.protocol=SSL\n"
        f"ssl.ca.location={trusted}\n"
        f"ssl.certificate.location={own}\n"
        f"ssl.key.location={own}\n"
    )


def _java_properties(bootstrap: str, issued: Issued, trusted: bytes) -> str:
    """Everything in one file, which can be copied to another host."""
    return (
        f"bootstrap.servers={bootstrap}\n"
        "security.protocol=SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.certificates={_folded(trusted)}\n"
        "ssl.keystore.type=PEM\n"
        f"ssl.keystore.certificate.chain={_folded(issued.certificate)}\n"
        f"ssl.keystore.key={_folded(issued.key)}\n"
    )


def _folded(pem: bytes) -> str:
    return pem.decode().strip().replace("\n", "\\n")


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as problem:
        raise Failure(f"{folder} cannot be made: {problem.strerror}") from None


def _write_private(path: Path, data: bytes) -> None:
    """The whole file or none, readable by its owner alone; a link there is replaced and not
    followed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            fresh.rename(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise Failure(f"{path} cannot be written: {problem.strerror}") from None
