"""Certificates of a small authority, and a listener with TLS in front of one without: what speaks
Kafka's protocol over TLS is tried with it, whoever is behind."""

import datetime
import ipaddress
import selectors
import socket
import ssl
import threading
from contextlib import contextmanager, suppress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from benchmarks.kafka import free_port
from penstock.local import Appliance

HOUR = datetime.timedelta(hours=1)
DAY = datetime.timedelta(days=1)


def _named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _san(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Authority:
    """Signs certificates into PEM files of a folder. `ca`: its own one."""

    def __init__(self, folder, name="authority"):
        self.folder = folder
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._count = 0
        made = self._sign(self._name, self._key.public_key(), 30 * DAY, None)
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def _sign(self, subject, key, lasts, names, begins=None):
        begins = begins or datetime.datetime.now(datetime.UTC) - HOUR
        self._count += 1
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(self._count)
            .not_valid_before(begins)
            .not_valid_after(begins + HOUR + lasts)
            .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_san(one) for one in names]), critical=False
            )
        return builder.sign(self._key, hashes.SHA256())

    def certificate(self, name, *names, lasts=10 * DAY, begins=None, password=None):
        """For these host names and addresses: (file of the certificate, file of its key, and of
        both as PKCS #12)."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._sign(_named(name), key.public_key(), lasts, names or ("nobody",), begins)
        cert, secret = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        how = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        secret.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
        )
        store = self.folder / f"{name}.p12"
        store.write_bytes(
            pkcs12.serialize_key_and_certificates(name.encode(), key, made, None, how)
        )
        return cert, secret, store


def keystore(authority, name, *hosts, **more):
    """The settings by which an appliance shows such a certificate."""
    cert, key, _ = authority.certificate(name, *hosts, **more)
    both = cert.with_suffix(".both")
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}


def server_context(cert, key, trusts=None, highest=ssl.TLSVersion.TLSv1_3):
    """trusts: the authority of clients, who must have a certificate then."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.maximum_version = highest
    if trusts is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trusts)
    return context


class Front:
    """Takes TLS at `port` and passes on what is in it to (host, port) `behind`. context: may be
    another one from the next connection on. refused: what came of handshakes that failed."""

    def __init__(self, context, behind):
        self.context = context
        self.behind = behind
        self.refused = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return "127.0.0.1", self.port

    def _accept(self):
        with suppress(OSError):
            while True:
                peer, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        try:
            tls = self.context.wrap_socket(peer, server_side=True)
        except (OSError, ValueError) as problem:
            self.refused.append(problem)
            peer.close()
            return
        with suppress(OSError), tls, socket.create_connection(self.behind) as inner:
            self._open += [tls, inner]
            _pump(tls, inner)

    def close(self):
        self._door.close()
        for one in self._open:
            one.close()


def _pump(tls, inner):
    chosen = selectors.DefaultSelector()
    chosen.register(tls, selectors.EVENT_READ, inner)
    chosen.register(inner, selectors.EVENT_READ, tls)
    while True:
        for key, _ in chosen.select():
            data = key.fileobj.recv(1 << 16)
            while isinstance(key.fileobj, ssl.SSLSocket) and key.fileobj.pending():
                data += key.fileobj.recv(1 << 16)
            if not data:
                return
            key.data.sendall(data)


@contextmanager
def fronted(context, behind=("127.0.0.1", 1)):
    front = Front(context, behind)
    try:
        yield front
    finally:
        front.close()


@contextmanager
def veiled(folder, context):
    """An appliance with one listener without TLS, and one whose clients are told a front before it:
    (appliance, front)."""
    plain = free_port()
    inner = free_port(other_than=plain)
    with fronted(context, ("127.0.0.1", inner)) as front:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},VEILED://127.0.0.1:{inner}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},VEILED://127.0.0.1:{front.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,VEILED:PLAINTEXT",
        }
        with Appliance(folder / "veiled", settings) as appliance:
            yield appliance, front
