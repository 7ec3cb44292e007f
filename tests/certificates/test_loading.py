"""From settings and files to what a server of TLS does, seen by whoever connects."""

import os
import ssl

import pytest

from appliance.base.errors import ConfigError
from appliance.certificates import files
from appliance.certificates.context import load
from appliance.certificates.settings import of_listener
from tests.certificates.authority import authority, name
from tests.certificates.shown import Failed, client, handshake, settings

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
PRIVATE = "s3cretOfAKey"


def loaded(place, **more):
    return load(of_listener(settings(**place.given, **more), "SSL"))


def refused(place, words, **more):
    with pytest.raises(ConfigError, match=words) as problem:
        loaded(place, **more)
    return str(problem.value)


def test_what_is_shown_is_told_as_java_writes_it(place):
    place.write(place.root.sign(name("broker", "Acme, Inc."), hosts=("a.example", "127.0.0.1")))
    one = loaded(place).certificate
    assert one.subject == "CN=broker,O=Acme\\, Inc."
    assert one.issuer == "CN=Test authority"
    assert one.names == ("DNS:a.example", "IP:127.0.0.1")
    assert one.not_before_ms == 1_767_225_600_000
    assert one.not_after_ms - one.not_before_ms == 7300 * 86_400_000


@pytest.mark.parametrize("version", [V12, V13])
def test_both_versions_are_spoken(place, version):
    ours, _ = handshake(loaded(place).context, client(place.root, version=version))
    assert ours.version() == {V12: "TLSv1.2", V13: "TLSv1.3"}[version]


@pytest.mark.parametrize(("enabled", "other"), [("TLSv1.2", V13), ("TLSv1.3", V12)])
def test_a_version_that_is_not_enabled_is_not_spoken(place, enabled, other):
    context = loaded(place, ssl_enabled_protocols=enabled).context
    with pytest.raises(Failed):
        handshake(context, client(place.root, version=other))
    assert handshake(context, client(place.root))[0].version() == enabled


def test_older_versions_are_refused_with_the_key_that_was_set(place):
    more = {"listener_name_ssl_ssl_enabled_protocols": "TLSv1.1,TLSv1.2"}
    refused(place, r"TLSv1.1 for configuration listener.name.ssl.ssl.enabled.protocols", **more)
    refused(place, "names no version", ssl_enabled_protocols=",")


def test_suites_have_javas_names(place):
    context = loaded(place, ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256").context
    ours, _ = handshake(context, client(place.root))
    assert ours.cipher()[:2] == ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2")
    with pytest.raises(Failed):
        handshake(context, client(place.root, suites="ECDHE-ECDSA-AES256-GCM-SHA384", version=V12))


def test_suites_of_one_version_leave_the_other_out(place):
    one = loaded(place, ssl_cipher_suites="TLS_AES_256_GCM_SHA384")
    assert "TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256 too" in one.warnings[0]
    with pytest.raises(Failed):
        handshake(one.context, client(place.root, version=V12))


def test_suites_that_nobody_knows_are_refused_with_those_that_are(place):
    refused(place, "Invalid value NOPE.*TLS_AES_256_GCM_SHA384", ssl_cipher_suites="NOPE")
    both = {"ssl_enabled_protocols": "TLSv1.2", "ssl_cipher_suites": "TLS_AES_256_GCM_SHA384"}
    refused(place, "nobody could connect", **both)


# Clients' certificates ---------------------------------------------------------------------------


def asked(place, how, **more):
    given = {"ssl_client_auth": how, "ssl_truststore_location": place.trust}
    return loaded(place, **(given | more)).context


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("how", ["requested", "required"])
def test_who_shows_a_certificate_is_known_by_it(place, how, version):
    someone = place.root.sign("client")
    shows = client(place.root, own=someone, folder=place.folder, version=version)
    ours, _ = handshake(asked(place, how), shows)
    assert ours.getpeercert(binary_form=True) == someone.der


@pytest.mark.parametrize("version", [V12, V13])
def test_who_shows_none_is_refused_only_where_it_is_required(place, version):
    nobody = client(place.root, version=version)
    assert handshake(asked(place, "requested"), nobody)[0].getpeercert(binary_form=True) is None
    with pytest.raises(Failed):
        handshake(asked(place, "required"), nobody)


@pytest.mark.parametrize("how", ["requested", "required"])
def test_a_certificate_of_another_authority_is_refused(place, how):
    stranger = authority("Other").sign("client")
    with pytest.raises(Failed):
        handshake(asked(place, how), client(place.root, own=stranger, folder=place.folder))


def test_what_is_in_the_trust_store_is_trusted_without_what_is_above_it(place):
    middle = place.root.sign("middle", ca=True, hosts=())
    someone = middle.sign("client")
    someone.above = []
    (place.folder / "middle.pem").write_bytes(middle.chain_pem())
    context = asked(place, "required", ssl_truststore_location=place.folder / "middle.pem")
    shows = client(place.root, own=someone, folder=place.folder)
    assert handshake(context, shows)[0].getpeercert(binary_form=True) == someone.der


def test_a_session_that_goes_on_is_of_the_same_client(place):
    someone = place.root.sign("client")
    context = asked(place, "required")
    shows = client(place.root, own=someone, folder=place.folder, version=V12)
    _, first = handshake(context, shows)
    ours, theirs = handshake(context, shows, session=first.session)
    assert theirs.session_reused
    assert ours.getpeercert(binary_form=True) == someone.der


@pytest.mark.parametrize("version", [V12, V13])
def test_a_session_does_not_outlive_the_trust_in_its_client(place, version):
    shows = client(place.root, own=place.root.sign("client"), folder=place.folder, version=version)
    _, first = handshake(asked(place, "required"), shows)
    place.trust.write_bytes(authority("Other").chain_pem())
    with pytest.raises(Failed):
        handshake(asked(place, "required"), shows, session=first.session)


@pytest.mark.parametrize("how", ["requested", "required"])
def test_asking_for_certificates_without_saying_whose_is_refused(place, how):
    refused(place, f"ssl.client.auth={how}.*ssl.truststore.location", ssl_client_auth=how)


# Places ------------------------------------------------------------------------------------------


def test_key_and_chain_may_stand_in_the_settings(place):
    own = place.pair
    place.given = {
        "ssl_keystore_key": own.key_pem().decode(),
        "ssl_keystore_certificate_chain": own.chain_pem().decode(),
        "ssl_truststore_certificates": place.root.chain_pem().decode().replace("\n", " "),
        "ssl_client_auth": "required",
    }
    shows = client(place.root, own=place.root.sign("client"), folder=place.folder)
    handshake(loaded(place).context, shows)
    refused(place, "take one of them out", ssl_keystore_location="/x")
    refused(place, "take one of them out", ssl_truststore_location="/x")
    refused(place, "take one of them out", penstock_ssl_key_location="/x")
    del place.given["ssl_keystore_key"]
    refused(place, "private key is missing.*ssl.keystore.key")


def test_the_key_may_have_a_file_of_its_own(place):
    key = place.folder / "privkey.pem"
    key.write_bytes(place.pair.key_pem(PRIVATE))
    place.store.write_bytes(place.pair.chain_pem())
    place.given["penstock_ssl_key_location"] = key
    one = loaded(place, ssl_key_password=PRIVATE)
    handshake(one.context, client(place.root))
    assert [stamp.path for stamp in one.stamps] == [str(place.store), str(key)]
    text = refused(place, f"penstock.ssl.key.location={key}", ssl_key_password="w" + PRIVATE)
    assert PRIVATE not in text


def test_a_listener_has_its_own_words_before_those_of_all(place):
    mine = place.folder / "mine.pem"
    mine.write_bytes(place.root.sign("mine").pem())
    one = loaded(place, listener_name_ssl_ssl_keystore_location=mine)
    assert one.certificate.subject == "CN=mine"
    text = refused(place, "no such file", listener_name_ssl_ssl_keystore_location="/none.pem")
    assert text.startswith("listener.name.ssl.ssl.keystore.location: /none.pem cannot be read")


def test_secrets_are_not_shown_with_the_settings(place):
    more = {"ssl_keystore_password": PRIVATE, "ssl_key_password": PRIVATE + "1"}
    assert PRIVATE not in repr(of_listener(settings(**place.given, **more), "SSL"))


def test_a_listener_without_a_certificate_is_refused_with_what_to_set(place):
    place.given = {}
    refused(place, "SSL speaks TLS, and there is no certificate.*ssl.keystore.location")


def test_what_is_no_file_that_can_be_read_is_refused(place):
    os.mkfifo(place.folder / "pipe")
    place.store.write_bytes(b"")
    refused(place, "is empty")
    place.store.write_bytes(b"x" * (files.MOST + 1))
    refused(place, "larger than 1048576 bytes")
    refused(place, "is no file", listener_name_ssl_ssl_keystore_location=place.folder / "pipe")
    refused(place, "is no file", listener_name_ssl_ssl_keystore_location=place.folder)
    refused(place, "cannot be read", listener_name_ssl_ssl_keystore_location="/x\0y")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_somebody_else_is_refused_with_how_to_open_it(place):
    place.store.chmod(0)
    refused(place, "chgrp, chmod 640")


def test_no_key_stays_in_a_descriptor(place):
    before = os.listdir("/proc/self/fd")
    loaded(place)
    assert os.listdir("/proc/self/fd") == before


def test_a_key_too_weak_for_openssl_is_refused_in_its_words(place):
    from cryptography.hazmat.primitives.asymmetric import rsa

    place.write(place.root.sign("weak", key=rsa.generate_private_key(65537, 1024)))
    refused(place, "OpenSSL refuses it: ee key too small")
