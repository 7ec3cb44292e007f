"""Stock clients under quotas: they are told, they wait, nothing is lost."""

import confluent_kafka as ck
import kafka as kafka_python

SOME = 60  # records of 1000 bytes: a limit of 5 kB/s gives away 50 at once


def test_a_librdkafka_producer_hears_of_its_pause_and_delivers_everything(
    quota_broker, admin, topic, name
):
    client = name()
    admin.quotas((("client-id", client),), producer_byte_rate=40_000.0)
    pauses, failed = [], []
    producer = ck.Producer(
        {
            "bootstrap.servers": quota_broker.bootstrap,
            "client.id": client,
            "batch.num.messages": 10,
            "throttle_cb": pauses.append,
        }
    )
    for _ in range(8 * SOME):
        producer.produce(topic, b"x" * 1000, callback=lambda e, _: failed.append(e) if e else None)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failed
    assert max(event.throttle_time for event in pauses) > 0


def test_a_librdkafka_consumer_gets_everything_in_spite_of_empty_answers(
    quota_broker, admin, topic, name
):
    client = name()
    small = {"batch.num.messages": 10}
    producer = ck.Producer({"bootstrap.servers": quota_broker.bootstrap} | small)
    for number in range(SOME):
        producer.produce(topic, b"%d" % number + b"x" * 1000)
    assert producer.flush(30) == 0
    admin.quotas((("client-id", client),), consumer_byte_rate=5_000.0)
    pauses = []
    consumer = ck.Consumer(
        {
            "bootstrap.servers": quota_broker.bootstrap,
            "client.id": client,
            "group.id": name("g"),
            "throttle_cb": pauses.append,
        }
    )
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    seen = []
    while len(seen) < SOME:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        seen.append(int(message.value().split(b"x")[0]))
    consumer.close()
    assert seen == list(range(SOME))
    assert pauses


def test_a_kafka_python_producer_says_that_it_waits(quota_broker, admin, topic, name, caplog):
    client = name()
    admin.quotas((("client-id", client),), producer_byte_rate=40_000.0)
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=quota_broker.bootstrap, client_id=client, linger_ms=0
    )
    sent = [producer.send(topic, b"x" * 1000) for _ in range(9 * SOME)]
    producer.flush(timeout=60)
    assert sorted(one.get(0).offset for one in sent) == list(range(9 * SOME))
    producer.close()
    assert "ProduceResponse throttled by broker" in caplog.text
