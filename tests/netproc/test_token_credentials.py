"""Credentials of delegation tokens: made once, forgotten with their token, and only for tokens that
hold."""

import time

from appliance.authentication.delegation import hmac_of, password_of
from appliance.authentication.mechanisms import SCRAMS
from appliance.authentication.scram import is_password
from appliance.config.broker import BrokerConfig
from appliance.metadata.image import MetadataImage
from appliance.netproc.sasl import delegation_tokens
from appliance.netproc.sasl.delegation_tokens import DelegationTokens
from appliance.wire import kraft_records as kraft

SECRET = "secret"
SCRAM = SCRAMS[1]


class Hashing:
    """At once, or not at all."""

    def __init__(self):
        self.asked, self.full, self.fails = 0, False, False

    def ask_thread(self, work, then):
        if self.full:
            return False
        self.asked += 1
        then(False if self.fails else work())
        return True


class World:
    def __init__(self, **words):
        self.image = MetadataImage()
        self.hashing = Hashing()
        config = BrokerConfig.of({"delegation.token.secret.key": SECRET} | words)
        self.tokens = DelegationTokens(lambda: config, lambda: self.image, self.hashing)
        self.offset = 0

    def apply(self, record):
        self.image.apply(self.offset, record)
        self.offset += 1

    def add(self, name, left_ms):
        now_ms = time.time_ns() // 1_000_000
        self.apply(
            kraft.DelegationTokenRecord(
                owner="User:anna", requester="User:anna", renewers=(), issue_timestamp=1,
                max_timestamp=now_ms + 10**9, expiration_timestamp=now_ms + left_ms, token_id=name,
            )
        )  # fmt: skip

    def make(self, name):
        found = []
        asked = self.tokens.make_credential(name, SCRAM, found.append)
        return found if asked else None


def test_a_token_holds_until_it_ends():
    world = World()
    world.add("good", 100_000)
    world.add("ended", -1)
    owner, left_ms = world.tokens.find_valid("good")
    assert owner == "anna" and 0 < left_ms <= 100_000
    assert world.tokens.find_valid("ended") is None
    assert world.tokens.find_valid("never") is None
    world.add("good", -1)
    assert world.tokens.find_valid("good") is None, "it was ended earlier"


def test_without_a_secret_no_token_holds():
    world = World(**{"delegation.token.secret.key": ""})
    world.add("good", 100_000)
    assert world.tokens.find_valid("good") is None


def test_a_credential_is_that_of_the_hmac_and_is_made_once():
    world = World()
    world.add("t", 100_000)
    assert world.tokens.get_credential("t", SCRAM) is None
    [made] = world.make("t")
    assert is_password(SCRAM, made, password_of(hmac_of(SECRET, "t")))
    assert world.tokens.get_credential("t", SCRAM) is made
    assert world.tokens.get_credential("t", SCRAMS[0]) is None


def test_it_is_forgotten_with_its_token_alone():
    world = World()
    world.add("t", 100_000)
    world.make("t")
    world.add("t", 200_000)
    world.tokens.forget_removed("t")
    assert world.tokens.get_credential("t", SCRAM) is not None, "it was renewed"
    world.apply(kraft.RemoveDelegationTokenRecord(token_id="t"))
    world.tokens.forget_removed("t")
    assert world.tokens.get_credential("t", SCRAM) is None


def test_a_thread_that_fails_or_is_full_gives_none():
    world = World()
    world.hashing.fails = True
    assert world.make("t") == [None]
    world.hashing.full = True
    assert world.make("t") is None


def test_as_many_are_remembered_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(delegation_tokens, "_MOST", 2)
    world = World()
    for name in ("a", "b", "c"):
        world.make(name)
    kept = [name for name in ("a", "b", "c") if world.tokens.get_credential(name, SCRAM)]
    assert kept == ["b", "c"]
