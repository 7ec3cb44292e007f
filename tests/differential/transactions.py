"""What the scripts of transactions share.

A writer is (transactional id, producer id, epoch) as a client knows it.
"""

from tests.differential.groups import BUSY
from tests.differential.records import batch

TRANSACTIONAL = 0x10
"""The bit of a batch's attributes."""
TIMEOUT_MS = 60_000
NONE = "NONE"


def id_of(s, word="id"):
    """A new transactional id, whose coordinator serves."""
    name = s.name(word)
    for api, field, asked in (
        ("FindCoordinator", "coordinators", {"key_type": 1, "coordinator_keys": [name]}),
        ("DescribeTransactions", "transaction_states", {"transactional_ids": [name]}),
    ):
        s.until(lambda answer, field=field: answer[field][0]["error_code"] not in BUSY,
                api, s.highest(api), **asked)  # fmt: skip
    return name


def initialising(name, number=-1, epoch=-1, timeout=TIMEOUT_MS):
    """What InitProducerId takes."""
    return {"transactional_id": name, "transaction_timeout": timeout, "producer_id": number,
            "producer_epoch": epoch}  # fmt: skip


def writer(s, name=None, version=5, timeout=TIMEOUT_MS):
    """One that may begin: (id, producer id, epoch)."""
    name = name or id_of(s)
    said = s.until(lambda answer: answer["error_code"] not in ("CONCURRENT_TRANSACTIONS", *BUSY),
                   "InitProducerId", version,
                   **initialising(name, timeout=timeout))  # fmt: skip
    assert said["error_code"] == NONE, said
    return name, said["producer_id"], said["producer_epoch"]


def moved(one, number=0, epoch=0):
    """A writer that says other numbers than it was given."""
    return one[0], one[1] + number, one[2] + epoch


def adding(one, *topics, verify=False):
    """What AddPartitionsToTxn takes in all its versions. topics: (name, partitions…)."""
    fields = {
        **who(one),
        "topics": [{"name": name, "partitions": list(rest)} for name, *rest in topics],
    }
    old = {f"v3_and_below_{field}": value for field, value in fields.items()}
    return {**old, "transactions": [{**fields, "verify_only": verify}]}


def who(one):
    return {"transactional_id": one[0], "producer_id": one[1], "producer_epoch": one[2]}


def add(s, one, topic, *partitions, version=3):
    """These partitions belong to its transaction now."""
    said = s.until(lambda answer: codes(answer) != {"CONCURRENT_TRANSACTIONS"},
                   "AddPartitionsToTxn", version, **adding(one, (topic, *partitions)))  # fmt: skip
    assert codes(said) == {NONE}, said


def codes(answer):
    """The error codes of an answer of AddPartitionsToTxn, TxnOffsetCommit or WriteTxnMarkers."""
    found = set()

    def walk(part):
        for key, value in part.items():
            if key in ("error_code", "partition_error_code"):
                found.add(value)
            for inner in value if isinstance(value, list) else ():
                if isinstance(inner, dict):
                    walk(inner)

    walk(answer)
    return found


def ending(one, commit=True):
    """What EndTxn takes."""
    return {**who(one), "committed": commit}


def end(s, one, commit=True, version=4):
    """Its transaction has ended, its markers are written. The writer that may go on."""
    said = s.until(lambda answer: answer["error_code"] != "CONCURRENT_TRANSACTIONS",
                   "EndTxn", version, **ending(one, commit))  # fmt: skip
    assert said["error_code"] == NONE, said
    rest(s, one[0])
    return (one[0], said["producer_id"], said["producer_epoch"]) if version >= 5 else one


def state(s, name):
    """What DescribeTransactions knows of an id."""
    return s.call("DescribeTransactions", transactional_ids=[name])["transaction_states"][0]


def rest(s, name):
    """Wait until nothing of the id is on its way any more."""
    s.until(lambda answer: not answer["transaction_states"][0]["transaction_state"]
            .startswith("Prepare"), "DescribeTransactions", transactional_ids=[name])  # fmt: skip


def describe(s, step, *names):
    """Note DescribeTransactions."""
    answer = s.call("DescribeTransactions", transactional_ids=names)
    for one in in_order(answer)["transaction_states"]:
        for topic in one["topics"]:
            topic["partitions"].sort()
    s.note(f"{step}: described", answer, "DescribeTransactions")


def in_order(answer):
    """By name, as producer ids are counted in the order in which they stand in an answer."""
    answer["transaction_states"].sort(key=lambda one: one["transactional_id"])
    return answer


def written(one, *values, sequence=0, attributes=TRANSACTIONAL):
    """A batch of the writer's transaction."""
    return batch(*values, attributes=attributes, producer=(one[1], one[2], sequence))


def producing(s, one, topic, records, version, index=0):
    """What Produce takes for one partition. one: a writer, or None for no transactional id."""
    named = {"topic_id": s.topic_id(topic)} if version >= 13 else {"name": topic}
    return {
        "acks": -1, "timeout": 10_000, "transactional_id": one and one[0],
        "topic_data": [{**named, "partition_data": [{"index": index, "records": records}]}],
    }  # fmt: skip


def write(s, one, topic, *values, sequence=0, version=9, index=0):
    """Append a batch of the writer's transaction, which knows the partition."""
    asked = producing(s, one, topic, written(one, *values, sequence=sequence), version, index)
    said = s.call("Produce", version, **asked)
    code = said["responses"][0]["partition_responses"][0]["error_code"]
    assert code == NONE, said


def taken(answer):
    """Is this answer of Produce the last word? Kafka is asked again while it looks the transaction
    up, or while markers of the last one are on their way."""
    (row,) = answer["responses"]
    code = row["partition_responses"][0]["error_code"]
    return code not in ("CONCURRENT_TRANSACTIONS", "NOT_ENOUGH_REPLICAS", *BUSY)
