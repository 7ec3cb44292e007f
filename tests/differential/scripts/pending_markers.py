"""Requests that arrive while the markers of the transaction before are still being written: the
request for the end and the one behind it are sent together. A client asks again when it is told
CONCURRENT_TRANSACTIONS; the last answer is compared."""

from tests.differential.groups import BUSY, group_of
from tests.differential.registry import APIS, script
from tests.differential.transactions import (
    add,
    adding,
    codes,
    describe,
    ending,
    initialising,
    moved,
    producing,
    rest,
    who,
    writer,
    written,
)

END, PARTITIONS = "EndTxn", 8
AGAIN = {"CONCURRENT_TRANSACTIONS", "NOT_ENOUGH_REPLICAS", *BUSY}
WHO = {
    "old epoch": {"epoch": -1},
    "epoch": {},
    "next epoch": {"epoch": 1},
    "producer id of nobody": {"number": 500_000},
}


def behind_an_end(s, api, asking, ends=(4, 5), commits=(True, False)):
    """Ask `asking(writer)` right behind an end by each kind of client, as each writer."""
    topic, one = s.topic(partitions=PARTITIONS), writer(s)
    for end in ends:
        for commit in commits:
            for word, numbers in WHO.items():
                one = writer(s, one[0])
                add(s, one, topic, *range(PARTITIONS), version=5 if end == 5 else 3)
                asked = asking(moved(moved(one, epoch=end == 5), **numbers))
                link = s.connect()
                link.send(APIS[END], end, ending(one, commit))
                link.send(APIS[api], s.version, asked)
                assert link.receive()["error_code"] == "NONE"
                said = link.receive()
                if codes(said) & AGAIN:
                    said = s.until(lambda answer: not codes(answer) & AGAIN, api, s.version,
                                   **asked)  # fmt: skip
                link.close()
                step = f"{'commit' if commit else 'abort'} {end}, {word}"
                s.note(step, said)
                rest(s, one[0])
                describe(s, step, one[0])


@script(END)
def end_behind_an_end(s):
    def abort(one):
        return ending(one, commit=False)

    behind_an_end(s, END, abort)


@script(END)
def commit_behind_an_end(s):
    behind_an_end(s, END, ending)


@script("InitProducerId", versions=(3, 5))
def init_producer_id_behind_an_end(s):
    behind_an_end(s, "InitProducerId", lambda one: initialising(*one), commits=(True,))


@script("InitProducerId", versions=(0, 2))
def take_over_behind_an_end(s):
    behind_an_end(s, "InitProducerId", lambda one: initialising(one[0]), commits=(True,))


@script("AddPartitionsToTxn")
def add_partitions_behind_an_end(s):
    topic = s.topic("next")
    behind_an_end(s, "AddPartitionsToTxn", lambda one: adding(one, (topic, 0)), commits=(True,))


@script("AddPartitionsToTxn", versions=(4, 5))
def verify_partitions_behind_an_end(s):
    topic = s.topic("next")
    behind_an_end(
        s, "AddPartitionsToTxn", lambda one: adding(one, (topic, 0), verify=True), commits=(True,)
    )


@script("AddOffsetsToTxn")
def add_offsets_behind_an_end(s):
    group = group_of(s)
    behind_an_end(
        s, "AddOffsetsToTxn", lambda one: {**who(one), "group_id": group}, commits=(True,)
    )


@script("Produce", versions=(9, 13))
def produce_behind_an_end(s):
    topic = s.topic("next")

    def asking(one):
        return producing(s, one, topic, written(one, b"v"), s.version)

    behind_an_end(s, "Produce", asking, ends=(5 if s.version >= 12 else 4,))
