"""The process that talks to the remote store for one I/O process, whose loop never waits for it.

It reads questions as lines of JSON from stdin and writes answers, in the order in which they are
done, to stdout. The first line says where the store is and how many threads ask it: those that copy
and delete are others than those that read, so that a reader waits for no upload. Invariant: it
writes nothing on this host but the cache files that it is asked for, each under its name only when
all of its bytes are there. It ends with its parent, and when stdin ends. Started by `link.py`;
nobody imports it but tests.
"""

import base64
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final

from appliance.base.errors import StorageFailed
from appliance.base.object_store import StoreRefused, open_store
from appliance.base.os_disk import OsDisk
from appliance.ioproc.remote.failures import (
    FAULT,
    FENCED,
    GARBAGE,
    LOCAL,
    MISSING,
    STORE,
    THREADS,
)
from appliance.ioproc.remote.manifest_steps import MANIFEST_STEPS, ManifestAnswers
from appliance.ioproc.remote_reads.checked_files import RemoteGarbage, fetch_chunk, fetch_index
from appliance.remotelog.manifests import LeaderFenced, ManifestDamaged, RemoteManifests
from appliance.remotelog.objects import LOG, RemoteFilesMissing, RemoteObjects
from appliance.remotelog.records import RemoteLogSegmentMetadataRecord, decode_record

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_NICE: Final = 10
_PIECE: Final = 1 << 20
_SAID: Final = 300

READS: Final = frozenset(("file", "remove"))
"""Questions of readers; all others are of copies and deletions."""


class TransferRate:
    """Waits so that all threads together move no more than a number of bytes per second."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._free_at = time.monotonic()

    def wait_for_turn(self, size: int, rate: float) -> None:
        """Return when `size` more bytes may be moved, at `rate` bytes per second."""
        with self._lock:
            now = time.monotonic()
            at = self._free_at = max(self._free_at, now - 1) + size / max(rate, 1.0)
        if at - now > 0.01:
            time.sleep(at - now)


class StoreServer:
    """Answers questions about one store; on many threads at once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._room: RemoteObjects | None = None
        self._manifests: RemoteManifests | None = None
        self._rate = TransferRate()
        self._read_rate = TransferRate()
        self._disk = OsDisk()
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "copy": self._copy,
            "delete": self._delete,
            "delete-partition": self._delete_partition,
            "file": self._fetch_file,
            "remove": self._remove_file,
            **dict.fromkeys(MANIFEST_STEPS, self._answer_manifest),
        }

    def answer_question(self, question: dict[str, Any]) -> dict[str, Any]:
        """Does what a question asks; returns its answer, or {"failure": text, "kind": kind}."""
        try:
            return self._answers[question["op"]](question)
        except StoreRefused as why:
            kind, text = STORE, str(why)
        except RemoteFilesMissing as why:
            kind, text = MISSING, str(why)
        except (RemoteGarbage, ManifestDamaged) as why:
            kind, text = GARBAGE, str(why)
        except LeaderFenced as why:
            kind, text = FENCED, str(why)
        except StorageFailed as why:
            kind, text = LOCAL, str(why)
        except OSError as why:
            kind, text = LOCAL, f"{why.filename or ''}: {why.strerror}".removeprefix(": ")
        except Exception as why:  # one answer, and the others are served
            kind, text = FAULT, f"{type(why).__name__}: {why}"
        return {"failure": text[:_SAID], "kind": kind}

    def _objects(self) -> RemoteObjects:
        if self._room is None:
            try:
                store = open_store(self._url)
                self._manifests = RemoteManifests(store)
                self._room = RemoteObjects(store)
            except ValueError as why:
                raise StoreRefused(self._url, str(why)) from None
        return self._room

    def _copy(self, question: dict[str, Any]) -> dict[str, Any]:
        one, rate = _segment(question), float(question["rate"])
        parts: dict[str, Iterable[bytes]] = {
            kind: [base64.b64decode(text)] for kind, text in question["bytes"].items()
        }
        paths: dict[str, str] = question["paths"]
        unread: list[OSError] = []
        for kind, path in paths.items():
            size = one.segment_size_in_bytes if kind == LOG else os.path.getsize(path)
            parts[kind] = self._pieces(path, size, rate, unread)
        try:
            self._objects().copy_segment(one, parts)
        except StoreRefused:
            if unread:
                raise unread[0] from None
            raise
        return {"bytes": one.segment_size_in_bytes}

    def _pieces(self, path: str, size: int, rate: float, unread: list[OSError]) -> Iterator[bytes]:
        """A file of this host. unread: takes what keeps it from being read, which a store tells as
        a refusal of its own."""
        try:
            with open(path, "rb") as file:
                while size:
                    piece = file.read(min(_PIECE, size))
                    if not piece:
                        raise OSError(0, f"ends {size} bytes too early", path)
                    self._rate.wait_for_turn(len(piece), rate)
                    size -= len(piece)
                    yield piece
        except OSError as why:
            unread.append(why)
            raise

    def _delete(self, question: dict[str, Any]) -> dict[str, Any]:
        self._objects().delete_segment(_segment(question))
        return {}

    def _delete_partition(self, question: dict[str, Any]) -> dict[str, Any]:
        topic_id, partition = bytes.fromhex(question["topic-id"]), int(question["partition"])
        node = int(question["node"])
        return {"objects": self._objects().release_partition(topic_id, partition, node)}

    def _answer_manifest(self, question: dict[str, Any]) -> dict[str, Any]:
        objects = self._objects()
        assert self._manifests is not None, "it comes with the objects"
        return ManifestAnswers(objects, self._manifests).by_name[question["op"]](question)

    def _fetch_file(self, question: dict[str, Any]) -> dict[str, Any]:
        """A checked file for the cache of reads."""
        one, kind, into = _segment(question), question["kind"], question["into"]
        if kind == LOG:
            begin, end = question["span"]
            self._read_rate.wait_for_turn(end - begin, float(question["rate"]))
            made = fetch_chunk(self._objects(), self._disk, one, begin, end, into)
        else:
            made = fetch_index(self._objects(), self._disk, one, kind, into)
        return {"bytes": made.size, "end": made.end_offset}

    def _remove_file(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._disk.exists(question["path"]):
            self._disk.unlink(question["path"])
        return {}


def _segment(question: dict[str, Any]) -> RemoteLogSegmentMetadataRecord:
    one = decode_record(base64.b64decode(question["segment"]))
    assert isinstance(one, RemoteLogSegmentMetadataRecord)
    return one


def _pools(how: dict[str, Any]) -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
    return ThreadPoolExecutor(how["copiers"]), ThreadPoolExecutor(how["readers"])


def serve_lines(lines: Iterable[bytes], say: Callable[[bytes], None]) -> None:
    """Answer questions until they end. lines: of stdin, the first one says how."""
    source = iter(lines)
    how = json.loads(next(source, b"{}") or b"{}")
    if not how:
        return
    server, lock = StoreServer(how["url"]), Lock()
    copiers, readers = _pools(how)

    def serve_one(question: dict[str, Any]) -> None:
        answer = (
            json.dumps({"id": question["id"], **server.answer_question(question)}).encode() + b"\n"
        )
        with lock:
            say(answer)

    for line in source:
        question = json.loads(line)
        if question["op"] == THREADS:
            for pool in (readers, copiers):
                pool.shutdown(wait=False)  # what it was given is done all the same
            copiers, readers = _pools(question)
            continue
        (readers if question["op"] in READS else copiers).submit(serve_one, question)
    for pool in (readers, copiers):
        pool.shutdown(wait=True, cancel_futures=True)


def main(parent: int) -> None:
    """Serve until the parent hangs up or dies."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NAME, b"penstock-remote", 0, 0, 0)  # as ps shows it
    if os.getppid() != parent:
        return  # it died before it could be tied to us
    os.nice(_NICE)

    def write_answer(answer: bytes) -> None:
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()

    serve_lines(sys.stdin.buffer, write_answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
