"""Producer ids in an I/O process: out of the blocks that control gave, each once."""

from appliance.base import errors
from appliance.ioproc.coordination.producer_id_pool import FEW, ProducerIdPool
from appliance.ring.messages import PRODUCER_ID_BLOCK, Message


def block(first, count, code=errors.NONE):
    empty = dict.fromkeys(Message._fields, 0) | {"op": PRODUCER_ID_BLOCK, "payload": b""}
    return Message(**empty | {"flags": code + 1, "a": first, "e": count})


def test_ids_come_out_of_blocks_and_the_next_one_is_asked_for_before_the_last_is_empty():
    asked = []
    ids = ProducerIdPool(lambda: asked.append(1) or True)
    assert [ids.take_id(), ids.take_id()] == [None, None] and len(asked) == 1
    assert ids.given(block(1000, 1000))
    assert [ids.take_id() for _ in range(1000 - FEW)] == list(range(1000, 2000 - FEW))
    assert len(asked) == 1
    rest = [ids.take_id() for _ in range(FEW - 1)]
    assert len(asked) == 2
    ids.given(block(5000, 1000))
    assert [*rest, ids.take_id(), ids.take_id()] == [*range(2000 - FEW, 2000), 5000]


def test_who_was_not_heard_asks_again():
    asked = []
    ids = ProducerIdPool(lambda: asked.append(1) or len(asked) > 1)
    assert ids.take_id() is None and ids.take_id() is None
    assert len(asked) == 2, "the ring to control was closed"
    ids.control_died()
    assert ids.take_id() is None and len(asked) == 3
    assert not ids.given(block(0, 0, errors.COORDINATOR_LOAD_IN_PROGRESS))
    assert ids.take_id() is None and len(asked) == 4
    ids.given(block(7, 1))
    assert [ids.take_id(), ids.take_id()] == [7, None]
