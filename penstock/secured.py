"""A real appliance where clients log in over TLS and ACLs say what they may do: for tests of
clients that must do so in production.

It is made by the commands that a person would type (`penstock secure init`, `penstock user
add`). No password is an argument of a process.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.local import OURSELVES, Appliance, ApplianceError, environment

if TYPE_CHECKING:
    from penstock.client import Connection

ADMIN: Final = "admin"
_LIMIT_S: Final = 60
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OF_OTHER_NODES: Final = re.compile(
    r"(listeners|advertised\.listeners|listener\.security\.protocol\.map"
    r"|inter\.broker\.listener\.name|penstock\.node\.principals"
    r"|listener\.name\.(nodes|controller)\..*)="
)
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class User:
    """A user with a password. properties: of a client of librdkafka's, by which it logs in. file,
    java_file: the same as a file for such clients, and for Java's; only their owner reads them."""

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)
        self.name = properties["sasl.username"]
        self.file = folder / f"{self.name}.properties"
        self.java_file = folder / f"{self.name}.java.properties"
        _write_private(self.file, self.properties)
        _write_private(self.java_file, _for_java(self.properties))

    def __repr__(self) -> str:
        return f"<penstock.secured.User {self.name}>"


class SecuredAppliance(Appliance):
    """An appliance in `folder` with an authority of its own and one listener, SASL_SSL. `admin` may
    do everything; everybody else is made by `add_user`, and may do what is said there."""

    def __init__(
        self, folder: str | Path, settings: Mapping[str, object] | None = None, *, port: int = 0
    ) -> None:
        """settings: Kafka's property names with their values. port: 0: a free one."""
        self._folder = Path(folder).absolute()
        self._authority = self._folder / "secure"
        super().__init__(self._folder / "data", settings, port=port)
        self._users: dict[str, User] = {}

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for a client's bootstrap servers."""
        return f"localhost:{self.port}"

    @property
    def ca(self) -> Path:
        """The certificate of the authority that clients trust, as PEM."""
        return self._authority / "ca.pem"

    @property
    def admin(self) -> User:
        """The administrator, once it runs."""
        return self._users[ADMIN]

    def _prepare_start(self) -> None:
        """The first start makes authority and certificates, and the administrator's password."""
        if not self._authority.exists():
            words = ("secure", "init", "--host", "localhost")
            _penstock(*words, "--folder", str(self._authority))

    def _on_ready(self) -> None:
        if ADMIN not in self._users:
            made = self._authority / "clients" / ADMIN / "client.properties"
            self._keep_user(made.read_text())

    def add_user(self, name: str, *rights: str) -> User:
        """Makes a user with a password of its own. rights: what it may do, as `penstock user add
        --can` takes it: "write:orders", "read:orders", "read:orders.*". Raises ApplianceError."""
        if not _NAME.fullmatch(name) or name in self._users:
            raise ApplianceError(f"{name!r} is a user already, or no name of one here")
        words = [word for right in rights for word in ("--can", right)]
        login = ("--command-config", str(self.admin.file))
        return self._keep_user(_penstock("user", "add", name, *words, *login))

    def connect(self, user: User | None = None, **settings: Any) -> "Connection":
        """penstock's own client, logged in as that user; None: as the administrator."""
        told = (user or self.admin).properties.items()
        login = {key.replace(".", "_"): value for key, value in told if key != "bootstrap.servers"}
        return super().connect(**login | settings)

    def command(self) -> list[str]:
        """The command that `start` runs, without the descriptor for readiness."""
        made = (self._authority / "server.properties").read_text().splitlines()
        kept = [line for line in made if not _OF_OTHER_NODES.match(line)]
        kept += [f"listeners=SASL_SSL://localhost:{self.port}"]
        file = self._folder / "server.properties"
        _write_private(file, dict(line.split("=", 1) for line in kept if not line.startswith("#")))
        words = [*OURSELVES, "up", "--data", str(self.data_dir), "--config", str(file)]
        return [*words, *self._options()]

    def _keep_user(self, text: str) -> User:
        """A user, of the text of its client's properties."""
        pairs = (line.split("=", 1) for line in text.splitlines() if line[:1] not in ("", "#"))
        at = {"bootstrap.servers": self.bootstrap, "ssl.ca.location": str(self.ca)}
        user = User(self._folder, dict(pairs) | at)
        self._users[user.name] = user
        return user


def _for_java(told: Mapping[str, str]) -> dict[str, str]:
    """The same for Java. In passwords that are made here nothing has a meaning there."""
    mechanism, password = told["sasl.mechanism"], told["sasl.password"]
    login = f'username="{told["sasl.username"]}" password="{password}"'
    return {
        "bootstrap.servers": told["bootstrap.servers"],
        "security.protocol": told["security.protocol"],
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_MODULES[mechanism]} required {login};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": told["ssl.ca.location"],
    }


def _write_private(file: Path, properties: Mapping[str, str]) -> None:
    """Replaces a file that its owner alone can read."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.writelines(f"{key}={value}\n" for key, value in properties.items())


def _penstock(*words: str) -> str:
    """Runs a command and returns its output. Raises ApplianceError."""
    done = subprocess.run(
        [*OURSELVES, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise ApplianceError(f"penstock {' '.join(words[:2])}: {done.stderr.strip()}")
    return done.stdout
