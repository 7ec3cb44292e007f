"""Kafka clients of the runner, in a process of their own (client_process.py).

librdkafka aborts its process when one of its assertions does not hold, which it did once in a long
outage. That must not end the runner and every job with it: here it fails the requests that are on
their way, and the next one starts another process. `CLIENTS` is the one of this process.
"""

import atexit
import itertools
import os
import subprocess
import sys
import threading
import traceback
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from spark_local.client_settings import ClientSettings
from spark_local.engine.frames import receive, send_frame

_LIMIT_S: Final = 90.0
_END_LIMIT_S: Final = 6.0
_ROOT: Final = Path(__file__).parents[2]


class ClientError(Exception):
    """A request failed; the text is librdkafka's, with its name of the error."""


class ClientsGone(ClientError):
    """The process of the clients ended while it worked on a request; the next one goes to another
    process."""


class Clients:
    """Requests may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._process: _Process | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, None when there is none."""
        return None if self._process is None else self._process.popen.pid

    def call(self, name: str, *words: Any) -> Any:
        """The result of that function of client_process.py. Raises ClientError."""
        answer = self._send(name, words)
        try:
            return answer.result(_LIMIT_S)
        except FutureTimeout:
            raise ClientsGone(f"_TIMED_OUT: {name} was not answered") from None

    def write_state(self, kafka: ClientSettings, job: str, state: dict[str, Any] | None) -> None:
        """Let the world know how a job is, None: that it is no more. Not waited for."""
        with suppress(ClientsGone):  # the next state says more
            self._send("tell", (kafka, job, state))

    def close(self) -> None:
        """End the process, after what it was told."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close()

    def _send(self, name: str, words: tuple[Any, ...]) -> "Future[Any]":
        with self._lock:
            if self._process is None or not self._process.alive:
                self._process = _Process()
            return self._process.send_call(next(self._numbers), name, words)


class _Process:
    """One process and the requests that it has not answered. `send` one at a time."""

    def __init__(self) -> None:
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(_ROOT), *([inherited] if inherited else [])])
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "spark_local.engine.client_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
        self.alive = True
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        threading.Thread(target=self._listen, name="clients", daemon=True).start()

    def send_call(self, number: int, name: str, words: tuple[Any, ...]) -> "Future[Any]":
        """Its answer to come. Raises ClientsGone."""
        answer: Future[Any] = Future()
        assert self.popen.stdin is not None
        with self._lock:
            if not self.alive:
                raise ClientsGone(self._gone())
            self._waiting[number] = answer
        try:
            send_frame(self.popen.stdin, (number, name, words))
        except (OSError, ValueError):  # its end was seen here, or by the listening thread
            raise ClientsGone(self._gone()) from None
        return answer

    def close(self) -> None:
        """End it, after what it was told."""
        assert self.popen.stdin is not None
        with suppress(OSError):
            self.popen.stdin.close()
        try:
            self.popen.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def _listen(self) -> None:
        """Fulfil what was asked, until the process ends."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        with self.popen.stdout as answers:
            try:
                while True:
                    self._fulfil(*receive(answers))
            except EOFError:
                pass
            except Exception:  # no answer of ours: whoever waits is told that it has ended
                traceback.print_exc()
                self.popen.kill()
        self.popen.wait()
        with suppress(OSError):
            self.popen.stdin.close()
        with self._lock:
            self.alive = False
            lost, self._waiting = self._waiting, {}
        for answer in lost.values():
            answer.set_exception(ClientsGone(self._gone()))

    def _fulfil(self, number: int, well: bool, result: Any) -> None:
        with self._lock:
            answer = self._waiting.pop(number)
        if well:
            answer.set_result(result)
        else:
            answer.set_exception(ClientError(result))

    def _gone(self) -> str:
        code = self.popen.poll()
        how = f"signal {-code}" if code is not None and code < 0 else f"code {code}"
        return f"the process of the Kafka clients ended with {how}"


CLIENTS: Final = Clients()
atexit.register(CLIENTS.close)
