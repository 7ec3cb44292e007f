"""Records of transactions count as Kafka's coordinator has it: by the offsets of what counts."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.coordinators.runtime.pending import Pending

KEYS = (b"a", b"b")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.sampled_from(KEYS), st.booleans()),
        st.tuples(st.just("hold"), st.integers(1, 3), st.sampled_from(KEYS), st.booleans()),
        st.tuples(st.just("end"), st.integers(1, 3), st.booleans()),
    ),
    max_size=40,
)


@given(steps)
def test_the_newest_of_what_counts_counts(steps):
    pending, ours = Pending(), {}
    counting, open_ = {}, {}  # key → (offset, value); producer → key → (offset, value)
    for offset, step in enumerate(steps):
        if step[0] == "plain":
            _, key, gone = step
            value = None if gone else b"%d" % offset
            pending.counts(offset, key)
            ours[key] = value
            counting[key] = offset, value
        elif step[0] == "hold":
            _, producer, key, gone = step
            value = None if gone else b"%d" % offset
            pending.hold(producer, (offset, key, value))
            open_.setdefault(producer, {})[key] = offset, value
        else:
            _, producer, committed = step
            ended = pending.end(producer, committed=committed)
            assert ended == sorted(ended)
            ours |= {key: value for _, key, value in ended}
            held = open_.pop(producer, {})
            for key, record in held.items() if committed else ():
                counting[key] = max(counting.get(key, (-1, None)), record, key=lambda one: one[0])
        assert ours == {key: value for key, (_, value) in counting.items()}
    assert bool(pending) <= bool(open_)
