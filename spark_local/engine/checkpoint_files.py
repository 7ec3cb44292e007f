"""Files of Spark's checkpoint: where a job's next batch begins to read a topic, and moving that.

offsets/N plans a batch, commits/N says that it is done, sources/I/0 says where source I began.
Each is lines of text; those that begin with a brace are JSON: topic → partition → next offset. A
`.N.crc` beside a file is its checksum, which Spark passes over when it is absent.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from spark_local import delivery

_BATCH: Final = "batchWatermarkMs"


def query_of(checkpoint: Path) -> str | None:
    """Id of the checkpoint's query; None when nothing was started from it."""
    file = checkpoint / "metadata"
    return str(json.loads(file.read_text())["id"]) if file.exists() else None


def next_batch(checkpoint: Path) -> tuple[int, bool]:
    """The batch that Spark runs first, and True if it is planned already, hence run again."""
    return delivery.first(_names(checkpoint, "offsets"), _names(checkpoint, "commits"))


def unfinished(checkpoint: Path) -> int | None:
    """The batch that is planned and not done, hence run again; None when there is none."""
    batch, again = next_batch(checkpoint)
    return batch if again else None


def position(checkpoint: Path, topic: str) -> dict[str, int]:
    """Partition → where the next batch begins to read a topic; empty when nothing of it was read.
    Of a topic that is read twice, the slower reader's."""
    return begin_of(checkpoint, next_batch(checkpoint)[0], topic)


def begin_of(checkpoint: Path, batch: int, topic: str) -> dict[str, int]:
    """The same for a batch of that number."""
    if batch == 0:
        files = sorted(checkpoint.glob("sources/*/0"))
    else:
        files = [checkpoint / "offsets" / str(batch - 1)]
    return _slowest(files, topic)


def end_of(checkpoint: Path, batch: int, topic: str) -> dict[str, int]:
    """Partition → where a planned batch ends to read a topic."""
    return _slowest([checkpoint / "offsets" / str(batch)], topic)


def move_position(checkpoint: Path, topic: str, begin: Mapping[str, int], *, whole: bool) -> None:
    """Lets the next batch begin to read a topic elsewhere. A batch that is run again then reads
    nothing of it. whole: the topic has no other partitions than those of `begin`. Only while the
    job does not run."""
    batch, again = next_batch(checkpoint)
    files = [checkpoint / "offsets" / str(batch)] if again else []
    files += sorted(checkpoint.glob("sources/*/0")) if batch == 0 else []
    files += [checkpoint / "offsets" / str(batch - 1)] if batch else []
    for file in files:
        _rewrite(file, topic, begin, whole=whole)


def find_cut(checkpoint: Path) -> str:
    """The name of a file that Spark needs and that is not whole, below the checkpoint; "" when
    there is none. Spark syncs no file, so a power cut may leave the newest ones empty."""
    files = [checkpoint / "metadata", *sorted(checkpoint.glob("sources/*/0"))]
    for kind in ("offsets", "commits"):
        numbers = [int(name) for name in _names(checkpoint, kind) if name.isdigit()]
        files += [checkpoint / kind / str(number) for number in sorted(numbers)[-2:]]
    cut = [one for one in files if one.exists() and not _is_whole(one)]
    return str(cut[0].relative_to(checkpoint)) if cut else ""


def _is_whole(file: Path) -> bool:
    lines = file.read_text(errors="replace").strip("\0\n").splitlines()
    if file.name != "metadata" and not (len(lines) > 1 and lines[0].startswith("v")):
        return False
    try:
        told = [json.loads(line) for line in lines if line.startswith("{")]
    except ValueError:
        return False
    return bool(told)


def unplan(checkpoint: Path, batch: int) -> None:
    """Takes back the plan of a batch of which nothing was written. Only while the job does not
    run."""
    for name in (f".{batch}.crc", str(batch)):
        (checkpoint / "offsets" / name).unlink(missing_ok=True)


def _names(checkpoint: Path, kind: str) -> list[str]:
    return [one.name for one in (checkpoint / kind).glob("*")]


def _slowest(files: list[Path], topic: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in files:
        for told in _objects(file):
            for partition, at in _places(told, topic).items():
                found[partition] = min(found.get(partition, int(at)), int(at))
    return found


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        lines = file.read_text(errors="replace").splitlines()
        yield from (json.loads(line) for line in lines if line.startswith("{"))


def _places(told: dict[str, Any], topic: str) -> dict[str, Any]:
    if _BATCH in told:  # Spark's line about the batch, whose keys are no topics
        return {}
    found = told.get(topic)
    return found if isinstance(found, dict) else {}


def _rewrite(file: Path, topic: str, begin: Mapping[str, int], *, whole: bool) -> None:
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        told = json.loads(line) if line.startswith(b"{") else {}
        if places := _places(told, topic):
            told[topic] = dict(begin) if whole else places | dict(begin)
            lines[number] = json.dumps(told).encode()
    part = file.with_name(f".{file.name}.moved")
    with part.open("wb") as out:
        out.write(b"\n".join(lines))
        out.flush()
        os.fsync(out.fileno())
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    part.rename(file)
