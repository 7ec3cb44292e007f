"""An exception in any part of the exporter costs one answer, one look or one push, is told, and the
next page is whole."""

import inspect
import os
import threading

import pytest
from exporter_world import SECOND, World
from test_serving import Place

from appliance.exporter.certificates import ListenerCertificates
from appliance.exporter.main import ExporterRounds, Pages
from appliance.exporter.probing import APART_NS, HealthProbe
from appliance.exporter.pushing import MetricsPusher
from appliance.shell.bugs import Bugs
from appliance.shell.threads import on_thread_death
from tests.seats import log_file

PLANTED = pytest.mark.interpreted("plants exceptions in parts")


def fail(*args, **more):
    raise KeyError("planted")


class Bugbook:
    """What a process logs of exceptions."""

    def __init__(self, folder):
        self.path = folder / "log"
        self.fd, self.log = log_file(folder, "exporter")
        self.reports = []
        self.bugs = self
        self._bugs = Bugs(self.log)

    def report(self, where, bug):
        self.reports.append(where)
        self._bugs.report(where, bug)

    def lines(self):
        return [line for line in self.path.read_text().splitlines() if " bug " in line]


@pytest.fixture
def told(tmp_path):
    one = Bugbook(tmp_path)
    yield one
    os.close(one.fd)


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path, penstock_metrics_partitions_max=100)
    one.serve()
    one.topic("orders", partitions=3)
    return one


def parts(exporter):
    """(attribute, method) of everything that the exporter is made of."""
    return [
        (name, method)
        for name, part in sorted(vars(exporter).items())
        if type(part).__module__.startswith("appliance.") and name != "_log"
        for method, _ in inspect.getmembers(type(part), inspect.isfunction)
        if not method.startswith("__")
    ]


@PLANTED
def test_any_part_may_raise_while_it_looks_or_tells(world, told, monkeypatch):
    met = 0
    exporter, now = world.exporter, [world.now_ns]
    place = Place()
    pages = Pages(exporter, exporter._post, lambda: now[0], lambda addresses: "")
    place.server._answer = pages.answer
    rounds = ExporterRounds(exporter, None, told.bugs, lambda: now[0])
    place.server._on_bug = rounds.on_bug
    begin_anew = exporter.begin_anew
    exporter.begin_anew = lambda: keep_image(exporter, begin_anew)
    for _ in range(2):  # rates need two looks
        rounds.run_due()
        now[0] += 60 * SECOND
    whole = page_of(place)
    for name, method in parts(exporter):
        told.reports.clear()
        with monkeypatch.context() as planted:
            planted.setattr(type(vars(exporter)[name]), method, fail)
            now[0] += 60 * SECOND
            rounds.run_due()
            status, _ = get(place, "/metrics")
            assert status in (200, 500), (name, method)
        now[0] += 2 * SECOND  # the same cause is told once a second
        rounds.run_due()
        assert page_of(place) == whole, (name, method)
        if status == 500:
            met += 1
            assert "an answer" in told.reports
        elif told.reports:
            assert not {*told.reports} - {"look", "preparing"}
    assert any("Traceback" in line for line in told.lines())
    assert met > 10, "nothing was planted where it is met"
    place.close()


def keep_image(exporter, begin_anew):
    """The world's tables are made by hand: there is no metadata log to read again."""
    kept = exporter._follower.image
    begin_anew()
    exporter._follower.image = kept


def page_of(place):
    """The series of a page: its lines without their values."""
    status, text = get(place, "/metrics")
    assert status == 200
    return {line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"}


def get(place, path):
    """(status, text)."""
    head, _, body = place.ask(f"GET {path} HTTP/1.1\r\n\r\n".encode()).partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body.decode()


def test_a_push_that_raises_is_told_and_the_next_one_is_made(world, told):
    outcomes = [KeyError("planted"), ""]
    sent = []

    def send(target, body):
        sent.append(body)
        outcome = outcomes[len(sent) - 1]
        if outcome:
            raise outcome
        return outcome

    class Target:
        interval_ms = 1000
        url = "http://otel"

    now = [world.now_ns]
    before = threading.excepthook
    on_thread_death(lambda name, bug: told.bugs.report(f"thread {name}", bug))
    try:
        pusher = MetricsPusher(Target(), lambda: b"page", told.log, send)
        rounds = ExporterRounds(world.exporter, pusher, told.bugs, lambda: now[0])
        for _ in range(2):
            rounds.run_due()
            pusher._thread.join()
            now[0] += SECOND
    finally:
        threading.excepthook = before
    assert len(sent) == 2
    assert len(told.lines()) == 1 and "planted" in told.lines()[0]


def test_a_probe_that_raises_says_so_and_never_what_the_last_one_found(told):
    outcomes, now = ["", KeyError("planted"), ""], [10 * SECOND]

    def probe():
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome
        return outcome

    before = threading.excepthook
    on_thread_death(lambda name, bug: told.bugs.report(f"thread {name}", bug))
    try:
        probing, problems = HealthProbe(probe, lambda: now[0]), []
        while outcomes:
            now[0] += APART_NS
            while (found := probing.result(now[0])) is None:
                pass
            problems.append(found.problem)
    finally:
        threading.excepthook = before
    assert problems[0] == problems[2] == "" and "exception" in problems[1]
    assert len(told.lines()) == 1 and "thread probe" in told.lines()[0]


def test_a_look_at_certificates_that_raises_is_made_again(told):
    asked = []

    class Listener:
        tls, listener, host, port = True, "TLS", "h", 1

    def shows(host, port, patience_s):
        asked.append(host)
        raise KeyError("planted")

    before = threading.excepthook
    on_thread_death(lambda name, bug: told.bugs.report(f"thread {name}", bug))
    try:
        looking = ListenerCertificates(lambda: [Listener()], shows)
        for now_ns in (0, 3600 * SECOND):
            looking.begin_reading(now_ns)
            looking._running.join()
    finally:
        threading.excepthook = before
    assert asked == ["h", "h"]
    assert "thread certificates" in told.lines()[0]
