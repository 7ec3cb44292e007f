"""A log without files: what a replica knows of `PartitionLog`, at a hundredth of its price.
`replicated` has the same story over the real one."""

from sim.replicas.talk import Entries

from appliance.logstore.epochs import LeaderEpochs


class PaperLog:
    """start, end: offsets. synced: what a power cut cannot take lies below. shown: high watermark
    as it was last written down. newest: producer → (number, offset) of its newest entry."""

    layout = 0

    def __init__(self, start=0):
        self.start = self.synced = self.shown = start
        self.entries = []
        self.epochs = LeaderEpochs()
        self.newest = {}

    @property
    def end(self):
        return self.start + len(self.entries)

    @property
    def log_start_offset(self):
        return self.start

    @property
    def latest_epoch(self):
        return self.epochs.latest

    def append(self, entry):
        if entry.epoch != self.epochs.latest:
            assert entry.epoch > self.epochs.latest, (entry, self.epochs.latest)
            self.epochs.assign(entry.epoch, self.end)
        if entry.who >= 0:
            self.newest[entry.who] = entry.number, self.end
        self.entries.append(entry)

    def begin_epoch(self, epoch):
        self.epochs.assign(epoch, self.end)

    def read(self, offset, limit, most):
        at = offset - self.start
        assert at >= 0
        return Entries(self.entries[at : min(at + most, limit - self.start)])

    def at(self, offset):
        return self.entries[offset - self.start]

    def epoch_end(self, epoch):
        return self.epochs.end_of(epoch, self.end)

    def truncate(self, offset):
        assert self.start <= offset <= self.end
        del self.entries[offset - self.start :]
        self.synced = min(self.synced, offset)
        self.shown = min(self.shown, offset)
        self.epochs.cut_end(offset)
        self.newest = {}
        for at, entry in enumerate(self.entries, self.start):
            if entry.who >= 0:
                self.newest[entry.who] = entry.number, at

    def starts_at(self, offset):
        del self.entries[: offset - self.start]
        self.start = offset
        self.synced = max(self.synced, offset)
        self.shown = max(self.shown, offset)
        self.epochs.cut_start(offset)

    def begin_anew(self, offset):
        self.__init__(offset)

    def power_cut(self, rng):
        """Something of what was not synced is lost."""
        if self.synced < self.end:
            self.truncate(rng.randint(self.synced, self.end))
