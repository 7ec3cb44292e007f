"""Stock clients over TLS: the settings of each, and what all of them can do."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

LIMIT_S = 60


def librdkafka(pki, bootstrap, *, ca="ca.pem", certificate=None, **more):
    """Settings of confluent-kafka. Keywords with `_` for `.`."""
    found = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": pki.path(ca),
    }
    if certificate is not None:
        found["ssl.certificate.location"] = pki.path(f"{certificate}.crt")
        found["ssl.key.location"] = pki.path(f"{certificate}.key")
    return found | {key.replace("_", "."): value for key, value in more.items()}


def kafka_python(pki, bootstrap, *, ca="ca.pem", certificate=None):
    found = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": pki.path(ca),
    }
    if certificate is not None:
        found |= {
            "ssl_certfile": pki.path(f"{certificate}.crt"),
            "ssl_keyfile": pki.path(f"{certificate}.key"),
        }
    return found


def aiokafka(pki, bootstrap, *, ca="ca.pem", certificate=None):
    context = pki.context(ca=ca, certificate=certificate)
    return {"bootstrap_servers": bootstrap, "security_protocol": "SSL", "ssl_context": context}


def there_and_back_librdkafka(settings, topic, values):
    """Produce the values, consume them in a group. Returns what came."""
    producer = Producer(settings | {"acks": "all", "enable.idempotence": True})
    failed = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda e, _: failed.append(e) if e else None)
    assert producer.flush(LIMIT_S) == 0 and not failed, failed
    return read(settings, topic, len(values))


def read(settings, topic, count, group=None):
    """So many values, in a group of librdkafka's."""
    consumer = Consumer(
        settings | {"group.id": group or f"g-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    got, end = [], time.monotonic() + LIMIT_S
    try:
        while len(got) < count and time.monotonic() < end:
            for message in consumer.consume(500, 1.0):
                assert message.error() is None, message.error()
                got.append(message.value())
    finally:
        consumer.close()
    return got


def there_and_back_kafka_python(settings, topic, values):
    producer = KafkaProducer(**settings)
    sent = [producer.send(topic, value) for value in values]
    for one in sent:
        one.get(LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic, group_id=f"g-{topic}", auto_offset_reset="earliest",
        consumer_timeout_ms=LIMIT_S * 1000, **settings,
    )  # fmt: skip
    try:
        return [next(consumer).value for _ in values]
    finally:
        consumer.close()


def there_and_back_aiokafka(settings, topic, values):
    async def both():
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        try:
            for sent in [await producer.send(topic, value) for value in values]:
                await asyncio.wait_for(sent, LIMIT_S)
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(
            topic, group_id=f"g-{topic}", auto_offset_reset="earliest", **settings
        )
        await consumer.start()
        try:
            return [(await asyncio.wait_for(consumer.getone(), LIMIT_S)).value for _ in values]
        finally:
            await consumer.stop()

    return asyncio.run(both())


CLIENTS = {
    "librdkafka": (librdkafka, there_and_back_librdkafka),
    "kafka-python": (kafka_python, there_and_back_kafka_python),
    "aiokafka": (aiokafka, there_and_back_aiokafka),
}
"""Name → its settings, and a function: values there and back."""
