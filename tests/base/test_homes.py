"""Who owns which partition."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.base.home import home_of


@given(st.binary(min_size=16, max_size=16), st.integers(1, 100), st.integers(1, 64))
def test_the_partitions_of_a_topic_are_shared_out_evenly(topic_id, partitions, ioprocs):
    homes = [home_of(topic_id, number, ioprocs) for number in range(partitions)]
    shares = [homes.count(one) for one in range(ioprocs)]
    assert sum(shares) == partitions and max(shares) - min(shares) <= 1


@given(st.integers(2, 8))
def test_the_first_partitions_of_topics_are_in_many_homes(ioprocs):
    topics = [number.to_bytes(16, "big") for number in range(200)]
    homes = [home_of(topic, 0, ioprocs) for topic in topics]
    assert all(homes.count(one) > 200 // ioprocs // 3 for one in range(ioprocs))
