"""Numbers name one exchange each, deadlines and losses are told once, and a leak is noticed."""

from types import SimpleNamespace

import pytest

from appliance.handlers.exchange import Exchange, Handler, never
from appliance.netproc.in_flight.exchanges import DEADLINE, NO_NUMBER, Exchanges
from appliance.netproc.memory.slabs import allocate, check
from appliance.ring.arena import UNIT, Arena
from tests.callers import rights

HANDLER = Handler(0, "Produce", 3, 13, lambda host, x: None, never)
LAST = (1 << 32) - 1


def exchange():
    connection = SimpleNamespace()
    return Exchange(NO_NUMBER, HANDLER, 9, 0, rights(), 0, 0, connection)


def test_numbers_begin_again_and_pass_over_those_in_use():
    exchanges = Exchanges(first=LAST)
    last, zero, one = exchange(), exchange(), exchange()
    exchanges.number_exchange(last)
    exchanges.number_exchange(zero)
    assert (last.number, zero.number) == (LAST, 0)
    again = Exchanges(first=LAST)
    again.living.update({LAST: last, 0: zero})
    again.number_exchange(one)
    assert one.number == 1 and again.living[0] is zero


def test_delayed_are_produces_and_fetches_without_an_answer():
    exchanges = Exchanges()
    produce, answered, fetch, other = exchange(), exchange(), exchange(), exchange()
    answered.answer = []
    fetch.handler = Handler(1, "Fetch", 4, 18, lambda host, x: None, never)
    other.handler = Handler(11, "JoinGroup", 0, 9, lambda host, x: None, never)
    for x in (produce, answered, fetch, other):
        exchanges.number_exchange(x)
    assert exchanges.count_delayed() == (1, 1)


def test_an_exchange_that_is_not_in_flight_cannot_end():
    exchanges = Exchanges()
    living, answered = exchange(), exchange()
    exchanges.number_exchange(living)
    with pytest.raises(AssertionError, match="another's"):
        exchanges.forget_exchange(answered)
    answered.number = living.number
    with pytest.raises(AssertionError, match="another's"):
        exchanges.forget_exchange(answered)


def test_one_that_holds_memory_cannot_end():
    exchanges, x = Exchanges(), exchange()
    exchanges.number_exchange(x)
    x.slab = allocate(Arena(UNIT), 1, 1)
    with pytest.raises(AssertionError, match="holds memory"):
        exchanges.forget_exchange(x)


def test_one_that_is_over_ends_and_lets_go_of_its_memory():
    exchanges, arena = Exchanges(), Arena(UNIT)
    x = exchange()
    x.connection.closed = False
    exchanges.number_exchange(x)
    x.slab = allocate(arena, 1, 1)
    x.pending[0] = 0
    x.answer = []
    exchanges.end_if_done(x)
    assert exchanges.living and arena.used, "somebody may still read its bytes"
    x.pending.clear()
    x.answer = None
    exchanges.end_if_done(x)
    assert exchanges.living, "it is not answered"
    x.connection.closed = True
    exchanges.end_if_done(x)
    assert not exchanges.living and not arena.used and x.number == NO_NUMBER


def test_deadlines_of_exchanges_that_are_over_do_not_pile_up():
    """Each fetch waits for a day and is woken at once."""
    exchanges = Exchanges()
    waiting = exchange()
    exchanges.number_exchange(waiting)
    waiting.pending[5] = 0
    waiting.deadline_ns = 7
    exchanges.schedule(waiting)
    exchanges.wake_at(waiting, 5, 8)
    for number in range(10_000):
        x = exchange()
        x.deadline_ns = 86_400 * 10**9 + number
        exchanges.number_exchange(x)
        exchanges.schedule(x)
        x.pending.clear()
        exchanges.forget_exchange(x)
    assert len(exchanges.deadlines) < 2_000
    assert exchanges.next_due(7) == (waiting, DEADLINE)
    assert exchanges.next_due(8) == (waiting, 5)


def test_waits_of_exchanges_that_are_over_do_not_pile_up():
    exchanges = Exchanges()
    for number in range(10_000):
        x = exchange()
        exchanges.number_exchange(x)
        x.pending[0] = 0
        exchanges.wake_at(x, 0, 86_400 * 10**9 + number)
        x.pending.clear()
        exchanges.forget_exchange(x)
    assert len(exchanges.deadlines) < 2_000


def test_one_that_waits_for_nobody_is_noticed():
    exchanges, x = Exchanges(), exchange()
    exchanges.number_exchange(x)
    x.pending[0] = 0
    exchanges.check()
    x.pending.clear()
    with pytest.raises(AssertionError, match="waits for nobody"):
        exchanges.check()


def test_memory_that_nobody_holds_is_noticed():
    arena = Arena(4 * UNIT)
    slab, lost = allocate(arena, UNIT, 1), allocate(arena, 2 * UNIT, 1)
    slab.hold_slab()
    check(arena, [slab, None, slab, lost])
    with pytest.raises(AssertionError, match=f"{2 * UNIT} bytes"):
        check(arena, [slab, None, slab])


def test_deadlines_are_told_in_order_and_once():
    exchanges = Exchanges()
    late, early, answered, moved = (exchange() for _ in range(4))
    for x, deadline in ((late, 30), (early, 10), (answered, 10), (moved, 10)):
        exchanges.number_exchange(x)
        x.deadline_ns = deadline * 1_000_000
        exchanges.schedule(x)
    answered.answer = []
    moved.deadline_ns = 40_000_000
    assert exchanges.wait_ms(0, 100) == 10
    now = 20_000_000
    assert [exchanges.next_due(now), exchanges.next_due(now)] == [(early, DEADLINE), None]
    assert exchanges.wait_ms(now, 100) == 10
    assert exchanges.overdue(35_000_000) == [late, early]
    exchanges.forget_exchange(late)
    assert exchanges.next_due(35_000_000) is None
    assert exchanges.wait_ms(now, 100) == 100


def test_all_that_were_scheduled_are_taken_once_and_waits_stay():
    exchanges = Exchanges()
    late, early, answered, moved, waits = (exchange() for _ in range(5))
    for x, deadline in ((late, 30), (early, 10), (answered, 10), (moved, 10)):
        exchanges.number_exchange(x)
        x.deadline_ns = deadline
        exchanges.schedule(x)
    answered.answer = []
    moved.deadline_ns = 40
    exchanges.number_exchange(waits)
    waits.pending[4] = -2
    exchanges.wake_at(waits, 4, 20)
    seen = exchanges.deadlines
    assert set(exchanges.take_scheduled()) == {late, early}
    assert exchanges.take_scheduled() == []
    assert exchanges.deadlines is seen, "the server looks at this one in every turn"
    assert [exchanges.next_due(50), exchanges.next_due(50)] == [(waits, 4), None]


def test_a_wait_is_over_once_whatever_becomes_of_the_exchange_meanwhile():
    exchanges = Exchanges()
    one, cancelled, ended = (exchange() for _ in range(3))
    for x in (one, cancelled, ended):
        exchanges.number_exchange(x)
        x.pending.update({4: -2, 5: 0})
        exchanges.wake_at(x, 4, 10)
    one.answer = []  # some of it is still under way
    cancelled.pending.clear()
    exchanges.forget_exchange(ended)
    assert exchanges.next_due(9) is None
    assert exchanges.next_due(10) == (one, 4)
    assert one.pending == {5: 0}
    assert exchanges.next_due(10) is None


def test_what_was_asked_of_the_dead_is_lost_once():
    exchanges = Exchanges()
    one, other = exchange(), exchange()
    for x, homes in ((one, {0: 1, 1: 2}), (other, {0: 1})):
        exchanges.number_exchange(x)
        x.pending.update(homes)
    exchanges.lose_all({1})
    exchanges.lose(one, 0)
    other.pending.clear()  # cancelled meanwhile
    assert exchanges.next_lost() == (one, 0)
    assert exchanges.next_lost() is None
    assert one.pending == {1: 2}
