"""What was agreed: what must be so for ever after."""

from appliance.wire.batch import iter_records


class Ledger:
    """batches: what is agreed, by base offset. end: behind the last of it. epochs: end of a batch →
    its epoch. epoch: the newest that was led. shown: values that clients were told of → their
    offset."""

    def __init__(self):
        self.batches = {}
        self.end = self.epoch = 0
        self.epochs = {}
        self.shown = {}

    def agreed(self, voter):
        """What a replica takes for agreed is what every other took for it."""
        log, high = voter.log, voter.replica.high_watermark
        if voter.compared >= high:
            return
        for header, batch in log.read(voter.compared, high):
            if header.base_offset >= self.end:
                assert header.base_offset == self.end
                self.batches[self.end] = bytes(batch)
                self.end = header.last_offset + 1
                self.epochs[self.end] = header.leader_epoch
            was = self.batches[header.base_offset]
            assert was == bytes(batch), (
                f"ConsistentCommittedData: {voter.name} has another batch at {header.base_offset}"
            )
            voter.compared = header.last_offset + 1
        assert voter.compared == high, "a high watermark lies between two batches"

    def elected(self, voter):
        """Who leads has all that is agreed (leader completeness)."""
        self.epoch = max(self.epoch, voter.replica.epoch)
        assert voter.replica.epoch < self.epoch or voter.log.end_offset >= self.end, (
            f"{voter.name} leads without what is agreed: {voter.log.end_offset} < {self.end}"
        )

    def epoch_before(self, offset):
        """Of the record before it, None while nothing says that this is agreed."""
        return self.epochs.get(offset)

    def values(self):
        """Of all records that are agreed, by offset."""
        found = {}
        for base, batch in self.batches.items():
            for n, record in enumerate(iter_records(memoryview(batch))):
                found[base + n] = bytes(record.value or b"")
        return found
