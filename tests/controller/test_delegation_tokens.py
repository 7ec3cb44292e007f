"""Delegation tokens against a dumb twin, by a clock of the test's own."""

import random

import pytest
from test_controller_scenarios import Cluster

from appliance.authentication.delegation import hmac_of, password_of
from appliance.base import errors
from appliance.base.caller import Principal
from appliance.config.delegation import TokenLimits
from appliance.controller import delegation_tokens as tokens
from appliance.metadata.snapshot import to_records
from appliance.wire import kraft_records as kraft

LIMITS = TokenLimits("secret", 1000, 300)
ANNA, BERT, CLEO = (Principal("User", name) for name in ("anna", "bert", "cleo"))
PEOPLE = (ANNA, BERT, CLEO)
SEEDS = range(30)


def test_the_hmac_is_apache_kafkas():
    """HmacSHA512 of the id, as `openssl dgst -sha512 -hmac secret` gives it."""
    assert hmac_of("secret", "id").hex() == (
        "2aab23f380f61ef9a7111a7ca97f6f02b0771b16c0ba10cc108af5b54985f86d"
        "8b0dcd8cbd03ac474c33b27985362edd3ffa0518ae7c9e453e1ceedd535176b5"
    )


class Twin:
    """What there is, as a person would write it down."""

    def __init__(self):
        self.rows = {}

    def create(self, name, owner, renewers, lifetime, now):
        lasts = min(lifetime, 1000) if lifetime > 0 else 1000
        self.rows[name] = {
            "may": {owner, *renewers}, "max": now + lasts, "ends": now + min(lasts, 300)
        }  # fmt: skip
        return self.rows[name]["ends"]

    def change(self, name, who, now):
        row = self.rows.get(name)
        if row is None:
            return errors.DELEGATION_TOKEN_NOT_FOUND
        if row["ends"] < now:
            return errors.DELEGATION_TOKEN_EXPIRED
        return errors.NONE if who in row["may"] else errors.DELEGATION_TOKEN_OWNER_MISMATCH

    def end(self, name, at):
        row = self.rows[name]
        row["ends"] = min(row["max"], at)
        return row["ends"]


class Play:
    """Random requests to both, and the same answers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.node, self.twin, self.now = Cluster(), Twin(), 1_000_000
        self.names = []

    def replay(self, outcome):
        self.node.replay(outcome.records)
        return outcome.code, outcome.expires_ms

    def step(self):
        self.now += self.random.choice((0, 1, 50, 299, 400))
        getattr(self, self.random.choice(("create", "renew", "expire", "expire", "sweep")))()
        ours = {one.token_id: one.expiration_timestamp for one in self.tokens()}
        assert ours == {name: row["ends"] for name, row in self.twin.rows.items()}

    def tokens(self):
        return list(tokens.all_tokens(self.node.image))

    def create(self):
        owner, requester = self.random.choice(PEOPLE), self.random.choice(PEOPLE)
        renewers = self.random.sample(PEOPLE, self.random.randrange(3))
        lifetime = self.random.choice((-1, 0, 1, 200, 5000, 1 << 62))
        name = f"t{len(self.names)}"
        self.names.append(name)
        found = tokens.create_token(LIMITS, owner, requester, renewers, lifetime, self.now, name)
        expected = self.twin.create(name, owner, renewers, lifetime, self.now)
        assert self.replay(found) == (errors.NONE, expected)

    def asked(self):
        name = self.random.choice([*self.names, "never"])
        return name, hmac_of("secret", name), self.random.choice(PEOPLE)

    def renew(self):
        name, mac, who = self.asked()
        period = self.random.choice((-1, 0, 1, 200, 5000, 1 << 62))
        found = tokens.renew_token(self.node.image, LIMITS, mac, who, period, self.now)
        code, ends = self.twin.change(name, who, self.now), 0
        if not code:
            ends = self.twin.end(name, self.now + (min(period, 300) if period > 0 else 300))
        assert self.replay(found) == (code, ends)

    def expire(self):
        name, mac, who = self.asked()
        period = self.random.choice((-1, 0, 1, 200, 5000, 1 << 62))
        found = tokens.expire_token(self.node.image, LIMITS, mac, who, period, self.now)
        code, ends = self.twin.change(name, who, self.now), 0
        if not code and period < 0:
            ends = period
            del self.twin.rows[name]
        elif not code:
            ends = self.twin.end(name, self.now + period)
        assert self.replay(found) == (code, ends)

    def sweep(self):
        gone = tokens.expired_records(self.node.image, self.now)
        self.node.replay(gone)
        late = {name for name, row in self.twin.rows.items() if row["ends"] < self.now}
        assert {one.token_id for one in gone} == late
        for name in late:
            del self.twin.rows[name]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_becomes_of_each_token(seed):
    play = Play(seed)
    for _ in range(200):
        play.step()
    for one in play.tokens():
        assert one.issue_timestamp <= one.expiration_timestamp <= one.max_timestamp


def test_without_a_secret_nothing_is_done():
    image, who = Cluster().image, ANNA
    disabled = errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert tokens.create_token(None, who, who, [], -1, 0, "t").code == disabled
    assert tokens.renew_token(image, None, b"", who, -1, 0).code == disabled
    assert tokens.expire_token(image, None, b"", who, -1, 0).code == disabled


def test_only_users_renew():
    found = tokens.create_token(LIMITS, ANNA, ANNA, [Principal("Group", "g")], -1, 0, "t")
    assert (found.code, found.records) == (errors.INVALID_PRINCIPAL_TYPE, [])


def test_tokens_outlive_a_snapshot_without_their_hmac():
    node = Cluster()
    found = tokens.create_token(LIMITS, ANNA, BERT, [CLEO], -1, 5, "t")
    node.replay(found.records)
    other = Cluster()
    other.replay(to_records(node.image))
    assert tokens.find_token(other.image, "t") == found.token
    written = b"".join(kraft.encode(one, 0) for one in found.records)
    mac = hmac_of("secret", "t")
    assert mac not in written and password_of(mac).encode() not in written


def test_who_sees_a_token():
    node = Cluster()
    for name, owner, requester, renewers in (
        ("own", ANNA, ANNA, []), ("asked", BERT, ANNA, []), ("renewed", BERT, BERT, [ANNA]),
        ("other", BERT, BERT, [CLEO]),
    ):  # fmt: skip
        found = tokens.create_token(LIMITS, owner, requester, renewers, -1, 5, name)
        node.replay(found.records)

    def seen(who, owners=None, ids=(), users=()):
        found = tokens.described_tokens(
            node.image, owners, who, lambda name: name in ids, lambda user: user in users
        )
        return {one.token_id for one in found}

    assert seen(ANNA) == {"own", "asked", "renewed"}
    assert seen(CLEO) == {"other"}
    assert seen(CLEO, ids=("own",)) == {"own", "other"}
    assert seen(CLEO, users=("User:anna",)) == {"own", "other"}
    assert seen(CLEO, users=("User:bert",)) == {"asked", "renewed", "other"}
    assert seen(ANNA, [BERT]) == {"asked", "renewed"}
    assert seen(ANNA, [CLEO]) == set()
    assert seen(ANNA, []) == set()
