"""The demo behind a console: an appliance with the demo's jobs, and the year of flights written
again and again at many times its pace. It leaves nothing behind.
"""

import shutil
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from console.commands.demo.data import folder
from console.commands.demo.jobs import FIRST, THEN, Jobs, unavailable
from console.commands.demo.load import SILENCE_S, create, replay
from console.model.asking.failure import Failure
from console.model.asking.link import Link
from console.show.output import print_note
from penstock.local import Appliance

SPEED: Final = 86_400.0
"""A day every second: some 900 flights."""


class Background:
    """Goes on until it is left. reason: why there are no jobs, None when there are."""

    def __init__(self) -> None:
        """Raises Failure where the demo's data is not installed."""
        self._source = folder()
        self._place = Path(tempfile.mkdtemp(prefix="penstock-demo-")) / "data"
        self._appliance = Appliance(self._place, own_session=True)
        self._jobs: Jobs | None = None
        self._thread = threading.Thread(target=self._feed, name="feed", daemon=True)
        self._goes_on = True
        self.reason: str | None = None
        self.failure: Failure | None = None

    @property
    def bootstrap(self) -> str:
        """The bootstrap address of the appliance."""
        return self._appliance.bootstrap

    @property
    def jobs_folder(self) -> str:
        """Where the jobs are, "" without them."""
        return str(self._jobs.folder.path) if self._jobs is not None else ""

    def __enter__(self) -> Self:
        try:
            self.reason = unavailable()
            self._appliance.start()
            create(Link(self.bootstrap, {}, SILENCE_S))
            if self.reason is None:
                self._jobs = Jobs(self._place, self.bootstrap)
                self._jobs.start_runner()
                self._jobs.add(*FIRST, *THEN)
        except BaseException:
            self._end()
            raise
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        print_note("Ending the demo's jobs and its appliance …")
        self._goes_on = False
        self._thread.join()
        self._end()

    def _feed(self) -> None:
        link = Link(self.bootstrap, {}, SILENCE_S)
        try:
            replay(
                link, self._source, SPEED, lambda *_: None, lambda: self._goes_on, lambda _: None
            )
        except Failure as failure:
            self.failure = failure

    def _end(self) -> None:
        if self._jobs is not None:
            self._jobs.close()
        self._appliance.close()
        shutil.rmtree(self._place.parent, ignore_errors=True)
