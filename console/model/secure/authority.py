"""A certificate authority for an appliance or a cluster: its own certificate, and those it signs
for servers and nodes (RFC 5280).

Keys are ECDSA over P-256, which every client speaks. A key leaves here as PKCS#8 in PEM, without a
password: files that hold one belong to their owner alone.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3650
SERVER_DAYS: Final = 730
CLIENT_DAYS: Final = 730
_SKEW: Final = datetime.timedelta(hours=1)
"""Clocks of clients may be this much behind."""
LONGEST_NAME: Final = 64
"""Characters of a common name (ub-common-name of RFC 5280)."""


class Issued(NamedTuple):
    """A certificate and its private key, both as PEM text."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority that signs certificates for hosts."""

    def __init__(self, certificate: bytes, key: bytes) -> None:
        """certificate, key: PEM. Raises ValueError for what cannot be read, a key of another
        certificate, and a certificate that may not sign others."""
        self._certificate = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the authority is no key on an elliptic curve")
        if private.public_key() != self._certificate.public_key():
            raise ValueError("the key does not belong to the authority's certificate")
        try:
            constraints = self._certificate.extensions.get_extension_for_class(
                x509.BasicConstraints
            )
        except x509.ExtensionNotFound:
            raise ValueError("the certificate is not one of an authority") from None
        if not constraints.value.ca:
            raise ValueError("the certificate is not one of an authority")
        self._key = private
        self.certificate = certificate

    @property
    def ends(self) -> datetime.datetime:
        """The end of the authority's own certificate."""
        return self._certificate.not_valid_after_utc

    def issue_server(
        self,
        hosts: Sequence[str],
        now: datetime.datetime,
        days: int = SERVER_DAYS,
        *,
        unit: str | None = None,
    ) -> Issued:
        """A certificate by which clients and other nodes know a server under each of `hosts` (DNS
        names and IP addresses). The certificate file holds the authority's behind it, as servers
        show it. It ends with the authority at the latest. unit: the OU of its subject. Raises
        ValueError for a name that no certificate can carry."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Issued(self._sign_server(key.public_key(), hosts, now, days, unit), _pem(key))

    def sign_request(
        self, request: bytes, hosts: Sequence[str], now: datetime.datetime, unit: str
    ) -> bytes:
        """Returns the certificate as `issue_server` for the key of a certificate signing request
        (PKCS #10, PEM), whose names are not looked at. Raises ValueError for a request that is not
        signed by its own key, or whose key is not on the curve P-256."""
        asked = x509.load_pem_x509_csr(request)
        key = asked.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != "secp256r1":
            raise ValueError("the key of a node is one on the curve P-256")
        if not asked.is_signature_valid:
            raise ValueError("the request is not signed by its key")
        return self._sign_server(key, hosts, now, SERVER_DAYS, unit)

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the authority's certificate (DER)."""
        return self._certificate.fingerprint(hashes.SHA256())

    def issue_client(self, name: str, now: datetime.datetime, days: int = CLIENT_DAYS) -> Issued:
        """A certificate by which a server knows a client as `CN=name`. Raises ValueError for a name
        that is empty or longer than 64 characters."""
        if not 0 < len(name) <= LONGEST_NAME:
            raise ValueError(f"the name of a client has 1 to {LONGEST_NAME} characters")
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        return Issued(self._sign(key.public_key(), _name(name), now, days, uses), _pem(key))

    def _sign_server(
        self,
        key: ec.EllipticCurvePublicKey,
        hosts: Sequence[str],
        now: datetime.datetime,
        days: int,
        unit: str | None,
    ) -> bytes:
        names = [_subject_alternative(host) for host in dict.fromkeys(hosts)]
        if not names:
            raise ValueError("a server's certificate names at least one host")
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        common = str(names[0].value)[:LONGEST_NAME]
        return self._sign(key, _name(common, unit), now, days, uses, names)

    def _sign(
        self,
        key: ec.EllipticCurvePublicKey,
        subject: x509.Name,
        now: datetime.datetime,
        days: int,
        uses: Sequence[x509.ObjectIdentifier],
        names: Sequence[x509.GeneralName] = (),
    ) -> bytes:
        """The certificate with the authority's behind it."""
        ends = min(now + datetime.timedelta(days=days), self.ends)
        builder = (
            _builder(key, subject, now, ends)
            .issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(_identifier_of(self._key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM) + self.certificate

    @staticmethod
    def end_of(certificate: bytes) -> datetime.datetime:
        """The end of the first certificate of this PEM text."""
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def new_authority(name: str, now: datetime.datetime, days: int = AUTHORITY_DAYS) -> Issued:
    """The self-signed certificate and the key of a new authority, good for `days` from `now` (a
    time with a zone)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    ends = now + datetime.timedelta(days=days)
    signed = (
        _builder(key.public_key(), subject, now, ends)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Issued(signed.public_bytes(serialization.Encoding.PEM), _pem(key))


def _builder(
    key: ec.EllipticCurvePublicKey,
    subject: x509.Name,
    begins: datetime.datetime,
    ends: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def new_request() -> Issued:
    """A new key and a certificate signing request of it without names (PKCS #10)."""
    key = ec.generate_private_key(ec.SECP256R1())
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    signed = asked.sign(key, hashes.SHA256())
    return Issued(signed.public_bytes(serialization.Encoding.PEM), _pem(key))


def fingerprint_of(certificate: bytes) -> bytes:
    """SHA-256 of a certificate in PEM. Raises ValueError for what is none."""
    return x509.load_pem_x509_certificate(certificate).fingerprint(hashes.SHA256())


def _name(common: str, unit: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if unit is not None:  # RFC 2253 writes them in the opposite order: CN first
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    return x509.Name(attributes)


def _identifier_of(key: ec.EllipticCurvePublicKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _subject_alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        ascii_name = host.encode("idna").decode()
    except UnicodeError as problem:
        raise ValueError(f"{host!r} is no name of a host: {problem}") from None
    if not ascii_name or any(not (c.isalnum() or c in "-.*_") for c in ascii_name):
        raise ValueError(f"{host!r} is no name of a host")
    return x509.DNSName(ascii_name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
