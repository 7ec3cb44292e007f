"""Exactly once as it is decided: every crash between any two steps, without Spark and Kafka."""

import itertools
from types import SimpleNamespace

import pytest

from spark_local import delivery
from spark_local.cause import JobError
from spark_local.delivery import NONE, Checkpoint, Kept, Ledger
from spark_local.engine.causes import translate
from spark_local.engine.exactly_once import ExactlyOnceSink
from spark_local.engine.look import repeated
from spark_local.folder import JobFolder
from spark_local.jobfile import parse

PLAN = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"flights":{"0":7,"1":9}}
-
{"logOffset":3}
{"weather":{"0":5},"flights":{"1":8}}
"""


def noted(**marks):
    """What a group has committed: query → batch, for one partition each."""
    return [(f"from-{q}", "0", 10 * batch, f"{q} {batch}") for q, batch in marks.items()]


def test_a_mark_is_read_as_it_was_written_and_the_newest_of_each_query_counts():
    told = [delivery.mark("q", 7), delivery.mark("q", 12), delivery.mark("r", 3)]
    found = [("t", "0", 1, text) for text in [*told, "", "by hand", "q x", "nothing"]]
    assert delivery.marks(found) == {"q": 12, "r": 3}


def test_a_plan_says_how_far_each_topic_is_read_by_its_slowest_reader():
    found = delivery.positions(PLAN, ["flights", "weather", "other"])
    assert found == {("flights", "0"): 7, ("flights", "1"): 8, ("weather", "0"): 5}
    assert delivery.offsets(4, found, "out") == found


def test_a_job_without_topics_counts_its_batches_at_its_sink():
    assert delivery.offsets(4, {}, "out") == {("out", "0"): 5}


@pytest.mark.parametrize(
    ("planned", "done", "first", "again"),
    [
        ([], [], 0, False),
        (["0"], [], 0, True),
        (["0", "1", ".1.crc"], ["0", "1"], 2, False),
        (["9", "10", "11", "x.tmp"], ["9", "10"], 11, True),
    ],
)
def test_a_batch_that_was_planned_and_not_done_runs_again(planned, done, first, again):
    assert delivery.first(planned, done) == (first, again)


KEPT = Kept("q", before=("older",), marked=True)
AT_4 = {("from-q", "0"): 40}


@pytest.mark.parametrize(
    ("checkpoint", "kept", "found", "newest"),
    [
        (Checkpoint(), None, {}, NONE),  # the first start
        (Checkpoint(), None, {"older": 50}, NONE),  # after a reset, or a job of that name before
        (Checkpoint("q", 0, AT_4), None, {"older": 50}, NONE),  # killed before it kept anything
        (Checkpoint("q", 0, AT_4), Kept("q"), {}, NONE),  # killed before its first commit
        (Checkpoint("q", 4, AT_4), KEPT, {"q": 4, "older": 50}, 4),
        (Checkpoint("q", 5, {}), KEPT, {"q": 4}, 4),
        (Checkpoint("q", 5), KEPT, {"q": 4}, 4),
        (Checkpoint("q", 5), KEPT, {}, NONE),  # rested until its offsets had expired
    ],
)
def test_what_the_topic_has_is_known(checkpoint, kept, found, newest):
    ledger = Ledger("j", checkpoint, kept, noted(**found))
    assert ledger.newest == newest
    assert ledger.has(newest)
    assert not ledger.has(newest + 1)


@pytest.mark.parametrize(
    ("checkpoint", "found", "said"),
    [
        (Checkpoint(), {"q": 4}, "its checkpoint was deleted"),
        (Checkpoint("new", 1), {"q": 4}, "its checkpoint was deleted"),
        (Checkpoint("q", 5), {"stranger": 1}, "another job of the name j has committed"),
        (Checkpoint("q", 5, {}), {}, "batch 5 may be in the topic or not"),
        (Checkpoint("q", 5, {}), {"older": 50}, "batch 5 may be in the topic or not"),
        (Checkpoint("q", 4), {"q": 4}, "continues with batch 4, and the topic has what batch 4"),
        (Checkpoint("q", 4, {("from-q", "0"): 39}), {"q": 4}, "one of them lost what came last"),
        (Checkpoint("q", 3, {}), {"q": 4}, "continues with batch 3"),
        (Checkpoint("q", 6), {"q": 4}, "continues with batch 6"),
    ],
)
def test_where_nobody_can_know_it_is_refused_with_a_remedy(checkpoint, found, said):
    with pytest.raises(JobError, match=said) as told:
        Ledger("j", checkpoint, KEPT, noted(**found))
    assert "penstock job reset j" in told.value.remedy
    assert told.value.final


def test_what_is_kept_is_read_back_and_knows_that_there_is_a_mark():
    ledger = Ledger("j", Checkpoint(), None, noted(older=9))
    first = ledger.kept("q")
    assert first == Kept("q", ("older",), marked=False)
    ledger.committed(0)
    then = ledger.kept("q")
    assert then == Kept("q", ("older",), marked=True)
    assert Kept.of(then.content()) == then
    assert Kept.of({}) is None
    rested = Ledger("j", Checkpoint("q", 1), then, [])  # its offsets have expired: none is missed
    assert rested.kept("q") == first
    with pytest.raises(AssertionError, match="written twice"):
        ledger.committed(0)
    with pytest.raises(AssertionError, match="one query"):
        ledger.kept("another")


def test_the_workers_of_a_cluster_are_told_before_anything_is_written(tmp_path):
    text = """
        sql = "SELECT a FROM events"
        [sources.events]
        topic = "events"
        schema = "a STRING"
        [sink]
        topic = "out"
        delivery = "exactly-once"
    """
    driver = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077"))
    job = parse(text, tmp_path / "j.toml")
    sink = ExactlyOnceSink(job, "nobody:1", driver, JobFolder(tmp_path / "j"))
    with pytest.raises(JobError, match="spark://host:7077") as told:
        sink.prepare()
    assert "at-least-once" in told.value.remedy
    assert "read_committed" in repeated(job)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "ProducerFencedException: There is a newer producer",
            "the job's transaction was ended from outside",
        ),
        (
            "InvalidProducerEpochException: Producer attempted",
            "the job's transaction was ended from outside",
        ),
        (
            "KafkaException: Unexpected error in InitProducerIdResponse; The transaction timeout "
            "is larger than the maximum value allowed by the broker (as configured by "
            "transaction.max.timeout.ms)",
            "[sink] transaction_timeout is longer",
        ),
        ("TransactionalIdAuthorizationException: no", "transactional id penstock-job-j"),
    ],
)
def test_what_kafka_refuses_has_a_remedy(raised, said):
    text = f"An error occurred while calling o1.x.\n: org.apache.kafka.common.errors.{raised}\n\tat"
    found = translate(RuntimeError(text), "j")
    assert said in found.problem
    assert found.remedy
    # Who ended it may leave it alone, and rights may be given: tried again.
    assert found.final == ("[sink]" in said)


class Crash(Exception):
    """Everything but what is on disks is gone."""


class World:
    """Topic, group, checkpoint and file; every step may be the last one of an incarnation."""

    def __init__(self, *crashes):
        self.topic = []
        self.group = []
        self.planned = []
        self.done = []
        self.kept = {}
        self.query = None
        self.steps = 0
        self.crashes = crashes

    def step(self):
        self.steps += 1
        if self.steps in self.crashes:
            raise Crash

    def plan(self, batch):
        return delivery.offsets(batch, {("in", "0"): 7 * batch}, "out")

    def live(self, batches):
        """As Spark and the sink do it."""
        batch, again = delivery.first(self.planned, self.done)
        plan = self.plan(batch) if again else None
        checkpoint = Checkpoint(self.query, batch, plan)
        ledger = Ledger("j", checkpoint, Kept.of(self.kept), self.group)
        self.step()
        self.query = self.query or "q"
        for batch in range(len(self.done), batches):
            self.step()
            self.planned = [*self.planned, str(batch)]
            self.step()
            if not ledger.has(batch):
                self.write(ledger, batch)
            self.step()
            self.done = [*self.done, str(batch)]

    def write(self, ledger, batch):
        self.kept = ledger.kept(self.query).content()
        self.step()
        mark = delivery.mark(self.query, batch)
        told = [(*place, at, mark) for place, at in self.plan(batch).items()]
        self.topic, self.group = [*self.topic, batch], told  # one transaction
        self.step()
        ledger.committed(batch)
        self.kept = ledger.kept(self.query).content()
        self.step()


def test_a_crash_between_any_two_steps_and_a_second_one_write_nothing_twice():
    undisturbed = World()
    undisturbed.live(3)
    for crashes in itertools.combinations(range(1, 2 * undisturbed.steps), 2):
        world = World(*crashes)
        for _ in range(3):
            try:
                world.live(3)
                break
            except Crash:
                continue
        assert world.topic == [0, 1, 2], crashes
        assert world.done == ["0", "1", "2"]
