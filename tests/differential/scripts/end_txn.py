"""EndTxn."""

from tests.differential.registry import script
from tests.differential.transactions import add, describe, ending, id_of, moved, rest, writer


@script("EndTxn")
def end_txn(s):
    """Versions below 5 keep the epoch, from 5 on each end raises it."""
    one, topic = writer(s), s.topic(partitions=2)
    added = 5 if s.version >= 5 else 3

    def ask(step, one, commit=True):
        said = s.ask(step, **ending(one, commit))
        rest(s, one[0])
        describe(s, step, one[0])
        if said.get("producer_id", -1) < 0 or said["error_code"] != "NONE":
            return one
        return one[0], said["producer_id"], said["producer_epoch"]

    after = ask("nothing was open: commit", one)
    after = ask("nothing was open: abort", after, False)
    for commit in (True, False):
        word = "commit" if commit else "abort"
        add(s, after, topic, 0, 1, version=added)
        before, after = after, ask(f"{word}", after, commit)
        again = ask(f"{word} again", before, commit)
        assert again == after or s.version < 5, (again, after)
        ask(f"{word}, then the other", before, not commit)


@script("EndTxn")
def end_txn_of_others(s):
    one, topic = writer(s), s.topic()
    add(s, one, topic, 0)
    s.ask("epoch too high", **ending(moved(one, epoch=1)))
    s.ask("epoch -1", **ending(moved(one, epoch=-1 - one[2])))
    s.ask("producer id of nobody", **ending(moved(one, 500_000)))
    s.ask("producer id -1", **ending((one[0], -1, -1)))
    s.ask("id of nobody", **ending((s.name("nobody"), *one[1:])))
    s.ask("no id", **ending(("", *one[1:])))
    describe(s, "still open", one[0])
    two = writer(s, one[0])
    s.ask("taken over: commit", **ending(one))
    s.ask("taken over: abort", **ending(one, False))
    s.ask("the second has nothing", **ending(two))
    rest(s, one[0])
    describe(s, "taken over", one[0])


@script("EndTxn")
def end_txn_when_it_took_too_long(s):
    """The coordinator aborts it."""
    name, topic = id_of(s), s.topic()
    said = s.call("InitProducerId", transactional_id=name, transaction_timeout=100,
                  producer_id=-1, producer_epoch=-1)  # fmt: skip
    one = name, said["producer_id"], said["producer_epoch"]
    add(s, one, topic, 0)
    s.until(lambda answer: answer["transaction_states"][0]["transaction_state"]
            == "CompleteAbort", "DescribeTransactions", transactional_ids=[name])  # fmt: skip
    describe(s, "aborted", name)
    s.ask("commit", **ending(one))
    s.ask("abort", **ending(one, False))
