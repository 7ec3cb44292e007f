"""Faust: GROUP BOOTSTRAP SOURCE SINK FOLDER, then Faust's own words (worker). Doubles numbers; a
table, with its changelog topic, counts them by partition."""

import sys

import faust

group, bootstrap, source, sink, folder = sys.argv[1:6]
del sys.argv[1:6]
app = faust.App(
    group, broker=f"kafka://{bootstrap}", store="memory://", datadir=folder, web_enabled=False,
    topic_partitions=3, value_serializer="json", consumer_auto_offset_reset="earliest",
    broker_commit_interval=0.2,
)  # fmt: skip
numbers = app.topic(source, key_type=bytes, key_serializer="raw")
doubles = app.topic(sink, key_type=bytes, key_serializer="raw")
table = app.Table("seen", default=int, partitions=3)


@app.agent(numbers)
async def double(stream):
    async for event in stream.events():
        table["all"] += 1
        await doubles.send(key=event.key, value={"double": 2 * event.value, "seen": table["all"]})


if __name__ == "__main__":
    app.main()
