"""A read error in the middle of an answer closes its connection, for half of it is sent already,
and nothing else: other connections, their requests and all processes go on."""

import struct
import time

import pytest
from system_calls import Fault, Order, Suffering, compiled

from appliance.base.errors import KAFKA_STORAGE_ERROR
from benchmarks import requests
from benchmarks.batches import batch
from benchmarks.peer import WrongAnswer
from tests.broker_process import KAFKA

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(KAFKA, reason="its calls are not ours")]
VALUE = b"v" * 900_000
BATCHES = 8
"""More than a socket takes in one call, so that there is a second one."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    library = compiled(folder)
    if library is None:
        pytest.skip("there is no cc to make the library with")
    order = Order(folder / "order")
    one = Suffering(folder / "data", library, order)
    one.order = order
    with one:
        one.peer.create(1, {}, "t")
        one.peer.create(1, {"segment.bytes": str(1 << 24)}, "l")
        with one.peer.connect(1 << 20) as wire:
            records = batch([VALUE], int(time.time() * 1000))
            for topic in ("t",) * 3 + ("l",) * BATCHES:
                answer = wire.call(requests.produce(topic, 0, records, -1, 1))
                assert struct.unpack_from(">h", answer, 4 + 2 + 1 + 4 + 4) == (0,)
        yield one


def fetched(wire):
    return wire.call(requests.fetch("l", 0, 0, 1 << 23, 1, max_wait_ms=0))


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize("error", ["EIO", "ENOMEM"])
def test_its_connection_is_closed_and_nothing_else(broker, after, error):
    places, said = broker.places(), len(broker.output())
    with broker.peer.connect(1 << 24) as other, broker.peer.connect(1 << 24) as wire:
        whole = fetched(other)
        assert len(whole) > BATCHES * len(VALUE)
        broker.order.give(places["net-0"], Fault("net-0", "sendfile", error, after))
        wire.socket.settimeout(30)
        try:
            with pytest.raises((OSError, WrongAnswer)):
                fetched(wire)
        finally:
            hit = broker.order.take_back()
        assert hit, "the fault did not come about"
        assert fetched(other) == whole
        with broker.peer.connect(1 << 24) as anew:
            assert fetched(anew) == whole
    assert broker.places() == places
    news = broker.output()[said:]
    assert " bug " not in news and "Traceback" not in news


@pytest.mark.parametrize("error", ["EINTR", "short"])
def test_a_call_that_did_less_goes_on(broker, error):
    places = broker.places()
    with broker.peer.connect(1 << 24) as wire:
        whole = fetched(wire)
        broker.order.give(places["net-0"], Fault("net-0", "sendfile", error, 1))
        try:
            assert fetched(wire) == whole
        finally:
            assert broker.order.take_back(), "the fault did not come about"
    assert broker.places() == places


def test_a_lookup_that_cannot_read_costs_its_answer(broker):
    """Where in the file an offset is says the I/O process, which reads that there."""
    places, question = broker.places(), requests.fetch("t", 0, 1, 1 << 21, 1, max_wait_ms=0)
    (home,) = [name for name in places if name.startswith("io-")]
    with broker.peer.connect(1 << 24) as wire, broker.peer.connect(1 << 24) as other:
        whole = wire.call(question)
        broker.order.give(places[home], Fault(home, "pread", "EIO", 1))
        try:
            refused = other.call(question)
        finally:
            assert broker.order.take_back(), "the fault did not come about"
        at = 4 + 4 + 2 + len("t") + 4 + 4
        assert struct.unpack_from(">h", refused, at) == (KAFKA_STORAGE_ERROR,)
        assert other.call(question) == wire.call(question) == whole
    assert broker.places() == places
