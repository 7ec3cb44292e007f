"""The other end of the process that talks to the remote store: starts it when it is needed, asks,
ends it.

Many questions are under way at once; answers come in any order. Invariant: `ask_store` and
`take_answers` never wait, and each question has one answer, also when the process ends: the next
question starts another one. `fd` is for the loop: an answer that came rings.
"""

import base64
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, Protocol

import appliance
from appliance.ioproc.remote.failures import FAULT, PROCESS, THREADS
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord, encode_record

_ROOT: Final = str(Path(next(iter(appliance.__path__))).parent)
_SAID: Final = 300

Tag = tuple[Any, ...]
Question = dict[str, Any]


class StoreAnswer(NamedTuple):
    """The outcome of a question. failure: why it was not done, "" when it was. kind: of the
    failure, a word of `process.py`. fields: of the answer."""

    tag: Tag
    failure: str
    kind: str
    fields: dict[str, Any]


class StoreAsker(Protocol):
    """The way to a store for one who is given the answers."""

    def ask_store(self, tag: Tag, question: Question) -> None:
        """Ask; the answer comes with the tag."""
        ...


class StoreChannel(StoreAsker, Protocol):
    """The way to a store for one who takes the answers: `RemoteLink`, `AnswerRoutes.make_queue`, or
    a test's."""

    def take_answers(self) -> list[StoreAnswer]:
        """Answers that came since the last call."""
        ...


TakeAnswer = Callable[[StoreAnswer, int, int], None]
"""(answer with the tag that was given, monotonic ns, wall clock in ms)."""


class AnswerRoutes:
    """Many who ask share one link; each gets its own answers. guard: runs a step of the work, whose
    exceptions cost that step."""

    def __init__(
        self, link: StoreChannel, guard: Callable[[str, Callable[[], None]], None]
    ) -> None:
        self._link = link
        self._guard = guard

    def channel_for(self, take: TakeAnswer) -> StoreAsker:
        """A channel whose answers `take` is given."""
        return _Channel(self._link, take)

    def make_queue(self) -> StoreChannel:
        """A channel of somebody who takes the answers when it suits."""
        return _Queue(self._link)

    def deliver_answers(self, now_ns: int, now_ms: int) -> None:
        """Give everybody what came since the last call."""
        for answer in self._link.take_answers():
            take, tag = answer.tag
            own = answer._replace(tag=tag)
            self._guard("an answer of the remote store", partial(take, own, now_ns, now_ms))


class _Channel:
    def __init__(self, link: StoreChannel, take: TakeAnswer) -> None:
        self._link = link
        self._take = take

    def ask_store(self, tag: Tag, question: Question) -> None:
        self._link.ask_store((self._take, tag), question)


class _Queue(_Channel):
    def __init__(self, link: StoreChannel) -> None:
        self._came: list[StoreAnswer] = []
        super().__init__(link, lambda answer, now_ns, now_ms: self._came.append(answer))

    def take_answers(self) -> list[StoreAnswer]:
        came, self._came = self._came, []
        return came


class RemoteLink:
    """One process at most. url: of the store. copiers, readers: threads of the process."""

    def __init__(self, url: str, copiers: int, readers: int) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._how = {"url": url, "copiers": copiers, "readers": readers}
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._questions: SimpleQueue[tuple[int, Question] | None] = SimpleQueue()
        self._asked: dict[int, tuple[Tag, subprocess.Popen[bytes] | None]] = {}
        self._came: deque[StoreAnswer] = deque()
        self._threads: list[Thread] = []
        self._number = 0
        self._closed = False

    def ask_store(self, tag: Tag, question: Question) -> None:
        """Ask; `take_answers` returns `tag`."""
        assert not self._closed
        if not self._threads:
            self._start_thread(self._send_all, "remote-ask")
        self._number += 1
        with self._lock:
            self._asked[self._number] = tag, None
        self._questions.put((self._number, question))

    def set_threads(self, copiers: int, readers: int) -> None:
        """From now on the process has so many threads."""
        how = {**self._how, "copiers": copiers, "readers": readers}
        if how != self._how:
            self._how = how
            if self._threads:
                self._questions.put((0, {"op": THREADS, **how}))

    def take_answers(self) -> list[StoreAnswer]:
        """Every answer that came since the last call."""
        came = self._came
        return [came.popleft() for _ in range(len(came))]

    def outstanding(self) -> int:
        """Questions without an answer."""
        return len(self._asked)

    def hush(self) -> None:
        """Take the bell away; called when `fd` is readable."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.fd)

    def kill(self) -> None:
        """End the process without waiting; what it was asked is answered as not done."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process and the threads, and wait for them."""
        self._closed = True
        self._questions.put(None)
        if self._threads:
            while self._threads[0].is_alive():  # it may be starting another one
                self.kill()
                self._threads[0].join(0.05)
        self.kill()
        for thread in self._threads:
            thread.join()
        os.close(self.fd)

    # Threads --------------------------------------------------------------------------------------

    def _start_thread(self, work: Any, name: str, *arguments: Any) -> None:
        thread = Thread(target=work, args=arguments, name=name, daemon=True)
        self._threads[1:] = [one for one in self._threads[1:] if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _send_all(self) -> None:
        while (item := self._questions.get()) is not None:
            number, question = item
            try:
                process = self._process
                if process is None or process.poll() is not None:
                    process = self._start_process()
                with self._lock:
                    if number:
                        self._asked[number] = self._asked[number][0], process
                assert process.stdin is not None
                process.stdin.write(json.dumps({"id": number, **question}).encode() + b"\n")
                process.stdin.flush()
            except OSError as why:
                self._answer(number, {"failure": str(why), "kind": PROCESS})
            except Exception as why:  # costs this question, and the thread goes on
                text = f"{type(why).__name__}: {why}"
                self._answer(number, {"failure": text, "kind": FAULT})

    def _start_process(self) -> subprocess.Popen[bytes]:
        paths = [_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(
            [sys.executable, "-m", "appliance.ioproc.remote.process", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for the supervisor
        )
        self._process = process
        self._start_thread(self._receive_all, "remote-hear", process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._how).encode() + b"\n")
        return process

    def _receive_all(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                answer = json.loads(line)
                number = answer.pop("id")
            except (ValueError, KeyError, AttributeError):
                process.kill()  # it writes what is no answer
                continue
            self._answer(number, answer)
        said = self._last_words(process)
        with self._lock:
            left = [number for number, asked in self._asked.items() if asked[1] is process]
        for number in left:
            self._answer(number, {"failure": f"the process ended: {said}", "kind": PROCESS})

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        process.kill()
        assert process.stdin is not None and process.stdout is not None
        assert process.stderr is not None
        lines = process.stderr.read().decode(errors="replace").strip().splitlines()
        status = process.wait()
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        return lines[-1][:_SAID] if lines else f"status {status}"

    def _answer(self, number: int, answer: dict[str, Any]) -> None:
        with self._lock:
            asked = self._asked.pop(number, None)
        if asked is not None:
            failure, kind = answer.pop("failure", ""), answer.pop("kind", "")
            self._came.append(StoreAnswer(asked[0], failure, kind, answer))
            os.eventfd_write(self.fd, 1)


# Questions ----------------------------------------------------------------------------------------


def ask_copy(
    one: RemoteLogSegmentMetadataRecord, paths: dict[str, str], data: dict[str, bytes], rate: float
) -> Question:
    """Copy a segment: its files by kind, some of them as bytes. rate: bytes per second."""
    told = {kind: base64.b64encode(each).decode() for kind, each in data.items()}
    return {"op": "copy", "segment": _text(one), "paths": paths, "bytes": told, "rate": rate}


def ask_delete(one: RemoteLogSegmentMetadataRecord) -> Question:
    """Delete a segment's objects; those that are gone already are no error."""
    return {"op": "delete", "segment": _text(one)}


def ask_delete_partition(topic_id: bytes, partition: int, node: int) -> Question:
    """Delete every object of a partition, unless replicas of other nodes need them. The answer's
    `objects` says how many there were."""
    told = {"op": "delete-partition", "topic-id": topic_id.hex(), "partition": partition}
    return {**told, "node": node}


def ask_file(
    one: RemoteLogSegmentMetadataRecord, kind: str, span: tuple[int, int], into: str, rate: float
) -> Question:
    """A file of a segment into a file of the cache, checked: an index whole, of the log a chunk.
    span: where that begins and ends. rate: bytes of chunks per second. The answer has `bytes`, and
    `end`: the offset behind it."""
    told = {"op": "file", "segment": _text(one), "kind": kind, "span": span, "into": into}
    return {**told, "rate": rate}


def ask_remove(path: str) -> Question:
    """Remove a file of the cache; one that is gone already is no error."""
    return {"op": "remove", "path": path}


def _text(one: RemoteLogSegmentMetadataRecord) -> str:
    return base64.b64encode(encode_record(one)).decode()
