"""Nodes that reach one another by mutual TLS alone, each by a certificate of its own, whatever
happens to them. Clients come in plaintext, or by OUTSIDE, which wants their certificate, too."""

from appliance.observer.door import Observer
from benchmarks.certificates import Authority, put

BROKERS, OUTSIDE = 9094, 9095
"""Ports of each host, beside those that its place names."""
BETWEEN = {"BROKERS", "CONTROLLER"}


class Secrets:
    """A folder with the certificates of an authority."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.authority = folder, Authority("a CA")
        put(folder / "ca.pem", self.authority.pem)
        self.authority.issue("CN=loader,O=Tests", hosts=()).write(folder, "loader")

    def path(self, name):
        return str(self.folder / name)

    def of_client(self):
        """What librdkafka takes."""
        return {
            "security.protocol": "ssl", "ssl.ca.location": self.path("ca.pem"),
            "ssl.certificate.location": self.path("loader.pem"),
            "ssl.key.location": self.path("loader.pem"),
        }  # fmt: skip

    def secure(self, nodes):
        """Properties of them all, before they start."""
        known = ";".join(f"User:CN=node-{number},O=Tests" for number in nodes.all)
        for number, node in nodes.all.items():
            name = f"node-{number}"
            self.authority.issue(f"CN={name},O=Tests", hosts=(node.host,)).write(self.folder, name)
            more = f"BROKERS://{node.host}:{BROKERS},OUTSIDE://{node.host}:{OUTSIDE}"
            node.properties |= {
                "listeners": f"{node.properties['listeners']},{more}",
                "advertised.listeners": f"{node.properties['advertised.listeners']},{more}",
                "listener.security.protocol.map":
                    "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,BROKERS:SSL,OUTSIDE:SSL",
                "inter.broker.listener.name": "BROKERS",
                "ssl.client.auth": "required",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self.path(f"{name}.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.path("ca.pem"),
                "penstock.node.principals": known,
            }  # fmt: skip


def outside(nodes):
    """Where clients with a certificate begin."""
    return ",".join(f"{nodes[number].host}:{OUTSIDE}" for number in nodes.members)


def check_doors(nodes):
    """Nodes are connected by the listeners between nodes and by no other one, and whoever is there
    is the node of that host."""
    hosts = {node.host: number for number, node in nodes.all.items()}
    seen = {
        (number, hosts[one.address], one.listener, one.principal)
        for number in nodes.members
        for one in Observer(str(nodes[number].data)).tables.clients.connected()
        if one.address in hosts
    }
    assert {listener for _, _, listener, _ in seen} == BETWEEN, seen
    for _, peer, _, principal in seen:
        assert principal == f"CN=node-{peer},O=Tests", seen
