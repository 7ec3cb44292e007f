"""Settings of an appliance with an authority of its own: clients show certificates, or log in over
TLS and have the rights that ACLs give them; nodes show certificates to each other in both.

A node is known by the subject of its certificate, `CN=HOST,OU=nodes`: `RULES` make one principal of
all of them, which no client's certificate of the authority has.
"""

from typing import Final, NamedTuple

from appliance.authentication.jaas import PLAIN_MODULE
from appliance.config.acl_checks import NODES

ADMIN: Final = "admin"
NODES_UNIT: Final = "nodes"
"""The organizational unit (OU) in the subjects of nodes' certificates."""
RULES: Final = f"RULE:^CN=[A-Za-z0-9._:*-]+,(OU={NODES_UNIT})$/$1/,RULE:^CN=([^,=]+)$/$1/,DEFAULT"
"""ssl.principal.mapping.rules by which a node is User:OU=nodes, and the client NAME User:NAME. No
comma, backslash or = is in a name that they take, so that no client's name reads as a node's."""
PORTS: Final = 3
"""How many ports in a row an appliance takes for other hosts: clients, nodes, controllers."""

_CERTIFICATES: Final = """\
# Commands on this host come by PLAINTEXT on loopback, everybody else by TLS with a
# certificate that the authority beside this file has signed.
listeners=PLAINTEXT://localhost:9092,SSL://:{port},NODES://:{nodes},CONTROLLER://:{controllers}
advertised.listeners=PLAINTEXT://localhost:9092,SSL://{host}:{port},{told}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,NODES:SSL,CONTROLLER:SSL
ssl.client.auth=required
"""
_LOGINS: Final = """\
# Every client logs in over TLS. Users are added by penstock user add, and may do what ACLs allow;
# the administrator's password is in this file, which only its owner may read.
listeners=SASL_SSL://:{port},NODES://:{nodes},CONTROLLER://:{controllers}
advertised.listeners=SASL_SSL://{host}:{port},{told}
listener.security.protocol.map=SASL_SSL:SASL_SSL,NODES:SSL,CONTROLLER:SSL
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={module} required user_{admin}="{password}";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{admin}
"""
_BETWEEN_NODES: Final = """\
# Other nodes come by NODES and CONTROLLER, with a certificate of a node.
inter.broker.listener.name=NODES
listener.name.nodes.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
{key}=User:OU={unit}
ssl.keystore.location={folder}/server.pem
ssl.truststore.location={folder}/ca.pem
ssl.principal.mapping.rules={rules}
default.replication.factor=1
"""


class Place(NamedTuple):
    """folder: has server.pem and ca.pem. host: as URLs have it, under which clients and nodes reach
    this one. port: of clients; nodes and controllers have the next two."""

    folder: str
    host: str
    port: int


def server_settings(place: Place, password: str | None) -> str:
    """Returns the text of a server.properties. password: the administrator's, of letters, digits, -
    and _; None: clients show certificates instead of logging in."""
    nodes, controllers = place.port + 1, place.port + 2
    return (_CERTIFICATES if password is None else _LOGINS).format(
        host=place.host,
        port=place.port,
        nodes=nodes,
        controllers=controllers,
        told=f"NODES://{place.host}:{nodes},CONTROLLER://{place.host}:{controllers}",
        password=password,
        admin=ADMIN,
        module=PLAIN_MODULE,
    ) + _BETWEEN_NODES.format(key=NODES, unit=NODES_UNIT, folder=place.folder, rules=RULES)
