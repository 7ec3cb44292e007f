"""When a node says what to the active controller: by answers and time alone."""

import pytest

from appliance.base import errors
from appliance.control.broker.lifecycle import NEVER, Beat, Lifecycle, Register, State

INTERVAL = 2000
EPOCH = 17


@pytest.fixture
def broker():
    return Lifecycle(INTERVAL)


def registered(broker, now=0):
    assert broker.next_request(now, 0, False) == Register()
    broker.registered(EPOCH, now)
    return broker


def running(broker, now=0):
    registered(broker, now)
    assert broker.next_request(now, EPOCH, True) == Beat(EPOCH, EPOCH, False, False)
    broker.beaten(False, False, now)
    assert broker.state is State.RUNNING
    return broker


def test_one_request_at_a_time(broker):
    assert broker.next_request(0, 0, True) == Register()
    assert broker.next_request(0, 0, True) is None
    assert broker.due_ms() == NEVER


def test_it_asks_to_be_unfenced_as_soon_as_it_and_its_processes_know_its_registration(broker):
    registered(broker)
    assert broker.next_request(1, EPOCH - 1, True) is None, "it does not know its own registration"
    assert broker.next_request(1, EPOCH, False) is None, "its I/O processes do not"
    assert broker.next_request(INTERVAL, EPOCH, False) == Beat(EPOCH, EPOCH, True, False), (
        "but it lives"
    )
    broker.beaten(True, False, INTERVAL)
    assert broker.next_request(INTERVAL + 1, EPOCH, True) == Beat(EPOCH, EPOCH, False, False)
    broker.beaten(True, False, INTERVAL + 1)
    assert broker.state is State.FENCED
    assert broker.next_request(INTERVAL + 2, EPOCH, True) is None, "it has said so"
    assert broker.next_request(2 * INTERVAL + 1, EPOCH, True) is not None
    broker.beaten(False, False, 2 * INTERVAL + 1)
    assert broker.state is State.RUNNING


def test_it_is_heard_of_once_an_interval(broker):
    running(broker, 5)
    assert broker.due_ms() == 5 + INTERVAL
    assert broker.next_request(4 + INTERVAL, 20, True) is None
    assert broker.next_request(5 + INTERVAL, 20, True) == Beat(EPOCH, 20, False, False)


def test_who_runs_does_not_ask_to_be_fenced_because_an_io_process_starts_anew(broker):
    running(broker)
    assert broker.next_request(INTERVAL, 20, False) == Beat(EPOCH, 20, False, False)


def test_another_controller_hears_of_it_at_once(broker):
    running(broker)
    broker.found(100)
    assert broker.next_request(100, 20, True) == Beat(EPOCH, 20, False, False)


def test_it_says_how_far_it_is_when_somebody_waits_for_that(broker):
    running(broker)
    assert broker.next_request(10, 20, True) is None
    broker.hurry(10)
    assert broker.next_request(10, 20, True) == Beat(EPOCH, 20, False, False)


def test_who_is_fenced_while_it_runs_asks_to_be_unfenced_at_once(broker):
    running(broker)
    broker.next_request(INTERVAL, 20, True)
    broker.beaten(True, False, INTERVAL)
    assert broker.state is State.FENCED
    assert broker.next_request(INTERVAL, 20, True) == Beat(EPOCH, 20, False, False)
    broker.beaten(True, False, INTERVAL)
    assert broker.next_request(INTERVAL + 1, 20, True) is None, "not again and again"


@pytest.mark.parametrize("code", [errors.STALE_BROKER_EPOCH, errors.BROKER_ID_NOT_REGISTERED])
def test_whom_the_controller_does_not_know_registers_again(broker, code):
    running(broker)
    broker.next_request(INTERVAL, 20, True)
    broker.refused(code, INTERVAL)
    assert broker.next_request(INTERVAL, 20, True) == Register()
    broker.registered(EPOCH + 9, INTERVAL)
    assert broker.next_request(INTERVAL, EPOCH + 9, True) == Beat(
        EPOCH + 9, EPOCH + 9, False, False
    )


def test_who_is_refused_tries_again_after_longer_and_longer_pauses(broker):
    now, pauses = 0, []
    for _ in range(9):
        assert broker.next_request(now, 0, True) == Register()
        broker.refused(errors.DUPLICATE_BROKER_REGISTRATION, now)
        pauses.append(broker.due_ms() - now)
        assert broker.next_request(broker.due_ms() - 1, 0, True) is None
        now = broker.due_ms()
    assert pauses == sorted(pauses) and pauses[0] < 100 and pauses[-1] == 1000
    broker.found(now - 500)
    assert broker.next_request(now - 500, 0, True) == Register(), "another controller may say yes"


def test_a_duplicate_is_one_from_its_first_refusal_to_its_registration(broker):
    def refuse(code, now):
        assert broker.next_request(now, 0, True) == Register()
        broker.refused(code, now)

    refuse(errors.DUPLICATE_BROKER_REGISTRATION, 100)
    refuse(errors.DUPLICATE_BROKER_REGISTRATION, 2000)
    assert broker.duplicate_ms(5000) == 4900
    refuse(errors.INVALID_REGISTRATION, 6000)
    assert broker.duplicate_ms(7000) == 0, "it is refused for another reason"
    refuse(errors.DUPLICATE_BROKER_REGISTRATION, 8000)
    assert broker.next_request(9500, 0, True) == Register()
    broker.registered(EPOCH, 9500)
    assert broker.duplicate_ms(99_000) == 0


def test_an_unanswered_heartbeat_is_repeated_soon(broker):
    running(broker)
    broker.next_request(INTERVAL, 20, True)
    broker.failed(INTERVAL)
    assert broker.next_request(INTERVAL, 20, True) is None
    assert INTERVAL < broker.due_ms() < INTERVAL + 100
    assert broker.next_request(broker.due_ms(), 20, True) == Beat(EPOCH, 20, False, False)


def test_the_successor_of_a_control_process_goes_on_with_the_registration_that_is_there(broker):
    broker.resume(EPOCH)
    assert broker.next_request(0, EPOCH + 3, True) == Beat(EPOCH, EPOCH + 3, False, False)
    broker.beaten(False, False, 0)
    assert broker.state is State.RUNNING


def test_who_leaves_says_so_at_once_and_goes_when_it_is_told(broker):
    running(broker)
    broker.leave(10)
    assert broker.next_request(10, 20, True) == Beat(EPOCH, 20, False, True)
    broker.beaten(False, False, 11)
    assert broker.state is State.LEAVING
    assert 11 < broker.due_ms() <= 61
    assert broker.next_request(broker.due_ms(), 21, True) == Beat(EPOCH, 21, False, True)
    broker.beaten(True, True, 60)
    assert broker.state is State.GONE
    assert broker.next_request(9999, 21, True) is None
    assert broker.due_ms() == NEVER


def test_who_leaves_does_not_wait_for_ever(broker):
    running(broker)
    broker.leave(0)
    broker.next_request(0, 20, True)
    due = broker.due_ms()
    assert 0 < due <= 5000, "nobody answers"
    broker.tick(due - 1)
    assert broker.state is State.LEAVING
    broker.tick(due)
    assert broker.state is State.GONE
    broker.beaten(False, False, due)  # late
    assert broker.state is State.GONE


def test_who_was_never_registered_leaves_at_once(broker):
    broker.leave(0)
    assert broker.state is State.GONE


def test_who_leaves_and_is_not_known_any_more_has_left(broker):
    running(broker)
    broker.leave(0)
    broker.next_request(0, 20, True)
    broker.refused(errors.STALE_BROKER_EPOCH, 1)
    assert broker.state is State.GONE
