"""`penstock quota …` as a shell script sees it, and who is throttled, in one call."""

import pytest
from quota_peer import QuotaPeer

from appliance.quotas.limits import CONNECTION, FETCH, PRODUCE
from console.model.asking.link import Link
from console.model.quotas.quotas import all_quotas, change
from tests.compat.waiting import until
from tests.console_process import rows, typing


@pytest.fixture(scope="module")
def run(appliance):
    typed = typing(appliance.bootstrap)
    return lambda *words, **how: typed("quota", *words, **how)


def test_quotas_are_planned_set_described_and_unset(run):
    planned = run("set", "--client-id", "a", "produce=10MB/s", "--dry-run", "-o", "json")
    assert rows(planned)[0]["status"] == "would be changed"
    assert rows(run("list", "-o", "json")) == []
    run("set", "--client-id", "a", "produce=10MB/s", "request=50%", "--yes")
    run("set", "--default", "client-id", "fetch=2MiB", "--yes")
    again = rows(run("set", "--client-id", "a", "produce=10MB", "--yes", "-o", "json"))
    assert [row["status"] for row in again] == ["as it was"]
    listed = rows(run("ls", "-o", "json"))
    assert [(row["entity"], row["quota"], row["value"]) for row in listed] == [
        ("client-id=a", "producer_byte_rate", 10e6),
        ("client-id=a", "request_percentage", 50.0),
        ("client-id=<default>", "consumer_byte_rate", 2.0 * 1024 * 1024),
    ]
    found = rows(run("describe", "--client-id", "a", "-o", "json"))
    assert {row["quota"]: row["set_for"] for row in found} == {
        "producer_byte_rate": "client-id=a",
        "consumer_byte_rate": "client-id=<default>",
        "request_percentage": "client-id=a",
        "controller_mutation_rate": None,
    }
    assert "10 MB/s" in run("list", "--client-id", "a").stdout
    run("unset", "--client-id", "a", "--all", "--yes")
    run("unset", "--default", "client-id", "fetch", "--yes")
    assert run("list", "-o", "name").stdout == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("set", "produce=1MB"), "whose quota"),
        (("set", "--user", "u", "--default", "user", "produce=1MB"), "one of the two"),
        (("set", "--user", "u", "produce=fast"), "10MB/s"),
        (("set", "--user", "u", "produce=5%"), "produce=5% is not a rate"),
        (("set", "--user", "u", "request=5MB"), "not a percentage"),
        (("set", "--user", "u", "mutations=5k"), "not a rate"),
        (("set", "--user", "u", "produce=0"), "greater than 0"),
        (("set", "--user", "u", "speed=1"), "not a quota"),
        (("set", "--user", "u", "--ip", "10.0.0.1", "produce=1"), "cannot be combined"),
        (("unset", "--user", "u"), "--all"),
    ],
)
def test_what_is_mistyped_is_usage(run, args, said):
    assert said in run(*args, code=2).stderr


def test_the_broker_has_the_last_word(run):
    refused = run("set", "--ip", "10.0.0", "connections=5", "--yes", "-o", "json", code=1)
    assert rows(refused)["error"]["code"] == "INVALID_REQUEST"
    assert run("list", "-b", "127.0.0.1:1", code=3)


def test_the_rules_for_a_client_are_explained_in_order(run, appliance):
    link = Link(appliance.bootstrap, {}, 10.0)
    alice, anyone, address = (("user", "alice"),), (("client-id", None),), (("ip", "10.0.0.7"),)
    change(link, anyone, {PRODUCE: 1e6, FETCH: 2e6}, dry_run=False)
    change(link, alice, {PRODUCE: 5e6, FETCH: 9e6}, dry_run=False)
    change(link, address, {CONNECTION: 3.0}, dry_run=False)
    changed = rows(run("set", "--user", "alice", "fetch=none", "-o", "json"))
    assert [(one["before"], one["after"]) for one in changed] == [(9e6, None)]
    who = ("--user", "alice", "--client-id", "loader")
    told = rows(run("explain", *who, "-o", "json"))
    assert [(one["rank"], one["quota"], one["entity"], one["holds"]) for one in told] == [
        (3, PRODUCE, "user=alice", True),
        (8, PRODUCE, "client-id=<default>", False),
        (8, FETCH, "client-id=<default>", True),
    ]
    [one] = rows(run("explain", "--ip", "10.0.0.7", "-o", "json"))
    assert (one["value"], one["together"]) == (3.0, "address 10.0.0.7")
    run("explain", "--default", "user", code=2)
    for entity, own in all_quotas(link).items():
        change(link, entity, dict.fromkeys(own), dry_run=False)


def test_who_is_throttled_by_what_and_for_how_long_is_read_in_one_call(run, appliance, topic_of):
    run("set", "--default", "client-id", "produce=1kB/s", "--yes")
    with QuotaPeer(appliance.bootstrap, "greedy") as one:
        told = one.produce(topic_of, 100_000)
    with QuotaPeer(appliance.bootstrap, "modest") as two:
        assert two.produce(topic_of, 100) == 0
    assert 80_000 < told < 95_000
    greedy, modest = rows(run("usage", "-o", "json"))
    assert (greedy["who"], greedy["client_id"]) == ("client-id=greedy", "greedy")
    assert greedy["set_for"] == "client-id=<default>" and greedy["limit"] == 1000
    assert greedy["used_percent"] > 100 and greedy["throttled"] == 1
    assert 0 < greedy["throttle_ms"] <= told == greedy["last_throttle_ms"]
    assert greedy["throttled_for_ms"] > 0 == modest["throttled_for_ms"]
    assert (modest["who"], modest["throttle_ms"]) == ("client-id=modest", 0)
    assert run("usage", "--throttled", "-o", "name").stdout == "client-id=greedy\n"
    log = appliance.log_text()
    assert log.count("quota-exceeded") == 1 and 'entity="client-id=<default>"' in log
    run("unset", "--default", "client-id", "produce", "--yes")
    assert rows(run("usage", "-o", "json")) == []


def test_what_a_quota_would_have_done_is_told_before_it_is_set(run, appliance, topic_of):
    with QuotaPeer(appliance.bootstrap, "wants much") as one:
        one.produce(topic_of, 100_000)

    def told():
        plan = run("set", "--default", "client-id", "produce=1kB/s", "fetch=1GB/s", "--dry-run")
        return plan.stderr.replace("\n", " ")

    words = "client-id=wants much would have been throttled for"
    until(lambda: words in told())
    assert "(producer_byte_rate 1 kB/s of client-id=<default>; its busiest second was 10" in told()
    other = run("set", "--user", "nobody", "produce=1kB/s", "request=5%", "--dry-run")
    assert "no client with this quota" in other.stderr
    assert "request_percentage is not recorded" in other.stderr
    assert rows(run("list", "-o", "json")) == []


@pytest.fixture(scope="module")
def topic_of(appliance):
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": appliance.bootstrap})
    for made in admin.create_topics([NewTopic("throttled", 1, 1)]).values():
        made.result()
    return "throttled"
