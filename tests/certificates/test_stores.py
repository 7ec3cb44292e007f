"""Key and trust stores in the forms that people have, told apart by what is in them."""

import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import ConfigError
from appliance.certificates import stores
from tests.certificates.authority import Pair, authority

ROOT = authority()
MIDDLE = ROOT.sign("middle", ca=True, hosts=())
OWN = MIDDLE.sign("broker")
OTHER = ROOT.sign("other")
TRADITIONAL = PrivateFormat.TraditionalOpenSSL
PASSWORD = "tops3cret"


def read(data, store_password=None, key_password=None, **more):
    return stores.key_store(data, "ssl.keystore.location=x", store_password, key_password, **more)


def names(store):
    return [one.subject.rfc4514_string() for one in store.chain]


@pytest.mark.parametrize(
    ("data", "passwords"),
    [
        (OWN.pem(), ()),
        (OWN.chain_pem() + OWN.key_pem(), ()),
        (OWN.pem(PASSWORD), (None, PASSWORD)),
        (OWN.key_pem(form=TRADITIONAL) + OWN.chain_pem(), ()),
        (OWN.key_pem(PASSWORD, TRADITIONAL) + OWN.chain_pem(), (None, PASSWORD)),
        (b"subject: somebody\n" + OWN.pem().replace(b"\n", b"\r\n"), ()),
        (OWN.pem().replace(b"\n", b" "), ()),
        (OWN.pkcs12(PASSWORD), (PASSWORD,)),
    ],
)  # fmt: skip
def test_key_and_chain_are_read_in_each_form(data, passwords):
    store = read(data, *passwords)
    assert names(store) == ["CN=broker", "CN=middle"]
    assert store.key.private_numbers() == OWN.key.private_numbers()


def test_a_key_in_a_file_of_its_own_is_as_certbot_leaves_it():
    store = read(OWN.chain_pem(), key_data=OWN.key_pem(), key_where="penstock.ssl.key.location=k")
    assert names(store) == ["CN=broker", "CN=middle"]


@pytest.mark.parametrize(
    ("data", "passwords", "words"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\x02", (), "keytool -importkeystore"),
        (b"\xce\xce\xce\xce\0\0\0\x02", (), "JCEKS.*keytool"),
        (b"hello", (), "neither PEM .* nor PKCS12"),
        (OWN.chain_pem(), (), "no private key.*penstock.ssl.key.location"),
        (OWN.key_pem(), (), "no certificate"),
        (OWN.key_pem() * 2 + OWN.chain_pem(), (), "2 private keys"),
        (OTHER.key_pem() + OWN.chain_pem(), (), "does not belong to the first certificate .CN=bro"),
        (OWN.pem(PASSWORD), (), "set ssl.key.password"),
        (OWN.pem(PASSWORD), (None, "wrong"), "is ssl.key.password the right one"),
        (OWN.pkcs12(PASSWORD), ("wrong",), "is ssl.keystore.password the right one"),
        (OWN.pkcs12(PASSWORD), (), "is ssl.keystore.password the right one"),
        (OWN.pem().replace(b"CERTIFICATE-----\n", b"CERTIFICATE-----\nAAAA"), (), "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_file_and_the_remedy(data, passwords, words):
    with pytest.raises(ConfigError, match=words) as refused:
        read(data, *passwords)
    assert "ssl.keystore.location=x" in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_a_key_beside_a_store_that_has_one_is_refused():
    with pytest.raises(ConfigError, match="take this out"):
        read(OWN.pkcs12(PASSWORD), PASSWORD, key_data=OWN.key_pem(), key_where="k")


@pytest.mark.parametrize("data", [ROOT.chain_pem(), ROOT.chain_pem() + MIDDLE.chain_pem()])
def test_trusted_certificates_are_read(data):
    found = stores.trusted(data, "x", None)
    assert found[0] == ROOT.certificate
    assert len(found) == data.count(b"BEGIN")


def test_a_trust_store_without_certificates_is_refused():
    with pytest.raises(ConfigError, match="authorities"):
        stores.trusted(OWN.key_pem(), "x", None)


# Java's own tool ---------------------------------------------------------------------------------


def keytool(*arguments):
    if shutil.which("keytool") is None:
        pytest.skip("keytool is not here: install a JDK")
    subprocess.run(["keytool", *arguments], check=True, capture_output=True, timeout=60)


def test_what_keytool_writes_into_a_file_named_jks_is_read(tmp_path):
    path = tmp_path / "kafka.keystore.jks"
    keytool("-genkeypair", "-alias", "b", "-keyalg", "EC", "-dname", "CN=broker,O=Acme",
            "-validity", "9", "-keystore", str(path), "-storepass", PASSWORD)  # fmt: skip
    assert names(read(path.read_bytes(), PASSWORD)) == ["CN=broker,O=Acme"]
    exported, trust = tmp_path / "one.pem", tmp_path / "kafka.truststore.jks"
    keytool("-exportcert", "-rfc", "-alias", "b", "-file", str(exported), "-keystore", str(path),
            "-storepass", PASSWORD)  # fmt: skip
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", str(exported), "-keystore",
            str(trust), "-storepass", PASSWORD)  # fmt: skip
    (found,) = stores.trusted(trust.read_bytes(), "x", PASSWORD)
    assert found.subject.rfc4514_string() == "CN=broker,O=Acme"
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.password"):
        stores.trusted(trust.read_bytes(), "x", "wrong")
    with pytest.raises(ConfigError, match="PrivateKeyEntry"):
        read(trust.read_bytes(), PASSWORD)


def test_what_keytool_writes_in_the_old_form_is_refused_with_the_command(tmp_path):
    path = tmp_path / "old.jks"
    keytool("-genkeypair", "-alias", "b", "-keyalg", "EC", "-dname", "CN=b", "-storetype", "jks",
            "-keystore", str(path), "-storepass", PASSWORD, "-keypass", PASSWORD)  # fmt: skip
    with pytest.raises(ConfigError, match=r"keytool -importkeystore.*-deststoretype pkcs12"):
        read(path.read_bytes(), PASSWORD)


# Hostile bytes -----------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_any_bytes_are_a_store_or_refused(data):
    for ask in (read, lambda data: stores.trusted(data, "x", None)):
        with pytest.raises(ConfigError):
            ask(data)


SMALL = OWN.pkcs12(PASSWORD)


@pytest.mark.parametrize("whole", [OWN.pem(), SMALL], ids=["pem", "pkcs12"])
@given(at=st.floats(0, 1, exclude_max=True), by=st.integers(1, 255))
def test_a_store_with_one_byte_changed_is_the_same_one_or_refused(whole, at, by):
    broken = bytearray(whole)
    broken[int(at * len(whole))] ^= by
    try:
        store = read(bytes(broken), PASSWORD)
    except ConfigError:
        return
    assert store.key.private_numbers() == OWN.key.private_numbers()


@given(st.integers(0, len(SMALL) - 1))
def test_a_store_that_was_cut_is_refused(size):
    with pytest.raises(ConfigError):
        read(SMALL[:size], PASSWORD)


def test_a_pem_of_many_certificates_is_refused_before_they_are_read():
    one = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
    with pytest.raises(ConfigError, match="at most 4096"):
        stores.trusted(one * 4097, "x", None)


RSA = rsa.generate_private_key(65537, 2048)
OF_RSA = ROOT.sign("rsa", key=RSA)


def test_another_kind_of_key_is_read():
    assert names(read(OF_RSA.key_pem(form=TRADITIONAL) + OF_RSA.chain_pem())) == ["CN=rsa"]
    assert names(read(OF_RSA.pkcs12(PASSWORD), PASSWORD)) == ["CN=rsa"]


def test_a_key_of_rsa_whose_private_part_is_another_one_is_refused():
    """Its primes are not checked, which would take long; it is tried instead."""
    kept, other = RSA.private_numbers(), rsa.generate_private_key(65537, 2048).private_numbers()
    numbers = rsa.RSAPrivateNumbers(
        kept.p, kept.q, other.d, other.dmp1, other.dmq1, kept.iqmp, kept.public_numbers
    )
    key = numbers.private_key(unsafe_skip_rsa_key_validation=True)
    with pytest.raises(ConfigError, match="private key is broken"):
        read(Pair(key, OF_RSA.certificate).pem())


@given(at=st.floats(0, 1, exclude_max=True), by=st.integers(1, 255))
def test_a_key_of_rsa_with_one_byte_changed_signs_or_is_refused(at, by):
    broken = bytearray(OF_RSA.pem())
    broken[int(at * len(broken))] ^= by
    try:
        store = read(bytes(broken))
    except ConfigError:
        return
    assert store.key.public_key() == RSA.public_key()
