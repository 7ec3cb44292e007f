"""Random interleavings of everything that is asked of a core, against a dumb twin: one list per
partition."""

import tempfile

from core_world import World, batch
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.base import errors
from appliance.ring.messages import APPENDED, CANCEL, DELETE_RECORDS, DELETED, FOUND
from appliance.wire.batch import iter_records, read_header

PARTITIONS = 2


class Twin:
    """What one partition must look like."""

    def __init__(self):
        self.values = []  # of the whole log, in order
        self.high = 0
        self.start = self.start_before = 0  # before the answers that came last
        self.sequence = 0
        self.last_batch = None  # (first sequence, values, base offset) of the idempotent producer


class Run:
    """Drives a World and its twins step by step and compares every answer."""

    def __init__(self, folder):
        self.world = World(folder, netprocs=2)
        self.partitions = [self.world.add(f"t{n}", epoch=1) for n in range(PARTITIONS)]
        self.twins = [Twin() for _ in range(PARTITIONS)]
        self.asked = {}  # token → what an answer must say
        self.token = 0
        self.position = 0
        self.value = 0

    def new_token(self, number, kind, **expected):
        self.token += 1
        token = self.token << 32
        self.asked[token] = (number, kind, expected)
        return token

    def append(self, number, records, acks, producer):
        twin, handle = self.twins[number], self.partitions[number].handle
        values = [b"%d" % (self.value + n) for n in range(records)]
        self.value += records
        ids = (7, 0, twin.sequence) if producer else (-1, -1, -1)
        base = len(twin.values)
        if producer:
            twin.last_batch = (twin.sequence, values, base)
            twin.sequence += records
        twin.values += values
        self._send(handle, batch(*values, producer=ids), acks, number, base, base + records)

    def append_again(self, number, acks):
        twin, handle = self.twins[number], self.partitions[number].handle
        if twin.last_batch is not None:
            sequence, values, base = twin.last_batch
            again = batch(*values, producer=(7, 0, sequence))
            self._send(handle, again, acks, number, base, base + len(values))

    def _send(self, handle, data, acks, number, base, end):
        token = self.new_token(number, "append", base=base, end=end, acks=acks)
        self.position = (self.position + 4096) % (1 << 19)
        self.world.append(handle, data, acks, token, position=self.position)

    def read(self, number, back, wait, max_bytes):
        offset = max(self.twins[number].start, len(self.twins[number].values) - back)
        token = self.new_token(number, "read", offset=offset)
        handle = self.partitions[number].handle
        self.world.read(handle, offset, token, max_bytes=max_bytes, wait=wait, peer=1)

    def cancel(self):
        reads = [token for token, (_, kind, _) in self.asked.items() if kind == "read"]
        if reads and len(self.world.core.purgatory):
            self.check(self.world.turn())  # what was answered already must not be missed
            token = reads[0]
            if token in self.asked:
                self.world.ask(CANCEL, 0, token=token, peer=1)
                del self.asked[token]

    def delete(self, number, ahead):
        partition, twin = self.partitions[number], self.twins[number]
        self.check(self.world.turn())
        target = twin.start + ahead
        # What was acknowledged before the question can be deleted: the answer waits for its sync.
        high = partition.log.end_offset
        token = self.new_token(number, "delete", target=target, high=high)
        self.world.ask(DELETE_RECORDS, partition.handle, token, a=target)
        self.check(self.world.turn())

    def sync(self, count):
        for _ in range(min(count, len(self.world.threads.jobs))):
            self.world.threads.run_one()

    def check(self, answers):
        for partition, twin in zip(self.partitions, self.twins, strict=True):
            assert partition.log.end_offset == len(twin.values)
            assert twin.high <= partition.high_watermark <= len(twin.values)
            assert partition.log.log_start_offset <= partition.high_watermark
            assert partition.high_watermark <= partition.log.recovery_point, "a cut could take it"
            twin.high = partition.high_watermark
            twin.start_before = twin.start
        for answer in sorted(answers, key=lambda m: m.op != DELETED):  # two netprocs: in no order
            number, kind, expected = self.asked.pop(answer.token)
            getattr(self, f"check_{kind}")(
                self.partitions[number], self.twins[number], answer, **expected
            )

    def check_append(self, partition, twin, answer, base, end, acks):
        assert (answer.op, answer.flags, answer.a) == (APPENDED, errors.NONE, base)
        if acks == -1:
            assert partition.high_watermark >= end, "answered before it was on the disk"

    def check_read(self, partition, twin, answer, offset):
        assert answer.op == FOUND
        if offset < twin.start_before or answer.flags:
            assert answer.flags == errors.OFFSET_OUT_OF_RANGE
            assert offset < twin.start
            return
        assert (answer.flags, answer.a) == (errors.NONE, answer.b)
        data = self.world.bytes_of(answer, partition)
        assert len(data) == answer.e
        at = 0
        while at + 61 <= len(data):
            header = read_header(data, at)
            if at + header.size > len(data):
                assert at, "the first batch is whole"
                break
            for record in iter_records(data[at : at + header.size]):
                assert record.offset < answer.a, "beyond the high watermark"
                assert record.value == twin.values[record.offset]
            assert at or header.base_offset <= offset <= header.last_offset
            at += header.size

    def check_delete(self, partition, twin, answer, target, high):
        assert answer.op == DELETED
        if answer.flags == errors.OFFSET_OUT_OF_RANGE:
            assert target > high
        else:  # what came while it waited for the sync may be deleted, too
            assert target <= partition.high_watermark
            twin.start = max(twin.start, target)
            assert (answer.flags, answer.a) == (errors.NONE, twin.start)

    def finish(self):
        """Let everything come to rest: every append is answered, and what is parked is at the
        end."""
        self.check(self.world.settle())
        left = [kind for _, kind, _ in self.asked.values()]
        assert left == ["read"] * len(self.world.core.purgatory)
        for partition, twin in zip(self.partitions, self.twins, strict=True):
            assert partition.high_watermark == len(twin.values)


number = st.integers(0, PARTITIONS - 1)
acks = st.sampled_from([-1, -1, 0, 1])
step = st.one_of(
    st.tuples(st.just("append"), number, st.integers(1, 3), acks, st.booleans()),
    st.tuples(st.just("append_again"), number, acks),
    st.tuples(
        st.just("read"), number, st.integers(0, 5), st.booleans(), st.sampled_from([0, 150, 9999])
    ),
    st.tuples(st.just("cancel")),
    st.tuples(st.just("delete"), number, st.integers(0, 4)),
    st.tuples(st.just("sync"), st.integers(1, 2)),
    st.tuples(st.just("turn")),
    st.tuples(st.just("turn")),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(step, max_size=40), st.booleans())
def test_every_interleaving_tells_the_same_story_as_a_list(steps, quiet):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        run.world.quiet = quiet
        for name, *arguments in steps:
            if name == "turn":
                run.check(run.world.turn())
            else:
                getattr(run, name)(*arguments)
        run.check(run.world.turn())
        run.finish()
        for partition in run.partitions:
            partition.log.close()
