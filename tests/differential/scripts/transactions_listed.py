"""DescribeTransactions, ListTransactions."""

from tests.differential.registry import script
from tests.differential.transactions import add, describe, end, id_of, in_order, writer

DESCRIBE, LIST = "DescribeTransactions", "ListTransactions"


@script(DESCRIBE)
def describe_transactions(s):
    topic, other = s.topic(partitions=3), s.topic("other")
    one, two = writer(s, id_of(s, "one")), writer(s, id_of(s, "two"))
    names = [one[0], two[0]]
    describe(s, "new", *names)
    add(s, one, topic, 2, 0)
    add(s, one, other, 0)
    describe(s, "open", *names)
    describe(s, "one, twice", one[0], one[0])
    describe(s, "of nobody", s.name("nobody"), one[0])
    s.ask("no name", transactional_ids=[""])
    s.ask("nothing", transactional_ids=[])
    end(s, one)
    add(s, two, topic, 0)
    end(s, two, False)
    describe(s, "ended", *names)


@script(LIST)
def list_transactions(s):
    topic = s.topic()
    writers = [writer(s, id_of(s, word)) for word in ("empty", "open", "done", "not")]
    for one in writers[1:]:
        add(s, one, topic, 0)
    for one, commit in zip(writers[2:], (True, False), strict=True):
        end(s, one, commit)
    ours = [one[1] for one in writers]

    def ask(step, **filters):
        asked = {"producer_id_filters": ours, "duration_filter": -1, **filters}
        answer = s.call(LIST, s.version, **asked)
        answer["unknown_state_filters"].sort()  # they come in no order
        s.note(step, in_order(answer))

    ask("all of ours")
    ask("one", producer_id_filters=ours[1:2])
    ask("an id of nobody", producer_id_filters=[987_654_321])
    ask("open ones", state_filters=["Ongoing"])
    ask("two states", state_filters=["CompleteCommit", "CompleteAbort"])
    ask("unknown states", state_filters=["Strange", "ongoing", ""])
    ask("one is unknown", state_filters=["Strange", "Ongoing"])
    if s.version >= 1:
        ask("all that run", duration_filter=0)
        ask("those that run for long", duration_filter=3_600_000)
        ask("duration -2", duration_filter=-2)
    if s.version >= 2:
        ask("by a part of the name", transactional_id_pattern="open.*")
        ask("by a name that is none", transactional_id_pattern="nothing")
        ask("by every name", transactional_id_pattern=".*")
        ask("by no name", transactional_id_pattern="")
        ask("by a wrong pattern", transactional_id_pattern="(")
