"""Apache Kafka's own tools over TLS: properties of a client with PEM files or with stores."""

import subprocess

from benchmarks.certificates import put
from tests import java_tools
from tests.tls.secured import KEY_PASSWORD, PASSWORD

TOOLS = "org.apache.kafka.tools."


def pem(pki, *, ca="ca.pem", certificate=None, locked=False):
    """Properties with PEM files. locked: the client's key is encrypted."""
    found = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": pki.path(ca),
    }
    if certificate is not None:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": pki.path(f"{certificate}.pem"),
        }
    if locked:
        name = f"{certificate}-locked.pem"
        put(pki.folder / name, _locked(pki, certificate) + pki.made[certificate].chain)
        found |= {"ssl.keystore.location": pki.path(name), "ssl.key.password": KEY_PASSWORD}
    return found


def _locked(pki, certificate):
    """Its key, encrypted as Kafka can read it: Java knows PBES2, which openssl takes by default,
    under names that Kafka does not look for."""
    return subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-passout", f"pass:{KEY_PASSWORD}",
         "-in", pki.path(f"{certificate}.key")],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def stores(pki, *, truststore="trust.p12", keystore=None):
    """Properties with PKCS12 stores."""
    pki.stores()
    found = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": pki.path(truststore),
        "ssl.truststore.password": PASSWORD,
    }
    if keystore is not None:
        found |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": pki.path(keystore),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        }
    return found


class Tools:
    """They run against `bootstrap` with these properties."""

    def __init__(self, folder, bootstrap, properties):
        self.bootstrap = bootstrap
        self.file = folder / f"client-{len(list(folder.iterdir()))}.properties"
        self.file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    def run(self, name, *arguments, stdin=None, code=0):
        """What it says; it must end with `code`."""
        name = name if name.startswith("kafka.") else TOOLS + name
        done = java_tools.tool(
            name, "--bootstrap-server", self.bootstrap, "--command-config", str(self.file),
            *arguments, stdin=stdin,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    def configs(self, *arguments, **options):
        return self.run("kafka.admin.ConfigCommand", *arguments, **options)

    def alter_broker(self, settings, *, node="1", **options):
        """kafka-configs --alter of one broker's settings."""
        added = ",".join(f"{key}={value}" for key, value in settings.items())
        return self.configs("--alter", *of_node(node), "--add-config", added, **options)

    def forget_broker(self, keys, *, node="1"):
        """kafka-configs --alter --delete-config of one broker's settings."""
        return self.configs("--alter", *of_node(node), "--delete-config", ",".join(keys))

    def broker_settings(self, node="1"):
        """What kafka-configs --describe says that was set for it."""
        return self.configs("--describe", *of_node(node))


def of_node(number):
    return "--entity-type", "brokers", "--entity-name", number
