"""Who writes and who reads: the graph of topics, jobs and groups, and walking it on the screen."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from console.model.asking.topology import GROUP, JOB, OUTSIDE, TOPIC, Edge, Part, connect_parts
from console.screens.places import Place
from tests.console.seat import LARGE, SMALL, sit
from tests.console.test_screens_pictures import calm_world, told

NAMES = st.sampled_from(["a", "b", "c", "d e", ""])
ANYTHING = st.one_of(st.none(), st.integers(), NAMES, st.dictionaries(NAMES, NAMES))


def job(reads, writes):
    return SimpleNamespace(reads=reads, writes=writes)


def test_a_job_is_between_its_topics_and_its_group_is_no_other_part():
    jobs = {"revenue": job(["topic orders", "file /in/rates.csv"], "topic by-minute")}
    lags = {("revenue", "orders"): 7, ("audit", "by-minute"): 0, ("old", "gone"): 3}
    seen = connect_parts(["orders", "by-minute", "idle"], jobs, lags)
    revenue, minute = Part(JOB, "revenue"), Part(TOPIC, "by-minute")
    assert seen.sources[revenue] == (
        Edge(Part(TOPIC, "orders"), 7), Edge(Part(OUTSIDE, "file /in/rates.csv")),
    )  # fmt: skip
    assert seen.targets[revenue] == (Edge(minute),)
    assert seen.targets[minute] == (Edge(Part(GROUP, "audit"), 0),)
    assert seen.missing == {Part(TOPIC, "gone")}
    assert seen.parts[-1] == Part(TOPIC, "idle"), "what has no edge comes last"
    assert Part(GROUP, "revenue") not in seen.parts


@given(
    st.lists(NAMES, max_size=4),
    st.dictionaries(NAMES, st.tuples(st.one_of(ANYTHING, st.lists(ANYTHING)), ANYTHING)),
    st.dictionaries(st.tuples(NAMES, NAMES), st.integers(0)),
    st.lists(NAMES),
)
def test_every_edge_is_seen_from_both_ends(topics, jobs, lags, groups):
    seen = connect_parts(topics, {name: job(*told) for name, told in jobs.items()}, lags, groups)
    forth = {(a, e.part, e.lag) for a, found in seen.targets.items() for e in found}
    back = {(e.part, b, e.lag) for b, found in seen.sources.items() for e in found}
    assert forth == back
    assert len(set(seen.parts)) == len(seen.parts)
    assert {one for a, b, _ in forth for one in (a, b)} <= set(seen.parts)
    assert {Part(TOPIC, name) for name in topics} <= set(seen.parts)
    assert sum(lag or 0 for _, _, lag in forth) == sum(lags.values()), "no lag is lost"


def test_arrows_walk_from_a_topic_to_what_reads_what_is_made_of_it(appliance):
    async def act(seat):
        def middle():
            return seat.app.view.first_table().key

        await seat.app.go_to(Place("topics"))
        await seat.sees("payments")
        await seat.press("f")
        await seat.until(lambda: middle() == "topic orders")
        await seat.sees("GOES TO", "billing", "reports")
        await seat.press("right", "G", "right")
        await seat.until(lambda: middle() != "topic orders", "what reads orders")
        await seat.press("g", "left", "left")
        await seat.until(lambda: middle().startswith("topic "), "back at a topic")
        await seat.press("enter")
        await seat.until(lambda: seat.app.here.kind == "topic", "the topic itself")
        await seat.press("f")
        name = seat.app.history.before.name
        await seat.until(lambda: middle() == f"topic {name}", "the topic that was seen")

    for size in (SMALL, LARGE):
        sit(appliance.bootstrap, act, size=size, prepare=told(calm_world.answers()))
