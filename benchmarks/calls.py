"""How many Python calls does a request take, and where?

    python -m benchmarks.calls [--only 'produce*' …] [--list] [--markdown]

A count does not depend on how busy the machine is, so it tells at once what a change costs. Counted
are the entries into functions of `appliance/` (comprehensions, lambdas and each step of a generator
are calls as well; what C or the standard library does is not) while one request is served by a real
Server and a real IoProcess in one process, over rings in shared memory, a TCP connection and files
in a temporary folder. Both are driven by the real loop, as under load: nobody sleeps.

*netproc in*: from the event on the socket to the end of that turn; *I/O*: the turns that it takes;
*netproc out*: the turn that sends. An answer that needs nobody else is all *in*. *Its own*: without
what the same turns call when there is nothing to do, which many requests share under load. *Ring
hops*: messages that crossed a ring between them. A transaction is AddPartitionsToTxn, Produce and
EndTxn of one partition, and what the I/O process does until it is complete. Each request is made
several times when everything is warm, and the cheapest one counts, so that what is done once a
second falls into none. The modules have to be interpreted.

--list: every function with its count. The numbers are held by `tests/tidy/test_calls.py`.
"""

import argparse
import dataclasses
import fnmatch
import select
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import appliance
from appliance.ioproc.durability.group_commit import NEVER
from appliance.ring.partition_table import HIGH_WATERMARK
from appliance.shell import loop as shell_loop
from appliance.shell.loop import STOP, Loop
from appliance.wire.records import NewRecord, build_batch

ROOT: Final = Path(appliance.__file__).parent
sys.path.append(str(ROOT.parent / "tests"))  # its worlds look for `sim` there

from benchmarks import batches  # noqa: E402 - behind the path
from tests.netproc.netproc_world import Client, World  # noqa: E402

TOPIC, GROUP, TRANSACTION = "flights", "readers", "books"
IN, IO, OUT = PARTS = "netproc in", "I/O", "netproc out"
_WARM: Final = 12
_SAMPLES: Final = 7
_MOST_TURNS: Final = 1000
_FEW_TURNS: Final = 10
_THREAD_MS: Final = 20

Function = tuple[str, str]
"""(file below appliance/, qualified name)."""


@dataclasses.dataclass
class Count:
    """The calls of one request by part, and the messages that crossed rings."""

    parts: dict[str, Counter[Function]]
    hops: int = 0
    idle: int = 0  # calls that its turns would have made without it

    @property
    def functions(self) -> Counter[Function]:
        """Of all parts."""
        return sum(self.parts.values(), Counter())

    @property
    def calls(self) -> int:
        return self.functions.total()

    @property
    def files(self) -> int:
        return len({file for file, _ in self.functions})


@contextmanager
def counting(into: Counter[Function], first: str = "") -> Iterator[None]:
    """Count calls until the end of the block, from the first call of a function named `first`
    on."""
    ours = f"{ROOT}/"
    waiting = bool(first)

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal waiting
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ours):
            return
        if waiting:
            waiting = code.co_name != first
        if not waiting:
            into[code.co_filename[len(ours) :], code.co_qualname] += 1

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


class Turns:
    """A shell that stops the loop after so many turns, and counts what arrives."""

    def __init__(self, shell: Any, turns: int) -> None:
        self._shell = shell
        self._left = turns
        self.arrived = 0
        self.wait_ms = 0

    def peers_changed(self, peers: list[Any]) -> None:
        self._shell.peers_changed(peers)

    def handle(self, peer: Any, messages: list[Any]) -> None:
        self.arrived += len(messages)
        self._shell.handle(peer, messages)

    def run_once(self, now_ns: int) -> int:
        self.wait_ms = self._shell.run_once(now_ns)
        self._left -= 1
        return STOP if self._left == 0 else min(self.wait_ms, _THREAD_MS)


class Rig:
    """A network process and an I/O process, turned by hand."""

    def __init__(self, folder: Path) -> None:
        names = ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")
        topics = (TOPIC, "__consumer_offsets", "__transaction_state")
        self.world = World(folder, dict.fromkeys(names, "1"), topics=topics)
        self.io = self.world.io_process()
        self.io_loop = Loop(self.world.io_seat, self.world.io)
        for one in self.io.workers.everyone():
            self.io_loop.register(one.fd, select.EPOLLIN, one)
        self._idle = dict.fromkeys(PARTS, 0)
        self._idle[IO] = self._idle_calls(self.io_loop, self.io)
        self._idle[IN] = self._idle[OUT] = self._idle_calls(self.world.loop, self.world.server)

    def close(self) -> None:
        self.io_loop.close()
        self.world.close()

    def serve(self, client: Client, key: int, version: int, values: dict[str, Any]) -> Count:
        """Send one request, serve it, and check that the answer tells of no error."""
        self.io.core.syncing.average_ns = 0  # as on a disk that syncs fast: on the loop
        count = Count({part: Counter() for part in PARTS})
        client.send(key, version, **values)
        self._event(count, IN, self.world.loop, self.world.server)
        found = client.answer()
        if found is None:
            self._io(count)
        step = self._turn
        for at in range(_MOST_TURNS):  # one, unless what is to be sent has to come from the disk
            if found is not None:
                break
            step(count, OUT, self.world.loop, self.world.server)
            step = self._event  # a thread reads it: as fast as the disk, not as these turns
            if at > _FEW_TURNS:  # what came first was no answer: on a busy host it comes later
                self._turn(count, IO, self.io_loop, self.io)
            found = client.answer()
        assert found is not None, "it is not answered"
        assert not any(_error_codes(found[1])), found[1]
        return count

    def rest(self) -> Count:
        """What the I/O process still has to do of itself."""
        count = Count({part: Counter() for part in PARTS})
        for _ in range(_MOST_TURNS):
            rests = self._turn(count, IO, self.io_loop, self.io)
            busy = [one for one in self.io.workers.durable() if one.outstanding()]
            for one in busy:  # a sync on a thread: the transaction is not complete before it
                one.wait()
            if rests and not busy:
                return count
        raise AssertionError("the I/O process does not come to rest")

    def settle(self) -> None:
        """Let a sync on a thread end: beside one, a request takes some calls more."""
        if any(one.outstanding() for one in self.io.workers.durable()):
            self.rest()

    def producer(self, client: Client) -> int:
        """The id of a new transactional producer, in its first epoch."""
        values = {"transactional_id": TRANSACTION, "transaction_timeout": 60_000}
        values |= {"producer_id": -1, "producer_epoch": -1}
        for _ in range(_WARM):  # the first one may be told to come again: ids are asked of control
            client.send(22, 4, **values)
            for _ in range(_MOST_TURNS):
                self.world.turn()
                self.world.io_turn()
                found = client.answer()
                if found is not None:
                    break
            if found is not None and not found[1].error_code:
                return int(found[1].producer_id)
        raise AssertionError(found)

    def _idle_calls(self, loop: Loop, shell: Any) -> int:
        counts = [Count({IO: Counter()}) for _ in range(_SAMPLES)]
        for count in counts:
            with counting(count.parts[IO]):
                loop.run(Turns(shell, 1))
        return min(count.calls for count in counts)

    def _io(self, count: Count) -> None:
        wait_ms = self._turn(count, IO, self.io_loop, self.io)
        for _ in range(_MOST_TURNS):
            if self.world.links.pending():
                return
            step = self._event if wait_ms else self._turn
            wait_ms = step(count, IO, self.io_loop, self.io)
        raise AssertionError("the I/O process does not answer")

    def _turn(self, count: Count, part: str, loop: Loop, shell: Any) -> int:
        """One turn for what is there already."""
        with counting(count.parts[part]):
            return self._run(count, part, loop, Turns(shell, 1))

    def _event(self, count: Count, part: str, loop: Loop, shell: Any) -> int:
        """Wait for a file, and the turn that follows."""
        with counting(count.parts[part], first="ready"):
            return self._run(count, part, loop, Turns(shell, 2))

    def _run(self, count: Count, part: str, loop: Loop, turns: Turns) -> int:
        syncing = self.io.core.syncing
        if syncing.due_ns:  # by the clock: where a request takes 100 ms, it would come in each
            syncing.due_ns = NEVER
        loop.run(turns)
        count.hops += turns.arrived
        count.idle += self._idle[part]
        return turns.wait_ms


def _error_codes(message: Any) -> Iterator[int]:
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name == "error_code":
            yield int(value)
        for one in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(one):
                yield from _error_codes(one)


# The requests -------------------------------------------------------------------------------------


Asked = tuple[int, int, dict[str, Any]]
"""A request: key, version, values."""


def produce(acks: int, sequence: int = -1) -> Asked:
    """One record of 100 bytes; from 0 on `sequence` is that of an idempotent producer."""
    producer = (-1, -1, -1) if sequence < 0 else (1000, 0, sequence)
    records = batches.batch([b"v" * 100], 1_700_000_000_000, producer=producer)
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
    return 0, 9, {"transactional_id": None, "acks": acks, "timeout": 30_000, "topic_data": data}


def transaction(producer: int, sequence: int) -> list[Asked]:
    """One record of 100 bytes, as a client of transaction.version 1 writes it."""
    values = [NewRecord(1_700_000_000_000, None, b"v" * 100)]
    records = build_batch(
        values, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True
    )
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
    added = {
        "v3_and_below_transactional_id": TRANSACTION,
        "v3_and_below_producer_id": producer,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [{"name": TOPIC, "partitions": (0,)}],
    }
    written = {"transactional_id": TRANSACTION, "acks": -1, "timeout": 30_000, "topic_data": data}
    ended = {"transactional_id": TRANSACTION, "producer_id": producer, "producer_epoch": 0}
    return [(24, 3, added), (0, 9, written), (26, 3, {**ended, "committed": True})]


def fetch(offset: int) -> Asked:
    """One batch, without a session."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 100}
    partition |= {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    topics = [{"topic": TOPIC, "partitions": [partition]}]
    return 1, 12, {
        "replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0,
        "session_id": 0, "session_epoch": -1, "topics": topics, "forgotten_topics_data": [],
        "rack_id": "",
    }  # fmt: skip


def offset_commit(offset: int) -> Asked:
    """One partition, of a group without members."""
    row = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
    row["committed_metadata"] = ""
    return 8, 8, {
        "group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": "",
        "group_instance_id": None, "topics": [{"name": TOPIC, "partitions": [row]}],
    }  # fmt: skip


def offset_fetch() -> Asked:
    """One partition of one group."""
    topics = [{"name": TOPIC, "partition_indexes": (0,)}]
    return 9, 8, {"groups": [{"group_id": GROUP, "topics": topics}], "require_stable": False}


def metadata() -> Asked:
    """One topic."""
    return 3, 9, {
        "topics": [{"name": TOPIC}], "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }  # fmt: skip


def api_versions() -> Asked:
    return 18, 3, {"client_software_name": "calls", "client_software_version": "1"}


# What is counted ----------------------------------------------------------------------------------


def one_client(make: Callable[[int], Asked]) -> Callable[[Rig], Count]:
    """The same request again and again on one connection; `make` is told its number."""

    def count(rig: Rig) -> Count:
        client = rig.world.client()

        def once(number: int) -> Count:
            rig.settle()
            return rig.serve(client, *make(number))

        for number in range(_WARM):
            once(number)
        return _cheapest(once(_WARM + number) for number in range(_SAMPLES))

    return count


def fetch_via_home(rig: Rig) -> Count:
    """The first fetch of a connection that found nothing at the end before."""
    _fill(rig)
    return _cheapest(rig.serve(_reader(rig), *fetch(0)) for _ in range(_SAMPLES))


def fetch_by_cursor(rig: Rig) -> Count:
    """The one that goes on where the last one was."""
    _fill(rig)
    reader = _reader(rig)
    rig.serve(reader, *fetch(0))
    return _cheapest(rig.serve(reader, *fetch(1 + n)) for n in range(_SAMPLES))


def transactions(rig: Rig) -> Count:
    """One after the other, by one producer."""
    client = rig.world.client()
    producer = rig.producer(client)

    def once(number: int) -> Count:
        counts = [rig.serve(client, *asked) for asked in transaction(producer, number)]
        counts.append(rig.rest())
        parts = {part: sum((one.parts[part] for one in counts), Counter()) for part in PARTS}
        hops, idle = sum(one.hops for one in counts), sum(one.idle for one in counts)
        return Count(parts, hops, idle)

    for number in range(_WARM):
        once(number)
    return _cheapest(once(_WARM + number) for number in range(_SAMPLES))


def _fill(rig: Rig) -> None:
    writer = rig.world.client()
    for _ in range(2 * _SAMPLES):
        rig.serve(writer, *produce(-1))


def _reader(rig: Rig) -> Client:
    client = rig.world.client()
    rig.serve(
        client, *fetch(rig.world.server.host.partitions.read_column(_only_row(rig), HIGH_WATERMARK))
    )
    return client


def _only_row(rig: Rig) -> int:
    handles = rig.world.follower.handles
    topic = rig.world.follower.image.topics_by_name[TOPIC]
    return next(row for key, row in handles.items() if topic.topic_id in key)


def _cheapest(counts: Iterator[Count]) -> Count:
    return min(counts, key=lambda one: one.calls)


REQUESTS: Final[dict[str, Callable[[Rig], Count]]] = {
    "produce, acks=all, idempotent": one_client(lambda number: produce(-1, number)),
    "produce, acks=1": one_client(lambda number: produce(1)),
    "fetch via the home": fetch_via_home,
    "fetch by cursor": fetch_by_cursor,
    "OffsetCommit of one group": one_client(offset_commit),
    "OffsetFetch": one_client(lambda number: offset_fetch()),
    "Metadata of one topic": one_client(lambda number: metadata()),
    "ApiVersions": one_client(lambda number: api_versions()),
    "a transaction of one record": transactions,
}


class Row(NamedTuple):
    """One line of the table."""

    calls: int
    net_in: int
    io: int
    net_out: int
    own: int
    functions: int
    files: int
    hops: int


def row_of(count: Count) -> Row:
    parts = [count.parts[part].total() for part in PARTS]
    own = count.calls - count.idle
    return Row(count.calls, *parts, own, len(count.functions), count.files, count.hops)


def measure(names: Iterable[str]) -> dict[str, Count]:
    """Count some of REQUESTS, each on connections of its own."""
    assert shell_loop.__file__.endswith(".py"), "the modules are compiled: nothing can be counted"
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder))
        try:
            return {name: REQUESTS[name](rig) for name in names}
        finally:
            rig.close()


def show(counts: dict[str, Count], *, markdown: bool) -> None:
    heads = ("calls", *PARTS, "its own", "functions", "files", "ring hops")
    if markdown:
        print(f"| request | {' | '.join(heads)} |")
        print("|---" * (len(heads) + 1) + "|")
        for name, count in counts.items():
            print(f"| {name} | {' | '.join(map(str, row_of(count)))} |")
        return
    width = max(map(len, counts))
    print(" " * width, *(head.rjust(11) for head in heads))
    for name, count in counts.items():
        print(name.ljust(width), *(str(value).rjust(11) for value in row_of(count)))


def show_functions(name: str, count: Count) -> None:
    for part, functions in count.parts.items():
        if functions:
            print(f"\n{name}: {part}, {functions.total()} calls")
        for (file, function), number in functions.most_common():
            print(f"{number:5}  {file}:{function}")


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=["*"], metavar="NAME", help="shell patterns")
    parser.add_argument("--list", action="store_true", help="every function with its count")
    parser.add_argument("--markdown", action="store_true")
    asked = parser.parse_args()
    patterns = [f"*{pattern.lower()}*" for pattern in asked.only]
    names = [n for n in REQUESTS if any(fnmatch.fnmatch(n.lower(), p) for p in patterns)]
    if not names:
        raise SystemExit(f"none matches {asked.only}: {', '.join(REQUESTS)}")
    counts = measure(names)
    show(counts, markdown=asked.markdown)
    if asked.list:
        for name, count in counts.items():
            show_functions(name, count)


if __name__ == "__main__":
    main()
