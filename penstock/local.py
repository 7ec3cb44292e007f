"""A real appliance as a child process: for tests, notebooks and demos.

It is started with the `penstock` command of this very interpreter, on a free loopback port, and
leaves nothing behind. Nothing here sleeps: readiness comes through a pipe, ends through pidfds.
"""

import fcntl
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from penstock import tied
from penstock.turned_clock import TurnedClock
from penstock.variables import variables

if TYPE_CHECKING:
    from penstock.client import Connection

READY_LIMIT_S: Final = 60.0
STOP_LIMIT_S: Final = 60.0
OURSELVES: Final = (sys.executable, "-P", "-m", "console")
"""The `penstock` command of this interpreter. -P: a console.py of the user's, in the folder where
this is called, is not taken for ours."""
_PORTS: Final = range(10_000, 20_000)
"""Below those that the system gives to outgoing connections, one of which would have the port of an
appliance that is restarted."""
_SHM: Final = Path("/dev/shm")
_NAMED_S: Final = 5.0
"""Seconds that a segment of an appliance that starts may have a name, at most."""


class ApplianceError(Exception):
    """The appliance did not start, did not end, or left something behind; the text has its log.
    `reason`: what it said itself, one sentence, where it did."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason or text.splitlines()[0]


def environment() -> dict[str, str]:
    """For a child: this process's environment, in which it finds the packages that run here, also
    those of a checkout that is not installed."""
    home = Path(__file__).parents[1]
    if home.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{home}{os.pathsep}{known}" if known else str(home)}


def _find_port() -> int:
    """A free port of the loopback; 0 when none is found, so that the system chooses one."""
    for port in random.sample(_PORTS, 100):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    return 0


class Appliance:
    """One appliance in `data_dir`. `settings` are Kafka's property names with their values.

    The port is chosen by the first start and stays the same afterwards, so that clients find a
    restarted appliance where they left it. With `listeners` among the settings those are opened,
    and it is reached by the first one without TLS, or by the first one.
    """

    def __init__(
        self,
        data_dir: str | Path,
        settings: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        own_session: bool = False,
        own_clock: bool = False,
        outlives: bool = False,
    ) -> None:
        """own_session: the Ctrl-C of this terminal does not reach it. own_clock: its wall clock can
        be set ahead (`advance`). outlives: it goes on after the end of this process; without
        it, it ends in order then, however this process ends."""
        self.data_dir = Path(data_dir)
        self.settings = dict(settings or {})
        self.log_file = self.data_dir.parent / f"{self.data_dir.name}.log"
        self._clock = TurnedClock(self.data_dir) if own_clock else None
        self._port = port
        self._own_session = own_session or outlives
        self._outlives = outlives
        self._process: subprocess.Popen[bytes] | None = None
        self._log_from = 0
        self._shm_before: set[str] = set()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for a client's bootstrap servers."""
        return f"127.0.0.1:{self._port}"

    def connect(self, **settings: Any) -> "Connection":
        """penstock's own client, connected to it; see `penstock.connect`."""
        from penstock.client import connect

        return connect(self.bootstrap, **settings)

    def environment(self) -> dict[str, str]:
        """The variables by which programs are told where a broker is."""
        return variables(self.bootstrap)

    @property
    def port(self) -> int:
        """The port that it listens on; 0 before the first start."""
        return self._port

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """True while the supervisor runs."""
        return self._process is not None and self._process.poll() is None

    def pids(self) -> list[int]:
        """The supervisor and every living child."""
        return [self.pid, *_children(self.pid)]

    def log_text(self) -> str:
        """Everything that it has said since its first start."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def command(self) -> list[str]:
        """The command that `start` runs, without the descriptor for readiness."""
        command = [*OURSELVES, "up", "--data", str(self.data_dir)]
        if "listeners" not in self.settings:
            command += ["--listen", self.bootstrap]
        return [*command, *self._options()]

    def _options(self) -> list[str]:
        """Its settings as options of the command line."""
        pairs = (f"{key}={_text(value)}" for key, value in self.settings.items())
        return [word for pair in pairs for word in ("-o", pair)]

    def advance(self, **by: float) -> None:
        """Set its wall clock ahead, and leave it so, also over a restart: `advance(days=8)`, or
        other keywords of timedelta. What is kept for a time is old by that clock at the next look;
        sessions, timeouts and other durations go on as they were. Raises ApplianceError for an
        appliance without a clock of its own, ValueError for a way back or more than a century."""
        if self._clock is None:
            raise ApplianceError(
                "it uses the machine's clock: advance a fresh_appliance, or Appliance(folder, "
                "own_clock=True)"
            )
        self._clock.advance(timedelta(**by))

    def start(self, **settings: object) -> Self:
        """Start and wait until clients are served. In keywords `_` stands for `.`; they stay in
        force. Raises ApplianceError."""
        if self.running:
            raise ApplianceError(f"it runs already, as process {self.pid}")
        self.settings |= {key.replace("_", "."): value for key, value in settings.items()}
        if (holder := _holder(self.data_dir)) is not None:
            raise ApplianceError(f"{self.data_dir} is in use by process {holder}")
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._prepare_start()
        if not self._port and "listeners" not in self.settings:
            self._port = _find_port()
        self._shm_before = _shared_memory()
        ours, theirs = os.pipe()
        try:
            with self.log_file.open("ab") as log:
                self._log_from = log.tell()
                self._process = subprocess.Popen(
                    [*self.command(), "--ready-fd", str(theirs)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(theirs,),
                    env=self._environment(),
                    start_new_session=self._own_session,
                )
            os.close(theirs)
            theirs = -1
            self._wait_ready(ours)
        finally:
            os.close(ours)
            if theirs >= 0:
                os.close(theirs)
        self._on_ready()
        return self

    def _prepare_start(self) -> None:
        """Called before each start. Raises ApplianceError."""

    def _on_ready(self) -> None:
        """Called when clients are served."""

    def stop(self) -> int:
        """End in order and wait: the exit code. Raises ApplianceError when it does not end in time,
        or leaves a process or shared memory behind."""
        process = self._running()
        ends = _Ends(self.pids())
        try:
            process.send_signal(signal.SIGTERM)
            if not ends.wait(STOP_LIMIT_S):
                self._kill(ends)
                raise ApplianceError(f"it did not end after SIGTERM:\n{self.log_text()[-3000:]}")
        finally:
            ends.close()
        self._check_shared_memory()
        return process.wait()

    def kill(self) -> None:
        """SIGKILL to all of its processes at once; returns when they are gone."""
        ends = _Ends(self.pids())
        try:
            self._kill(ends)
        finally:
            ends.close()
        self._check_shared_memory()

    def restart(self, **settings: object) -> Self:
        """Stop it in order, if it runs, and start it again."""
        if self.running:
            self.stop()
        return self.start(**settings)

    def close(self) -> None:
        """Stop it if it runs."""
        if self.running:
            self.stop()

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _environment(self) -> dict[str, str]:
        """The variables of its supervisor."""
        of_clock = self._clock.environment() if self._clock else {}
        mine = {tied.VARIABLE: ""} if self._outlives else tied.environment()
        return environment() | of_clock | mine

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ApplianceError("it was never started")
        return self._process

    def _wait_ready(self, pipe: int) -> None:
        bell = select.poll()  # select knows no descriptor above 1,023
        bell.register(pipe, select.POLLIN)
        line = os.read(pipe, 256) if bell.poll(READY_LIMIT_S * 1000) else b""
        if not line:
            self._give_up()
            said = self.log_file.read_bytes()[self._log_from :].decode(errors="replace")
            raise ApplianceError(f"it did not start:\n{said[-3000:]}", _reason(said))
        self._port = int(line.decode().strip().rpartition(":")[2])

    def _give_up(self) -> None:
        process = self._running()
        if process.poll() is None:
            process.kill()
        process.wait()

    def _kill(self, ends: "_Ends") -> None:
        ends.kill()
        self._running().wait()
        if not ends.wait(STOP_LIMIT_S):
            raise ApplianceError("a killed process does not go away")

    def _check_shared_memory(self) -> None:
        # A segment has a name for an instant only, when any appliance of this host starts; on a
        # busy host that instant is as long as another process has to wait for its turn.
        left = _shared_memory() - self._shm_before
        end = time.monotonic() + _NAMED_S
        while left and time.monotonic() < end:
            time.sleep(0.01)
            left &= _shared_memory()
        if left:
            raise ApplianceError(f"left in {_SHM}: {', '.join(sorted(left))}")


class _Ends:
    """Waits for the ends of processes by their pidfds, which never name another process."""

    def __init__(self, pids: list[int]) -> None:
        self._fds: list[int] = []
        for pid in pids:
            try:
                self._fds.append(os.pidfd_open(pid))
            except ProcessLookupError:
                continue

    def kill(self) -> None:
        for fd in self._fds:
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def wait(self, limit_s: float) -> bool:
        """True if all of them ended; waits for each at most `limit_s`."""
        for fd in self._fds:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(limit_s * 1000):
                return False
        return True

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


def _holder(folder: Path) -> int | None:
    """Process id of the living appliance that works in a folder. One that was killed does not
    count, although its children keep the lock until they have seen it."""
    try:
        with open(folder / ".lock", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = file.read().decode().strip()
                return int(holder) if os.path.exists(f"/proc/{holder}") else None
    except (OSError, ValueError):
        return None
    return None


def _reason(said: str) -> str:
    """The sentence of a command that failed, as it prints it."""
    told = [line for line in said.splitlines() if line.startswith("penstock: ")]
    return told[-1].removeprefix("penstock: ") if told else ""


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    found = []
    for child in map(int, text.split()):
        found += [child, *_children(child)]
    return found


def _shared_memory() -> set[str]:
    return {path.name for path in _SHM.glob("penstock-*")}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
