"""Where backups lie: named bytes in a folder, or in a bucket of S3 or what is like it."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol

from console.model.failure import Failure, usage

_CHUNK: Final = 1 << 20
_PART: Final = ".part"


class Store(Protocol):
    """Names have parts between slashes. Every method raises Failure when the store refuses.
    Invariant: a name has all of its bytes, or is not there."""

    def names(self, prefix: str) -> dict[str, int]:
        """Every name that begins with this folder, and its bytes."""
        ...

    def get(self, name: str) -> Iterator[bytes]:
        """The bytes, in pieces."""
        ...

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Keep these bytes; what had the name is replaced."""
        ...

    def delete(self, name: str) -> None:
        """Forget a name; nothing happens when there is none."""
        ...


def opened(where: str) -> Store:
    """where: a folder, or a URL such as s3://bucket/prefix. Raises Failure."""
    if "://" not in where:
        return FolderStore(os.path.abspath(where))
    if not where.startswith("s3://"):
        raise usage(f"{where}: backups go to a folder, or to s3://BUCKET/PREFIX")
    return BucketStore(where)


class FolderStore:
    """A folder of this host."""

    def __init__(self, path: str) -> None:
        self._path = path

    def names(self, prefix: str) -> dict[str, int]:
        """As in Store."""
        found = {}
        for place, _, names in os.walk(os.path.join(self._path, prefix)):
            for name in names:
                path = os.path.join(place, name)
                if not name.endswith(_PART):
                    found[os.path.relpath(path, self._path)] = os.path.getsize(path)
        return found

    def get(self, name: str) -> Iterator[bytes]:
        """As in Store."""
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                while piece := file.read(_CHUNK):
                    yield piece
        except OSError as why:
            raise self._refused(why) from None

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """As in Store."""
        path = os.path.join(self._path, name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + _PART, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + _PART, path)
            self._sync(os.path.dirname(path))
        except OSError as why:
            raise self._refused(why) from None

    def delete(self, name: str) -> None:
        """As in Store."""
        try:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self._path, name))
        except OSError as why:
            raise self._refused(why) from None

    def _sync(self, folder: str) -> None:
        while folder.startswith(self._path):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            folder = os.path.dirname(folder)

    def _refused(self, why: OSError) -> Failure:
        return Failure(f"{why.filename}: {why.strerror}", where=self._path, name="BACKUP_REFUSED")


class BucketStore:
    """A bucket. Who we are and where it is say the usual variables (AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP) or the host's role."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
        except ImportError:
            hint = "pip install 'penstock[s3]'"
            raise usage(f"{url} needs the package obstore", hint) from None
        self._obstore: Any = obstore
        self._url = url
        self._store = self._asked(lambda: obstore.store.from_url(url))

    def names(self, prefix: str) -> dict[str, int]:
        """As in Store."""
        pages = self._asked(lambda: list(self._obstore.list(self._store, prefix=prefix)))
        return {one["path"]: one["size"] for page in pages for one in page}

    def get(self, name: str) -> Iterator[bytes]:
        """As in Store."""
        pieces = self._asked(lambda: iter(self._obstore.get(self._store, name).stream()))
        while (piece := self._asked(lambda: next(pieces, None))) is not None:
            yield bytes(piece)

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """As in Store."""
        self._asked(lambda: self._obstore.put(self._store, name, iter(pieces)))

    def delete(self, name: str) -> None:
        """As in Store."""
        self._asked(lambda: self._obstore.delete(self._store, name))

    def _asked(self, question: Any) -> Any:
        try:
            return question()
        except Failure:
            raise
        except Exception as why:  # of many kinds, all of them about the store
            text = str(why).strip().splitlines()[0]
            raise Failure(text, where=self._url, name="BACKUP_REFUSED") from None
