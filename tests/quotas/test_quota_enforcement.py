"""Quotas on the wire, asserted by what answers tell. Every expectation here is Kafka's own too:
PENSTOCK_TEST_BROKER=kafka runs these against Apache Kafka.
"""

import time

import pytest
from broker_process import KAFKA
from quota_peer import ms

from appliance.base import errors

U, C, IP = "user", "client-id", "ip"
ME = "ANONYMOUS"
FEW, MANY = 1.0, 1e12
METADATA = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
CONFIGS = {"resources": [], "include_synonyms": False, "include_documentation": False}


def eventually(check):
    """Kafka takes up quotas after it has answered; here the next request is under them."""
    end = time.monotonic() + (10 if KAFKA else 0)
    while not check():
        assert time.monotonic() < end, "not as expected"
        time.sleep(0.02)


def levels(client):
    """Entities that hold for ANONYMOUS with this client id, the strongest first."""
    return [
        ((C, client), (U, ME)),
        ((C, None), (U, ME)),
        ((U, ME),),
        ((C, client), (U, None)),
        ((C, None), (U, None)),
        ((U, None),),
        ((C, client),),
        ((C, None),),
    ]


@pytest.mark.parametrize("strongest", range(8))
def test_the_most_specific_entity_wins(admin, peer, topic, name, strongest):
    """Twice for each level: it alone is narrow, it alone is wide, and all weaker ones the
    opposite."""
    for mine, others in ((FEW, MANY), (MANY, FEW)):
        client = name()
        for n, entity in enumerate(levels(client)):
            bound = None if n < strongest else mine if n == strongest else others
            if bound is not None or entity in admin.described():
                admin.quotas(entity, producer_byte_rate=bound)
        eventually(lambda m=mine, c=client: (peer(c).produce(topic, 100) > 0) == (m == FEW))


def test_a_pause_is_as_long_as_kafkas_arithmetic_says(admin, peer, topic, name):
    client = name()
    admin.quotas(((C, client),), producer_byte_rate=1000.0)
    eventually(lambda: peer(client).produce(topic, 20_000) > 0)
    told = peer(client).produce(topic, 10_000)
    # 30 KB and some bytes at 1 KB/s, less the 10 to 11 s of the windows that were there.
    assert 19_000 <= told <= 20_400


def test_a_fetch_over_its_quota_is_empty_and_no_answer_is_larger_than_the_windows(
    admin, peer, topic, name
):
    client = name()
    writer = peer()
    for _ in range(40):
        writer.produce(topic, 1000)
    admin.quotas(((C, client),), consumer_byte_rate=1000.0)
    seen = []

    def cut():
        seen.append(peer(client).fetch(topic))
        return 0 < seen[-1][1] <= 11_000 or seen[-1][0]

    eventually(cut)
    pause, size = peer(client).fetch(topic)
    assert (pause > 0) == (size == 0)
    pause, size = peer(client).fetch(topic)
    assert 0 < pause <= 11_000 and not size


def test_requests_are_limited_by_the_time_that_they_take(admin, peer, topic, name):
    client = name()
    admin.quotas(((C, client),), request_percentage=0.0001)

    def pauses():
        return [
            ms(peer(client).ask(3, 12, **METADATA)),
            ms(peer(client).ask(18, 2)),
            ms(peer(client).ask(
                18, 3, client_software_name="t", client_software_version="1"
            )),
            ms(peer(client).ask(10, 3, key="g", key_type=0)),
            peer(client).produce(topic, 10),
            peer(client).fetch(topic)[0],
            ms(peer(client).ask(32, 4, **CONFIGS)),
        ]  # fmt: skip

    eventually(lambda: all(0 < pause <= 1000 for pause in pauses()))


def test_acks_0_is_exempt_from_the_time_of_requests(admin, peer, topic, name):
    client = name()
    admin.quotas(((C, client),), request_percentage=0.0001)
    one = peer(client)
    for _ in range(3):
        one.produce(topic, 10, acks=0)
    eventually(lambda: peer(client).produce(topic, 10) > 0)


def test_a_throttled_connection_is_not_read_and_others_are(admin, peer, topic, name):
    client = name()
    admin.quotas(((C, client),), producer_byte_rate=10.0)
    slow = peer(client)
    eventually(lambda: slow.produce(topic, 10_000) > 10_000)
    slow.send(18, 0, b"")
    other = peer()
    for _ in range(50):
        assert ms(other.ask(3, 12, **METADATA)) == 0
    slow.socket.settimeout(0.05)
    with pytest.raises(TimeoutError):
        slow.socket.recv(1)


def create(one, version, name, partitions):
    rows = [
        {"name": name, "num_partitions": partitions, "replication_factor": 1} | EMPTY
    ]  # fmt: skip
    answer = one.ask(19, version, topics=rows, timeout=5000, validate_only=False)
    return int(answer.topics[0].error_code), ms(answer)


EMPTY = {"assignments": [], "configs": []}
QUOTA = errors.THROTTLING_QUOTA_EXCEEDED


def test_changes_of_the_metadata_are_refused_in_debt_and_older_versions_told(admin, peer, name):
    """11 windows of one second save up 11 tokens; each partition takes one."""
    client = name()
    admin.quotas(((C, client),), controller_mutation_rate=0.01)
    topics = [name("t") for _ in range(4)]

    def in_debt():
        code, pause = create(peer(client), 7, topics[0], 5)
        return (code, pause > 0) in (
            (errors.NONE, False),
            (errors.TOPIC_ALREADY_EXISTS, False),
        ) and create(peer(client), 7, topics[1], 1)[0] in (QUOTA, errors.NONE)

    eventually(in_debt)
    code, pause = create(peer(client), 7, topics[2], 1)
    assert code == QUOTA and pause > 100_000
    code, pause = create(peer(client), 6, topics[2], 1)
    assert code == QUOTA and pause > 0
    code, pause = create(peer(client), 5, topics[2], 1)
    assert code == errors.NONE and pause > 0
    rows = [{"name": topics[2], "count": 2, "assignments": None}]
    answer = peer(client).ask(37, 3, topics=rows, timeout=5000, validate_only=False)
    assert int(answer.results[0].error_code) == QUOTA and ms(answer) > 0
    answer = peer(client).ask(37, 2, topics=rows, timeout=5000, validate_only=False)
    assert int(answer.results[0].error_code) == errors.NONE and ms(answer) > 0
    answer = peer(client).ask(20, 5, topic_names=[topics[2]], timeout=5000)
    assert int(answer.responses[0].error_code) == QUOTA and ms(answer) > 0
    answer = peer(client).ask(20, 4, topic_names=[topics[2]], timeout=5000)
    assert int(answer.responses[0].error_code) == errors.NONE and ms(answer) > 0
    code, pause = create(peer(), 7, topics[3], 20)
    assert (code, pause) == (errors.NONE, 0), "nobody else is held"


def test_connections_of_one_address_are_held_and_hung_up_on(admin, peer):
    """At 2 a second 20 may come at once; one that comes too fast is closed without an answer."""
    admin.quotas(((IP, "127.0.0.1"),), connection_creation_rate=2.0)

    def refused():
        ends = []
        for _ in range(40):
            one = peer()
            one.send(18, 0, b"")
            one.socket.settimeout(10)
            try:
                ends.append(one.socket.recv(1) == b"")
            except ConnectionResetError:  # what we had sent was never read
                ends.append(True)
            one.socket.close()
            if ends[-1]:
                return 5 <= len(ends) <= 23
        return False

    eventually(refused)


def test_what_is_set_is_described_as_it_was_named(admin, name):
    user, client = name("u"), name()
    admin.quotas(((U, user),), producer_byte_rate=10.0, request_percentage=12.5)
    admin.quotas(((C, client), (U, user)), consumer_byte_rate=20.0)
    admin.quotas(((C, None), (U, user)), controller_mutation_rate=2.5)
    admin.quotas(((IP, None),), connection_creation_rate=7.0)
    admin.quotas(((IP, "10.0.0.9"),), connection_creation_rate=3.0)
    mine = {((U, user),): {"producer_byte_rate": 10.0, "request_percentage": 12.5}}
    both = {
        ((C, client), (U, user)): {"consumer_byte_rate": 20.0},
        ((C, None), (U, user)): {"controller_mutation_rate": 2.5},
    }
    exact, default, any_ = 0, 1, 2
    assert admin.described((U, exact, user), strict=True) == mine
    assert admin.described((U, exact, user)) == mine | both
    assert admin.described((U, exact, user), (C, any_, None), strict=True) == both
    assert len(admin.described((U, exact, user), (C, default, None))) == 1
    assert len(admin.described((IP, any_, None))) == 2
    assert list(admin.described((IP, default, None))) == [((IP, None),)]


WRONG = (
    (((U, "a"),), "connection_creation_rate", 1.0),
    (((IP, "10.0.0.1"),), "producer_byte_rate", 1.0),
    (((IP, "not-an-address"),), "connection_creation_rate", 1.0),
    (((IP, "10.0.0.1"), (U, "a")), "connection_creation_rate", 1.0),
    (((U, ""),), "producer_byte_rate", 1.0),
    ((("group", "a"),), "producer_byte_rate", 1.0),
    ((), "producer_byte_rate", 1.0),
    (((U, "a"),), "no_such_rate", 1.0),
    (((U, "a"),), "producer_byte_rate", 0.0),
    (((U, "a"),), "producer_byte_rate", -1.0),
    (((U, "a"),), "producer_byte_rate", 1.5),
    (((U, "a"),), "request_percentage", 0.0),
)


@pytest.mark.parametrize(("entity", "key", "value"), WRONG)
def test_what_makes_no_sense_is_refused_as_kafka_refuses_it(admin, entity, key, value):
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
    ops = [{"key": key, "value": value, "remove": False}]
    entries = [{"entity": parts, "ops": ops}]
    for validate_only in (True, False):
        answer = admin.ask(49, 1, entries=entries, validate_only=validate_only)
        assert int(answer.entries[0].error_code) == errors.INVALID_REQUEST, answer
    assert not admin.described()
