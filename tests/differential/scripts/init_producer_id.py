"""InitProducerId."""

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
