"""Objects, which are named bytes, in a folder or in a bucket of S3 or what is like it.

Every call may wait for a disk or a network: the caller is a command or a process of its own, never
a loop. Source of a bucket's credentials: the usual variables (AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP) or the host's role.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Final, Protocol

_CHUNK: Final = 1 << 20
_PART: Final = ".part"
_WHOLE: Final = 5 << 20
"""An object of a bucket up to this many bytes is sent whole, by one request."""
_FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNERS_FILE: Final = 0o600
_OWNERS_FOLDER: Final = 0o700


class StoreRefused(Exception):
    """A store does not do what it is asked. where: the store's folder or URL."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(text)
        self.where = where


class StorePackageMissing(StoreRefused):
    """The library that speaks to buckets is not installed."""


class ObjectRoom(Protocol):
    """A store. Names have parts between slashes. Every method raises StoreRefused. Invariant: a
    name has all of its bytes, or is not there."""

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


def names_credentials(url: str) -> bool:
    """True if the URL of a bucket has credentials in it, which settings, events and `ps` would
    show."""
    scheme, _, place = url.partition("://")
    return scheme == "s3" and ("@" in place.partition("/")[0] or "?" in place)


def open_store(where: str) -> ObjectRoom:
    """The store of a URL: file:///FOLDER or s3://BUCKET/PREFIX. Raises StoreRefused, ValueError
    for another URL."""
    if where.startswith("s3://"):
        return BucketStore(where)
    if where.startswith("file:///") and len(where) > len("file:///"):
        return FolderStore(where.removeprefix("file://"))
    raise ValueError(f"{where} is neither file:///FOLDER nor s3://BUCKET/PREFIX")


class FolderStore:
    """A folder of this host."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self, prefix: str) -> dict[str, int]:
        """As in ObjectRoom."""
        found = {}
        for place, _, names in os.walk(os.path.join(self._path, prefix)):
            for name in names:
                path = os.path.join(place, name)
                told = os.lstat(path)
                if not name.endswith(_PART) and stat.S_ISREG(told.st_mode):
                    found[os.path.relpath(path, self._path)] = told.st_size
        return found

    def read_object(self, name: str) -> Iterator[bytes]:
        """As in ObjectRoom."""
        try:
            fd = os.open(self._place(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                while piece := file.read(_CHUNK):
                    yield piece
        except OSError as why:
            raise self._refused(why) from None

    def read_range(self, name: str, at: int, length: int) -> bytes:
        """As in ObjectRoom."""
        try:
            fd = os.open(self._place(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                file.seek(at)
                return file.read(length)
        except OSError as why:
            raise self._refused(why) from None

    def write_object(self, name: str, pieces: Iterable[bytes]) -> None:
        """As in ObjectRoom."""
        path = os.path.join(self._path, name)
        try:
            self._make_folders(name)
            with suppress(FileNotFoundError):  # of one that was cut off
                os.unlink(path + _PART)
            with os.fdopen(os.open(path + _PART, _FRESH, _OWNERS_FILE), "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + _PART, path)
            self._sync(os.path.dirname(path))
        except OSError as why:
            raise self._refused(why) from None

    def delete(self, name: str) -> None:
        """As in ObjectRoom."""
        try:
            for path in (name, name + _PART):  # what a cut left, too
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._path, path))
        except OSError as why:
            raise self._refused(why) from None

    def _place(self, name: str) -> str:
        """The path of a name, none of whose folders within the store is a link. Raises OSError."""
        path = self._path
        for part in name.split("/"):
            if path != self._path and os.path.islink(path):
                raise OSError(errno.ELOOP, "a symbolic link is not followed", path)
            path = os.path.join(path, part)
        return path

    def _make_folders(self, name: str) -> None:
        """Those of a name, for the user alone. Raises OSError."""
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        path = self._path
        for part in ("", *name.split("/")[:-1]):
            path = os.path.join(path, part) if part else path
            with suppress(FileExistsError):
                os.mkdir(path, _OWNERS_FOLDER)
        self._place(name)

    def _sync(self, folder: str) -> None:
        while folder.startswith(self._path):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            folder = os.path.dirname(folder)

    def _refused(self, why: OSError) -> StoreRefused:
        where = f"{why.filename}: " if why.filename else f"{self._path}: "
        return StoreRefused(self._path, f"{where}{why.strerror}")


class BucketStore:
    """A bucket."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
        except ImportError:
            raise StorePackageMissing(url, f"{url} needs the package obstore") from None
        self._obstore: Any = obstore
        self._url = url
        self._store = self._asked(lambda: obstore.store.from_url(url))

    def names(self, prefix: str) -> dict[str, int]:
        """As in ObjectRoom."""
        pages = self._asked(lambda: list(self._obstore.list(self._store, prefix=prefix)))
        return {one["path"]: one["size"] for page in pages for one in page}

    def read_object(self, name: str) -> Iterator[bytes]:
        """As in ObjectRoom."""
        pieces = self._asked(lambda: iter(self._obstore.get(self._store, name).stream()))
        while (piece := self._asked(lambda: next(pieces, None))) is not None:
            yield bytes(piece)

    def read_range(self, name: str, at: int, length: int) -> bytes:
        """As in ObjectRoom."""
        if length <= 0:
            return b""
        try:
            ask = self._obstore.get_range
            return bytes(self._asked(lambda: ask(self._store, name, start=at, length=length)))
        except StoreRefused:
            # A bucket refuses a range that begins behind the end: its size is asked only then.
            if at < self._asked(lambda: self._obstore.head(self._store, name)["size"]):
                raise
            return b""

    def write_object(self, name: str, pieces: Iterable[bytes]) -> None:
        """As in ObjectRoom."""
        rest, first = iter(pieces), bytearray()
        for piece in rest:
            first += piece
            if len(first) > _WHOLE:
                sent: Any = chain((bytes(first),), rest)
                break
        else:
            sent = bytes(first)  # one request, where pieces take three
        self._asked(lambda: self._obstore.put(self._store, name, sent))

    def delete(self, name: str) -> None:
        """As in ObjectRoom."""
        self._asked(lambda: self._obstore.delete(self._store, name))

    def _asked(self, question: Any) -> Any:
        try:
            return question()
        except StoreRefused:
            raise
        except Exception as why:  # of many kinds, all of them about the store
            text = (str(why).strip().splitlines() or [type(why).__name__])[0]
            raise StoreRefused(self._url, text) from None
