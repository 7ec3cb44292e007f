"""AddOffsetsToTxn."""

from tests.differential.groups import group_of
from tests.differential.registry import script
from tests.differential.transactions import describe, end, moved, rest, who, writer


@script("AddOffsetsToTxn")
def add_offsets_to_txn(s):
    one, group = writer(s), group_of(s)

    def ask(step, one, group):
        s.ask(step, **who(one), group_id=group)

    ask("good", one, group)
    ask("again", one, group)
    state = s.call("DescribeTransactions", transactional_ids=[one[0]])["transaction_states"][0]
    (topic,) = state["topics"]
    assert (topic["topic"], len(topic["partitions"])) == ("__consumer_offsets", 1)
    ask("no group", one, "")
    ask("epoch too high", moved(one, epoch=1), group)
    ask("epoch -1", moved(one, epoch=-1 - one[2]), group)
    ask("producer id of nobody", moved(one, 500_000), group)
    ask("id of nobody", (s.name("nobody"), *one[1:]), group)
    ask("no id", ("", *one[1:]), group)
    end(s, one)
    describe(s, "ended", one[0])
    two = writer(s, one[0])
    ask("the first is fenced", one, group)
    ask("the second", two, group)
    end(s, two, False)
    rest(s, one[0])
    describe(s, "ended again", one[0])
