"""Checks repeatedly whether an appliance of this host is ready, without a request."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from appliance.base.errors import StorageFailed
from appliance.base.os_disk import OsDisk
from appliance.metadata.follower import Follower, MetadataUnreadable, skip_silently
from appliance.observer.door import NotThere, Observer
from appliance.observer.health import HealthWatch, Verdict, not_sent_to
from console.model.asking.failure import usage
from penstock import reach

_AGAIN_S: Final = 0.05


class Waiting:
    """data_dir: of the appliance. bootstrap: where a broker must answer, too. probes: it must take
    a record, give it back and let a group be joined. is_there: it ran at the last look. probed: it
    was tried at the last look."""

    def __init__(
        self, data_dir: str, bootstrap: str | None = None, *, probes: bool = False
    ) -> None:
        self._data_dir = data_dir
        self._bootstrap = bootstrap
        self._probes = probes
        self.probed = False
        self._observer: Observer | None = None
        self._watch: HealthWatch | None = None
        self._follower: Follower | None = None
        self.is_there = False

    def look_into(self, data_dir: str) -> None:
        """From now on it is the appliance of this folder."""
        if data_dir != self._data_dir:
            self._data_dir = data_dir
            self._observer = None

    def read_verdict(self) -> Verdict:
        """Returns what is missing now. Takes a moment at first: until every loop has been seen to
        turn, or for long enough not to. Raises Failure for what is no HOST:PORT.
        """
        self.probed = False
        try:
            found = self._verdict()
        except (NotThere, FileNotFoundError) as why:
            self.is_there = False
            return Verdict((str(why),), (), ())
        self.is_there = True
        problem = "" if found.missing else self._unreachable()
        if problem:
            return found._replace(missing=(problem,))
        return self._tried(found) if self._probes and not found.missing else found

    def _tried(self, found: Verdict) -> Verdict:
        """With what a probe found."""
        from appliance.exporter.post import Address, of_endpoint
        from appliance.exporter.probe import failed  # here: it brings Kafka's messages
        from appliance.exporter.probing import ProbeResult, looked

        observer, follower = self._observer, self._follower
        assert observer is not None and follower is not None and self._watch is not None
        me = follower.image.brokers.get(follower.identity.node_id)
        if not self._watch.is_broker or me is None:
            probed = ProbeResult(skipped="this node has no partitions, it is a controller alone")
        else:
            addresses = [of_endpoint(one) for one in me.endpoints]
            if self._bootstrap:
                host, port = reach.address_of(self._bootstrap)
                named = [one for one in addresses if one.port == port]
                addresses = [one._replace(host=host) for one in named or (Address(host, port),)]
            ioprocs, cluster_id = observer.head.shape.ioprocs, follower.identity.cluster_id
            self.probed = True
            probed = looked(lambda: failed(addresses, me.broker_id, cluster_id, ioprocs))
        if probed.problem:
            return found._replace(missing=(probed.problem,))
        if probed.skipped:
            self.probed = False
            return found._replace(warnings=(*found.warnings, f"not probed: {probed.skipped}"))
        return found

    def _verdict(self) -> Verdict:
        if self._observer is None or not self._observer.alive:
            self._observer = None
            self._observer = Observer(self._data_dir)
            tables = self._observer.tables
            self._watch = HealthWatch(tables.processes, tables.partitions)
            self._follower = Follower(OsDisk(), self._data_dir, tables.partitions, skip_silently)
        assert self._watch is not None and self._follower is not None
        found = self._sure(self._watch, time.monotonic_ns)
        if found.missing or not self._watch.is_broker:
            return found
        follower = self._follower
        with suppress(MetadataUnreadable, StorageFailed):  # then nothing is known of it
            follower.catch_up(self._observer.tables.processes.metadata_offset)
        why = not_sent_to(follower.image, follower.identity.node_id)
        return found._replace(missing=(why,)) if why else found

    @staticmethod
    def _sure(watch: HealthWatch, clock: Callable[[], int]) -> Verdict:
        """The verdict of the tables, once it is known which loops turn."""
        watch.check_progress(now_ns := clock())
        while not (found := watch.verdict(now_ns)).missing and watch.unsure(now_ns):
            time.sleep(_AGAIN_S)
            watch.check_progress(now_ns := clock())
        return found

    def _unreachable(self) -> str:
        if not self._bootstrap:
            return ""
        try:
            return reach.unreachable(self._bootstrap)
        except ValueError as wrong:
            raise usage(str(wrong), "for example -b localhost:9092") from None
