"""A snapshot of the leader's comes in parts: whatever a leader that has gone mad says of them, what
is kept is bounded, and only what is whole and right is taken."""

import random

import pytest

from appliance.base.errors import INVALID_REQUEST, POSITION_OUT_OF_RANGE, PeerError
from appliance.control.quorum import snapshot_fetch, wire
from appliance.control.quorum.snapshot_fetch import Download
from appliance.control.quorum.wire import SNAPSHOT
from appliance.wire.build import build
from appliance.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_type,
    response_type,
)
from tests.seeds import each_seed
from tests.wrong_answers import any_answer, changed

WHAT, EPOCH, CLUSTER = (700, 3), 4, "cluster"


class Us:
    node_id, directory = 2, bytes(16)


class Leader:
    """Answers FetchSnapshot as ours do; each answer is changed with this chance."""

    def __init__(self, data, rng, chance):
        self.data, self.rng, self.chance = data, rng, chance
        self.asked = 0

    def answer(self, download, limit):
        """As it is decoded, or what a connection tells of it."""
        self.asked += 1
        values = wire.snapshot_asked(Us, CLUSTER, download, limit)
        body = encode_request(build(request_type(SNAPSHOT, 1), values))
        asked = wire.read_snapshot(decode_request(SNAPSHOT, 1, body), CLUSTER)
        if not 0 <= asked.position < len(self.data):
            told = wire.snapshot_told(asked, (1, EPOCH), POSITION_OUT_OF_RANGE)
        else:
            most = min(asked.max_bytes, self.rng.choice((1, 7, 1 << 20)))
            part = self.data[asked.position : asked.position + most]
            told = wire.snapshot_told(asked, (1, EPOCH), 0, len(self.data), part)
        answer = build(response_type(SNAPSHOT, 1), told)
        if self.rng.random() < self.chance:
            wild = self.rng.random() < 0.2
            answer = any_answer(SNAPSHOT, 1, self.rng) if wild else changed(answer, self.rng)
        return decode_response(SNAPSHOT, 1, encode_response(answer))


def fetched(leader, limit):
    """The snapshot, None when what came was refused."""
    download = Download(WHAT, EPOCH)
    while True:
        kept = sum(map(len, download.parts))
        assert kept == download.position <= max(download.size, 0)
        try:
            answer = leader.answer(download, limit)
            if download.take_part(*wire.snapshot_part(answer, download)):
                return b"".join(download.parts)
        except PeerError:
            assert sum(map(len, download.parts)) == kept == download.position
            return None


@each_seed(5000)
def test_parts_of_a_mad_leader_are_the_snapshot_or_refused(seed):
    rng = random.Random(seed)
    data = rng.randbytes(rng.randrange(1, 400))
    for _ in range(3):
        fetched(Leader(data, rng, chance=0.05), rng.choice((1, 50, 1 << 20)))
    sound = Leader(data, rng, chance=0)
    assert fetched(sound, 1 << 20) == data


def part(download, size, data):
    with pytest.raises(PeerError) as refused:
        download.take_part(size, data)
    assert refused.value.code == INVALID_REQUEST


def test_what_no_snapshot_is_leaves_the_download_as_it_was():
    download = Download(WHAT, EPOCH)
    part(download, 0, b"")
    part(download, -1, b"x")
    part(download, snapshot_fetch.MOST_BYTES + 1, b"x")
    assert download.size == -1
    assert not download.take_part(10, b"four")
    part(download, 11, b"x")  # another size than before
    part(download, 10, b"seven b")  # more than there is
    part(download, 10, b"")
    assert (download.position, download.size, download.parts) == (4, 10, [b"four"])
    assert download.take_part(10, b"sixmor")


def test_the_leader_answers_any_position():
    """Its own side: positions and ids at their extremes are refused with a code."""
    rng = random.Random(1)
    for position in (-1, -(1 << 63), 1 << 62, (1 << 63) - 1, 5):
        download = Download(WHAT, EPOCH, position=position)
        answer = Leader(b"hello", rng, 0).answer(download, 100)
        with pytest.raises(PeerError):
            download.take_part(*wire.snapshot_part(answer, download))
