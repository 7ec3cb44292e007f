"""Settings of an appliance whose clients log in over TLS, with the rights that ACLs give them."""

from typing import Final

from appliance.authentication.jaas import PLAIN_MODULE

ADMIN: Final = "admin"
_SETTINGS: Final = """\
# Every client logs in over TLS. Users are added by penstock user add, and may do what ACLs allow;
# the administrator's password is in this file, which only its owner may read.
listeners=SASL_SSL://:{port}
advertised.listeners=SASL_SSL://{bootstrap}
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={module} required user_{admin}="{password}";
ssl.keystore.location={folder}/server.pem
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{admin}
"""


def server_with_logins(folder: str, bootstrap: str, port: int, password: str) -> str:
    """The text of a server.properties. folder: has server.pem. bootstrap: HOST:PORT that clients
    are told. password: of letters, digits, - and _."""
    return _SETTINGS.format(
        folder=folder,
        bootstrap=bootstrap,
        port=port,
        password=password,
        admin=ADMIN,
        module=PLAIN_MODULE,
    )
