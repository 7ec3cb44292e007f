"""Parked reads against a dumb twin: a list of (peer, token) per partition."""

from hypothesis import given
from hypothesis import strategies as st

from appliance.ioproc.partitions.purgatory import ParkedRead, Purgatory


class Place:
    def __init__(self):
        self.parked = {}


def read(place, peer, token):
    return ParkedRead(peer << 64 | token, place, peer, token, 0, -1, 1, 100, 1)


steps = st.lists(
    st.tuples(
        st.sampled_from(["park", "take", "cancel", "drop"]),
        st.integers(0, 2),  # place
        st.integers(0, 2),  # peer
        st.integers(0, 3),  # request
        st.integers(0, 2),  # index within the request
    ),
    max_size=60,
)


@given(steps)
def test_parks_takes_and_cancels_like_a_list(steps):
    places = [Place() for _ in range(3)]
    purgatory = Purgatory(limit=6)
    twin = []  # (place, peer, request, index)
    for action, place, peer, request, index in steps:
        token = request << 32 | index
        same = [t for t in twin if t[1:] == (peer, request, index)]
        here = [t for t in same if t[0] == place]
        if action == "park":
            twin = [t for t in twin if t not in same]  # a token used twice loses its first read
            full = sum(t[1] == peer for t in twin) >= 6
            assert purgatory.park(read(places[place], peer, token)) is not full
            if not full:
                twin.append((place, peer, request, index))
        elif action == "take" and here:
            purgatory.take_read(places[place].parked[peer << 64 | token])
            twin.remove(here[0])
        elif action == "cancel":
            purgatory.cancel(peer, request << 32 | 7)
            twin = [t for t in twin if t[1:3] != (peer, request)]
        elif action == "drop":
            purgatory.drop_peer(peer)
            twin = [t for t in twin if t[1] != peer]
        assert len(purgatory) == len(twin)
        for number, at in enumerate(places):
            expected = {t[1] << 64 | t[2] << 32 | t[3] for t in twin if t[0] == number}
            assert set(at.parked) == expected
