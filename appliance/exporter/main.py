"""The process that tells how the appliance is: `/metrics`, `/livez` and `/readyz` over HTTP, and by
OpenTelemetry's protocol to whom the settings name.

It reads the tables and asks nobody, but for `/readyz`, which connects to a listener once, and
`/readyz?probe=1`, which writes, reads and joins a group. Whatever becomes of it, the appliance does
not notice. An exception that nobody expected costs one answer or one look, and what was derived of
the tables and the metadata log is made anew.
"""

import json
import os
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from appliance.base.os_disk import OsDisk
from appliance.config.bounds import AUDIT_ENTRIES, METRICS_CONNECTIONS, setting_of
from appliance.config.otlp import Target
from appliance.exporter.door import MetricsDoor
from appliance.exporter.exposition import CONTENT_TYPE
from appliance.exporter.knock import unanswered
from appliance.exporter.post import Post
from appliance.exporter.probe import NotProbed, failed
from appliance.exporter.probing import HealthProbe
from appliance.exporter.scrape import Exporter
from appliance.exporter.serving import HttpAnswer, HttpServer
from appliance.ring.security_table import EXPORTER
from appliance.shell import sandbox
from appliance.shell.audit import Trail
from appliance.shell.bugs import Bugs
from appliance.shell.log import Log
from appliance.shell.threads import on_thread_death

if TYPE_CHECKING:
    from appliance.exporter.pushing import MetricsPusher

_LOOK_NS: Final = 1_000_000_000
_NICE: Final = 5
"""Where CPUs are short, who serves clients comes first."""
_HELP: Final = "/metrics for Prometheus, /livez, /readyz\n"
_PROBE_S: Final = 4.0
"""Longer than anything takes that works; who asks during one can wait for the next one, too."""
_STOPPED: Final = "TtZX"
"""States of a process in /proc that does nothing."""


def run(post: Post, log: Log) -> int:
    """Serve until the supervisor ends it."""
    os.nice(_NICE)
    sandbox.enter(files=True)  # it looks at other processes in /proc
    bugs, clock = Bugs(log), time.monotonic_ns
    on_thread_death(lambda name, bug: bugs.report(f"thread {name}", bug))
    exporter = Exporter(post, OsDisk(), log)
    pages = Pages(exporter, post, clock)
    pusher = None if post.target is None else _pusher(exporter, post, post.target, log)
    rounds = ExporterRounds(exporter, pusher, bugs, clock)
    server = None
    if post.listener is not None:
        most = post.config.int(setting_of(AUDIT_ENTRIES))
        trail = Trail(post.tables.security.regions[EXPORTER], most, reach=log.reach)
        door = MetricsDoor(post.config, log, trail)
        most = post.config.int(setting_of(METRICS_CONNECTIONS))
        server = HttpServer(post.listener, pages.answer, rounds.on_bug, door, most, log.reach)
    while os.getppid() == post.supervisor:
        wait_s = rounds.run_due()
        if server is None:
            time.sleep(wait_s)
        else:
            server.serve_once(wait_s, clock)
    return 0


class ExporterRounds:
    """Looks, pushes and preparations by the clock. pusher: None where nothing is pushed. clock:
    monotonic ns."""

    def __init__(
        self,
        exporter: Exporter,
        pusher: "MetricsPusher | None",
        bugs: Bugs,
        clock: Callable[[], int],
    ) -> None:
        self._exporter = exporter
        self._pusher = pusher
        self._bugs = bugs
        self._clock = clock
        self._due_ns = 0
        self._unprepared = True

    def run_due(self) -> float:
        """Do what is due; for how many seconds there is nothing more."""
        now_ns = self._clock()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _LOOK_NS
            self._run("look", lambda: self._exporter.sample_all(now_ns))
            if self._pusher is not None:
                pusher = self._pusher
                self._run("push", lambda: pusher.push_due(now_ns))
            self._unprepared = True
        self._unprepared = self._unprepared and self._run("preparing", self._exporter.prepare)
        return 0 if self._unprepared else max(self._due_ns - self._clock(), 0) / _LOOK_NS

    def on_bug(self, where: str, bug: Exception) -> None:
        """Tell an exception, and trust nothing that was derived before it."""
        self._bugs.report(where, bug)
        self._exporter.begin_anew()

    def _run(self, where: str, chore: Callable[[], object]) -> bool:
        """The chore's result; False when it raised."""
        try:
            return bool(chore())
        except Exception as bug:
            self.on_bug(where, bug)
            return False


def _pusher(exporter: Exporter, post: Post, target: Target, log: Log) -> "MetricsPusher":
    """Returns the periodic pusher of the page."""
    from appliance.exporter.otlp import Encoder
    from appliance.exporter.pushing import MetricsPusher  # here: it brings HTTP and TLS

    encoder = Encoder(post.started_ms * 1_000_000)

    def page() -> bytes:
        told = exporter.page(time.monotonic_ns())
        return encoder.encode(told, exporter.resource(), time.time_ns())

    return MetricsPusher(target, page, log)


class Pages:
    """The pages by path. knock: why no client is answered, "" when one is. probe: why one is not
    served."""

    def __init__(
        self,
        exporter: Exporter,
        post: Post,
        clock: Callable[[], int],
        knock: Callable[..., str] = unanswered,
        probe: Callable[[], str] | None = None,
    ) -> None:
        self._exporter = exporter
        self._post = post
        self._clock = clock
        self._knock = knock
        self._probing = HealthProbe(probe or self._probe)

    def answer(self, target: str, asked_ns: int) -> HttpAnswer | None:
        """By the target of a request and when it was made (monotonic); None: ask again soon."""
        path, _, query = target.partition("?")
        path = path.rstrip("/")
        if path == "/metrics":
            return HttpAnswer(HTTPStatus.OK, CONTENT_TYPE, self._exporter.page(self._clock()))
        if path == "/livez":
            return self._live()
        if path in ("/readyz", "/healthz"):
            return self._ready(asked_ns, probes="probe=1" in query.split("&"))
        status = HTTPStatus.NOT_FOUND if path else HTTPStatus.OK
        return HttpAnswer(status, "text/plain", _HELP)

    def _live(self) -> HttpAnswer:
        now_ns = self._clock()
        self._exporter.watch.check_progress(now_ns)
        dead = list(self._exporter.verdict(now_ns).dead)
        if (state := process_state(self._post.supervisor)) in _STOPPED:
            dead.append(f"the supervisor is stopped (state {state})")
        return _told(not dead, {"live": not dead, "dead": dead})

    def _ready(self, asked_ns: int, *, probes: bool) -> HttpAnswer | None:
        if probes and self._probing.under_way:
            return None
        now_ns = self._clock()
        self._exporter.watch.check_progress(now_ns)
        missing, warnings, _ = self._exporter.verdict(now_ns)
        if not missing and self._exporter.watch.unsure(now_ns):
            return None
        told = list(missing)
        if not told and (why := self._knock(self._post.addresses)):
            told.append(why)
        more: dict[str, object] = {}
        if probes:
            probed = None if told else self._probing.result(asked_ns)
            if not told and probed is None:
                return None
            more["probed"] = probed is not None and not probed.skipped
            if probed is not None and probed.problem:
                told.append(probed.problem)
            if probed is not None and probed.skipped:
                warnings = (*warnings, f"not probed: {probed.skipped}")
        what = {"ready": not told, "missing": told, "warnings": list(warnings)}
        return _told(not told, what | more)

    def _probe(self) -> str:
        post = self._post
        if not self._exporter.watch.is_broker:
            raise NotProbed("this node has no partitions, it is a controller alone")
        me = self._exporter.identity
        ioprocs = post.tables.shape.ioprocs
        return failed(post.addresses, me.node_id, me.cluster_id, ioprocs, _PROBE_S)


def process_state(pid: int) -> str:
    """The letter that the kernel has for what a process does; X when there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def _told(good: bool, what: dict[str, object]) -> HttpAnswer:
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return HttpAnswer(status, "application/json", json.dumps(what, ensure_ascii=False) + "\n")
