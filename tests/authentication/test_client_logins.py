"""The client's side of a login against the server's: who knows the password is let in, and a server
that does not know it is not believed."""

import random

import pytest

from appliance.authentication import plain
from appliance.authentication.client_login import ClientLogin, NodeCredentials
from appliance.authentication.mechanisms import BY_NAME, PLAIN, SCRAMS
from appliance.authentication.refused import LoginRefused
from appliance.authentication.scram import Credential, ScramServer, made, parse_first

NAMES = ("node", "a,b=c", "=2C", "ü")
PASSWORD = "tops3cret"


def login(mechanism, user="node", password=PASSWORD):
    return ClientLogin(NodeCredentials(mechanism, user, password), "ours")


def server_of(scram, client, password=PASSWORD):
    first = parse_first(client.first_message())
    return ScramServer(scram, first, made(scram, password, b"salt", 4096), True, "theirs")


@pytest.mark.parametrize("user", NAMES)
@pytest.mark.parametrize("scram", SCRAMS)
def test_who_knows_the_password_is_let_in(scram, user):
    client = login(scram.name, user)
    server = server_of(scram, client)
    assert server.user == user
    proof = client.answer_message(server.challenge())
    assert client.answer_message(server.finish(proof)) is None


@pytest.mark.parametrize("scram", SCRAMS)
def test_who_does_not_is_not(scram):
    client = login(scram.name, password="wrong")
    server = server_of(scram, client)
    with pytest.raises(LoginRefused):
        server.finish(client.answer_message(server.challenge()))


@pytest.mark.parametrize("scram", SCRAMS)
def test_a_server_that_does_not_know_it_is_not_believed(scram):
    """It has the stored key, which lets it check a client, and not the server's."""
    client = login(scram.name)
    known = made(scram, PASSWORD, b"salt", 4096)
    stolen = Credential(known.salt, known.stored_key, b"x" * len(known.server_key), 4096)
    server = ScramServer(scram, parse_first(client.first_message()), stolen, True, "theirs")
    answer = server.finish(client.answer_message(server.challenge()))
    with pytest.raises(LoginRefused, match="does not prove"):
        client.answer_message(answer)


@pytest.mark.parametrize(
    "challenge",
    [
        b"", b"\xff", b"r=ours,s=c2FsdA==,i=4096", b"r=other,s=c2FsdA==,i=4096",
        b"r=ourstheirs,s=c2FsdA==,i=0", b"r=ourstheirs,s=c2FsdA==,i=1000000000",
        b"r=ourstheirs,s=c2FsdA==,i=x", b"r=ourstheirs,s=*,i=4096", b"r=ourstheirs,i=4096",
        b"s=c2FsdA==,i=4096",
    ],
)  # fmt: skip
def test_a_challenge_that_is_none_is_refused(challenge):
    with pytest.raises(LoginRefused):
        login("SCRAM-SHA-256").answer_message(challenge)


def test_any_bytes_of_a_server_are_refused():
    chance = random.Random(7)
    base = b"r=ourstheirs,s=c2FsdA==,i=4096"
    for _ in range(2_000):
        data = bytearray(base)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        client = login("SCRAM-SHA-512")
        try:
            proof = client.answer_message(bytes(data))
        except LoginRefused:
            continue
        assert proof.startswith(b"c=biws,r=ours")
        with pytest.raises(LoginRefused):
            client.answer_message(b"v=" + bytes(data))


def test_plain_says_user_and_password_once():
    client = login(PLAIN, "a,b")
    claim = plain.parse(client.first_message())
    assert (claim.user, claim.password, claim.acts_as) == ("a,b", PASSWORD, "")
    assert client.answer_message(b"") is None


def test_no_password_is_shown():
    for name in (PLAIN, *BY_NAME):
        assert PASSWORD not in repr(NodeCredentials(name, "node", PASSWORD))
