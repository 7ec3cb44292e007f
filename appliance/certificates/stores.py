"""Keys and certificates out of what was read: PEM or PKCS12, told apart by what is there and not by
`ssl.keystore.type`, because keytool writes PKCS12 into files named .jks since JDK 9.

Value functions; what is wrong is raised as ConfigError that begins with `where`: the setting, and
the file when it is one. Secrets are in no error.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from appliance.base.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
    from cryptography.x509 import Certificate

_PEM: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]{1,40})-----(.*?)-----END \1-----", re.DOTALL | re.ASCII
)
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_CERTIFICATES: Final = (b"CERTIFICATE", b"X509 CERTIFICATE", b"TRUSTED CERTIFICATE")
_KEYS: Final = (b"PRIVATE KEY", b"ENCRYPTED PRIVATE KEY", b"RSA PRIVATE KEY", b"EC PRIVATE KEY")
_JAVA: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_MOST: Final = 4096  # certificates of one store
_WIDTH: Final = 64


class KeyStore(NamedTuple):
    """A key and its certificate with those that vouch for it, the key's own first."""

    key: "CertificateIssuerPrivateKeyTypes"
    chain: "list[Certificate]"


class PemBlock(NamedTuple):
    """One object of a PEM text. kind: what stands behind BEGIN."""

    kind: bytes
    text: bytes


def pem_blocks(data: bytes) -> list[PemBlock]:
    """Every object in it. A text on one line, as a settings file may have it, is folded."""
    found = []
    for match in _PEM.finditer(data):
        kind, body = match[1], match[2]
        flat = b"".join(body.split())
        if _BASE64.fullmatch(flat):  # else it has headers, which are lines
            body = b"\n".join(flat[at : at + _WIDTH] for at in range(0, len(flat), _WIDTH))
        text = b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (kind, body.strip(), kind)
        found.append(PemBlock(kind, text))
    return found


def key_store(data: bytes, where: str, store_password: str | None, key_password: str | None,
              key_data: bytes | None = None, key_where: str = "") -> KeyStore:  # fmt: skip
    """A key store of any form. store_password: ssl.keystore.password; key_password:
    ssl.key.password. key_data, key_where: PEM of the key where it is not in `data`, and what named
    it. Raises ConfigError."""
    blocks = pem_blocks(data)
    if not blocks:
        if key_data is not None:
            raise ConfigError(
                f"{key_where}: the key store is no PEM and has its key itself; take this out"
            )
        return _of_pkcs12(data, where, store_password)
    chain = _certificates(blocks, where)
    if not chain:
        raise ConfigError(
            f"{where}: there is no certificate in it; it takes the chain as PEM, the server's own"
            " certificate first"
        )
    keys = blocks if key_data is None else pem_blocks(key_data)
    key = _private_key(keys, where if key_data is None else key_where, key_password)
    return _fitting(key, chain, where)


def trusted(data: bytes, where: str, password: str | None) -> "list[Certificate]":
    """The certificates of a trust store of any form. Raises ConfigError."""
    blocks = pem_blocks(data)
    found = _certificates(blocks, where) if blocks else _trusted_pkcs12(data, where, password)
    if not found:
        raise ConfigError(
            f"{where}: there is no certificate in it; it takes those of the authorities that"
            " clients' certificates come from, as PEM or PKCS12"
        )
    return found


# PEM ---------------------------------------------------------------------------------------------


def _certificates(blocks: Sequence[PemBlock], where: str) -> "list[Certificate]":
    from cryptography import x509

    texts = [one.text for one in blocks if one.kind in _CERTIFICATES]
    if len(texts) > _MOST:
        raise ConfigError(f"{where}: it has {len(texts)} certificates; at most {_MOST} are taken")
    try:
        return [x509.load_pem_x509_certificate(text) for text in texts]
    except Exception as cause:
        raise ConfigError(f"{where}: a certificate in it cannot be read: {cause}") from None


def _private_key(
    blocks: Sequence[PemBlock], where: str, password: str | None
) -> "CertificateIssuerPrivateKeyTypes":
    from cryptography.hazmat.primitives import serialization

    texts = [one.text for one in blocks if one.kind in _KEYS]
    if not texts:
        raise ConfigError(
            f"{where}: there is no private key in it; it takes one as PEM (PRIVATE KEY or ENCRYPTED"
            " PRIVATE KEY) beside the chain, or name its own file in penstock.ssl.key.location"
        )
    if len(texts) > 1:
        raise ConfigError(f"{where}: it has {len(texts)} private keys; one is taken")
    encrypted = b"ENCRYPTED" in texts[0]
    if encrypted and not password:
        raise ConfigError(f"{where}: the private key is encrypted: set ssl.key.password")
    try:
        # To check primes takes 0.1 to 1 s, in which no client is served; `_fitting` tries the key.
        key = serialization.load_pem_private_key(
            texts[0],
            password.encode() if encrypted and password else None,
            unsafe_skip_rsa_key_validation=True,
        )
    except Exception as cause:
        raise _unreadable(where, "ssl.key.password" if encrypted else "", cause) from None
    return key  # type: ignore[return-value]


# PKCS12 ------------------------------------------------------------------------------------------


def _of_pkcs12(data: bytes, where: str, password: str | None) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import pkcs12

    _check_form(data, where)
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except Exception as cause:
        raise _unreadable(where, "ssl.keystore.password", cause) from None
    if store.key is None or store.cert is None:
        raise ConfigError(
            f"{where}: there is no private key with its certificate in it; keytool -list shows what"
            " is, and a PrivateKeyEntry is needed"
        )
    own, others = store.cert.certificate, [one.certificate for one in store.additional_certs]
    return _fitting(store.key, [own, *_above(own, others)], where)  # type: ignore[arg-type]


def _trusted_pkcs12(data: bytes, where: str, password: str | None) -> "list[Certificate]":
    from cryptography.hazmat.primitives.serialization import pkcs12

    _check_form(data, where)
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except Exception as cause:
        raise _unreadable(where, "ssl.truststore.password", cause) from None
    own = [] if store.cert is None else [store.cert.certificate]
    return own + [one.certificate for one in store.additional_certs]


def _above(own: "Certificate", others: "Sequence[Certificate]") -> "list[Certificate]":
    """Returns the chain of issuers, in the order of presentation."""
    found: list[Certificate] = []
    last = own
    while last.issuer != last.subject:
        above = next(
            (one for one in others if one.subject == last.issuer and one not in found), None
        )
        if above is None:
            break
        found.append(above)
        last = above
    return found


def _check_form(data: bytes, where: str) -> None:
    """Raises ConfigError for what is not even the beginning of PKCS12."""
    old = _JAVA.get(data[:4])
    if old is not None:
        raise ConfigError(
            f"{where}: it has the old format {old}, which only Java reads; convert it to PKCS12:"
            " keytool -importkeystore -srckeystore OLD -destkeystore NEW -deststoretype pkcs12"
        )
    if data[:1] != b"\x30":
        raise ConfigError(f"{where}: it is neither PEM (-----BEGIN …) nor PKCS12")


# Both --------------------------------------------------------------------------------------------


def _fitting(
    key: "CertificateIssuerPrivateKeyTypes", chain: "list[Certificate]", where: str
) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        fits = key.public_key().public_bytes(*form) == chain[0].public_key().public_bytes(*form)
    except Exception as cause:
        raise ConfigError(f"{where}: its keys cannot be compared: {cause}") from None
    if fits:
        _try(key, where)
    else:
        subject = chain[0].subject.rfc4514_string()
        raise ConfigError(
            f"{where}: the private key does not belong to the first certificate ({subject}); the"
            " server's own certificate comes first, and both must be of the same renewal"
        )
    return KeyStore(key, chain)


def _try(key: "CertificateIssuerPrivateKeyTypes", where: str) -> None:
    """Raises ConfigError for a key whose private part is not that of its public one."""
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    if not isinstance(key, rsa.RSAPrivateKey):
        return  # is looked at when it is read
    try:
        signed = key.sign(where.encode(), padding.PKCS1v15(), SHA256())
        key.public_key().verify(signed, where.encode(), padding.PKCS1v15(), SHA256())
    except Exception:
        raise ConfigError(f"{where}: the private key is broken: it does not sign") from None


def _unreadable(where: str, password: str, cause: Exception) -> ConfigError:
    """password: the setting that has it, "" where there is none."""
    remedy = f"; is {password} the right one?" if password else ""
    return ConfigError(f"{where}: it cannot be read ({type(cause).__name__}: {cause}){remedy}")
