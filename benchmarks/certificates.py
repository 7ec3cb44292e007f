"""A certificate authority of one's own, for a test or a run: keys and certificates in a folder.

`Authority(name).issue(...)` makes a certificate; `write` and `pkcs12` put it into files as clients
and brokers want them. Keys are on P-256 unless RSA is asked for: made in no time.
Called by benchmarks/tls.py and tests/tls. Needs `cryptography`.
"""

import ipaddress
import itertools
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names and addresses of a server on this host."""
A_DAY = timedelta(days=1)
_PEM = serialization.Encoding.PEM
_serials = itertools.count(int.from_bytes(os.urandom(8)) | 1 << 62)


@dataclass(frozen=True)
class Certificate:
    """A key, its certificate, and whose certificates stand above it, the nearest first."""

    key: Key
    own: x509.Certificate
    above: tuple[x509.Certificate, ...] = ()

    @property
    def serial(self) -> int:
        return self.own.serial_number

    @property
    def chain(self) -> str:
        """PEM: its own certificate, then those above it but for the root."""
        return "".join(one.public_bytes(_PEM).decode() for one in (self.own, *self.above[:-1]))

    def key_pem(self, password: str = "") -> str:
        """PKCS#8, encrypted where there is a password: Kafka reads no other form."""
        how: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            how = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, how).decode()

    def pem(self, password: str = "") -> str:
        """What ssl.keystore.type=PEM wants in one file: key and chain."""
        return self.key_pem(password) + self.chain

    def pkcs12(self, password: str, alias: str = "key") -> bytes:
        how = serialization.BestAvailableEncryption(password.encode())
        key = self.key
        return pkcs12.serialize_key_and_certificates(
            alias.encode(), key, self.own, list(self.above), how
        )

    def write(self, folder: Path, name: str) -> Path:
        """NAME.crt, NAME.key and NAME.pem (both) in the folder. Returns NAME.pem."""
        put(folder / f"{name}.crt", self.chain)
        put(folder / f"{name}.key", self.key_pem())
        return put(folder / f"{name}.pem", self.pem())


class Authority:
    """A root, or one below another."""

    def __init__(self, name: str, above: "Authority | None" = None) -> None:
        self.name = f"CN={name},O=Tests"
        key = _key()
        signer = above.certificate if above else None
        own = _signed(
            x509.Name.from_rfc4514_string(self.name), key, signer, (-A_DAY, 3650 * A_DAY),
            [(x509.BasicConstraints(True, None), True), (_may(signing=True), True)],
        )  # fmt: skip
        self.certificate = Certificate(key, own, (signer.own, *signer.above) if signer else ())

    @property
    def pem(self) -> str:
        """Its own certificate: what others trust."""
        return self.certificate.own.public_bytes(_PEM).decode()

    def issue(
        self,
        name: str,
        *,
        hosts: Sequence[str] = LOOPBACK,
        valid: tuple[timedelta, timedelta] = (-A_DAY, 365 * A_DAY),
        rsa_bits: int = 0,
    ) -> Certificate:
        """A certificate for both sides. name: distinguished, as RFC 4514 writes it, or what shall
        be its CN. valid: from and until, beside now."""
        subject = x509.Name.from_rfc4514_string(name if "=" in name else f"CN={name}")
        key = _key(rsa_bits)
        own = _signed(subject, key, self.certificate, valid, _of_a_leaf(hosts))
        return Certificate(key, own, (self.certificate.own, *self.certificate.above))

    def sign(self, request: bytes, hosts: Sequence[str] = LOOPBACK) -> str:
        """PEM of the certificate that a request (PEM, as keytool makes it) asks for."""
        asked = x509.load_pem_x509_csr(request)
        signed = _signed(
            asked.subject, asked.public_key(), self.certificate, (-A_DAY, 365 * A_DAY),
            _of_a_leaf(hosts),
        )  # fmt: skip
        return signed.public_bytes(_PEM).decode()


def put(path: Path, content: str | bytes) -> Path:
    """Replace a file at once, as those do who renew certificates: nobody reads a half of it."""
    data = content.encode() if isinstance(content, str) else content
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as new:
        new.write(data)
    os.replace(new.name, path)
    return path


def _key(rsa_bits: int = 0) -> Key:
    if rsa_bits:
        return rsa.generate_private_key(65537, rsa_bits)
    return ec.generate_private_key(ec.SECP256R1())


def _of_a_leaf(hosts: Sequence[str]) -> list[tuple[x509.ExtensionType, bool]]:
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    found: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(False, None), True),
        (_may(signing=False), True),
        (x509.ExtendedKeyUsage(both), False),
    ]
    if hosts:
        found.append((x509.SubjectAlternativeName([_host(one) for one in hosts]), False))
    return found


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _may(*, signing: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signing, key_cert_sign=signing, crl_sign=signing,
        key_encipherment=not signing, content_commitment=False, data_encipherment=False,
        key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _signed(
    subject: x509.Name,
    key: object,
    signer: Certificate | None,
    valid: tuple[timedelta, timedelta],
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    """By itself when nobody signs it."""
    public = key.public_key() if isinstance(key, Key) else key
    by = signer.key if signer else key
    assert isinstance(by, Key)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.own.subject if signer else subject)
        .public_key(public)  # type: ignore[arg-type]
        .serial_number(next(_serials))
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)  # type: ignore[arg-type]
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(by, hashes.SHA256())
