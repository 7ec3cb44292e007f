"""The archive: parts, one after the other, each within its time and size, whatever becomes of the
others; and a manifest that says of each what it is, or why it is not there.

Invariant: nothing gets into the archive but through `Bundle._keep`, where secrets are blanked, and
only when all parts are there: a secret that one part has is blanked in those before it, too.
"""

import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from appliance.base.errors import StorageFailed
from console.model.asking.failure import Failure
from console.model.bundle.secrets import Secrets

MOST_BYTES: Final = 4 << 20
"""Of one part, before it is compressed."""
PATIENCE_S: Final = 10.0
"""For one part."""
LEFT_OUT: Final = (
    "records, and the keys, values and headers in them",
    "the metadata log itself: users, their credentials and delegation tokens are only there",
    "values of settings that are secrets, and of those that are not known",
    "environment variables",
    "names of files that are not an appliance's",
)
TELLS: Final = "names of topics, groups, users and clients, addresses and paths may be in it"


@dataclass(slots=True)
class Part:
    """part: its name in the archive. what: it says. bytes: None when it is not there. remark: why
    not, or what of it is missing."""

    part: str
    what: str
    bytes: int | None = None
    remark: str = ""


class Bundle:
    """parts: in their order. secrets: what was met."""

    def __init__(
        self, secrets: Secrets, patience_s: float = PATIENCE_S, most_bytes: int = MOST_BYTES
    ) -> None:
        self.secrets = secrets
        self.parts: list[Part] = []
        self._patience_s = patience_s
        self._most_bytes = most_bytes
        self._made: dict[str, object] = {}

    def add(self, name: str, what: str, make: Callable[[], object]) -> None:
        """A part. make: its text (.txt), rows (.jsonl) or a value of JSON's kinds (.json); whatever
        it raises is told."""
        part = Part(name, what)
        self.parts.append(part)
        box: dict[str, object] = {}

        def run() -> None:
            try:
                made = make()
                box["made"] = list(made) if isinstance(made, Iterator) else made
            except Exception as why:  # whatever fails, the other parts are worth having
                box["why"] = _why(why)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._patience_s)
        if "made" in box:
            self._made[name] = box["made"]
        else:
            late = f"it took longer than {self._patience_s:.0f} s"
            part.remark = str(box.get("why", late))

    def without(self, name: str, what: str, why: str) -> None:
        """A part that cannot be."""
        self.parts.append(Part(name, what, remark=why))

    def written(self, head: Mapping[str, object], at_s: int) -> bytes:
        """The archive. head: what the manifest says besides. at_s: when, for its entries."""
        texts = {}
        for part in self.parts:
            if part.part in self._made:
                texts[part.part] = self._keep(part, self._made[part.part])
            part.remark = self.secrets.text(part.remark)
        manifest = {
            **self.secrets.blanked(head),
            "parts": [asdict(part) for part in self.parts],
            "not_in_it": LEFT_OUT,
            "but": TELLS,
        }
        told = json.dumps(manifest, indent=2, ensure_ascii=False)
        texts = {"manifest.json": self.secrets.known(told).encode(), **texts}
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for name, data in texts.items():
                entry = tarfile.TarInfo(f"penstock-bundle/{name}")
                entry.size, entry.mtime, entry.mode = len(data), at_s, 0o600
                archive.addfile(entry, io.BytesIO(data))
        return out.getvalue()

    def _keep(self, part: Part, made: object) -> bytes:
        """The bytes of a part without a secret, cut at the end of a line where it is too long; of a
        log the end is kept."""
        text = self.secrets.known(_text(self._blanked(part.part, made)))
        lines = text.splitlines(keepends=True)
        sizes = [len(line.encode(errors="replace")) for line in lines]
        if sum(sizes) > self._most_bytes:
            newest_first = part.part.endswith(("events.jsonl", ".txt"))
            lines = _within(lines, sizes, self._most_bytes, from_end=newest_first)
            which = "last" if newest_first else "first"
            part.remark = f"only the {which} {len(lines)} of {len(sizes)} lines"
        data = "".join(lines).encode(errors="replace")
        part.bytes = len(data)
        return data

    def _blanked(self, name: str, made: object) -> object:
        if isinstance(made, str):
            return self.secrets.text(made) if name.startswith("logs/") else made
        return self.secrets.blanked(made)


def _within(lines: list[str], sizes: list[int], most: int, *, from_end: bool) -> list[str]:
    numbers: Iterable[int] = range(len(lines))
    kept = []
    for number in reversed(list(numbers)) if from_end else numbers:
        most -= sizes[number]
        if most < 0:
            break
        kept.append(lines[number])
    return kept[::-1] if from_end else kept


def _text(made: object) -> str:
    if isinstance(made, str):
        return made
    if isinstance(made, list):
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _why(problem: Exception) -> str:
    if isinstance(problem, Failure):
        return problem.message
    if isinstance(problem, OSError | StorageFailed):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"
