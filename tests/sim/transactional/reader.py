"""Consumers with isolation.level=read_committed, which leave out what was aborted as clients do."""

from sim.transactional.asking import RETRIED, Asking, Lost
from sim.transactional.machine import OUTPUTS

from appliance.base.errors import NONE
from appliance.wire.batch import iter_records
from appliance.wire.batch_header import HEADER_SIZE, read_header
from appliance.wire.markers import read as read_marker

FETCH = 1
WAIT_MS = 80


class Reader(Asking):
    """offset: behind what it has read of its partition."""

    def __init__(self, world, name, place, books):
        super().__init__(world, name)
        self.place = place
        self.books = books
        self.offset = 0

    def live(self):
        while True:
            try:
                (found,) = yield [self.fetch()]
            except Lost:
                yield 3
                continue
            (one,) = found.responses[0].partitions
            code = int(one.error_code)
            assert code == NONE or code in RETRIED, code
            if code == NONE:
                self.take(one)
            else:
                yield 5

    def fetch(self):
        topic, index = OUTPUTS[self.place]
        one = {
            "partition": index, "current_leader_epoch": -1, "fetch_offset": self.offset,
            "log_start_offset": -1, "partition_max_bytes": self.world.rng.choice((200, 4000)),
        }  # fmt: skip
        fields = {
            "replica_id": -1, "max_wait": WAIT_MS, "min_bytes": 1, "max_bytes": 1 << 20,
            "isolation_level": 1, "session_id": 0, "session_epoch": -1,
            "topics": [{"topic": topic, "partitions": [one]}],
            "forgotten_topics_data": [], "rack_id": "",
        }  # fmt: skip
        return FETCH, 11, fields

    def take(self, one):
        """What a client hands to its program."""
        aborted = [(each.first_offset, each.producer_id) for each in one.aborted_transactions or ()]
        self.books.told(self.place, one.last_stable_offset)
        for header, batch in batches(one.records or b""):
            assert header.last_offset < one.last_stable_offset, "it was not decided yet"
            if header.base_offset < self.offset:
                continue  # the batch that has the offset comes whole
            assert header.base_offset == self.offset, "nothing is passed over"
            self.offset = header.last_offset + 1
            dropped = {producer for first, producer in aborted if first <= header.base_offset}
            if header.is_control:
                ended = header.producer_id
                aborted = [
                    each for each in aborted
                    if each[1] != ended or each[0] > header.base_offset
                ]  # fmt: skip
            elif header.producer_id not in dropped:
                for record in iter_records(batch):
                    self.books.read(self.place, record.value)


def batches(data):
    """The whole batches of `data`: (header, bytes)."""
    at = 0
    while len(data) - at >= HEADER_SIZE:
        header = read_header(data, at)
        if at + header.size > len(data):
            return
        yield header, data[at : at + header.size]
        at += header.size


def outcomes(log):
    """What a log says by itself, without its indexes: ([values of what was committed], producers
    of what is open, how many markers ended nothing)."""
    kept, open_, idle = [], {}, 0
    offset = log.log_start_offset
    while (place := log.locate(offset, 1 << 20, log.end_offset)) is not None:
        base, position, length, _ = place
        file = log.disk.open_file(f"{log.path}/{base:020d}.log")
        data = file.pread(length, position)
        file.close()
        for header, batch in batches(data):
            offset = header.last_offset + 1
            if header.is_control:
                idle += header.producer_id not in open_
                ended = open_.pop(header.producer_id, [])
                kept += ended if read_marker(batch).committed else []
            else:
                values = [record.value for record in iter_records(batch)]
                open_.setdefault(header.producer_id, []).extend(values)
    return kept, open_, idle
