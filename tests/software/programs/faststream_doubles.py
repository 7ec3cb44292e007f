"""FastStream, by aiokafka or by Confluent's client: CLIENT BOOTSTRAP GROUP SOURCE SINK. Doubles
numbers until SIGTERM."""

import asyncio
import sys

from faststream import FastStream

client, bootstrap, group, source, sink = sys.argv[1:]
if client == "confluent":
    from faststream.confluent import KafkaBroker
else:
    from faststream.kafka import KafkaBroker

broker = KafkaBroker(bootstrap)


@broker.subscriber(source, group_id=group, auto_offset_reset="earliest")
@broker.publisher(sink)
async def double(number: int) -> int:
    return 2 * number


asyncio.run(FastStream(broker).run())
