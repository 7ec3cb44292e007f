"""Idempotent producers: what is new, a duplicate, refused; and the snapshot file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTION_COORDINATOR_FENCED,
    PeerError,
)
from appliance.logstore.producer_snapshot import decode_snapshot, encode_snapshot
from appliance.logstore.producer_state import ProducerStates
from appliance.wire.batch_header import TRANSACTIONAL_BIT, BatchHeader
from appliance.wire.markers import Marker

LAST = (1 << 31) - 1


def batch(sequence: int, count: int = 1, epoch: int = 0, producer: int = 7, attributes: int = 0):
    return BatchHeader(
        0, 100, 0, 2, 0, attributes, count - 1, 1000, 1000, producer, epoch, sequence, count
    )


class Partition:
    """Appends what `check` lets through."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.end = 0

    def send(self, header: BatchHeader) -> int:
        original = self.states.check(header)
        if original >= 0:
            return original
        base = self.end
        self.states.update(header, base, 0)
        self.end += header.record_count
        return base

    def refused(self, header: BatchHeader) -> int:
        with pytest.raises(PeerError) as refused:
            self.states.check(header)
        return refused.value.code


def test_a_batch_sent_again_gets_its_first_offset_while_it_is_one_of_five():
    partition = Partition()
    offsets = [partition.send(batch(3 * n, 3)) for n in range(6)]
    assert offsets == [0, 3, 6, 9, 12, 15]
    assert [partition.send(batch(3 * n, 3)) for n in range(1, 6)] == offsets[1:]
    assert partition.refused(batch(0, 3)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.refused(batch(15, 2)) == OUT_OF_ORDER_SEQUENCE_NUMBER  # same start, other end
    assert partition.send(batch(18)) == 18


def test_a_gap_is_refused_and_an_unknown_producer_may_begin_anywhere():
    partition = Partition()
    assert partition.send(batch(41)) == 0
    assert partition.refused(batch(43)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.send(batch(42)) == 1


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero():
    partition = Partition()
    partition.send(batch(0, epoch=3))
    assert partition.refused(batch(1, epoch=2)) == INVALID_PRODUCER_EPOCH
    assert partition.refused(batch(1, epoch=4)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.send(batch(0, epoch=4)) == 1
    assert partition.refused(batch(0, epoch=3)) == INVALID_PRODUCER_EPOCH
    assert partition.send(batch(0, epoch=4)) == 1


def test_sequences_begin_again_after_the_last():
    partition = Partition()
    partition.send(batch(LAST - 1, 2))
    assert partition.send(batch(0)) == 2
    partition = Partition()
    partition.send(batch(LAST - 1, 4))  # LAST-1, LAST, 0, 1
    assert partition.send(batch(LAST - 1, 4)) == 0
    assert partition.send(batch(2)) == 4


def test_producers_expire_by_our_clock():
    states = ProducerStates()
    states.update(batch(0, producer=1), 0, 5000)
    states.update(batch(0, producer=2), 1, 9000)
    states.update(batch(0, producer=3, attributes=TRANSACTIONAL_BIT), 2, 0)
    states.expire(10_000, 5000)
    assert sorted(states.producers) == [2, 3]  # 3 has a transaction open
    states.end_transaction(batch(-1, producer=3), 3, 0, Marker(True, 0))
    states.expire(10_000, 5000)
    assert sorted(states.producers) == [2]


def test_the_snapshot_is_kafka_s_byte_for_byte():
    states = ProducerStates()
    states.update(batch(5, 3, epoch=2, producer=258), 96, 0)
    data = encode_snapshot(states)
    assert data[:2] == b"\x00\x01"
    assert data[6:].hex() == (
        "00000001"  # one entry
        "0000000000000102"  # producer id
        "0002"  # epoch
        "00000007"  # last sequence
        "0000000000000062"  # last offset
        "00000002"  # offset delta
        "00000000000003e8"  # timestamp
        "ffffffff"  # coordinator epoch
        "ffffffffffffffff"  # first offset of the open transaction
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 4), st.booleans()),
        max_size=30,
    ),
    st.data(),
)
def test_a_snapshot_keeps_what_follows_and_one_duplicate(batches, data):
    partition = Partition()
    for producer, epoch, count, transactional in batches:
        known = partition.states.producers.get(producer)
        epoch = max(epoch, known.epoch if known else 0)
        sequence = known.next_sequence if known and known.epoch == epoch else 0
        transactional = transactional or producer in partition.states.open
        attributes = TRANSACTIONAL_BIT if transactional else 0
        partition.send(batch(sequence, count, epoch, producer, attributes))
    encoded = encode_snapshot(partition.states)
    again = decode_snapshot(encoded, 123)
    assert again is not None
    assert set(again.producers) == set(partition.states.producers)
    for producer, known in partition.states.producers.items():
        copy = again.producers[producer]
        assert (copy.epoch, copy.next_sequence) == (known.epoch, known.next_sequence)
        assert list(copy.batches) == list(known.batches)[-1:]
        assert copy.last_seen_ms == 123
    assert again.open == partition.states.open
    damaged = bytearray(encoded)
    damaged[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    assert decode_snapshot(bytes(damaged), 0) is None
    assert decode_snapshot(encoded[: data.draw(st.integers(0, len(encoded) - 1))], 0) is None


TRANSACTIONAL = TRANSACTIONAL_BIT


def guard(states, header, given=0, now_ms=1, adds=False):
    return states.guard(header[9], header[10], header[11], given, now_ms, adds=adds)


def test_a_transaction_is_verified_once_and_then_known():
    states, first = ProducerStates(), batch(0, attributes=TRANSACTIONAL_BIT)
    given = guard(states, first)
    assert given > 0
    assert guard(states, first) == given, "another batch of it has the same"
    assert guard(states, first, given + 1) == given
    assert guard(states, first, given) == 0
    states.update(first, 0, 1)
    assert guard(states, batch(1)) == 0
    assert guard(states, batch(0, epoch=1)) != 0, "of another epoch it is another transaction"
    assert guard(states, batch(0, producer=8)) != 0


def test_a_guard_ends_with_the_next_marker_of_its_producer_and_comes_never_again():
    states, first = ProducerStates(), batch(0, attributes=TRANSACTIONAL_BIT)
    given = guard(states, first)
    states.end_transaction(batch(-1, producer=8), 0, 1, Marker(False, 0))
    assert guard(states, first, given) == 0
    states.end_transaction(batch(-1), 0, 1, Marker(False, 0))
    again = guard(states, first, given)
    assert again not in (0, given)
    states.check_end(7, 0, Marker(False, 0), 1)  # though it may be there already
    given, again = again, guard(states, first, again)
    assert again not in (0, given)
    states.update(first, 1, 1)
    states.end_transaction(batch(-1), 2, 1, Marker(True, 0))
    assert guard(states, first, again) not in (0, given, again)
    assert guard(ProducerStates(), first, again, now_ms=2) not in (0, again), "after a start"
    states.become(ProducerStates())
    assert not states.unverified
    guard(states, first, now_ms=5000)
    states.expire(10_000, 5000)
    assert not states.unverified


def test_the_first_batch_of_an_unknown_producer_is_the_first_that_it_sent():
    states = ProducerStates()
    guard(states, batch(40))
    guard(states, batch(30))
    assert states.check(batch(30)) == -1
    with pytest.raises(PeerError) as caught:
        states.check(batch(40))
    assert caught.value.code == OUT_OF_ORDER_SEQUENCE_NUMBER
    guard(states, batch(35, epoch=1))
    assert states.check(batch(35, epoch=1)) == -1
    assert states.check(batch(40, producer=8)) == -1
    guard(states, batch(2, producer=9), adds=True)
    with pytest.raises(PeerError):
        states.check(batch(2, producer=9))


@pytest.mark.parametrize("adds", [False, True])
def test_who_need_not_be_verified_begins_with_what_it_sent_first_as_well(adds):
    states = ProducerStates()
    states.verified[7] = 0
    assert guard(states, batch(0), adds=adds) == 0, "and then it is refused, as it is too large"
    assert guard(states, batch(1), adds=adds) == 0
    with pytest.raises(PeerError) as caught:
        states.check(batch(1))
    assert caught.value.code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(batch(0)) == -1
    states.update(batch(0, attributes=TRANSACTIONAL), 0, 1)
    assert states.check(batch(1, attributes=TRANSACTIONAL)) == -1 and not states.unverified


def test_who_adds_its_partition_by_writing_begins_with_0_though_a_coordinator_knows_it():
    states = ProducerStates()
    states.verified[7] = 0
    assert guard(states, batch(1), adds=True) == 0
    with pytest.raises(PeerError):
        states.check(batch(1))


def test_a_coordinator_writes_without_sequences():
    states = ProducerStates()
    for offset in (7, 9):
        states.update(batch(-1, 2, attributes=TRANSACTIONAL), offset, 0)
    assert (states.open, states.producers[7].next_sequence) == ({7: 7}, 0)
    assert encode_snapshot(states)[10 + 10 : 10 + 14] == b"\xff" * 4


def test_a_marker_ends_what_its_producer_began_and_nothing_else():
    partition = Partition()
    partition.states.news = []
    partition.send(batch(0, 2, attributes=TRANSACTIONAL))
    partition.send(batch(0, producer=8, attributes=TRANSACTIONAL))
    partition.send(batch(2, attributes=TRANSACTIONAL))
    assert partition.states.open == {7: 0, 8: 2}
    states = partition.states
    assert states.end_transaction(batch(-1), 4, 0, Marker(False, 3)) == (7, 0, 4, 2)
    assert states.end_transaction(batch(-1, producer=8), 5, 0, Marker(True, 3)) is None
    assert states.end_transaction(batch(-1, producer=8), 6, 0, Marker(False, 3)) is None, (
        "it has no records"
    )
    assert states.open == {}
    assert states.producers[7].coordinator_epoch == 3
    assert states.news == [(7, 0, -1, -1), (8, 2, -1, -1), (7, 0, 5, 2), (8, 2, 6, -1)]


def test_a_plain_batch_inside_a_transaction_is_refused():
    partition = Partition()
    partition.send(batch(0, attributes=TRANSACTIONAL))
    assert partition.refused(batch(1)) == INVALID_TXN_STATE
    assert partition.refused(batch(0, epoch=1)) == INVALID_TXN_STATE
    assert partition.send(batch(0, producer=8)) == 1
    assert partition.send(batch(1, attributes=TRANSACTIONAL)) == 2
    partition.states.end_transaction(batch(-1), 3, 0, Marker(True, 0))
    partition.end = 4
    assert partition.send(batch(2)) == 4


@pytest.mark.parametrize(
    ("version", "open_", "epoch", "code"),
    [  # the producer's epoch is 5
        (0, True, 4, INVALID_PRODUCER_EPOCH),
        (0, True, 5, None),
        (0, True, 6, None),
        (0, False, 5, None),
        (2, True, 5, INVALID_PRODUCER_EPOCH),
        (2, True, 6, None),
        (2, False, 5, None),  # the marker again: its first one has raised the epoch
        (2, False, 4, INVALID_PRODUCER_EPOCH),
    ],
)
def test_which_marker_may_come(version, open_, epoch, code):
    partition = Partition()
    partition.send(batch(0, epoch=5, attributes=TRANSACTIONAL if open_ else 0))
    if code is None:
        partition.states.check_end(7, epoch, Marker(True, 0), version)
        return
    with pytest.raises(PeerError) as refused:
        partition.states.check_end(7, epoch, Marker(True, 0), version)
    assert refused.value.code == code


def test_a_coordinator_that_was_followed_by_another_ends_nothing():
    states = ProducerStates()
    states.check_end(7, 0, Marker(True, 0), 2)
    states.end_transaction(batch(-1, epoch=1), 0, 0, Marker(True, 4))
    with pytest.raises(PeerError) as refused:
        states.check_end(7, 2, Marker(True, 3), 2)
    assert refused.value.code == TRANSACTION_COORDINATOR_FENCED
    states.check_end(7, 2, Marker(True, 4), 2)


def test_a_marker_with_a_new_epoch_begins_its_sequences_anew():
    partition = Partition()
    partition.send(batch(0, 3, attributes=TRANSACTIONAL))
    partition.states.end_transaction(batch(-1, epoch=1), 3, 0, Marker(True, 0))
    partition.end = 4
    assert partition.refused(batch(3)) == INVALID_PRODUCER_EPOCH
    assert partition.refused(batch(3, epoch=1)) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.send(batch(0, epoch=1)) == 4
