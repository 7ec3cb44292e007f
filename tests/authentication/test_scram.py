"""SCRAM: the example of RFC 7677, what a client may say, and who is not known."""

import base64
import contextlib
import hmac
from hashlib import new

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.authentication import scram
from appliance.authentication.mechanisms import BY_NAME, SCRAM_SHA_256, SCRAMS
from appliance.authentication.refused import LoginRefused
from appliance.authentication.scram import Credential, ScramServer, is_password, made, parse_first
from appliance.authentication.stand_in import stand_in

SHA_256 = BY_NAME[SCRAM_SHA_256]
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
LAST = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)


def rfc(first=FIRST, exists=True):
    credential = made(SHA_256, "pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    return ScramServer(SHA_256, parse_first(first), credential, exists, NONCE)


def test_the_example_of_the_rfc():
    server = rfc()
    assert server.challenge() == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.finish(LAST) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def proof(kind, first, challenge, password, salt, iterations, unproved):
    salted = scram.salted(kind, password, salt, iterations)
    key = hmac.digest(salted, b"Client Key", kind.digest)
    signed = b",".join([first.removeprefix(b"n,,"), challenge, unproved])
    signature = hmac.digest(new(kind.digest, key).digest(), signed, kind.digest)
    return unproved + b",p=" + base64.b64encode(bytes(map(int.__xor__, key, signature)))


@pytest.mark.parametrize("kind", SCRAMS)
@pytest.mark.parametrize("password", ["secret", "sécret", "a,b=c"])
def test_a_client_with_the_password_and_one_with_another(kind, password):
    credential = made(kind, password, b"salt", 4096)
    first = b"n,,n=al=2Cice,r=abc,ext=1"
    server = ScramServer(kind, parse_first(first), credential, True, "xyz")
    assert server.user == "al,ice"
    args = (kind, first, server.challenge())
    wrong = proof(*args, password + "x", b"salt", 4096, b"c=biws,r=abcxyz")
    with pytest.raises(LoginRefused):
        server.finish(wrong)
    right = proof(*args, password, b"salt", 4096, b"c=biws,r=abcxyz")
    assert server.finish(right).startswith(b"v=")


@pytest.mark.parametrize("last", [
    b"", b"c=biws", LAST[:-4], LAST + b",x=1", LAST.replace(b"k0", b"k1"), b"\xff" + LAST,
    LAST[: LAST.index(b"p=")] + b"p=", LAST[: LAST.index(b"p=")] + b"p=AAAA",
    b"c=biws,r=" + b"r" * 20_000 + b",p=AAAA",
])  # fmt: skip
def test_a_last_message_that_proves_nothing(last):
    with pytest.raises(LoginRefused):
        rfc().finish(last)


def test_nobody_logs_in_with_a_stand_in_or_too_few_iterations():
    with pytest.raises(LoginRefused):
        rfc(exists=False).finish(LAST)
    weak = made(SHA_256, "pencil", b"salt", 4095)
    first = b"n,,n=user,r=a"
    server = ScramServer(SHA_256, parse_first(first), weak, True, "b")
    with pytest.raises(LoginRefused):
        server.finish(
            proof(SHA_256, first, server.challenge(), "pencil", b"salt", 4095, b"c=biws,r=ab")
        )


@pytest.mark.parametrize("first", [
    b"", b"n,,", b"y,,n=user,r=abc", b"p=tls-unique,,n=user,r=abc", b"n,,n=,r=abc", b"n,,n=u,r=",
    b"n,,n=u=2Xser,r=abc", b"n,,n=us\0er,r=abc", b"\xff\xfe",
    b"n,,n=" + b"u" * 20_000 + b",r=abc",
])  # fmt: skip
def test_a_first_message_that_is_none(first):
    with pytest.raises(LoginRefused) as refused:
        parse_first(first)
    assert refused.value.told is None


def test_as_another_nobody_acts():
    assert parse_first(b"n,a=user,n=user,r=abc").user == "user"
    with pytest.raises(LoginRefused, match="authorization id"):
        parse_first(b"n,a=root,n=user,r=abc")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data):
    for take in (parse_first, rfc().finish):
        with contextlib.suppress(LoginRefused):
            take(data)


@pytest.mark.parametrize("kind", SCRAMS)
def test_a_stand_in_looks_like_users_that_there_are(kind):
    likes = [(b"0a9z" * 6, 8192), (b"\x00\xff" * 16, 8192)]
    seen = {user: stand_in(kind, user, b"secret", likes) for user in "abcdefgh"}
    assert len({one.salt for one in seen.values()}) == 8
    assert {len(one.salt) for one in seen.values()} == {24, 32}
    assert {one.iterations for one in seen.values()} == {8192}
    again = stand_in(kind, "a", b"secret", likes)
    assert again == seen["a"] != stand_in(kind, "a", b"another", likes)
    real = made(kind, "x", b"s", 4096)
    assert [len(part) for part in again[1:3]] == [len(part) for part in real[1:3]]
    usual = stand_in(kind, "a", b"secret", [])
    assert usual.iterations == 4096 and len(usual.salt) == 25 and usual.salt.isalnum()


def test_a_password_is_checked_against_what_is_kept_of_it():
    credential = made(SHA_256, "secret", b"salt", 4096)
    assert is_password(SHA_256, credential, "secret")
    assert not is_password(SHA_256, credential, "Secret")
    assert b"secret" not in b"".join(part for part in Credential(*credential)[:3])


@pytest.mark.parametrize(
    ("extensions", "by_token"),
    [
        ("", False), (",tokenauth=true", True), (",x=y,tokenauth=TRUE", True),
        (",tokenauth=false", False), (",tokenauth=true,tokenauth=no", False),
        (",TokenAuth=true", False), (",xtokenauth=true", False),
    ],
)  # fmt: skip
def test_an_extension_says_that_the_user_is_a_token(extensions, by_token):
    assert parse_first(f"n,,n=id,r=abc{extensions}".encode()).by_token is by_token
