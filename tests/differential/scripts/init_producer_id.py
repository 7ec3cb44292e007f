"""InitProducerId."""

from struct import pack

from tests.differential.registry import script


@script("InitProducerId", versions=(0, 5))
def init_producer_id(s):
    """Kafka's controller may not be ready for it at once after its start."""
    s.until(lambda answer: answer["error_code"] == "NONE", "InitProducerId", 4,
            transaction_timeout=60_000, producer_id=-1, producer_epoch=-1)  # fmt: skip

    def ask(step, number=-1, epoch=-1, timeout=60_000):
        return s.ask(step, transaction_timeout=timeout, producer_id=number, producer_epoch=epoch)

    number = ask("new")["producer_id"]
    ask("another")
    ask("known", number, 0)
    ask("unknown", 123_456_789, 0)
    ask("epoch without id", -1, 0)
    ask("id without epoch", number, -1)
    ask("no timeout", timeout=0)


@script("InitProducerId", versions=(0, 5))
def init_producer_id_of_empty_transaction(s):
    s.ask("empty id", transactional_id="", transaction_timeout=60_000, producer_id=-1,
          producer_epoch=-1)  # fmt: skip


@script("InitProducerId", versions=(5, 5))
def init_producer_id_of_two_phases(s):
    """Version 6 (KIP-939) is not stable in Kafka 4.3 and served by neither: enable2Pc and
    keepPreparedTxn reach nobody, whatever transaction.two.phase.commit.enable says."""
    for step, flags in (("plain", b"\0\0"), ("two phases", b"\1\0"), ("prepared", b"\1\1")):
        link = s.connect()
        named = bytes([len(step) + 1]) + step.encode()
        numbers = pack(">iqh", 60_000, -1, -1)
        link.send_raw(22, 6, named + numbers + flags + b"\0", flexible=True)
        s.note(step, link.receive(), "InitProducerId", 6)
