"""Mending a log's folder that `scrub` found damage in: what is sound serves on, what is not is kept
in a folder beside, and nothing is deleted (docs/decisions/0062).

    originals linked into the folder beside → sound runs as .cleaned → .swap → finished

Invariant: a file is taken out of the log only when the folder beside has it, durably; killed
anywhere, the folder is one that a start or another repair goes on with. The log must not be open.
Offsets that were given are not given again: where the end of a log is lost, it goes on behind what
is known to have been there. Called by `penstock storage repair`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, read_file
from appliance.logstore import aborted, files
from appliance.logstore.aborted import Aborted
from appliance.logstore.format_upgrade import first_offset, upgrade_folder
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.scan import Scan
from appliance.logstore.scrub import DERIVED, RECORDS, TAIL, Damage, segments_of
from appliance.logstore.segment import Segment
from appliance.logstore.unfinished_swaps import finish_swaps
from appliance.wire import markers
from appliance.wire.batch_header import CONTROL_BIT, LENGTH_PREFIX

Link = Callable[[str, str], None]
"""Gives a file a second name; the file system's own, which is no part of the Disk door."""
_CHUNK: Final = 1 << 20


@dataclass(slots=True)
class Mend:
    """The repair of one folder. runs: base offset of a segment → (begin, end) in bytes of what
    stays of it; empty: the whole segment goes. derived: names of files that are made again. lost:
    offsets that can no longer be read, first and last. end: where the log goes on, -1: where it
    ends. tail: start of a torn end, which the next start cuts off or a journal continues, -1: none.
    """

    runs: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    derived: list[str] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    end: int = -1
    tail: int = -1

    @property
    def size(self) -> int:
        """Bytes that are written anew."""
        return sum(end - begin for runs in self.runs.values() for begin, end in runs)


def plan(disk: Disk, folder: str, found: Sequence[Damage], written: int) -> Mend | None:
    """Plans the repair of these damages; None when there is nothing to do. written: offset below
    which there were records for sure. Raises StorageFailed.
    """
    made = Mend()
    segments = dict(segments_of(disk, folder))
    last = max(segments, default=-1)
    for one in found:
        name = one.path.rpartition("/")[2]
        if one.kind == DERIVED:
            made.derived.append(name)
        if one.kind == TAIL:
            made.tail = one.first
        if one.kind != RECORDS:
            continue
        base = files.offset_of(name, files.LOG)
        size = segments[base]
        if one.position < size:
            runs = made.runs.setdefault(base, [(0, size)])
            begin, _ = runs.pop()
            runs += [(begin, one.position)] if begin < one.position else []
            runs += [(one.behind, size)] if one.behind < size else []
        behind = one.last
        if base == last and one.behind >= size:
            made.end = max(written, one.first, one.last + 1, *_snapshots(disk, folder))
            behind = made.end - 1
        if 0 <= one.first <= behind:
            made.lost.append((one.first, behind))
    return made if made.runs or made.derived or made.end >= 0 else None


def _snapshots(disk: Disk, folder: str) -> list[int]:
    return [files.offset_of(name, files.SNAPSHOT) for name in disk.listdir(folder)]


def carry_out(disk: Disk, folder: str, made: Mend, beside: str, link: Link) -> int:
    """Do it. beside: a folder that does not exist yet, on the same file system. Returns the log
    end, below which all is on the disk. Raises StorageFailed, OSError."""
    disk.mkdir(beside)
    aside = set(made.derived)
    for base in made.runs:
        stem = files.stem("", base)[1:]
        aside |= {stem + suffix for suffix in files.SEGMENT_SUFFIXES}
    for name in sorted(aside):
        if disk.exists(f"{folder}/{name}"):
            link(f"{folder}/{name}", f"{beside}/{name}")
    disk.sync_dir(beside)
    disk.sync_dir(beside.rpartition("/")[0])
    oldest = min((base for base, _ in segments_of(disk, folder)), default=-1)
    for base, runs in made.runs.items():
        _replace(disk, folder, base, runs)
        if base == oldest and not runs:  # the log start stays: who is to read there goes on behind
            Segment(folder, base, 0).create(disk)
    for name in made.derived:
        if disk.exists(f"{folder}/{name}"):
            disk.unlink(f"{folder}/{name}")
    bases = [base for base, _ in segments_of(disk, folder)]
    upgrade_folder(disk, folder, bases, _CHUNK, 0, each=True)
    if made.runs or any(name.endswith(files.TXN_INDEX) for name in made.derived):
        _transactions_again(disk, folder, made, beside)
    if made.end >= 0:
        last = max((base for base, _ in segments_of(disk, folder)), default=-1)
        if last < 0 or _end(disk, folder, last) < made.end:
            Segment(folder, made.end, 0).create(disk)
    end = _sync(disk, folder)
    return end if made.tail < 0 else made.tail


def _replace(disk: Disk, folder: str, base: int, runs: list[tuple[int, int]]) -> None:
    """The runs, each as a segment, in the place of one. The later ones come first: an end that two
    segments have is found and taken away, a missing one would not be."""
    path = files.stem(folder, base) + files.LOG
    old = disk.open_file(path)
    new: list[int] = []
    try:
        for number, (begin, end) in enumerate(runs):
            new.append(first_offset(old.pread, begin, end) if number else base)
            name = files.stem(folder, new[-1]) + files.LOG + files.CLEANED
            if disk.exists(name):
                disk.unlink(name)
            file = disk.create(name)
            try:
                for at in range(begin, end, _CHUNK):
                    file.pwritev([old.pread(min(_CHUNK, end - at), at)], at - begin)
                file.sync()
            finally:
                file.close()
    finally:
        old.close()
    for one in reversed(new):
        name = files.stem(folder, one) + files.LOG
        disk.rename(name + files.CLEANED, name + files.SWAP)
        disk.sync_dir(folder)
    finish_swaps(disk, folder)
    for suffix in files.SEGMENT_SUFFIXES:
        name = files.stem(folder, base) + suffix
        if (not new or suffix != files.LOG) and disk.exists(name):
            disk.unlink(name)


def _transactions_again(disk: Disk, folder: str, made: Mend, beside: str) -> None:
    """The transaction indexes that are gone, by the batches; and what the old ones knew, where they
    were sound: of a marker that is lost nobody else knows."""
    gone = {files.offset_of(name, files.TXN_INDEX) for name in made.derived} - {-1}
    bases = [base for base, _ in segments_of(disk, folder)]
    again = {one[2]: one for one in _aborted(disk, folder, bases)}
    for base in made.runs:
        name = files.stem(beside, base) + files.TXN_INDEX
        if base not in gone and disk.exists(name):
            again = {one[2]: one for one in aborted.decode(read_file(disk, name))} | again
    for number, base in enumerate(bases):
        path = files.stem(folder, base) + files.TXN_INDEX
        behind = bases[number + 1] if number + 1 < len(bases) else 1 << 62
        entries = [again[last] for last in sorted(again) if base <= last < behind]
        if entries and not disk.exists(path):
            aborted.rewrite(disk, path, 0, entries)


def _aborted(disk: Disk, folder: str, bases: Iterable[int]) -> list[Aborted]:
    states, found = ProducerStates(), []
    for base in bases:
        scan = _trusting(disk, folder, base)
        for position, header in (one for chunk in scan.chunks() for one in chunk):
            if header[9] >= 0 and not header[5] & CONTROL_BIT:
                states.replay(header, 0)
            elif header[9] >= 0:
                marker = markers.read(scan.file.pread(header[1] + LENGTH_PREFIX, position))
                ended = states.end_transaction(header, header[0], 0, marker)
                found += [ended] if ended else []
        scan.file.close()
    return found


def _trusting(disk: Disk, folder: str, base: int) -> Scan:
    """Over the headers of a segment that was read through."""
    file = disk.open_file(files.stem(folder, base) + files.LOG)
    return Scan(file, 0, file.size(), base, trust_position=file.size(), gaps=True)


def _end(disk: Disk, folder: str, base: int) -> int:
    """Behind the last batch of a segment."""
    scan = _trusting(disk, folder, base)
    for _ in scan.chunks():
        pass
    scan.file.close()
    return scan.next_offset


def _sync(disk: Disk, folder: str) -> int:
    """Everything on the disk; the log end."""
    bases = [base for base, _ in segments_of(disk, folder)]
    for name in disk.listdir(folder):
        file = disk.open_file(f"{folder}/{name}", write=True)
        try:
            file.sync()
        finally:
            file.close()
    disk.sync_dir(folder)
    return _end(disk, folder, bases[-1])
