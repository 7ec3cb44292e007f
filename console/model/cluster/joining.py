"""How an appliance that runs becomes a cluster: what the next node is started with, and the
settings that this one keeps in its folder.

Stock requests (KIP-853): DescribeQuorum v2 tells where controllers are reached, and that voters can
come (they have directory ids then); UpdateFeatures makes it so in folders that are older.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.config.invitations import TOKEN
from appliance.config.open_listeners import ALLOWED
from console.model.asking.failure import Failure, usage
from console.model.asking.link import Link
from console.model.cluster import features
from console.model.cluster.invitations import VALID_S, invited, new_token
from console.model.cluster.nodes import Nodes, controllers, quorum_told, read_nodes
from console.model.cluster.opening import let_others_in
from console.model.cluster.voters import dynamic

_LISTEN: Final = ":9092"
_SEEDS: Final = "controller.quorum.bootstrap.servers"


@dataclass(slots=True, frozen=True)
class Invitation:
    """The way to start the next node. line: the command. here: nodes of other hosts cannot reach
    this cluster. upgraded: kraft.version was 0 and is 1 now. opened: all listeners of the first
    node, when some of them are new.
    """

    line: str
    here: bool
    upgraded: bool
    opened: str


def invite(link: Link, listen: str | None = None, valid_s: float = VALID_S) -> Invitation:
    """Open what the next node needs, and say how it is started. listen: HOST:PORT at which an
    appliance that is alone is to be reached by other hosts. valid_s: so long its token lets it in.
    Raises Failure, with what is to be done first."""
    from appliance.config.listeners import LOOPBACK, in_url, parse_endpoint

    opened = let_others_in(link, read_nodes(link), listen)
    places = controller_places(link)
    upgraded = not dynamic(quorum_told(link))
    if upgraded:
        features.raise_to(link, features.KRAFT, 1)
    found = read_nodes(link)
    number = free_number(found)
    line = _line(found, number, new_token(link, number, valid_s))
    told = [parse_endpoint("address", one) for one in (*_living(found, number), *places.values())]
    here = any(one.host in LOOPBACK for one in told)
    if here:
        port = max(one.port for one in told) + 1
        line += f" --data penstock-data-{number} --listen {in_url(told[0].host)}:{port}"
    else:
        line += f" --listen :{told[0].port} -o {ALLOWED}"
    return Invitation(line, here, upgraded, opened)


def line_in_place(link: Link, found: Nodes, number: int, *, invited: bool) -> str:
    """How an empty folder is started in the place of a node that is lost, at its address. invited:
    it needs a token. Raises Failure."""
    from appliance.config.listeners import LOOPBACK, in_url, parse_endpoint

    line = _line(found, number, new_token(link, number, VALID_S) if invited else None)
    at = parse_endpoint("address", found.brokers[number].address)
    if at.host in LOOPBACK:
        return f"{line} --data penstock-data-{number} --listen {in_url(at.host)}:{at.port}"
    return f"{line} --listen :{at.port} -o {ALLOWED}"


def _line(found: Nodes, number: int, token: str | None) -> str:
    line = f"penstock up --join {','.join(_living(found, number))} --node-id {number}"
    line += f" --cluster-id {found.cluster_id}"
    return line if token is None else f"{line} --token {token}"


def _living(found: Nodes, number: int) -> list[str]:
    """The brokers to ask: addresses of those that run, but for this one."""
    return [one.address for key, one in found.brokers.items() if one.lives and key != number]


def prepare(
    link: Link,
    kept: str,
    number: int | None,
    cluster_id: str,
    listen: tuple[str, ...],
    settings: Mapping[str, str],
    token: str | None = None,
) -> str:
    """Ask the cluster, and write the settings of a new node of it; the id of the cluster.

    A folder that has joined before is left as it is, and nobody is asked. kept: the path of these
    settings, in the node's data folder. number: None for that of the token, or the next that is
    free; that of a node that is lost is taken over. cluster_id: that it must have, "" for any.
    token: of its invitation. Raises Failure."""
    from appliance.base.disk import write_file
    from appliance.base.os_disk import OsDisk
    from appliance.metadata.identity import META_PROPERTIES

    folder = os.path.dirname(kept)
    if os.path.exists(os.path.join(folder, META_PROPERTIES)):
        if os.path.exists(kept):
            return cluster_id
        raise usage(
            f"{folder} is the folder of another node: --join needs an empty one",
            "choose another with --data",
        )
    found, places = _known(link, cluster_id)
    number = invited(link, token, number)
    if number is None:
        number = free_number(found)
    elif number in found.all:
        _check_lost(link, found, number)
    seeds = [place for one, place in places.items() if one != number]
    taken = _settings(seeds, number, listen)
    if token is not None:
        taken[TOKEN] = token
    lines = [f"{key}={_escaped(value)}\n" for key, value in (taken | dict(settings)).items()]
    os.makedirs(folder, exist_ok=True)
    write_file(OsDisk(), kept, "".join(lines).encode())
    return found.cluster_id


def _known(link: Link, cluster_id: str) -> tuple[Nodes, dict[int, str]]:
    """The cluster that is joined, and where its controllers are reached."""
    places = controller_places(link)
    if not dynamic(quorum_told(link)):
        raise Failure(
            "the voters of this cluster are fixed by its settings",
            f"penstock cluster invite -b {link.bootstrap} lets nodes join (kraft.version 1)",
        )
    found = read_nodes(link)
    if cluster_id not in ("", found.cluster_id):
        raise usage(
            f"{link.bootstrap} belongs to the cluster {found.cluster_id}, not to {cluster_id}"
        )
    return found, places


def _check_lost(link: Link, found: Nodes, number: int) -> None:
    """Somebody has had this number: only in the place of a node that is lost, and whose records
    others have. Raises Failure."""
    from console.model.cluster.replacing import replaceable

    if found.all[number].lives:
        raise usage(
            f"node {number} exists already and runs",
            f"leave out --node-id for the next free id ({free_number(found)})",
        )
    replaceable(link, number)


def _settings(seeds: list[str], number: int, listen: tuple[str, ...]) -> dict[str, str]:
    from appliance.base.errors import ConfigError
    from appliance.config.listeners import in_url, parse_endpoint

    if len(listen) > 1:
        raise usage(
            "with --join there is one --listen",
            "for more: -o listeners=PLAINTEXT://HOST:PORT,...,CONTROLLER://HOST:PORT",
        )
    text = listen[0] if listen else _LISTEN
    try:
        at = parse_endpoint("--listen", text)
    except ConfigError as problem:
        raise usage(str(problem)) from None
    if not 0 < at.port < 0xFFFF:
        raise usage(
            f"--listen {text}: name a port, because other nodes must know it, and the "
            "CONTROLLER listener takes the next one",
            "for example --listen :9092",
        )
    host = in_url(at.host)
    return {
        "process.roles": "broker,controller",
        "node.id": str(number),
        "listeners": f"PLAINTEXT://{host}:{at.port},CONTROLLER://{host}:{at.port + 1}",
        "controller.listener.names": "CONTROLLER",
        _SEEDS: ",".join(seeds),
        "controller.quorum.auto.join.enable": "true",
    }


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


def controller_places(link: Link) -> dict[int, str]:
    """Where each voter is reached. Raises Failure when one cannot be, with the remedy."""
    told = quorum_told(link)
    if told is None:
        raise Failure(
            "the metadata quorum has no leader", "penstock cluster status shows who is away"
        )
    places = controllers(link)
    for one in told.current_voters:
        if int(one.replica_id) not in places:
            raise Failure(
                f"node {one.replica_id} has no listener for controllers, by which other nodes reach"
                " it",
                "one of its settings listeners says where, for example CONTROLLER://:9093",
                name="NO_CONTROLLER_LISTENER",
            )
    return {int(one.replica_id): places[int(one.replica_id)] for one in told.current_voters}


def free_number(found: Nodes) -> int:
    """A number that nobody has, nor had as long as somebody with a higher one is there."""
    return max(found.all, default=0) + 1
