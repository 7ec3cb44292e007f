"""From what the settings of a listener say to what a TLS server needs.

The key is read by us and handed to OpenSSL in memory (memfd), so that no form of a store needs a
file of another form, and no key comes to a disk. A certificate that is over, or not valid yet, is
served: who connects decides what that means, and an appliance that refuses to start would take away
what plaintext listeners serve.
"""

import os
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from appliance.base.errors import ConfigError
from appliance.certificates import ciphers, files, stores
from appliance.certificates.files import Stamp
from appliance.certificates.names import rfc_2253
from appliance.certificates.principal_mapping import Rules
from appliance.certificates.settings import TlsSettings
from appliance.config.listener_settings import KEY_LOCATION, key_of

if TYPE_CHECKING:
    from cryptography.x509 import Certificate as X509

_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {
    ciphers.TLS_1_2: ssl.TLSVersion.TLSv1_2,
    ciphers.TLS_1_3: ssl.TLSVersion.TLSv1_3,
}
_PARTIAL_CHAIN: Final = ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN


class Certificate(NamedTuple):
    """The certificate that a listener presents. subject, issuer: RFC 2253, as Java writes them.
    names: those of the subject's alternative ones, `DNS:broker.example`, `IP:192.0.2.1`. Times in
    ms since 1970. digest: SHA-256 of it, in hexadecimal."""

    subject: str
    names: tuple[str, ...]
    issuer: str
    not_before_ms: int
    not_after_ms: int
    digest: str

    @property
    def until(self) -> str:
        """The end of its time, for people."""
        return day(self.not_after_ms)

    def trouble(self, now_ms: int) -> str:
        """Why clients refuse it now, "" when they do not for its time."""
        if now_ms > self.not_after_ms:
            return f"it was valid until {day(self.not_after_ms)}"
        if now_ms < self.not_before_ms:
            return f"it is not valid before {day(self.not_before_ms)}"
        return ""


class LoadedContext(NamedTuple):
    """context: for the side of connections that it was loaded for. rules: from certificates of
    clients to their names. stamps: of the files that it was read from. warnings: for who set it."""

    context: ssl.SSLContext
    certificate: Certificate
    rules: Rules
    stamps: tuple[Stamp, ...]
    warnings: tuple[str, ...]


def load(settings: TlsSettings) -> LoadedContext:
    """Read everything. Raises ConfigError: the setting, the file, what to do."""
    if settings.client_auth not in _AUTH:
        raise ConfigError(
            f"{settings.key('ssl.client.auth')}: it takes none, requested or required, not"
            f" {settings.client_auth[:40]}"
        )
    rules = Rules(settings.mapping_rules, settings.key("ssl.principal.mapping.rules"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    loaded = _loaded(context, settings, rules)
    context.verify_mode = _AUTH[settings.client_auth]
    return loaded


def load_client(settings: TlsSettings) -> LoadedContext:
    """Reads everything for connections to other nodes: the certificate of the listener is shown
    there too, and theirs must come from its trust store, else from an authority that the host
    trusts. Names are checked unless `ssl.endpoint.identification.algorithm` is empty. Raises
    ConfigError as `load`."""
    rules = Rules(settings.mapping_rules, settings.key("ssl.principal.mapping.rules"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.checks_names
    loaded = _loaded(context, settings, rules)
    if settings.truststore_location is None and settings.truststore_certificates is None:
        context.load_default_certs()
    return loaded


def _loaded(context: ssl.SSLContext, settings: TlsSettings, rules: Rules) -> LoadedContext:
    chosen = ciphers.choose(
        settings.protocols, settings.cipher_suites,
        settings.key("ssl.enabled.protocols"), settings.key("ssl.cipher.suites"),
    )  # fmt: skip
    stamps = files.stamps(settings.files())
    own, where = _key_store(settings)
    context.minimum_version = _VERSIONS[chosen.versions[0]]
    context.maximum_version = _VERSIONS[chosen.versions[-1]]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    try:
        if chosen.suites:
            context.set_ciphers(chosen.suites)
        _give(context, own)
    except (ssl.SSLError, ValueError, OSError) as cause:
        raise ConfigError(f"{where}: OpenSSL refuses it: {_reason(cause)}") from None
    _trust(context, settings)
    warnings = (chosen.warning,) if chosen.warning else ()
    return LoadedContext(context, described(own.chain[0], where), rules, stamps, warnings)


def check_same(before: Certificate, new: Certificate, settings: TlsSettings) -> None:
    """Checks that a certificate may replace the current one at run time (KIP-978). Raises
    ConfigError."""
    if new.subject != before.subject and not settings.allow_dn_changes:
        raise ConfigError(
            f"ssl.allow.dn.changes: the new certificate is of {new.subject!r} instead of"
            f" {before.subject!r}; if that is meant set"
            f" {key_of(settings.listener, 'ssl.allow.dn.changes')}=true, or restart"
        )
    lost = [one for one in before.names if one not in new.names]
    if lost and not settings.allow_san_changes:
        raise ConfigError(
            f"ssl.allow.san.changes: the new certificate of {new.subject!r} is not for"
            f" {', '.join(lost)} any more; if that is meant set"
            f" {key_of(settings.listener, 'ssl.allow.san.changes')}=true, or restart"
        )


def described(one: "X509", where: str) -> Certificate:
    """Returns the description of a certificate. Raises ConfigError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        try:
            value = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = tuple(_alternative(name) for name in value)
        except x509.ExtensionNotFound:
            names = ()
        return Certificate(
            rfc_2253(one.subject.public_bytes()), names, rfc_2253(one.issuer.public_bytes()),
            _ms(one.not_valid_before_utc), _ms(one.not_valid_after_utc),
            one.fingerprint(SHA256()).hex(),
        )  # fmt: skip
    except Exception as cause:
        raise ConfigError(f"{where}: its certificate cannot be read: {cause}") from None


def _key_store(settings: TlsSettings) -> tuple[stores.KeyStore, str]:
    """And what it came from, for errors."""
    location, inline = settings.keystore_location, settings.keystore_chain
    key_data: bytes | None = None
    key_where = ""
    if settings.key_location is not None and settings.keystore_key is not None:
        raise ConfigError(
            f"{settings.key('ssl.keystore.key')}: the key is here and in"
            f" {settings.key(KEY_LOCATION)}; take one of them out"
        )
    if settings.key_location is not None:
        name = settings.key(KEY_LOCATION)
        key_data, key_where = (
            files.read(settings.key_location, name),
            f"{name}={settings.key_location}",
        )
    elif settings.keystore_key is not None:
        key_where = settings.key("ssl.keystore.key")
        key_data = settings.keystore_key.encode()
    if inline is not None:
        where = settings.key("ssl.keystore.certificate.chain")
        if location is not None:
            raise ConfigError(
                f"{where}: the chain is here and in {settings.key('ssl.keystore.location')};"
                " take one of them out"
            )
        if key_data is None:
            raise ConfigError(
                f"{where}: the private key is missing: set ssl.keystore.key, or {KEY_LOCATION}"
            )
        data = inline.encode()
        if not stores.pem_blocks(data):
            raise ConfigError(f"{where}: it is no PEM (-----BEGIN CERTIFICATE-----)")
    elif location is not None:
        name = settings.key("ssl.keystore.location")
        where, data = f"{name}={location}", files.read(location, name)
    else:
        raise ConfigError(
            f"listeners: {settings.listener} speaks TLS, and there is no certificate for it: set"
            " ssl.keystore.location to a PEM file with key and chain, or to a PKCS12 file"
        )
    passwords = (settings.keystore_password, settings.key_password)
    return stores.key_store(data, where, *passwords, key_data, key_where), where


def _give(context: ssl.SSLContext, own: stores.KeyStore) -> None:
    """Key and chain, through memory that has no name and that is wiped. Raises SSLError."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = own.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    text = key + b"".join(one.public_bytes(Encoding.PEM) for one in own.chain)
    fd = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(text)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
        os.pwrite(fd, bytes(len(text)), 0)
    finally:
        os.close(fd)


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Loads the CAs of client certificates. Raises ConfigError."""
    from cryptography.hazmat.primitives.serialization import Encoding

    location, inline = settings.truststore_location, settings.truststore_certificates
    if inline is not None:
        where, data = settings.key("ssl.truststore.certificates"), inline.encode()
        if location is not None:
            raise ConfigError(
                f"{where}: certificates are here and in"
                f" {settings.key('ssl.truststore.location')}; take one of them out"
            )
    elif location is not None:
        name = settings.key("ssl.truststore.location")
        where, data = f"{name}={location}", files.read(location, name)
    elif settings.client_auth != "none":
        raise ConfigError(
            f"{settings.key('ssl.client.auth')}={settings.client_auth}: whose certificates are to"
            " be believed is not said: set ssl.truststore.location, or ssl.truststore.certificates,"
            " to those of the authorities that clients' certificates come from"
        )
    else:
        return
    found = stores.trusted(data, where, settings.truststore_password)
    try:
        context.load_verify_locations(
            cadata=b"".join(one.public_bytes(Encoding.DER) for one in found)
        )
    except (ssl.SSLError, ValueError) as cause:
        raise ConfigError(f"{where}: OpenSSL refuses it: {_reason(cause)}") from None
    # What is in a trust store is trusted as it is, not only authorities at the end of a chain.
    context.verify_flags |= _PARTIAL_CHAIN


def _alternative(name: object) -> str:
    from cryptography import x509

    match name:
        case x509.DNSName():
            return f"DNS:{name.value}"
        case x509.IPAddress():
            return f"IP:{name.value}"
        case x509.RFC822Name():
            return f"email:{name.value}"
        case x509.UniformResourceIdentifier():
            return f"URI:{name.value}"
        case x509.DirectoryName():
            return f"dirName:{rfc_2253(name.value.public_bytes())}"
        case _:
            return repr(name)


def _reason(cause: Exception) -> str:
    """OpenSSL's own word for it."""
    said = getattr(cause, "reason", None)
    return str(said).lower().replace("_", " ") if said else str(cause)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def day(ms: int) -> str:
    """A time for people."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
