"""SaslHandshake and SaslAuthenticate where nobody logs in; tests/sasl compares logins."""

from tests.differential.registry import script


@script("SaslHandshake")
def sasl_handshake(s):
    for mechanism in ("PLAIN", "GSSAPI", ""):
        s.ask(mechanism or "none", mechanism=mechanism)


@script("SaslAuthenticate")
def sasl_authenticate(s):
    s.ask("a message", auth_bytes=b"\0alice\0secret")
    s.ask("no bytes", auth_bytes=b"")
