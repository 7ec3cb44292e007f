"""Delegation tokens (KIP-48) by raw requests and logins: the same answers as Apache Kafka's."""

import base64
import time

import pytest

from tests.differential.link import CLOSED, Link
from tests.sasl.logged import HOST
from tests.sasl.talk import CLOSED as HUNG_UP
from tests.sasl.talk import Talk

CREATE, RENEW, EXPIRE, DESCRIBE, METADATA = 38, 39, 40, 41, 3
NEWEST = {CREATE: 3, RENEW: 2, EXPIRE: 2, DESCRIBE: 3, METADATA: 12}
MINUTE_MS = 60_000
TIMES = ("issue_timestamp", "expiry_timestamp", "max_timestamp")
BY_TOKEN = ",tokenauth=true"
NOBODY = {"owner_principal_type": None, "owner_principal_name": None}
OWN = {**NOBODY, "renewers": [], "max_lifetime": -1}


def user(name, kind="User"):
    return {"principal_type": kind, "principal_name": name}


class Party:
    """Connections to one broker, and what it said, without what chance made of it."""

    def __init__(self, broker):
        self.broker = broker
        self.links = {}
        self.mine = set()  # ids of tokens: others' are left from other scripts
        self.said = []
        self.wires = []

    def link(self, name, listener="STATIC"):
        if name not in self.links:
            self.links[name] = link = Link((HOST, self.broker.ports[listener]))
            if listener == "STATIC":
                link.login(name, f"{name}-secret")
        return self.links[name]

    def ask(self, who, key, version=None, **values):
        """The answer as it came; what is compared is noted."""
        version = NEWEST[key] if version is None else version
        answer = self.link(who).ask(key, version, values)
        if key == CREATE and answer["token_id"]:
            self.mine.add(answer["token_id"])
        self.said.append(plain(self.own(answer)))
        return answer

    def own(self, answer):
        """Without tokens of other scripts."""
        if "tokens" not in answer:
            return answer
        found = [one for one in answer["tokens"] if one["token_id"] in self.mine]
        return answer | {"tokens": sorted(found, key=lambda one: one["issue_timestamp"])}

    def create(self, who="alice", **values):
        return self.ask(who, CREATE, **(OWN | values))

    def describe_when(self, who, count):
        """The answer once there are that many tokens of the caller: brokers learn them later."""
        end = time.monotonic() + 30
        while True:
            answer = self.own(self.link(who).ask(DESCRIBE, 3, {"owners": [user(who)]}))
            if len(answer["tokens"]) == count or time.monotonic() > end:
                self.said.append(plain(answer))
                return answer

    def wait_for_end(self, who, token):
        """The broker knows that the token has expired."""
        limit = time.monotonic() + 30
        while True:
            told = self.link(who).ask(DESCRIBE, 3, {"owners": [user(who)]})["tokens"]
            ends = {one["token_id"]: one["expiry_timestamp"] for one in told}
            if ends[token["token_id"]] < time.time() * 1000:
                return
            assert time.monotonic() < limit, ends

    def login(self, token, mechanism="SCRAM-SHA-512", password=None, listener="STATIC"):
        """A connection that has tried to log in by a token, and what was answered."""
        talk = Talk(self.broker.wire(listener))
        self.wires.append(talk.wire)
        secret = password or base64.b64encode(bytes.fromhex(token["hmac"])).decode()
        told = talk.scram(mechanism, token["token_id"], secret, 2, BY_TOKEN)
        if told is not HUNG_UP:
            code, text, _, lifetime = told
            self.said.append((code, text, minutes(lifetime)))
        return talk, told

    def login_when(self, token, lets_in):
        """The same, once the broker knows of the token, or of its end."""
        end = time.monotonic() + 30
        while True:
            talk, told = self.login(token)
            done = told is not HUNG_UP and (told[0] == 0) == lets_in
            if done or time.monotonic() > end:
                assert done, told
                return talk
            self.said.pop()

    def close(self):
        for one in (*self.links.values(), *self.wires):
            one.close()


def minutes(ms):
    return round(ms / MINUTE_MS)


def plain(answer):
    """Without ids and HMACs; times as minutes from now."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    found = {}
    for key, value in answer.items():
        if key in TIMES and isinstance(value, int):
            value = value if value <= 0 else minutes(value - time.time() * 1000)
        elif key == "token_id" and value:
            value = f"{len(value)} characters"
        elif key == "hmac" and value:
            value = f"{len(value) // 2} bytes"
        found[key] = plain(value)
    return found


def mac(token):
    return bytes.fromhex(token["hmac"])


def in_each_version(p):
    for version in (1, 2, 3):
        p.ask("alice", CREATE, version, **OWN)
    p.describe_when("alice", 3)
    for version in (1, 2, 3):
        p.ask("alice", DESCRIBE, version, owners=None)
    token = p.create()
    p.describe_when("alice", 4)
    for version in (1, 2):
        p.ask("alice", RENEW, version, hmac=mac(token), renew_period=-1)
        p.ask("alice", EXPIRE, version, hmac=mac(token), expiry_time_period=60 * MINUTE_MS)


def created(p):
    p.create(renewers=[user("bob"), user("carol")])
    for lifetime in (0, 1, 3 * MINUTE_MS, 60 * MINUTE_MS, 10**12):
        p.create(max_lifetime=lifetime)
    p.create(renewers=[user("g", "Group")])
    p.create(renewers=[user("bob"), user("")])
    p.create(owner_principal_type="User", owner_principal_name="carol")
    p.create(owner_principal_type="User", owner_principal_name="")
    p.create(owner_principal_type="", owner_principal_name=None)


def described(p):
    p.create()
    p.create(renewers=[user("bob")])
    p.create("bob")
    p.describe_when("alice", 2)
    p.describe_when("bob", 2)
    for who in ("alice", "bob"):
        for owners in ([], [user("alice")], [user("bob")], [user("nobody")],
                       [user("alice", "Group")]):  # fmt: skip
            told = p.ask(who, DESCRIBE, owners=owners)
            assert told["error_code"] == "NONE"


def renewed(p):
    token = p.create(renewers=[user("bob")])
    p.describe_when("alice", 1)
    for who in ("alice", "bob"):
        for period in (-5, -1, 0, 60 * MINUTE_MS, 10**10):
            p.ask(who, RENEW, hmac=mac(token), renew_period=period)
    other = p.create()
    p.describe_when("alice", 2)
    p.ask("bob", RENEW, hmac=mac(other), renew_period=-1)
    p.ask("alice", RENEW, hmac=b"nonsense", renew_period=-1)
    p.ask("alice", RENEW, hmac=b"", renew_period=-1)


def expired(p):
    token = p.create(renewers=[user("bob")])
    p.describe_when("alice", 1)
    p.ask("alice", EXPIRE, hmac=b"nonsense", expiry_time_period=-1)
    p.ask("bob", EXPIRE, hmac=mac(token), expiry_time_period=120 * MINUTE_MS)
    p.ask("alice", EXPIRE, hmac=mac(token), expiry_time_period=10**10)
    p.ask("alice", EXPIRE, hmac=mac(token), expiry_time_period=0)
    p.wait_for_end("alice", token)
    for who in ("alice", "bob"):
        p.ask(who, RENEW, hmac=mac(token), renew_period=-1)
        p.ask(who, EXPIRE, hmac=mac(token), expiry_time_period=5)
    other = p.create()
    p.describe_when("alice", 2)
    p.ask("bob", EXPIRE, hmac=mac(other), expiry_time_period=-1)
    told = p.link("alice").ask(EXPIRE, 2, {"hmac": mac(other), "expiry_time_period": -1})
    p.said.append(told["error_code"])
    p.describe_when("alice", 1)
    p.ask("alice", EXPIRE, hmac=mac(other), expiry_time_period=-1)
    p.ask("alice", RENEW, hmac=mac(other), renew_period=-1)


def over_plaintext(p):
    p.link("stranger", "PLAINTEXT")
    p.create("stranger")
    p.create("stranger", renewers=[user("g", "Group")])
    p.ask("stranger", RENEW, hmac=b"x", renew_period=-1)
    p.ask("stranger", EXPIRE, hmac=b"x", expiry_time_period=-1)
    p.ask("stranger", DESCRIBE, owners=None)


def logged_in(p):
    token = p.create(renewers=[user("bob")])
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        p.login_when(token, True)
        talk, _ = p.login(token, mechanism)
        p.said.append(talk.any(METADATA, 1, b"\xff\xff\xff\xff") is not HUNG_UP)
        talk, told = p.login(token, mechanism, password="wrong")
        assert told[0] == 58
        p.said.append(talk.ends() is not None)
    unknown = {**token, "token_id": "x" * 22}
    talk, told = p.login(unknown)
    assert told[0] == 58
    p.said.append(talk.ends() is not None)


def asks_by_token(p):
    token = p.create()
    talk = p.login_when(token, True)
    p.links["token"] = Link((HOST, p.broker.ports["STATIC"]))
    p.links["token"].close()
    p.links["token"]._socket = talk.wire.socket
    assert p.create("token")["error_code"] == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
    p.ask("token", RENEW, hmac=mac(token), renew_period=-1)
    p.ask("token", EXPIRE, hmac=mac(token), expiry_time_period=-1)
    p.ask("token", DESCRIBE, owners=None)
    assert p.describe_when("alice", 1)["tokens"], "it was not changed"


def removed(p):
    """Who has logged in by it stays; nobody else comes."""
    token = p.create()
    talk = p.login_when(token, True)
    p.link("alice").ask(EXPIRE, 2, {"hmac": mac(token), "expiry_time_period": -1})
    p.login_when(token, False)
    p.said.append(talk.any(METADATA, 1, b"\xff\xff\xff\xff") is not HUNG_UP)


SCRIPTS = (
    in_each_version, created, described, renewed, expired, over_plaintext, logged_in,
    asks_by_token, removed,
)  # fmt: skip


def play(broker, script):
    party = Party(broker)
    try:
        script(party)
        return party.said
    finally:
        party.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_apache_kafka_says_the_same(broker, apache, script):
    ours, kafka = play(broker, script), play(apache, script)
    for number, (one, other) in enumerate(zip(ours, kafka, strict=True)):
        assert one == other, number
    assert CLOSED not in ours
