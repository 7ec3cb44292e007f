"""The largest requests are as large as the limit of elements lets them be, and no larger."""

import pytest

from appliance.base.errors import MalformedRequest
from appliance.handlers.fetch_sessions import FetchSessions
from appliance.handlers.registry import handlers
from appliance.wire import messages
from benchmarks import largest

ELEMENTS, BYTES = 1024, 1 << 20
KEYS = [2, 3, 9, 10, 23, 32, 61, 65, 68, 75]


@pytest.fixture
def limit(monkeypatch):
    def set_limit(most):
        monkeypatch.setattr(messages, "elements", [most])

    return set_limit


def shapes(key):
    return list(largest.shapes(key, messages.request_versions(key)[-1], ELEMENTS, BYTES))


@pytest.mark.parametrize("key", KEYS)
def test_the_limit_allows_them_and_not_much_more(key, limit):
    found = shapes(key)
    assert {shape.known for shape in found} == {True, False}
    for shape in found:
        limit(ELEMENTS)
        messages.decode_request(key, shape.version, shape.body)
        limit(ELEMENTS * 9 // 10)
        with pytest.raises(MalformedRequest):
            messages.decode_request(key, shape.version, shape.body)


def test_each_array_is_full_once():
    paths = {shape.path for shape in shapes(9)}
    assert paths == {"groups", "groups.topics", "groups.topics.partition_indexes"}


def test_what_is_unknown_is_different_each_time_and_what_is_known_is_the_topic():
    for shape in shapes(3):
        request = messages.decode_request(3, shape.version, shape.body)
        names = {topic.name for topic in request.topics}
        assert len(names) == (1 if shape.known else shape.elements)
        assert (largest.KNOWN in names) is shape.known


def test_bytes_are_bounded_too():
    for shape in largest.shapes(3, 13, ELEMENTS, 10_000):
        assert 9_000 < len(shape.body) <= 10_000


def arrays(layout, before=()):
    """The paths of all arrays of a request."""
    for field in layout.fields:
        path = (*before, field.name)
        if field.array:
            yield ".".join(path)
        if field.nested is not None:
            yield from arrays(field.nested, path)


def test_each_api_that_clients_are_served_is_asked():
    """A new one is in, too: what it may be asked comes from its schema."""
    served = handlers(FetchSessions(1, lambda: 1))
    assert len(served) > 50
    for key, handler in served.items():
        version = handler.highest
        layout = messages.layout_of(messages.request_type(key, version))
        found = list(largest.shapes(key, version, ELEMENTS, BYTES))
        assert {shape.path for shape in found} == set(arrays(layout)), handler.name
        for shape in (largest.smallest(key, version), *found):
            assert len(shape.body) <= BYTES
            messages.decode_request(key, version, shape.body)
