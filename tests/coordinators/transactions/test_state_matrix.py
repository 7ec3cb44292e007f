"""Every request of a transactional producer in every state of its transaction, with each epoch and
producer id that it may name. The expected answers are those of Apache Kafka 4.3.1's coordinator,
except that InitProducerId with another epoch does not abort an open transaction."""

import pytest
from transaction_world import (
    CONCURRENT,
    FENCED,
    INVALID,
    MAPPING,
    OFFSETS,
    TIMEOUT_MS,
    World,
)

from appliance.base import errors

EPOCH = 5
OLD, SAME, NEXT = -1, 0, 1
LETTERS = {
    errors.NONE: "N",
    CONCURRENT: "C",
    FENCED: "F",
    INVALID: "S",
    MAPPING: "M",
    errors.TRANSACTION_ABORTABLE: "A",
}
"""R: done, and the epoch has risen. Others: error codes; S is INVALID_TXN_STATE, M
INVALID_PRODUCER_ID_MAPPING."""

# The answers to the old, the present and the next epoch, then to any epoch of another producer id.
# Committed1 and Aborted1: ended by a client whose epoch stays, 2: by one whose epoch rises.
# Fenced1 and Fenced2: aborted without the producer, under transaction.version 1 and 2.
TABLE = """
request     none  Empty Ongoing Pending Committed1 Committed2 Aborted1 Aborted2 Fenced1 Fenced2
commit-3    MMMM  FSFM  FNFM    FCFM    FNFM       FNFM       FSFM     FSFM     FSFM    FSFM
commit-4    MMMM  FSFM  FNFM    FCFM    FNFM       FNFM       FSFM     FSFM     FSFM    FSFM
commit-5    MMMM  FSFM  FRFM    CCCC    NSFM       NSFM       SSFM     SSFM     SSFM    SSFM
abort-3     MMMM  FSFM  FNFM    FCFM    FSFM       FSFM       FNFM     FNFM     FNFM    FNFM
abort-4     MMMM  FSFM  FNFM    FCFM    FSFM       FSFM       FNFM     FNFM     FNFM    FNFM
abort-5     MMMM  FRFM  FRFM    CCCC    SRFM       SRFM       NRFM     NRFM     NRFM    NRFM
add-3       MMMM  FNFM  FNFM    CCCC    FNFM       FNFM       FNFM     FNFM     FNFM    FNFM
add-4       MMMM  FNFM  FNFM    CCCC    FNFM       FNFM       FNFM     FNFM     FNFM    FNFM
add-5       MMMM  FNFM  FNFM    CCCC    FNFM       FNFM       FNFM     FNFM     FNFM    FNFM
verify-4    MMMM  FAFM  FNFM    FCFM    FAFM       FAFM       FAFM     FAFM     FAFM    FAFM
verify-5    MMMM  FAFM  FNFM    FCFM    FAFM       FAFM       FAFM     FAFM     FAFM    FAFM
offsets-3   MMMM  FNFM  FNFM    CCCC    FNFM       FNFM       FNFM     FNFM     FNFM    FNFM
offsets-4   MMMM  FNFM  FNFM    CCCC    FNFM       FNFM       FNFM     FNFM     FNFM    FNFM
init-4      RRRR  FRFF  FCFF    CCCC    FRFF       NRFF       FRFF     NRFF     FRFF    NRFF
init-5      RRRR  FRFF  FCFF    CCCC    FRFF       NRFF       FRFF     NRFF     FRFF    NRFF
takeover-5  RRRR  RRRR  CCCC    CCCC    RRRR       RRRR       RRRR     RRRR     RRRR    RRRR
"""
COLUMNS, *ROWS = (line.split() for line in TABLE.strip().splitlines())

PENDING = ("commit", 3), ("commit", 5), ("abort", 3), ("abort", 5), ("takeover", 5), ("timeout", 5)
"""How a transaction comes to write its markers: by a client of which EndTxn, or without it."""
STATES = [
    *((name, feature, ()) for name in ("none", "Empty", "Ongoing") for feature in (1, 2)),
    *(("Pending", feature, how) for how in PENDING for feature in (1, 2)),
    *(
        (f"{name}{1 if version < 5 else 2}", feature, (how, version))
        for name, how in (("Committed", "commit"), ("Aborted", "abort"))
        for version in (3, 5)
        for feature in (1, 2)
    ),
    *(
        (f"Fenced{feature}", feature, (how, 5))
        for how in ("takeover", "timeout")
        for feature in (1, 2)
    ),
]


def world_in(state, feature, how):
    """A world whose id x is in that state, and its producer as the coordinator knows it."""
    world = World(feature)
    if state == "none":
        return world, (1000, EPOCH)
    world.init()
    producer = world.jump(EPOCH)
    if state != "Empty":
        world.add(producer, 0, version=how[1] if how else 3)
    if how:
        _end(world, producer, *how)
    if how and state != "Pending":
        world.mark()
    found = world.transactions()["x"]
    assert state != "Pending" or world.state().startswith("Prepare")
    return world, (found.producer_id, found.epoch)


def _end(world, producer, how, version):
    if how == "takeover":
        assert world.init() == CONCURRENT
    elif how == "timeout":
        world.tick(TIMEOUT_MS)
    else:
        world.end(producer, how == "commit", version=version)


def ask(world, what, version, producer):
    """The answer as a letter of the table."""
    known = world.transactions().get("x")
    before = known.epoch if known else -1
    if what in ("commit", "abort"):
        said = world.end(producer, what == "commit", version=version)
    elif what in ("add", "verify"):
        (said,) = world.add(producer, 0, version=version, verify=what == "verify")
    elif what == "offsets":
        who = {"producer_id": producer[0], "producer_epoch": producer[1]}
        answer = world.ask(OFFSETS, version, transactional_id="x", group_id="g", **who)
        said = answer.error_code.value
    else:
        said = world.init(version=version, producer=producer if what == "init" else (-1, -1))
    if isinstance(said, tuple):
        assert said[1] in (before, before + 1)
        return "R" if said[1] > before else "N"
    return LETTERS.get(said, said)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_answer_is_kafkas_in_every_state(row):
    request, *cells = row
    what, version = request.split("-")
    wanted = dict(zip(COLUMNS[1:], cells, strict=True))
    for state, feature, how in STATES:
        found = ""
        for moved, epoch in ((0, OLD), (0, SAME), (0, NEXT), (7, OLD), (7, SAME), (7, NEXT)):
            world, (producer_id, present) = world_in(state, feature, how)
            found += ask(world, what, int(version), (producer_id + moved, present + epoch))
            unasked = what == "init" and state == "Ongoing" and found[-1] == "F"
            assert not unasked or world.state() == "Ongoing", "its successor's transaction"
        expected = wanted[state][:3] + 3 * wanted[state][3]
        assert found == expected, (state, f"transaction.version {feature}", how)
