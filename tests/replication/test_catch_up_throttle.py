"""How fast what is far behind is fetched while somebody writes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.replication.catch_up_throttle import (
    FLOOR,
    LEAST,
    LONG_NS,
    MOST,
    QUIET_NS,
    REST,
    UNLIMITED,
    Pace,
    Writing,
)

MS = 1_000_000
S = 1000 * MS


def answer(pace, now_ns, took_ns, writing=True, others=0, grown=0):
    """One that was as large as it might be: when it was all held, and when the next one may go."""
    size = pace.limit(writing=writing)
    pace.asked(now_ns)
    pace.took(size)
    pace.add_progress(100, grown)
    held_ns = now_ns + took_ns
    return size, held_ns, held_ns + pace.rest_ms(held_ns, others, writing=writing) * MS


def test_writing_goes_on_for_a_moment():
    writing = Writing()
    assert not writing.goes_on(0)
    writing.on_record_written(5 * S)
    assert writing.goes_on(5 * S) and writing.goes_on(5 * S + QUIET_NS - 1)
    assert not writing.goes_on(5 * S + QUIET_NS)


def test_without_a_writer_there_is_no_rest_and_soon_no_limit():
    pace, now = Pace(), S
    sizes = []
    for _ in range(12):
        size, held, now_next = answer(pace, now, 50 * MS, writing=False)
        assert now_next == held
        sizes.append(size)
        now = now_next
    assert sizes[:3] == [MOST, 2 * MOST, 4 * MOST] and sizes[-1] == UNLIMITED


def test_a_rest_ends_when_the_writer_does():
    pace = Pace()
    _, held, after = answer(pace, S, MS // 2)
    assert after > held
    assert pace.rest_ms(held, 0, writing=False) == 0
    assert pace.limit(writing=False) == MOST, "and it begins small again"


def test_it_takes_a_quarter_of_the_time():
    pace, now, busy = Pace(), S, 0
    while now < 60 * S:
        _, held, after = answer(pace, now, 3 * MS)
        busy += held - now
        now = after
    assert 0.2 < busy / (now - S) < 0.27


def test_conversations_share_the_time():
    for others in (0, 1, 3):
        pace, now = Pace(), S
        for _ in range(100):
            began = now
            _, held, now = answer(pace, began, 2 * MS, others=others)
        assert 0.2 < (held - began) * (others + 1) / (now - began) < 0.3


def test_an_answer_is_as_large_as_it_takes_a_moment():
    pace, now = Pace(), S
    for _ in range(200):
        size, _, now = answer(pace, now, LONG_NS // 2)
    assert size == MOST
    for _ in range(10):
        size, _, now = answer(pace, now, 10 * LONG_NS)
    assert size == LEAST


def test_what_does_not_gain_rests_less_until_it_does():
    pace, now = Pace(), S
    rests = set()
    for _ in range(4000):
        _, held, now = answer(pace, now, 2 * MS, grown=60)
        rests.add((now - held) // MS)
    assert max(rests) >= 2 * REST and now == held
    for _ in range(4000):
        _, held, now = answer(pace, now, 2 * MS)
    assert now - held >= 2 * REST * MS


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2 * S),  # what an answer takes
            st.integers(0, 1 << 24),  # its bytes
            st.integers(0, 3),  # conversations beside
            st.booleans(),  # whether somebody writes
            st.integers(0, 1000),
            st.integers(0, 1000),
        ),
        max_size=30,
    )
)
@settings(max_examples=300, deadline=None)
def test_whatever_happens_it_goes_on(history):
    """No rest is longer than the floor allows, or than the time that it took, times what rests are;
    without a writer there is none; and no answer is larger or smaller than it may be."""
    pace, now = Pace(), S
    for took_ns, size, others, writing, gained, grown in history:
        limit = pace.limit(writing=writing)
        assert LEAST <= limit <= (MOST if writing else UNLIMITED)
        pace.asked(now)
        pace.took(size)
        pace.add_progress(gained, grown)
        now += took_ns
        rest = pace.rest_ms(now, others, writing=writing)
        assert rest == pace.rest_ms(now, others, writing=writing), "it is decided once"
        if not writing:
            assert rest == 0
            continue
        floor_ns = size * S * (others + 1) / FLOOR
        assert 0 <= (rest - 1) * MS <= max(0, floor_ns - took_ns) or rest == 0
        assert rest * MS <= took_ns * ((REST + 1) * (others + 1) - 1) + MS
        now += rest * MS
        assert pace.rest_ms(now, others, writing=writing) == 0
