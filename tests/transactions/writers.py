"""A transactional producer of each of three libraries, behind one face.

`open` takes the transactional id over, which ends what an earlier owner left. Any call may raise an
error of `failures`: the owner then drops the writer and makes a new one.
"""

import asyncio
import threading

import aiokafka
import confluent_kafka as ck
import kafka
from kafka.errors import KafkaError as PythonError
from kafka.errors import KafkaTimeoutError

LIMIT_S = 60
TRY_S = 3
"""Of any broker that dies: librdkafka may wait for ever in `send_offsets_to_transaction` then,
whatever time it is given."""
EXPIRY_MS = 10_000
QUIET = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 200, "log_level": 0}


def or_leave_it(limit_s, call, *arguments):
    """Whether a call came back within limit_s, with its error raised. One that did not is given up,
    and its producer is a zombie from then on."""
    told = []

    def run():
        try:
            call(*arguments)
            told.append(None)
        except Exception as error:
            told.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    if told and told[0] is not None:
        raise told[0]
    return bool(told)


class Confluent:
    failures = (ck.KafkaException, BufferError)

    def __init__(self, bootstrap, name):
        self.client = ck.Producer({
            "bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0,
            "transaction.timeout.ms": LIMIT_S * 1000, "retry.backoff.ms": 20,
            "socket.timeout.ms": TRY_S * 1000, **QUIET,
        })  # fmt: skip

    def open(self):
        self.client.init_transactions(LIMIT_S)

    def begin(self):
        self.client.begin_transaction()

    def send(self, topic, partition, value):
        self.client.produce(topic, value, partition=partition)

    def flush(self):
        if self.client.flush(LIMIT_S):
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))

    def offsets(self, group, topic, positions):
        """Partition → next offset to read, committed with the transaction.

        group: its name, or what this library's consumer says of itself as a member."""
        places = [ck.TopicPartition(topic, *one) for one in positions.items()]
        member = self._nobody_of(group) if isinstance(group, str) else group
        if not or_leave_it(
            TRY_S + 1, self.client.send_offsets_to_transaction, places, member, TRY_S
        ):
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))

    def _nobody_of(self, group):
        reader = ck.Consumer({"bootstrap.servers": "none", "group.id": group, **QUIET})
        metadata = reader.consumer_group_metadata()
        reader.close()
        return metadata

    def commit(self):
        self._again(self.client.commit_transaction)

    def abort(self):
        self._again(self.client.abort_transaction)

    def _again(self, call, *arguments):
        """What the library says may be asked again is asked again."""
        while True:
            try:
                return call(*arguments, LIMIT_S)
            except ck.KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def close(self):
        self.client.purge()


class KafkaPython:
    """What it is asked within a transaction while its coordinator's port is closed it may forget,
    and the caller then waits for ever; and it commits what is left when a batch of the transaction
    has expired, unless somebody asks what became of that."""

    failures = (PythonError,)

    def __init__(self, bootstrap, name):
        self.client = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=name, max_block_ms=LIMIT_S * 1000,
            reconnect_backoff_ms=10, reconnect_backoff_max_ms=200, retry_backoff_ms=20,
            request_timeout_ms=3000,  # a connection that was refused is waited for that long
            # A batch whose node is connecting just then is forgotten until it expires.
            delivery_timeout_ms=EXPIRY_MS,
        )  # fmt: skip
        self.sent = []

    def open(self):
        self.client.init_transactions()

    def begin(self):
        self.sent.clear()
        self.client.begin_transaction()

    def send(self, topic, partition, value):
        self.sent.append(self.client.send(topic, value, partition=partition))

    def flush(self):
        self.client.flush(LIMIT_S)
        for future in self.sent:
            future.get(LIMIT_S)

    def offsets(self, group, topic, positions):
        places = {
            kafka.TopicPartition(topic, partition): kafka.OffsetAndMetadata(offset, "", -1)
            for partition, offset in positions.items()
        }
        self._within(self.client.send_offsets_to_transaction, places, group)

    def commit(self):
        self.flush()
        self._within(self.client.commit_transaction)

    def abort(self):
        self._within(self.client.abort_transaction)

    def _within(self, call, *arguments):
        if not or_leave_it(EXPIRY_MS / 1000, call, *arguments):
            raise KafkaTimeoutError("a transactional request was forgotten")

    def close(self):
        self.client.close(timeout=0)


class Aiokafka:
    failures = (aiokafka.errors.KafkaError, TimeoutError)

    def __init__(self, bootstrap, name):
        self.loop = asyncio.new_event_loop()

        async def make():
            return aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=name, retry_backoff_ms=20,
                transaction_timeout_ms=LIMIT_S * 1000,
            )  # fmt: skip

        self.client = self.run(make())
        self.sent = []

    def run(self, call):
        return self.loop.run_until_complete(asyncio.wait_for(call, LIMIT_S))

    def open(self):
        self.run(self.client.start())

    def begin(self):
        self.sent.clear()
        self.run(self.client.begin_transaction())

    def send(self, topic, partition, value):
        self.sent.append(self.run(self.client.send(topic, value, partition=partition)))

    def flush(self):
        async def all_of():
            await asyncio.gather(*self.sent)

        self.run(all_of())

    def offsets(self, group, topic, positions):
        places = {aiokafka.TopicPartition(topic, at): offset for at, offset in positions.items()}
        self.run(self.client.send_offsets_to_transaction(places, group))

    def commit(self):
        self.run(self.client.commit_transaction())

    def abort(self):
        self.run(self.client.abort_transaction())

    def close(self):
        try:
            self.run(self.client.stop())
        except self.failures:
            pass
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()


LIBRARIES = (Confluent, KafkaPython, Aiokafka)


class Owner:
    """One transactional id and whoever writes under it now; told: the errors it went on after."""

    def __init__(self, library, bootstrap, name):
        self.library = library
        self.bootstrap = bootstrap
        self.name = name
        self.told = []
        self.writer = None

    def ready(self):
        """A writer without an open transaction; None when it could not be had, try again."""
        if self.writer is None:
            made = None
            try:
                made = self.library(self.bootstrap, self.name)
                made.open()
                self.writer = made
            except self.library.failures as error:
                self.told.append(error)
                if made is not None:
                    made.close()
        return self.writer

    def drop(self, error=None):
        """The next one has to take the id over."""
        if error is not None:
            self.told.append(error)
        writer, self.writer = self.writer, None
        if writer is not None:
            writer.close()
