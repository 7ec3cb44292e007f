"""What a scrape costs for each partition, and for each group, in calls may not rise: a loop over
partitions in the place of a copied column is seen without a clock (`python -m benchmarks.scrape`
has the milliseconds).

Counted is what more of them cost. Whoever needs more calls raises a number here, and says in the
commit what it buys; whoever needs fewer lowers it.
"""

from collections import Counter

import pytest
from exporter_world import SHAPE, World, value

from benchmarks.calls import counting

FEW, MANY = 100, 500
MOST = {  # calls for each partition more
    ("topics", "as it was"): 1.0,
    ("topics", "all written to"): 1.1,
    ("topics", "a new topic"): 8.8,
    ("topics", "the first"): 17.2,
    ("partitions", "as it was"): 0.0,
    ("partitions", "all written to"): 0.0,
    ("partitions", "a new topic"): 7.0,
    ("partitions", "the first"): 11.0,
}
MOST_OF_A_GROUP = 6


def count(do):
    """The calls that it takes."""
    found = Counter()
    with counting(found):
        do()
    return found.total()


def costs(folder, topics, partitions):
    """Name of a scrape → its calls."""
    world = World(folder, SHAPE._replace(partition_rows=2048))
    world.serve()
    handles = [one for n in range(topics) for one in world.topic(f"t-{n:04}", partitions)]
    world.look()

    def prepare():
        while world.exporter.prepare():
            pass

    def page():
        world.exporter.page(world.now_ns)

    found = {"the first": count(prepare) + count(page)}
    page()
    found["as it was"] = count(page)
    for n, one in enumerate(handles):
        world.set(one, HIGH_WATERMARK=n, LOG_END=n, SIZE_BYTES=n * 7, BYTES_IN=n, RECORDS_IN=n)
    found["all written to"] = count(page)
    told = world.scrape()
    most = len(handles) - 1
    assert value(told, "penstock_partition_high_watermark", **last(topics, partitions)) == most
    world.topic("a-new-one")
    found["a new topic"] = count(page)
    return found


def last(topics, partitions):
    return {"topic": f"t-{topics - 1:04}", "partition": str(partitions - 1)}


@pytest.mark.interpreted("calls of compiled functions are not seen")
@pytest.mark.parametrize("kind", ["topics", "partitions"])
def test_a_partition_costs_no_more_calls_than_it_did(tmp_path, kind):
    few, many = (
        costs(tmp_path, n, 1) if kind == "topics" else costs(tmp_path, 1, n) for n in (FEW, MANY)
    )
    each = {(kind, name): (many[name] - few[name]) / (MANY - FEW) for name in few}
    assert not {name: n for name, n in each.items() if n > MOST[name]}


@pytest.mark.interpreted("calls of compiled functions are not seen")
def test_a_group_costs_no_more_calls_than_it_did(tmp_path):
    world, found = World(tmp_path), []
    world.serve()
    for n in (20, 120):
        world.coordinate(0, {"Stable": n}, [(3, f"g-{one:03}") for one in range(n)])
        world.group(*((one, f"g-{one:03}", "orders", 9) for one in range(n)))
        found.append(count(lambda: world.exporter.page(world.now_ns)))
    assert (found[1] - found[0]) / 100 <= MOST_OF_A_GROUP
