"""What was ever shown to anybody, or acknowledged: what must be true for ever after."""

from sim.replicated.talk import batches


class Ledger:
    """Everything that was ever shown. names: of the brokers. by_base: base offset → batch. end:
    behind the last of them. leaders: epoch → who led it."""

    def __init__(self, world, names):
        self.world = world
        self.names = names
        self.by_base = {}
        self.last = {}  # producer id → base offset of the newest batch
        self.end = 0
        self.leaders = {}

    def shown(self, broker):
        """A leader's high watermark rose: what is below is what was shown before, or is shown
        now."""
        shown = broker.progress.high_watermark
        broker.compared = max(broker.compared, broker.log.log_start_offset)
        while broker.compared < shown:
            data = broker.read(broker.compared, shown)
            assert data, f"{broker.name} shows {shown} and has nothing at {broker.compared}"
            for header, batch in batches(data):
                self.note(header, batch)
                broker.compared = header.last_offset + 1

    def brokers(self):
        return [self.world.nodes[name] for name in self.names]

    def note(self, header, batch):
        base = header.base_offset
        if base >= self.end:
            assert base == self.end, (base, self.end)
            self.by_base[base] = batch
            if header.producer_id >= 0:
                self.last[header.producer_id] = base
            self.end = header.last_offset + 1
        assert self.by_base.get(base) == batch, f"offset {base} was shown, and is another now"

    def not_needed(self, offset):
        """How much of what is below may be deleted: what a producer wrote last stays, or a replica
        without it takes the same again."""
        return min((offset, *self.last.values()))

    def read(self, header, batch, high_watermark):
        assert header.last_offset < high_watermark <= self.end
        assert self.by_base.get(header.base_offset) == batch, "a reader sees what was shown"

    def elected(self, broker):
        """Who leads has everything that was ever shown (leader completeness)."""
        epoch = broker.epoch
        assert self.leaders.setdefault(epoch, broker.name) == broker.name, "two leaders"
        if epoch < self.world.nodes["controller"].told.epoch:
            return  # it hears late of what is over
        assert broker.log.end_offset >= self.end, (
            f"{broker.name} leads, its log ends at {broker.log.end_offset}; {self.end} was shown"
        )
        self.has_all(broker)

    def has_all(self, broker):
        at = broker.log.log_start_offset
        while at < self.end:
            for header, batch in batches(broker.read(at, broker.log.end_offset)):
                if header.base_offset < self.end:
                    was = self.by_base.get(header.base_offset)
                    assert was == batch, f"{broker.name} has another batch at {header.base_offset}"
                at = header.last_offset + 1
