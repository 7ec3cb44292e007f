"""Bad bytes in every state of a login: an end, nobody is served who has not logged in, and whoever
behaves is.
"""

import os
from struct import pack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.authentication.mechanisms import BY_NAME
from benchmarks.requests import frame
from tests.broker_process import answers
from tests.hostile.hostile_client import Link, framed
from tests.sasl.conftest import put_users
from tests.sasl.logged import LoggedIn
from tests.sasl.scram_client import ScramClient
from tests.sasl.talk import Talk, authenticate, bare, handshake, plain

GROWTH_BYTES = 64 << 20
SCRAM = "SCRAM-SHA-256"
SERVED = 0x5EC12E70
"""Correlation id of a request that only those are answered who have logged in."""
METADATA = frame(3, 1, SERVED, b"\xff\xff\xff\xff")
LENGTHS = (-1, -2, -(1 << 31), 0, 1, 3, 7, 524_289, 104_857_601, 0x7FFFFFFF, 0x47455420)
relentless = settings(
    max_examples=int(os.environ.get("PENSTOCK_HOSTILE_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Its refusals are told at once, and on one listener a login has to be renewed."""
    words = {
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.sasl_plaintext.connections.max.reauth.ms": "3600000",
    }
    with LoggedIn(tmp_path_factory.mktemp("hostile-sasl") / "data", words, of_kafka=False) as one:
        put_users(one.bootstrap)
        yield one


@pytest.fixture(autouse=True)
def unharmed(hostile):
    """The same processes, about as much memory, and a login for who knows its password."""
    before, memory = hostile.pids(), hostile.memory()
    yield
    with hostile.wire() as wire:
        assert Talk(wire).scram(SCRAM, "alice", "alice-secret")[0] == 0, hostile.output()[-3000:]
    assert answers(hostile.port)
    assert hostile.pids() == before, f"a process died:\n{hostile.output()[-3000:]}"
    used = hostile.memory() - memory
    assert used < GROWTH_BYTES, f"{used >> 20} MB more"
    assert " bug" not in hostile.output(), hostile.output()[-3000:]


def begun(link):
    pass


def greeted(link):
    ask(link, frame(18, 0, 1, b""))


def chosen(link, mechanism="PLAIN", version=1):
    ask(link, handshake(mechanism, version))


def chosen_without_headers(link):
    chosen(link, "PLAIN", 0)


def scram_chosen(link):
    chosen(link, SCRAM)


def scram_chosen_without_headers(link):
    chosen(link, SCRAM, 0)


def scram_challenged(link):
    chosen(link, SCRAM)
    ask(link, authenticate(ScramClient(BY_NAME[SCRAM], "alice", "x").first()))


def scram_challenged_without_headers(link):
    chosen(link, SCRAM, 0)
    ask(link, bare(ScramClient(BY_NAME[SCRAM], "alice", "x").first()))


def known(link):
    chosen(link)
    ask(link, authenticate(plain("alice", "alice-secret")))


def again(link):
    known(link)
    chosen(link)


STRANGERS = (
    begun, greeted, chosen, chosen_without_headers, scram_chosen, scram_chosen_without_headers,
    scram_challenged, scram_challenged_without_headers,
)  # fmt: skip
"""Those that have not logged in."""
STATES = (*STRANGERS, known, again)


def ask(link, request):
    link.send(request)
    assert link.answer() is not None


def port_of(hostile, state):
    return hostile.ports["SASL_PLAINTEXT" if state in (known, again) else "STATIC"]


def throw(hostile, state, *pieces):
    """Bytes on a connection in that state, then a request that wants a login. The connection
    ends; what it says until then does not hold an answer for a stranger."""
    with Link(port_of(hostile, state)) as link:
        state(link)
        link.send(*pieces, METADATA)
        said = link.rest()
        assert said is not None, "the connection of a client that is gone is kept"
        if state is not known:
            assert pack(">i", SERVED) not in said, "who has not logged in is served"


texts = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=100).map(str.encode),
    st.lists(st.sampled_from(
        ["n,,", "y,,", "p=x,", "a=bob,", "n=alice", ",r=abc", "r=", "c=biws", ",p=AAAA", ",m=x",
         "tokenauth=true", "=2C", "=3D", "=", ",", "\0", "é", "\0alice\0", "x" * 5000],
    ), max_size=8).map(lambda parts: "".join(parts).encode()),
)  # fmt: skip
"""Messages of mechanisms, nearly."""


@st.composite
def pieces(draw):
    text = draw(texts)
    match draw(st.integers(0, 7)):
        case 0:
            return text
        case 1:
            return framed(text)
        case 2:
            return authenticate(text, draw(st.integers(0, 2)))
        case 3:  # a length of its own that lies
            said = pack(">i", draw(st.sampled_from(LENGTHS))) + text
            return frame(36, draw(st.integers(0, 1)), 8, said)
        case 4:
            return frame(36, 2, 8, text, flexible=True)
        case 5:
            said = pack(">h", draw(st.sampled_from((-1, -2, -(1 << 15), 0, 5, 0x7FFF)))) + text
            return frame(17, draw(st.integers(-1, 3)), 7, said)
        case 6:
            whole = authenticate(text)
            return whole[: draw(st.integers(0, len(whole)))]
        case _:
            key = draw(st.sampled_from((0, 1, 3, 18, 18, 36, 51, 250)))
            return frame(key, draw(st.integers(-1, 20)), 9, text)


@pytest.mark.parametrize("state", STATES)
@relentless
@given(st.lists(pieces(), min_size=1, max_size=3))
def test_garbage(hostile, state, garbage):
    throw(hostile, state, *garbage)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_that_lie(hostile, state, length):
    throw(hostile, state, pack(">i", length) + bytes(16))
    throw(hostile, state, frame(36, 1, 8, pack(">i", length) + b"x" * 16))
    throw(hostile, state, frame(17, 1, 8, pack(">i", length)[2:] + b"x" * 16))


@pytest.mark.parametrize("state", STRANGERS)
def test_the_longest_messages(hostile, state):
    """Half a megabyte is a message of a login; a byte more is refused before it comes."""
    for byte in (b"\0", b"x", b"\xff", b",", b"="):
        throw(hostile, state, authenticate(byte * 524_200))
    with Link(port_of(hostile, state)) as link:
        state(link)
        link.send(pack(">i", 524_289))
        assert link.closed_by_peer()


def test_many_that_promise_much_hold_little(hostile):
    """Lengths alone reserve no memory; the last one is served as the first."""
    links = [Link(hostile.ports["STATIC"]) for _ in range(64)]
    try:
        for link in links:
            link.send(pack(">i", 524_288) + bytes(8))
        with hostile.wire() as wire:
            assert Talk(wire).plain("alice", "alice-secret")[0] == 0
    finally:
        for link in links:
            link.socket.close()


def test_requests_that_come_with_the_login_wait_for_its_end(hostile):
    """Sent in one piece: each is served as if it had come alone."""
    for port, password, served in (
        ("STATIC", "alice-secret", True), ("STATIC", "no", False),
        ("SASL_PLAINTEXT", "alice-secret", True), ("SASL_PLAINTEXT", "no", False),
    ):  # fmt: skip
        login = handshake("PLAIN") + authenticate(plain("alice", password))
        with Link(hostile.ports[port]) as link:
            link.send(login + METADATA)
            told = [link.answer() for _ in range(3)]
        assert (told[2] is not None) == served
        assert not served or told[2][:4] == pack(">i", SERVED)


def test_clients_that_go_in_the_middle_of_a_login(hostile):
    """While its password is hashed, or its refusal held back."""
    for _ in range(100):
        with Link(hostile.ports["SASL_PLAINTEXT"]) as link:
            link.send(handshake("PLAIN") + authenticate(plain("alice", "no")) + METADATA)
