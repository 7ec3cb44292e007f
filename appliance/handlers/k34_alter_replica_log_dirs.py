"""AlterReplicaLogDirs, API key 34, versions 1 and 2 (2: flexible), KIP-113.

Each partition's home begins the move and answers at once; DescribeLogDirs shows how far it is. Of a
partition that is named twice the last folder counts. Folders are named as DescribeLogDirs shows
them; a partition that does not exist yet cannot be given a folder beforehand.
"""

from typing import Any

from appliance.authorization.apis import NEEDS, declared
from appliance.base import errors
from appliance.base.dataclass import dataclass
from appliance.handlers import gather
from appliance.handlers.exchange import Exchange, Handler, Host, Steps
from appliance.handlers.paced import PACE, PacedAsking
from appliance.ring.messages import MOVE, Message

Place = tuple[str, int]
"""Topic and partition."""


@dataclass(slots=True)
class Moving:
    """asked: in the order of the completions. codes: how each one went."""

    asked: list[Place]
    codes: dict[Place, int]
    paced: PacedAsking | None = None  # partitions are asked over several turns


def begin_alter_replica_log_dirs(host: Host, x: Exchange) -> None:
    request = gather.decode(host, x)
    wanted: dict[Place, str] = {}
    count = sum(len(topic.partitions) for folder in request.dirs for topic in folder.topics)
    steps = _plan(request, wanted)
    gather.in_turns(host, x, count, steps, lambda: _ask_homes(host, x, wanted))


def _plan(request: Any, wanted: dict[Place, str]) -> Steps:
    """Adds which folder each partition shall be in."""
    count = 0
    for folder in request.dirs:
        for topic in folder.topics:
            for index in topic.partitions:
                wanted[topic.name, index] = folder.path
                count += 1
                if count % gather.MANY == 0:
                    yield


def _ask_homes(host: Host, x: Exchange, wanted: dict[Place, str]) -> None:
    refused = x.rights.refusal(NEEDS[x.handler.key])
    state = x.state = Moving(list(wanted), dict.fromkeys(wanted, refused))

    def ask_home(row: tuple[int, tuple[Place, str]]) -> None:
        number, (place, path) = row
        topic, partition = place[0].encode(), place[1]
        route = host.replica(topic, partition, by_id=False)
        if path not in host.log_dirs:
            state.codes[place] = errors.LOG_DIR_NOT_FOUND
        elif route is None:
            found = gather.partition_of(host, topic, partition, by_id=False)
            state.codes[place] = (
                errors.UNKNOWN_TOPIC_OR_PARTITION if found is None else errors.REPLICA_NOT_AVAILABLE
            )
        else:
            host.ask_home(x, number, route, MOVE, 0, host.log_dirs.index(path), -1, 0, 0)

    steps = gather.rows_of(enumerate(wanted.items() if not refused else ()), ask_home)
    if len(wanted) > gather.MANY:
        state.paced = PacedAsking(host, x, steps, lambda: _finish_if_complete(host, x))
        state.paced.begin_in_line(iter(()))
    else:
        gather.in_turns(host, x, len(wanted), steps, lambda: _finish_if_complete(host, x))


def _finish_if_complete(host: Host, x: Exchange) -> None:
    if not x.pending:
        _finish(host, x)


def complete(host: Host, x: Exchange, index: int, message: Message | None, payload: bytes) -> None:
    state: Moving = x.state
    if index != PACE:
        code = errors.NOT_LEADER_OR_FOLLOWER if message is None else message.flags - 1
        state.codes[state.asked[index]] = code
    if state.paced is None or not state.paced.take_completion(index):
        _finish_if_complete(host, x)


def _finish(host: Host, x: Exchange) -> None:
    topics: dict[str, list[gather.Values]] = {}
    count = len(x.state.codes)

    def add_row(row: tuple[Place, int]) -> None:
        (name, index), code = row
        topics.setdefault(name, []).append({"partition_index": index, "error_code": code})

    def encode_answer() -> None:
        rows = [{"topic_name": name, "partitions": found} for name, found in topics.items()]
        gather.reply_in_turns(host, x, {"throttle_time": 0, "results": rows}, count)

    gather.in_turns(host, x, count, gather.rows_of(x.state.codes.items(), add_row), encode_answer)


HANDLER = Handler(*declared(34), begin_alter_replica_log_dirs, complete, slices=True)
