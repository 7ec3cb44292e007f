"""The first request of a broker's life: nothing has been asked of it before, so no internal topic
is there and no coordinator has loaded.

An appliance is new for each request. Apache Kafka is new for the first of them and as good as new
for the next, as long as none of its internal topics is there, which is looked at each time: it
makes them for FindCoordinator alone, so those requests come last, one for each topic.
"""

import contextlib

import pytest

from benchmarks import kafka
from tests.differential import registry, run, table
from tests.differential.groups import BUSY
from tests.differential.scripts.classic_groups import joining
from tests.differential.transactions import adding, codes, ending, initialising, who

NOBODY = ("id", 4000, 0)
AGAIN = {*BUSY, "CONCURRENT_TRANSACTIONS"}
INTERNAL = ("__consumer_offsets", "__transaction_state")
pytestmark = pytest.mark.timeout(300)
FIRST = {
    "OffsetFetch": {"groups": [{"group_id": "group", "topics": None, "member_epoch": -1}]},
    "OffsetCommit": {"group_id": "group", "generation_id_or_member_epoch": -1, "topics": []},
    "JoinGroup": joining("group"),
    "ConsumerGroupHeartbeat": {
        "group_id": "group", "member_id": "member", "subscribed_topic_names": ["topic"],
        "rebalance_timeout": 60_000, "topic_partitions": [],
    },
    "DescribeGroups": {"groups": ["group"]},
    "DeleteGroups": {"groups_names": ["group"]},
    "ListGroups": {},
    "InitProducerId": initialising("id"),
    "AddPartitionsToTxn": adding(NOBODY, ("topic", 0)),
    "AddOffsetsToTxn": {**who(NOBODY), "group_id": "group"},
    "EndTxn": ending(NOBODY),
    "DescribeTransactions": {"transactional_ids": ["id"]},
    "ListTransactions": {},
}  # fmt: skip
COORDINATORS = {
    "group": {"key_type": 0, "coordinator_keys": ["group"]},
    "id": {"key_type": 1, "coordinator_keys": ["id"]},
}
VERSIONS = {"OffsetCommit": 9, "OffsetFetch": 9, "EndTxn": 4, "AddPartitionsToTxn": 3}
"""Where the highest one names topics by ids, or is for brokers."""


def asked_first(api, asked):
    """One request, once. A member's id is another one on each broker."""

    def ask(s):
        answer = s.call(api, s.version, **asked)
        if answer.get("member_id"):
            s.recognise(answer["member_id"], "member")
        s.note("first", answer)

    return ask


def looked_for(word, asked):
    """The client looks for its coordinator, which makes the topic, and finds it in the end."""

    def ask(s):
        s.ask_until("found", lambda answer: not codes(answer) & AGAIN, **asked)
        described = ("DescribeGroups", "groups") if word == "group" else (
            "DescribeTransactions", "transactional_ids")  # fmt: skip
        api, field = described
        s.ask_until("served", lambda answer: not codes(answer) & AGAIN, api, **{field: [word]})

    return ask


def internal_topics(target):
    """Those that the broker has."""
    scene = target.scene(target, registry.Script("fresh_look", "Metadata", None, None), 12, "look")
    try:
        topics = scene.call("Metadata", 12, topics=None)["topics"]
    finally:
        scene.close()
    return {topic["name"] for topic in topics} & set(INTERNAL)


def version_of(api, targets):
    known = min(target.ranges[registry.APIS[api]][1] for target in targets)
    return VERSIONS.get(api, min(known, 5) if api == "InitProducerId" else known)


def compared(ours, theirs, api, word, play):
    """The report of one script."""
    version = version_of(api, (ours, theirs))
    script = registry.Script(f"fresh_{word}", api, play, range(version, version + 1))
    return run.run([script], (ours, theirs), table.of_first_requests(), whole=False)


def test_the_first_request_is_answered_the_same(tmp_path):
    if reason := kafka.unavailable():
        pytest.skip(reason)
    scripts = [(api, api.lower(), asked_first(api, asked), {}) for api, asked in FIRST.items()]
    scripts += [
        ("FindCoordinator", f"coordinator_of_{word}", looked_for(word, asked), topics)
        for (word, asked), topics in zip(
            COORDINATORS.items(), ({}, {"__consumer_offsets"}), strict=True
        )
    ]
    differ, wrong = [], []
    with contextlib.ExitStack() as running:
        theirs = run.start_kafka(running, tmp_path / "kafka", run.SETTINGS)
        for api, word, play, topics in scripts:
            assert internal_topics(theirs) == set(topics), f"Apache Kafka is not new for {word}"
            with contextlib.ExitStack() as own:
                ours = run.start_penstock(own, tmp_path / word, run.SETTINGS)
                report = compared(ours, theirs, api, word, play)
                assert report.asked or report.broken, f"{word} asked nothing"
                differ += report.expected
                wrong += [] if report.good else [str(report)]
    assert not wrong, "\n".join(wrong)
    stale = [str(one) for one in table.of_first_requests() if not any(map(one.covers, differ))]
    assert not stale, f"in the table, but no longer different: {stale}"
