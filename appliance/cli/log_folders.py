"""Which files `penstock log dump` shows of a folder: those of the kinds that it reads."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

_KNOWN: Final = re.compile(
    r".+\.(log|index|timeindex|snapshot|checkpoint)(\.deleted)?"
    r"|.*-checkpoint|meta\.properties|partition\.metadata|quorum-state|\.kafka_cleanshutdown"
)


def files_of(paths: Iterable[str]) -> Iterator[str]:
    """Every path that is no folder, and of folders the known files in them and in theirs, in order
    of their names. Raises OSError for a folder that cannot be read."""
    for path in paths:
        if os.path.isdir(path):
            yield from _inside(path)
        else:
            yield path


def _inside(folder: str) -> Iterator[str]:
    def refuse(problem: OSError) -> None:
        raise problem

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(files) if _KNOWN.fullmatch(name))
