"""AddPartitionsToTxn."""

from tests.differential.registry import script
from tests.differential.transactions import adding, describe, end, id_of, moved, writer

ADD = "AddPartitionsToTxn"


@script(ADD)
def add_partitions_to_txn(s):
    one, topic, other = writer(s), s.topic(partitions=3), s.topic("other")
    s.ask("good", **adding(one, (topic, 0, 2)))
    s.ask("again", **adding(one, (topic, 0)))
    s.ask("one more, and another topic", **adding(one, (topic, 0, 1), (other, 0)))
    s.ask("twice in one", **adding(one, (topic, 1, 1)))
    describe(s, "added", one[0])
    s.ask("no topics", **adding(one))
    s.ask("no partitions", **adding(one, (topic,)))
    s.ask("epoch too high", **adding(moved(one, epoch=1), (topic, 0)))
    s.ask("epoch -1", **adding(moved(one, epoch=-1 - one[2]), (topic, 0)))
    s.ask("producer id of nobody", **adding(moved(one, 500_000), (topic, 0)))
    s.ask("producer id -1", **adding((one[0], -1, -1), (topic, 0)))
    s.ask("id of nobody", **adding((s.name("nobody"), *one[1:]), (topic, 0)))
    s.ask("no id", **adding(("", *one[1:]), (topic, 0)))
    describe(s, "after mistakes", one[0])


@script(ADD)
def add_partitions_that_are_not_there(s):
    one, topic = writer(s), s.topic(partitions=2)
    s.ask("no such topic", **adding(one, (s.name("none"), 0)))
    s.ask("no such partition", **adding(one, (topic, 5)))
    s.ask("negative partition", **adding(one, (topic, -1)))
    s.ask("one is not there", **adding(one, (topic, 0, 7)))
    s.ask("one topic is not there", **adding(one, (topic, 0), (s.name("other"), 0, 1)))
    s.ask("name that no topic may have", **adding(one, ("not/a/name", 0)))
    describe(s, "nothing added", one[0])


@script(ADD, versions=(3, 4))
def add_ten_thousand_partitions(s):
    one, topic = writer(s), s.topic(partitions=2)
    s.ask("not there", **adding(one, (topic, *range(2, 10_002))))
    describe(s, "added", one[0])


@script(ADD)
def add_partitions_of_the_broker(s):
    one = writer(s)
    id_of(s, "another")  # now __transaction_state is there
    s.ask("its state", **adding(one, ("__transaction_state", 0)))
    describe(s, "added", one[0])


@script(ADD)
def add_partitions_of_two_with_one_id(s):
    """The second takes the id over; the first one's transaction is aborted with its epoch."""
    one, topic = writer(s), s.topic()
    s.ask("the first", **adding(one, (topic, 0)))
    two = writer(s, one[0])
    s.ask("the first is fenced", **adding(one, (topic, 0)))
    s.ask("the second", **adding(two, (topic, 0)))
    s.ask("the first, once more", **adding(one, (topic, 0)))
    describe(s, "the second's", one[0])
    end(s, two)
    s.ask("after its end", **adding(two, (topic, 0)))


@script(ADD, versions=(4, 5))
def add_partitions_verified(s):
    """An empty list of transactions is left out: Kafka never answers that."""
    one, topic = writer(s), s.topic(partitions=2)
    nobody = s.name("nobody"), 7, 0

    def verify(step, one, *topics):
        s.ask(step, **adding(one, *topics, verify=True))

    verify("nothing is open", one, (topic, 0))
    s.ask("good", **adding(one, (topic, 0)))
    verify("is in it", one, (topic, 0))
    verify("is not in it", one, (topic, 1))
    verify("one of two", one, (topic, 0, 1))
    verify("no such topic", one, (s.name("none"), 0))
    verify("epoch too high", moved(one, epoch=1), (topic, 0))
    verify("producer id of nobody", moved(one, 500_000), (topic, 0))
    verify("id of nobody", nobody, (topic, 0))
    two = writer(s, id_of(s, "second"))
    both = adding(one, (topic, 0))["transactions"] + adding(two, (topic, 1))["transactions"]
    s.ask("two at once", transactions=both)
    asked = [{**each, "verify_only": True} for each in both]
    s.ask(
        "two verified at once", transactions=[*asked, *adding(nobody, (topic, 0))["transactions"]]
    )
    end(s, one)
    verify("has ended", one, (topic, 0))
