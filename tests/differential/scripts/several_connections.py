"""Two clients at once: one waits for its answer, and another one does what decides it. That the
first one waits already is seen where it can be, or does not matter."""

from tests.differential.groups import group_of, look, topic_for
from tests.differential.records import batch
from tests.differential.registry import APIS, script
from tests.differential.scripts.classic_groups import being, joining, stable, sync
from tests.differential.scripts.fetch import Fetcher
from tests.differential.scripts.produce import both, data
from tests.differential.transactions import add, end, ending, initialising, write, writer

WAIT_MS = 20_000
BEATS = 200


def waiting(s, f, *topics, **values):
    """A connection whose Fetch waits for one more byte."""
    link = s.connect()
    values = {"min_bytes": 1, "max_wait": WAIT_MS, **values}
    link.send(APIS["Fetch"], s.version, f.fields(*topics, **values))
    return link


@script("Fetch", versions=(4, 17))
def fetch_wakes(s):
    """By a record, for each that waits; by the end of a transaction; not by its records."""
    f, topic = Fetcher(s), s.topic(partitions=2)
    links = [waiting(s, f, f.topic(topic, 0, 1)) for _ in range(3)]
    s.produce(topic, batch(b"value"), partition=1)
    for number, link in enumerate(links):
        s.note(f"a record, {number}", link.receive())
    one = writer(s)
    add(s, one, topic, 0, version=3)
    link = waiting(s, f, f.topic(topic, 0), isolation_level=1)
    write(s, one, topic, b"within")
    end(s, one)
    said = link.receive()
    row = said["responses"][0]["partitions"][0]
    row["records"] = len(row["records"])  # a marker has its own time
    s.note("a transaction", said)


@script("Fetch", versions=(12, 17))
def fetch_waits_while_its_topic_goes(s):
    f, topic = Fetcher(s), s.topic()
    link = waiting(s, f, f.topic(topic, 0))
    s.delete(topic)
    s.note("deleted", link.receive())


@script("Produce", versions=(9, 13))
def one_producer_by_two_connections(s):
    """Sequence numbers count, and not where they come from."""
    topic = both(s, s.topic())
    said = s.call("InitProducerId", 4, transactional_id=None, transaction_timeout=60_000,
                  producer_id=-1, producer_epoch=-1)  # fmt: skip
    links = s.connect(), s.connect()

    def produce(step, link, sequence, epoch=said["producer_epoch"]):
        records = batch(b"value", producer=(said["producer_id"], epoch, sequence))
        s.ask(step, link=links[link], acks=-1, timeout=10_000, topic_data=data(s, topic, records))

    produce("first", 0, 0)
    produce("next", 1, 1)
    produce("again", 0, 1)
    produce("again by the other", 1, 0)
    produce("gap", 0, 3)
    produce("behind the gap", 1, 2)
    produce("next epoch, not from 0", 0, 3, epoch=said["producer_epoch"] + 1)
    produce("next epoch", 1, 0, epoch=said["producer_epoch"] + 1)
    produce("old epoch", 0, 3)


def rebalancing(s, group, said):
    """A heartbeat of this member says so."""
    s.until(lambda answer: answer["error_code"] == "REBALANCE_IN_PROGRESS", "Heartbeat", 4,
            **being(group, said))  # fmt: skip


@script("JoinGroup", versions=(5, 9))
def two_members_join(s):
    group = group_of(s)
    first = stable(s, group)
    link = s.connect()
    second = s.call("JoinGroup", link=link, **joining(group))
    s.recognise(second["member_id"], "two")
    link.send(APIS["JoinGroup"], s.version, joining(group, second["member_id"]))
    rebalancing(s, group, first)
    s.ask("share while others join", "SyncGroup", **sync(group, first))
    s.ask("first comes again", **joining(group, first["member_id"]))
    s.note("second is let in", (said := link.receive()))
    s.recognise(said["leader"], "one")
    link.send(APIS["SyncGroup"], s.highest("SyncGroup"), sync(group, said))
    leaving = [{"member_id": first["member_id"]}]
    other = s.connect()
    changed = joining(group, first["member_id"], ("range", "roundrobin"))
    other.send(APIS["JoinGroup"], s.version, changed)
    s.note("first joins again, whom second waits for", link.receive(), "SyncGroup")
    look(s, "in between", group)
    s.ask("first leaves", "LeaveGroup", version=3, group_id=group, members=leaving)
    s.note("first's answer", other.receive())
    look(s, "in the end", group)


@script("JoinGroup", versions=(5, 9))
def who_joins_is_taken_out(s):
    """By a request of somebody else, while it waits for the others."""
    group = group_of(s)
    first = stable(s, group)
    link = s.connect()
    second = s.call("JoinGroup", link=link, **joining(group))
    s.recognise(second["member_id"], "two")
    link.send(APIS["JoinGroup"], s.version, joining(group, second["member_id"]))
    rebalancing(s, group, first)
    s.ask("not empty", "DeleteGroups", groups_names=[group])
    s.ask(
        "out", "LeaveGroup", version=3, group_id=group, members=[{"member_id": second["member_id"]}]
    )
    s.note("second's answer", link.receive())
    look(s, "before the first comes again", group)
    s.ask("first comes again", **joining(group, first["member_id"]))


@script("JoinGroup", versions=(5, 9))
def one_instance_by_two_connections(s):
    """The later one has the name."""
    group = group_of(s)
    first = stable(s, group)
    link = s.connect()
    link.send(APIS["JoinGroup"], s.version, joining(group, group_instance_id="i"))
    rebalancing(s, group, first)
    other = s.connect()
    other.send(APIS["JoinGroup"], s.version, joining(group, group_instance_id="i"))
    said = link.receive()
    s.recognise(said["member_id"], "earlier")
    s.note("earlier", said)
    s.ask("first comes again", **joining(group, first["member_id"]))
    later = other.receive()
    s.recognise(later["member_id"], "later")
    s.note("later", later)


@script("OffsetCommit", versions=(2, 9))
def committing_while_others_join(s):
    group, topic = group_of(s), s.topic()
    first = stable(s, group)
    link = s.connect()
    second = s.call("JoinGroup", link=link, **joining(group))
    link.send(APIS["JoinGroup"], 9, joining(group, second["member_id"]))
    rebalancing(s, group, first)
    rows = [{"name": topic, "partitions": [
        {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}]}]  # fmt: skip
    for word, generation in (
        ("its own", 0),
        ("the next", 1),
        ("none", -1 - first["generation_id"]),
    ):
        s.ask(f"{word} generation", group_id=group, member_id=first["member_id"], topics=rows,
              generation_id_or_member_epoch=first["generation_id"] + generation)  # fmt: skip


@script("EndTxn")
def taken_over_by_another_connection(s):
    """A second producer with the id of a first one, whose transaction is open."""
    topic, one = s.topic(), writer(s)
    add(s, one, topic, 0)
    write(s, one, topic, b"first's")
    link = s.connect()
    asked = initialising(one[0])
    said = link.ask(APIS["InitProducerId"], 4, asked)
    if said["error_code"] == "CONCURRENT_TRANSACTIONS":
        said = s.until(lambda answer: answer["error_code"] != "CONCURRENT_TRANSACTIONS",
                       "InitProducerId", 4, **asked)  # fmt: skip
    s.note("second", said, "InitProducerId", 4)
    s.ask("first ends", **ending(one))
    second = one[0], said["producer_id"], said["producer_epoch"]
    s.ask("second has nothing to end", link=link, **ending(second))


@script("ConsumerGroupHeartbeat", versions=(0, 1))
def two_members_of_the_new_protocol(s):
    """The first one gives partitions up before the second one has them."""
    group = group_of(s)
    topic = topic_for(s, group, partitions=2)
    said = {"group_id": group, "subscribed_topic_names": [topic], "rebalance_timeout": 60_000}
    links = {word: s.connect() for word in ("one", "two")}
    epochs = dict.fromkeys(links, 0)
    owned = {word: [] for word in links}

    def beat(word):
        asked = {**said, "member_id": word, "member_epoch": epochs[word],
                 "topic_partitions": owned[word]}  # fmt: skip
        answer = s.call("ConsumerGroupHeartbeat", s.version, link=links[word], **asked)
        assert answer["error_code"] == "NONE", answer
        epochs[word] = answer["member_epoch"]
        if answer["assignment"]:
            owned[word] = answer["assignment"]["topic_partitions"]
        return sum(len(row["partitions"]) for row in owned[word])

    for step, joined, shares in (("one", ["one"], [2]), ("both", ["one", "two"], [1, 1])):
        for _ in range(BEATS):
            if [beat(word) for word in joined] == shares:
                break
        s.note(step, {word: owned[word] for word in joined})
    look(s, "in the end", group)
