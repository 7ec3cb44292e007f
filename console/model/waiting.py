"""Whether an appliance of this host is ready, looked at again and again without asking it."""

import time

from appliance.observer.door import NotThere, Observer
from appliance.observer.health import Verdict, Watch
from console.model.failure import usage
from penstock import reach


class Waiting:
    """data_dir: of the appliance. bootstrap: where a broker must answer, too. is_there: it ran at
    the last look."""

    def __init__(self, data_dir: str, bootstrap: str | None = None) -> None:
        self._data_dir = data_dir
        self._bootstrap = bootstrap
        self._observer: Observer | None = None
        self._watch: Watch | None = None
        self.is_there = False

    def look(self) -> Verdict:
        """What is missing now. Raises Failure for what is no HOST:PORT."""
        try:
            found = self._verdict()
        except (NotThere, FileNotFoundError) as why:
            self.is_there = False
            return Verdict((str(why),), (), ())
        self.is_there = True
        problem = "" if found.missing else self._unreachable()
        if problem:
            return found._replace(missing=(problem,))
        return found

    def _verdict(self) -> Verdict:
        if self._observer is None or not self._observer.alive:
            self._observer = None
            self._observer = Observer(self._data_dir)
            tables = self._observer.tables
            self._watch = Watch(tables.processes, tables.partitions)
        assert self._watch is not None
        now_ns = time.monotonic_ns()
        self._watch.look(now_ns)
        return self._watch.verdict(now_ns)

    def _unreachable(self) -> str:
        if not self._bootstrap:
            return ""
        try:
            return reach.unreachable(self._bootstrap)
        except ValueError as wrong:
            raise usage(str(wrong), "for example -b localhost:9092") from None
