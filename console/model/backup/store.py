"""Where backups lie: named bytes in a folder, or in a bucket of S3 or what is like it.

The stores are those of `appliance/base/object_store.py`; what they refuse is a Failure here.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from appliance.base import object_store
from appliance.base.object_store import ObjectRoom, StorePackageMissing, StoreRefused
from console.model.asking.failure import Failure, usage

_MAKES: Final = "penstock backup create WHERE makes one; see that the disk is mounted"

_T = TypeVar("_T")


class Store(Protocol):
    """Names have parts between slashes. Every method raises Failure when the store refuses.
    Invariant: a name has all of its bytes, or is not there."""

    def names(self, prefix: str) -> dict[str, int]:
        """Every name that begins with this folder, and its bytes."""
        ...

    def read_object(self, name: str) -> Iterator[bytes]:
        """The bytes, in pieces."""
        ...

    def read_range(self, name: str, at: int, length: int) -> bytes:
        """Bytes from a position on; fewer than `length` where the object ends."""
        ...

    def write_object(self, name: str, pieces: Iterable[bytes]) -> None:
        """Keep these bytes; what had the name is replaced."""
        ...

    def delete(self, name: str) -> None:
        """Forget a name; nothing happens when there is none."""
        ...


def opened(where: str, *, existing: bool = False) -> Store:
    """where: a folder, or a URL such as s3://bucket/prefix. existing: a folder must be there.
    Raises Failure."""
    if "://" not in where:
        path = os.path.abspath(where)
        if existing and not os.path.isdir(path):
            raise usage(f"{where}: no such folder, and no backup", _MAKES)
        return FolderStore(path)
    if not where.startswith("s3://"):
        raise usage(f"{where}: backups go to a folder, or to s3://BUCKET/PREFIX")
    if object_store.names_credentials(where):
        raise usage(
            "a bucket is s3://BUCKET/PREFIX, without credentials, which ps would show",
            "they come by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the host's role",
        )
    try:
        return TellingStore(object_store.BucketStore(where))
    except StorePackageMissing as why:
        raise usage(str(why), "pip install 'penstock[s3]'") from None
    except StoreRefused as why:
        raise _failure(why) from None


class TellingStore:
    """A store whose refusals are Failures."""

    def __init__(self, room: ObjectRoom) -> None:
        self._room = room

    def names(self, prefix: str) -> dict[str, int]:
        """As in Store."""
        return _asked(lambda: self._room.names(prefix))

    def read_object(self, name: str) -> Iterator[bytes]:
        """As in Store."""
        pieces = self._room.read_object(name)
        while (piece := _asked(lambda: next(pieces, None))) is not None:
            yield piece

    def read_range(self, name: str, at: int, length: int) -> bytes:
        """As in Store."""
        return _asked(lambda: self._room.read_range(name, at, length))

    def write_object(self, name: str, pieces: Iterable[bytes]) -> None:
        """As in Store."""
        _asked(lambda: self._room.write_object(name, pieces))

    def delete(self, name: str) -> None:
        """As in Store."""
        _asked(lambda: self._room.delete(name))


class FolderStore(TellingStore):
    """A folder of this host."""

    def __init__(self, path: str) -> None:
        super().__init__(object_store.FolderStore(path))


def _asked(question: Callable[[], _T]) -> _T:
    try:
        return question()
    except StoreRefused as why:
        raise _failure(why) from None


def _failure(why: StoreRefused) -> Failure:
    return Failure(str(why), where=why.where, name="BACKUP_REFUSED")
