"""Certificates for tests: an authority, what it signs, and files of every form."""

import datetime
import ipaddress
import itertools

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

BEGINS = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
_numbers = itertools.count(1)


def name(common, organization=""):
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


class Pair:
    """A key and its certificate; above: who signed it, nearest first."""

    def __init__(self, key, certificate, above=()):
        self.key = key
        self.certificate = certificate
        self.above = list(above)

    @property
    def chain(self):
        return [self.certificate, *self.above]

    @property
    def der(self):
        return self.certificate.public_bytes(Encoding.DER)

    def key_pem(self, password=None, form=PrivateFormat.PKCS8):
        hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, form, hidden)

    def chain_pem(self):
        return b"".join(one.public_bytes(Encoding.PEM) for one in self.chain)

    def pem(self, password=None):
        return self.key_pem(password) + self.chain_pem()

    def pkcs12(self, password):
        hidden = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"own", self.key, self.certificate, self.above, hidden
        )

    def sign(self, common, *, hosts=("localhost",), ca=False, begins=BEGINS, days=7300, key=None):
        """A certificate signed by this one, with a key of its own."""
        return signed(self, common, hosts=hosts, ca=ca, begins=begins, days=days, key=key)


def signed(by, common, *, hosts=(), ca=False, begins=BEGINS, days=7300, key=None):
    """by: None signs itself."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = common if isinstance(common, x509.Name) else name(common)
    made = x509.CertificateBuilder(
        issuer_name=subject if by is None else by.certificate.subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=next(_numbers),
        not_valid_before=begins,
        not_valid_after=begins + days * DAY,
    ).add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    if hosts:
        made = made.add_extension(
            x509.SubjectAlternativeName([alternative(one) for one in hosts]), critical=False
        )
    certificate = made.sign(key if by is None else by.key, hashes.SHA256())
    above = [] if by is None or by.certificate.issuer == by.certificate.subject else by.chain
    return Pair(key, certificate, above)


def alternative(host):
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def authority(common="Test authority"):
    return signed(None, common, ca=True)
