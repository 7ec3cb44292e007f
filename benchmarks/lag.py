"""The lag of very many groups at once: what a monitor asks, as few requests as the protocol needs.

ListGroups, one OffsetFetch for all groups (version 8 takes many), one ListOffsets; the answers are
read to the end and every number is held against what was committed. Called by `benchmarks.groups`.
"""

import time
from struct import pack, unpack_from

from benchmarks import group_requests as groups
from benchmarks import requests
from benchmarks.commits import ready
from benchmarks.peer import Peer, Wire, WrongAnswer

COUNT = 1000
LIST_GROUPS = 16
BUFFER = 1 << 20


def fill(peer: Peer, topic: str) -> list[str]:
    """Names of `COUNT` groups that have committed an offset of the topic each."""
    names = [f"{topic}-{number}" for number in range(COUNT)]
    ready(peer, names[0])
    with peer.connect() as wire:
        for number, name in enumerate(names):
            answer = wire.call(groups.commit(name, [(topic, 0, number)], 0))
            (code,) = unpack_from(">h", answer, len(answer) - 2)
            if code:
                raise WrongAnswer(f"OffsetCommit of {name} answered error {code}")
    return names


def query(peer: Peer, topic: str, names: list[str]) -> float:
    """Seconds for the lag of all these groups. Raises WrongAnswer."""
    with peer.connect(BUFFER) as wire:
        begun = time.perf_counter()
        listed = wire.call(requests.frame(LIST_GROUPS, 2, 0, b""))
        wire.call(requests.end_offset(topic, 0))
        found = _fetch_offsets(wire, names)
        passed = time.perf_counter() - begun
    (code,) = unpack_from(">h", listed, 4)
    if code or not all(name.encode() in listed for name in names):
        raise WrongAnswer(f"ListGroups answered error {code}, or not all groups")
    if found != {name: number for number, name in enumerate(names)}:
        raise WrongAnswer(f"OffsetFetch answered {len(found)} groups, or not what was committed")
    return passed


def _fetch_offsets(wire: Wire, names: list[str]) -> dict[str, int]:
    body = requests.unsigned(len(names) + 1)
    body += b"".join(requests.compact(name.encode()) + b"\0\0" for name in names) + b"\0\0"
    frame = requests.frame(groups.OFFSET_FETCH, 8, 0, body, flexible=True)
    return _committed(wire.call(frame))


def _committed(answer: bytes) -> dict[str, int]:
    """{group: offset} of OffsetFetch v8, for groups with one partition of one topic each."""
    found = {}
    count, at = _unsigned(answer, 1 + 4)
    for _ in range(count - 1):
        name, at = _text(answer, at)
        topics, at = _unsigned(answer, at)
        for _ in range(topics - 1):
            _, at = _text(answer, at)
            partitions, at = _unsigned(answer, at)
            for _ in range(partitions - 1):
                (found[name],) = unpack_from(">q", answer, at + 4)
                _, at = _text(answer, at + 16)
                at += 2 + 1
            at += 1
        (code,) = unpack_from(">h", answer, at)
        if code:
            raise WrongAnswer(f"OffsetFetch answered error {code} for {name}")
        at += 2 + 1
    return found


def forget(peer: Peer, names: list[str]) -> None:
    """Delete the groups (DeleteGroups v1)."""
    body = pack(">i", len(names)) + b"".join(requests.string(name) for name in names)
    with peer.connect(BUFFER) as wire:
        wire.call(requests.frame(42, 1, 0, body))


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    size, at = _unsigned(data, at)
    end = at + max(size - 1, 0)
    return data[at:end].decode(), end
