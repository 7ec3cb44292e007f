"""A client that speaks TLS over a socket that gives and takes only so many bytes at once, and the
certificates for both sides."""

import datetime
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(path, name):
    """A key and what it signs of itself, in one PEM file; where it is."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begins = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    text = key.private_bytes(pem, private, serialization.NoEncryption()) + made.public_bytes(pem)
    file = path / f"{name}.pem"
    file.write_bytes(text)
    return file


def server_context(file, trusts=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if trusts is not None:
        context.load_verify_locations(trusts)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(trusts, shows=None, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(trusts)
    if shows is not None:
        context.load_cert_chain(shows)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


class SealedSocket:
    """As a socket that does not block. at_once: bytes of one recv or send below TLS."""

    def __init__(self, sock, context, at_once):
        self.sock = sock
        self.at_once = at_once
        self.arrived, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.arrived, self.leaving)
        self.unsent = b""
        self.waiting = b""  # to be sent when the handshake is over
        self.agreed = False
        self.work()

    def sendall(self, data):
        self.waiting += data
        self.work()

    def recv(self, most):
        self.work()
        try:
            return self.tls.read(most) if self.agreed else self._nothing()
        except ssl.SSLWantReadError:
            return self._nothing()

    def _nothing(self):
        raise BlockingIOError

    def close(self):
        self.sock.close()

    def work(self):
        """One piece in, whatever it brings about, one piece out."""
        try:
            self.arrived.write(self.sock.recv(self.at_once))
        except BlockingIOError:
            pass
        except ConnectionResetError:
            self.arrived.write_eof()
        if not self.agreed:
            try:
                self.tls.do_handshake()
                self.agreed = True
            except ssl.SSLWantReadError:
                pass
        if self.agreed and self.waiting:
            self.waiting = self.waiting[self.tls.write(self.waiting) :]
        self.unsent += self.leaving.read()
        try:
            while self.unsent:
                sent = self.sock.send(self.unsent[: self.at_once])
                self.unsent = self.unsent[sent:]
                if self.at_once < 1000:
                    break
        except BlockingIOError:
            pass
