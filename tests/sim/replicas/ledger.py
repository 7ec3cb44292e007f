"""What was ever shown to anybody, or acknowledged: what must be so for ever after."""


class Ledger:
    """Of one partition. entries: all that was ever shown, by offset. leaders: epoch → who led."""

    def __init__(self, key):
        self.key = key
        self.entries = []
        self.leaders = {}
        self.last = {}  # producer → offset of its newest entry

    @property
    def end(self):
        return len(self.entries)

    def shown(self, replica):
        """A leader's high watermark rose, or a follower heard of it: what is below is what was
        shown before; what a leader shows first is shown now."""
        log, shown = replica.log, replica.progress.high_watermark
        replica.broker.world.moved = True
        at = max(replica.compared, log.start)
        while at < shown:
            entry = log.at(at)
            if at == self.end:
                assert replica.progress.leads, f"{replica} shows {at}, which no leader showed"
                self.entries.append(entry)
                if entry.who >= 0:
                    before = self.last.get(entry.who)
                    assert before is None or self.entries[before].number < entry.number, (
                        f"{replica} shows {entry} at {at}, behind {self.entries[before]}"
                    )
                    self.last[entry.who] = at
            assert self.entries[at] == entry, (
                f"{replica} has {entry} at {at}, where {self.entries[at]} was shown"
            )
            at += 1
        replica.compared = at

    def not_needed(self, offset):
        """How much of what is below may be deleted: what a producer wrote last stays, or a replica
        without it takes the same again."""
        return min((offset, *self.last.values()))

    def acknowledged(self, who, number, offset):
        """A producer was told so."""
        assert offset < self.end, f"{offset} was acknowledged and never shown"
        entry = self.entries[offset]
        assert (entry.who, entry.number) == (who, number), (
            f"{who}:{number} was acknowledged at {offset}, where {entry} is"
        )

    def read(self, message):
        """A client was given this."""
        for at, entry in enumerate(message.entries, message.offset):
            assert at < message.high_watermark <= self.end, "a client sees what is not shown"
            assert self.entries[at] == entry, f"a client reads {entry} at {at}"

    def leads(self, replica, epoch):
        """One leader in an epoch."""
        first = self.leaders.setdefault(epoch, replica.broker.number)
        assert first == replica.broker.number, f"{first} and {replica} lead epoch {epoch}"

    def has_all(self, replica):
        """(leader completeness)"""
        log = replica.log
        assert log.end >= self.end, f"{replica} ends at {log.end}; {self.end} was shown"
        for at in range(log.start, self.end):
            assert log.at(at) == self.entries[at], f"{replica} has {log.at(at)} at {at}"
