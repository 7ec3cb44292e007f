"""How a cluster whose nodes show certificates gets one more: what the host with the authority's key
hands over, and what the new node makes of it.

The settings of the new node are those of the node that invites, for another host: its advertised
names, its files, its number and where the controllers are. They hold the administrator's login
where clients log in, so that it is the same on every node.
"""

import datetime
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from appliance.config import between_nodes
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import LOOPBACK, Endpoint, in_url, parse_endpoint
from appliance.config.properties import parse_properties
from console.model.asking.failure import Failure, unreadable, usage
from console.model.asking.link import Link
from console.model.cluster.invitations import only_invited
from console.model.cluster.joining import controller_places, free_number
from console.model.cluster.nodes import read_nodes
from console.model.secure import enrolment
from console.model.secure.enrolment import Enrolled, Enrolling, Offer, Token
from console.model.secure.folder import LOCAL, SecureFolder
from console.model.secure.server_settings import NODES_UNIT, PORTS

_ADVERTISED: Final = "advertised.listeners"
_OF_ONE_NODE: Final = frozenset(
    ("node.id", "broker.id", "broker.rack", "controller.quorum.voters", "process.roles",
     "controller.quorum.bootstrap.servers", "controller.quorum.auto.join.enable")
)  # fmt: skip
_FOLDER: Final = "{folder}"
"""Stands for the folder of certificates in the settings that are sent."""
_LOOK_AGAIN_S: Final = 0.25


class Inviting:
    """One invitation, by the host that keeps the authority's key. Use it as a context manager."""

    def __init__(self, link: Link, folder: SecureFolder, host: str, port: int | None) -> None:
        """host: of the new node, as its certificate names it. port: where it gets that; None: the
        one behind those of the folder's settings. Raises Failure."""
        self._link, self._folder, self._host = link, folder, host
        self._authority = folder.authority()
        self._settings = _read(folder.settings)
        at = _reached(self._settings)
        self.number: int | None = None
        if only_invited(link):
            raise Failure(
                "penstock.join=invited: a certificate is not enough to join",
                "penstock config set --cluster penstock.join=open: with mutual TLS a node needs a"
                " certificate, which takes the place of the token",
            )
        controller_places(link)
        self._door = Enrolling(
            at.port + PORTS - 1 if port is None else port,
            str(folder.path / "server.pem"),
            self._authority.certificate,
        )
        self.token = enrolment.new_token(at.host, self._door.port, self._authority.fingerprint)

    def __enter__(self) -> "Inviting":
        return self

    def __exit__(self, *_: object) -> None:
        self._door.__exit__()

    def serve(self, valid_s: float, refused: Callable[[str, str], None]) -> bool:
        """Waits for the new node and hands over; False if it did not come in time. Raises
        Failure."""
        until = time.monotonic() + valid_s
        return self._door.serve(self.token, self._offer, until, refused) is not None

    def wait(self, limit_s: float) -> bool:
        """Waits until the new node runs; False if it does not in time. Raises Failure."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            found = read_nodes(self._link).all.get(-1 if self.number is None else self.number)
            if found is not None and found.lives:
                return True
            time.sleep(_LOOK_AGAIN_S)
        return False

    def _offer(self, request: bytes) -> Offer:
        found = read_nodes(self._link)
        self.number = free_number(found)
        now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        names = [self._host, *LOCAL]
        certificate = self._authority.sign_request(request, names, now, NODES_UNIT)
        places = controller_places(self._link)
        settings = settings_of_another(self._settings, str(self._folder.path), self._host)
        settings["node.id"] = str(self.number)
        settings["controller.quorum.bootstrap.servers"] = ",".join(places.values())
        settings["controller.quorum.auto.join.enable"] = "true"
        return {
            "certificate": certificate.decode(),
            "cluster_id": found.cluster_id,
            "settings": settings,
        }


def settings_of_another(settings: Mapping[str, str], folder: str, host: str) -> dict[str, str]:
    """The settings of a node at another host that are like these. folder: of certificates."""
    taken = {key: value for key, value in settings.items() if key not in _OF_ONE_NODE}
    own = {one.name for one in _endpoints(settings, "listeners") if one.host in LOOPBACK}
    taken[_ADVERTISED] = ",".join(
        f"{one.name}://{in_url(one.host if one.name in own else host)}:{one.port}"
        for one in _endpoints(settings, _ADVERTISED)
    )
    prefix = f"{folder}/"
    return {
        key: f"{_FOLDER}/{value.removeprefix(prefix)}" if value.startswith(prefix) else value
        for key, value in taken.items()
    }


def join(token: Token, folder: SecureFolder, more: Mapping[str, str]) -> str:
    """Gets a certificate and writes key, certificates and settings into the folder, which has none
    yet; returns the cluster's id. more: settings that win. Raises Failure."""
    for name in ("ca.pem", "server.pem", "server.properties"):
        if (folder.path / name).exists():
            raise usage(
                f"{folder.path} has {name} already: it may be another node's",
                f"penstock up --config {folder.settings} starts that; --folder names another"
                " folder",
            )
    found = enrolment.enrol(token)
    folder.keep_node(found.key, found.offer["certificate"].encode(), found.authority)
    folder.write_settings(_settings(found, str(folder.path)) | dict(more))
    return str(found.offer["cluster_id"])


def _settings(found: Enrolled, folder: str) -> dict[str, str]:
    told = {str(key): str(value) for key, value in found.offer["settings"].items()}
    return {
        key: folder + value.removeprefix(_FOLDER) if value.startswith(f"{_FOLDER}/") else value
        for key, value in told.items()
    }


def _read(path: Path) -> dict[str, str]:
    try:
        return {key: value for key, value, _ in parse_properties(path.read_text())}
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(str(path), problem) from None


def _reached(settings: Mapping[str, str]) -> Endpoint:
    """Where other nodes reach this one. Raises Failure."""
    route = between_nodes.to_brokers(BrokerConfig.of(dict(settings)))
    found = [one for one in _endpoints(settings, _ADVERTISED) if one.name == route.listener]
    if not found:
        raise usage(
            f"{_ADVERTISED} does not say where nodes reach this one ({route.listener})",
            "penstock secure init writes settings that do",
        )
    return found[0]


def _endpoints(settings: Mapping[str, str], key: str) -> list[Endpoint]:
    return [parse_endpoint(key, text) for text in settings.get(key, "").split(",") if text]
