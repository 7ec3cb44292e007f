// kafkajs: BOOTSTRAP GROUP TOPIC SINK. Creates both topics, writes a hundred numbers, reads them in
// a group, and writes their doubles with the offsets in transactions, one of which it aborts.
// Prints what it read, as JSON.
const { Kafka, CompressionTypes, logLevel } = require("kafkajs");

const [bootstrap, group, topic, sink] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "trip", brokers: [bootstrap], logLevel: logLevel.ERROR });
const COUNT = 100;

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({
    topics: [topic, sink].map((name) => ({ topic: name, numPartitions: 3 })),
  });

  const plain = kafka.producer({ idempotent: true });
  await plain.connect();
  const numbers = [...Array(COUNT).keys()];
  const messages = numbers.map((n) => ({ key: `${n}`, value: `${n}`, headers: { n: `h${n}` } }));
  await plain.send({ topic, messages, compression: CompressionTypes.GZIP });
  await plain.disconnect();

  const producer = kafka.producer({ transactionalId: `${group}-t`, maxInFlightRequests: 1 });
  const consumer = kafka.consumer({ groupId: group, readUncommitted: false });
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topic, fromBeginning: true });
  const seen = [];
  let aborted = false;
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch, resolveOffset }) => {
        const doubles = batch.messages.map((m) => ({
          key: m.key.toString(), value: `${2 * Number(m.value)}`,
        }));
        if (!aborted) {
          aborted = true;
          const lost = await producer.transaction();
          await lost.send({ topic: sink, messages: [{ key: "lost", value: "-1" }] });
          await lost.abort();
        }
        const kept = await producer.transaction();
        await kept.send({ topic: sink, messages: doubles });
        const offset = `${Number(batch.lastOffset()) + 1}`;
        const partitions = [{ partition: batch.partition, offset }];
        await kept.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions }] });
        await kept.commit();
        for (const m of batch.messages) {
          seen.push([m.value.toString(), m.headers.n.toString()]);
          resolveOffset(m.offset);
        }
        if (seen.length >= COUNT) resolve();
      },
    });
  });
  const lag = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  const described = await admin.describeGroups([group]);
  await consumer.disconnect();
  await producer.disconnect();
  await admin.disconnect();
  const state = described.groups[0].state;
  console.log(JSON.stringify({ seen, state, offsets: lag[0].partitions }));
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
