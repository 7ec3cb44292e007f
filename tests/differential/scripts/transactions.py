"""Transactions as their coordinator has them: InitProducerId with a transactional id,
AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, DescribeTransactions, ListTransactions."""

from tests.differential.registry import script

NOBODY = (-1, -1)


def worked(answer):
    return answer["error_code"] == "NONE"


def ready(s):
    """There is a topic of transactions, and one of offsets."""
    for kind in (0, 1):
        s.until(lambda answer: answer["coordinators"][0]["error_code"] == "NONE",
                "FindCoordinator", 6, key_type=kind, coordinator_keys=["x"])  # fmt: skip


def begin(s, word="transaction", timeout=60_000):
    """(transactional id, its new producer)."""
    ready(s)
    name = s.name(word)
    told = s.until(worked, "InitProducerId", 5, transactional_id=name, transaction_timeout=timeout,
                   producer_id=-1, producer_epoch=-1)  # fmt: skip
    s.recognise(told["producer_id"], f"producer of {word}")
    return name, (told["producer_id"], told["producer_epoch"])


def who(name, producer):
    return {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1]}


def added(name, producer, topics):
    """The fields of AddPartitionsToTxn up to version 3."""
    fields = who(name, producer) | {
        "topics": [{"name": one, "partitions": indexes} for one, indexes in topics.items()]
    }
    return {f"v3_and_below_{field}": value for field, value in fields.items()}


def several(*transactions, verify=False):
    """The fields of AddPartitionsToTxn from version 4 on."""
    return {
        "transactions": [
            who(name, producer)
            | {"verify_only": verify,
               "topics": [{"name": one, "partitions": indexes} for one, indexes in topics.items()]}
            for name, producer, topics in transactions
        ]
    }  # fmt: skip


def described(s, step, *names):
    """DescribeTransactions; the partitions of a topic come in no order."""
    answer = s.call("DescribeTransactions", 0, transactional_ids=names)
    for one in answer["transaction_states"]:
        for topic in one["topics"]:
            topic["partitions"].sort()
    s.note(step, answer, "DescribeTransactions", 0)


@script("FindCoordinator", versions=(1, 6))
def find_coordinator_of_transactions(s):
    name, _ = begin(s)
    s.ask("a transactional id", key_type=1, key=name, coordinator_keys=[name])
    s.ask("no name", key_type=1, key="", coordinator_keys=[""])


@script("InitProducerId", versions=(0, 5))
def init_producer_id_of_a_transaction(s):
    ready(s)
    name = s.name("transaction")

    def fields(number=-1, epoch=-1, timeout=60_000, who=name):
        return {"transactional_id": who, "transaction_timeout": timeout, "producer_id": number,
                "producer_epoch": epoch}  # fmt: skip

    number = s.ask_until("new", worked, **fields())["producer_id"]
    s.ask("again", **fields())
    s.ask("no timeout", **fields(timeout=0))
    s.ask("a timeout below 0", **fields(timeout=-1))
    s.ask("a timeout above the limit", **fields(timeout=900_001))
    if s.version >= 3:
        s.ask("goes on", **fields(number, 1))
        s.ask("goes on again", **fields(number, 1))
        s.ask("is fenced", **fields(number, 0))
        s.ask("epoch of the future", **fields(number, 9))
        s.ask("another's id", **fields(number + 500_000, 2))
        s.ask("id without epoch", **fields(number, -1))
        s.ask("epoch without id", **fields(-1, 1))
    s.ask("by its first epoch", **fields())


@script("AddPartitionsToTxn", versions=(0, 3))
def add_partitions(s):
    name, producer = begin(s)
    topic, other = s.topic(partitions=2), s.topic("other")
    unknown = s.name("unknown")
    s.ask("two topics", **added(name, producer, {topic: [0, 1], other: [0]}))
    s.ask("again", **added(name, producer, {topic: [1]}))
    s.ask("none", **added(name, producer, {}))
    s.ask("unknown partition", **added(name, producer, {topic: [0, 7], unknown: [0]}))
    s.ask("older epoch", **added(name, (producer[0], producer[1] - 1), {topic: [0]}))
    s.ask("newer epoch", **added(name, (producer[0], producer[1] + 1), {topic: [0]}))
    s.ask("another's id", **added(name, (producer[0] + 500_000, 0), {topic: [0]}))
    s.ask("unknown transaction", **added(s.name("nobody"), producer, {topic: [0]}))
    s.ask("no transactional id", **added("", producer, {topic: [0]}))
    described(s, "what there is", name)


@script("AddPartitionsToTxn", versions=(4, 5))
def add_partitions_of_several(s):
    (one, first), (two, second) = begin(s, "one"), begin(s, "two")
    topic = s.topic(partitions=2)
    here, there = {topic: [0]}, {topic: [1]}
    ask = s.ask
    ask("one is not in it", **several((one, first, here), verify=True))
    ask("two are added", **several((one, first, here), (two, second, there)))
    ask("two are in it", **several((one, first, here), (two, second, here), verify=True))
    ask("nobody", **several((s.name("nobody"), first, here), (two, first, here)))
    ask("older epoch", **several((one, (first[0], 9), here), verify=True))
    ask("no partitions", **several((one, first, {})))
    ask("unknown topic", **several((one, first, {s.name("unknown"): [0]}), verify=True))
    ask("no transactional id", **several(("", first, here)))


@script("AddOffsetsToTxn")
def add_offsets(s):
    name, producer = begin(s)
    group = s.name("group")
    s.ask("good", **who(name, producer), group_id=group)
    s.ask("again", **who(name, producer), group_id=group)
    s.ask("no group", **who(name, producer), group_id="")
    s.ask("older epoch", **who(name, (producer[0], producer[1] - 1)), group_id=group)
    s.ask("another's id", **who(name, (producer[0] + 500_000, 0)), group_id=group)
    s.ask("unknown transaction", **who(s.name("nobody"), producer), group_id=group)
    s.ask("no transactional id", **who("", producer), group_id=group)


@script("EndTxn")
def end_of_nothing(s):
    name, producer = begin(s)
    s.ask("commit of an empty one", **who(name, producer), committed=True)
    s.ask("older epoch", **who(name, (producer[0], producer[1] - 1)), committed=False)
    s.ask("another's id", **who(name, (producer[0] + 500_000, 0)), committed=False)
    s.ask("unknown transaction", **who(s.name("nobody"), producer), committed=True)
    s.ask("no transactional id", **who("", producer), committed=True)
    s.ask_until("abort of an empty one", over, **who(name, producer), committed=False)


def over(answer):
    return answer["error_code"] != "CONCURRENT_TRANSACTIONS"


@script("DescribeTransactions")
def describe_transactions(s):
    (one, first), (two, _) = begin(s, "one"), begin(s, "two")
    topic = s.topic(partitions=3)
    s.call("AddPartitionsToTxn", 3, **added(one, first, {topic: [2, 0]}))
    described(s, "open and empty", one, two)
    described(s, "unknown", s.name("nobody"), one)
    s.ask("no name", transactional_ids=[""])
    s.ask("none", transactional_ids=[])


@script("ListTransactions")
def list_transactions(s):
    (one, first), (_, second) = begin(s, "one"), begin(s, "two")
    topic = s.topic()
    s.call("AddPartitionsToTxn", 3, **added(one, first, {topic: [0]}))
    producers = [first[0], second[0]]

    def ask(step, **fields):
        every = {"state_filters": [], "producer_id_filters": producers, "duration_filter": -1}
        s.ask(step, **every | fields)

    ask("two producers")
    ask("one producer", producer_id_filters=[second[0]])
    ask("open ones", state_filters=["Ongoing"])
    ask("other states", state_filters=["Empty", "CompleteCommit", "PrepareEpochFence"])
    ask("no state", state_filters=["ongoing", "Empty"])
    ask("unknown producer", producer_id_filters=[999_999_999])
    if s.version >= 1:
        ask("longer than an hour", duration_filter=3_600_000)
        ask("longer than 0", duration_filter=0)
    if s.version >= 2:
        ask("an expression", transactional_id_pattern="one-.*")
        ask("part of a name", transactional_id_pattern="one")
        ask("no expression", transactional_id_pattern="")
        ask("a broken one", transactional_id_pattern="one(")
