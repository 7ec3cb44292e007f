"""What quotas would have done, against a twin that goes through every millisecond with the meters
of the appliance itself."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.history.samples import ClientIdentity, ClientSample
from appliance.quotas.limits import FETCH, MUTATION, PRODUCE
from appliance.quotas.meters import Meters
from appliance.quotas.window import Windows
from appliance.ring.quota_table import QuotaTable
from console.model.local.history import Past
from console.model.local.recorded import by_second
from console.model.quotas.what_if import Traffic, outcomes, pauses
from console.show.what_if import sentences

ANYONE = (("client-id", None),)
ONE = (("client-id", "one"),)
amounts = st.lists(st.sampled_from((0, 0, 1, 400, 900, 1000, 1100, 2500, 30_000)), max_size=25)


def twin(amounts, bound, windows):
    """(ms of pauses within the time, the longest one, what still waits)."""
    memory = memoryview(bytearray(QuotaTable.bytes_needed(1, windows.count, 4)))
    meters = Meters(QuotaTable(memory, 1, windows.count, 4), 0, windows)
    meters.configure({ANYONE: {PRODUCE: bound}})
    waiting = until = paused = longest = 0
    for now in range(len(amounts) * 1000):
        if now % 1000 == 999:
            waiting += amounts[now // 1000]
        if waiting and now >= until:
            pause = meters.charge(PRODUCE, "", "one", waiting, now)
            waiting, until, longest = 0, now + pause, max(longest, pause)
        paused += now < until
    return paused, longest, waiting


@settings(max_examples=40, deadline=None)
@given(amounts, st.sampled_from((100.0, 700.0, 1000.0, 5000.0)), st.integers(1, 11))
def test_pauses_are_those_of_the_meters(amounts, bound, count):
    windows = Windows(count, 1000)
    found = pauses(amounts, bound, windows)
    assert (found.paused_ms, found.longest_ms, found.left) == twin(amounts, bound, windows)


def test_who_stays_below_is_never_held_and_who_wants_twice_is_nearly_always():
    assert pauses([1000.0] * 600, 1001.0).paused_ms == 0
    assert pauses([0.0] * 600, 1.0).paused_ms == 0
    twice = pauses([2000.0] * 600, 1000.0)
    assert 500_000 < twice.paused_ms < 600_000 and twice.longest_ms > 10_000
    assert twice.left > 0


def client(name, each, kind=PRODUCE, user="ANONYMOUS", seconds=60):
    return Traffic(user, name, {kind: [each] * seconds})


def test_each_client_of_a_default_is_counted_on_its_own_and_those_of_a_name_together():
    traffic = [client("a", 600.0), client("b", 700.0), client("c", 3000.0)]
    held = outcomes(traffic, {}, {ANYONE: {PRODUCE: 1000.0}})
    assert [(one.client_id, one.user, bool(one.pauses.paused_ms)) for one in held] == [
        ("c", "", True), ("b", "", False), ("a", "", False),
    ]  # fmt: skip
    both = [replace(client("one", 600.0), user=user) for user in ("u", "v")]
    [one] = outcomes(both, {}, {ONE: {PRODUCE: 1000.0}})
    assert one.pauses.paused_ms and one.peak == 1200.0 and (one.user, one.rule) == ("", ONE)


def test_only_those_whose_limit_would_be_another_are_told():
    before = {ONE: {PRODUCE: 10.0}, ANYONE: {FETCH: 5.0}}
    traffic = [client("one", 600.0), client("two", 600.0), client("two", 9.0, FETCH)]
    assert outcomes(traffic, before, before) == []
    [one] = outcomes(traffic, before, before | {ANYONE: {FETCH: 5.0, PRODUCE: 100.0}})
    assert (one.client_id, one.before, one.limit) == ("two", None, 100.0)
    [gone] = outcomes(traffic, before, {ANYONE: {FETCH: 5.0}})
    assert (gone.client_id, gone.before, gone.limit) == ("one", 10.0, None)
    assert gone.pauses.paused_ms == 0


def test_clients_of_different_age_end_in_the_same_second():
    young, old = client("one", 500.0, seconds=3), client("one", 500.0, user="u", seconds=60)
    [one] = outcomes([young, old], {}, {ONE: {PRODUCE: 10_000.0}})
    assert (one.recorded_s, one.peak) == (60, 1000.0)


def test_it_is_told_in_sentences_and_what_is_not_known_is_said():
    after = {ANYONE: {PRODUCE: 1000.0}}
    traffic = [client(f"c{n}", 3000.0 + n) for n in range(8)] + [client("calm", 1.0)]
    told = sentences(outcomes(traffic, {}, after), (PRODUCE, MUTATION), 60)
    assert told[0].startswith("client-id=c7 would have been throttled for about ")
    assert "producer_byte_rate 1 kB/s of client-id=<default>" in told[0]
    assert told[5] == "And 3 more clients would have been throttled."
    assert "controller_mutation_rate is not recorded" in told[6]
    [calm] = sentences(outcomes(traffic[-1:], {}, after), (PRODUCE,), 60)
    assert calm == "In the last 1 min it would have throttled none of 1 client."
    [nobody] = sentences([], (PRODUCE,), 600)
    assert nobody == "In the last 10 min no client with this quota sent or read anything."
    assert "nothing is recorded yet" in sentences([], (PRODUCE,), 0)[0]
    [_, limited] = sentences(
        outcomes(traffic[:1], after, {ANYONE: {PRODUCE: 500.0}}), (PRODUCE,), 60
    )
    assert "what they wanted beyond is not known" in limited


def test_traffic_is_laid_out_by_seconds_and_silence_is_nothing():
    def past(*told):
        times = tuple(float(at) for at, _ in told)
        return Past(times, (1.0,) * len(told), tuple(ClientSample(*use) for _, use in told))

    clients = {
        ClientIdentity("u", "c", "local"): past((1000.01, (5, 1)), (1003.02, (7, 0))),
        ClientIdentity("u", "c", "private"): past((1001.98, (2, 0)), (1003.0, (1, 9))),
        ClientIdentity("", "d", "local"): past((300.0, (99, 0)), (1002.0, (0, 4))),
    }
    by_who = {(one.user, one.client_id): one.amounts for one in by_second(clients, 600, 1003.0)}
    assert by_who["u", "c"][PRODUCE][-5:] == [0, 5, 0, 2, 8]
    assert by_who["u", "c"][FETCH][-4:] == [1, 0, 0, 9]
    assert len(by_who["", "d"][PRODUCE]) == 600 and sum(by_who["", "d"][PRODUCE]) == 0
    assert by_second({}, 600, 5.0) == ()
