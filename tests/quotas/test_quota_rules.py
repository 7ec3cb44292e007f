"""Which rule holds for a client, against the order that Kafka documents, and how clients and values
are typed."""

from itertools import product

import pytest

from appliance.quotas.limits import CONNECTION, FETCH, PRODUCE, Limits, entity_of
from console.model.asking.failure import Failure
from console.model.quotas.quota_rules import Client, client_of, explained, flags, together
from console.model.quotas.quota_values import KINDS, exact, read
from console.model.quotas.quotas import Seen, Usage, clients, usage_of

DOCUMENTED = (  # Apache Kafka's design.html, "Quota Configuration", strongest first
    "/config/users/<user>/clients/<client-id>",
    "/config/users/<user>/clients/<default>",
    "/config/users/<user>",
    "/config/users/<default>/clients/<client-id>",
    "/config/users/<default>/clients/<default>",
    "/config/users/<default>",
    "/config/clients/<client-id>",
    "/config/clients/<default>",
)
NAMES = {"<user>": "u", "<client-id>": "c", "<default>": None}
TYPES = {"users": "user", "clients": "client-id"}


def entity(path):
    parts = path.removeprefix("/config/").split("/")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(sorted((TYPES[kind], NAMES[name]) for kind, name in pairs))


ORDER = [entity(path) for path in DOCUMENTED]


def test_the_rules_are_in_the_order_that_kafka_documents():
    rules = explained({}, Client("u", "c"), (PRODUCE,))
    assert [(one.rank, one.entity) for one in rules] == list(enumerate(ORDER, 1))
    assert not any(one.holds for one in rules)


def test_of_the_rules_that_say_something_the_first_one_holds():
    for there in product((False, True), repeat=len(ORDER)):
        quotas = {
            one: {PRODUCE if is_there else FETCH: float(10 + n)}
            for n, (one, is_there) in enumerate(zip(ORDER, there, strict=True))
        }
        rules = explained(quotas, Client("u", "c"), (PRODUCE,))
        assert [one.value is not None for one in rules] == list(there)
        holding = [one.entity for one in rules if one.holds]
        assert holding == [one for one, is_there in zip(ORDER, there, strict=True) if is_there][:1]
        limit = Limits(PRODUCE, quotas).of("u", "c")
        enforced = [] if limit is None else [entity_of(limit.level, *limit.meter)]
        assert enforced == holding, "what is told is what the appliance does"


def test_who_has_no_client_id_or_user_has_only_the_rules_that_can_name_it():
    rules = explained({}, client_of("user=u"), (PRODUCE,))
    assert [one.rank for one in rules] == [2, 3, 5, 6, 8]
    rules = explained({}, client_of("loader"), (PRODUCE,))
    assert rules[2].entity == (("user", "ANONYMOUS"),), "who does not log in"


def test_an_address_has_rules_for_connections_alone():
    quotas = {(("ip", None),): {CONNECTION: 3.0}, (("ip", "10.0.0.7"),): {CONNECTION: 9.0}}
    rules = explained(quotas, client_of("ip=10.0.0.7"), KINDS)
    assert [(one.kind, one.value, one.holds) for one in rules] == [
        (CONNECTION, 9.0, True),
        (CONNECTION, 3.0, False),
    ]


@pytest.mark.parametrize(
    ("typed", "client"),
    [
        ("user=alice client-id=loader", Client("alice", "loader")),
        ("client=loader user=alice", Client("alice", "loader")),
        ("loader", Client(client_id="loader")),
        ("ip=10.0.0.7", Client(ip="10.0.0.7")),
        ("'a client of mine'", Client(client_id="a client of mine")),
        ("user='x=y [/red]'", Client("x=y [/red]")),
        ("a=b", Client(client_id="a=b")),
    ],
)
def test_a_client_is_typed_and_read_back(typed, client):
    assert client_of(typed) == client
    assert client_of(client.text) == client


@pytest.mark.parametrize("typed", ["", "user=", "ip=1 user=x", "a b", "'", "user=a user=b"])
def test_what_is_no_client_is_said(typed):
    with pytest.raises(Failure):
        client_of(typed)


@pytest.mark.parametrize(
    "name", ["\0", "a b", "'", '"', "\\", "\n", "=", "user=x", "日本", "\udcff"]
)
def test_any_name_is_read_back(name):
    for one in (Client(name, "c"), Client("u", name), Client(client_id=name), Client(ip=name)):
        assert client_of(one.text) == one


def test_who_is_counted_together_goes_by_what_is_named():
    assert [together(one) for one in ORDER] == [
        "client id c of user u",
        "each client id of user u",
        "user u with all its client ids",
        "client id c of each user",
        "each client id of each user",
        "each user with all its client ids",
        "client id c of all users",
        "each client id of all users",
    ]
    assert flags(ORDER[1]) == ("--default", "client-id", "--user", "u")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1.0, 10e6, 12_345_678.0, 2.5e9, 0.125, 33.333333333, 1e22, 7e-5])
def test_a_value_is_typed_as_it_is(kind, value):
    if kind in (PRODUCE, FETCH):
        value = max(1.0, float(round(value)))
    assert read(kind, exact(kind, value)) == value


def test_use_is_found_by_who_is_counted_together():
    def use(user, client_id, set_for, quota=PRODUCE, ip=None):
        return Usage(quota, user, client_id, ip, 1.0, 0.5, 0.5, 0, 0, 0, 0, set_for)

    mine = use(None, "c", "client-id=c")
    others = [
        use(None, "d", "client-id=<default>"),
        use("u", "c", "client-id=c user=<default>"),
        use(None, "c", "client-id=c", FETCH),
        use(None, None, "ip=<default>", CONNECTION, "10.0.0.7"),
        use(None, None, "broker", "max.connection.creation.rate"),
    ]
    seen = Seen({(("client-id", "c"),): {PRODUCE: 1.0}}, (*others, mine))
    [rule] = [one for one in explained(seen.quotas, Client("u", "c"), (PRODUCE,)) if one.holds]
    assert usage_of(seen, rule, Client("u", "c")) is mine
    assert usage_of(seen, rule, Client("u", "d")) is None
    assert clients(seen) == ["client-id=c", "client-id=d", "ip=10.0.0.7", "user=u client-id=c"]
