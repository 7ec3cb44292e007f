"""Quix Streams: BOOTSTRAP GROUP SOURCE SINK COUNT FOLDER. Doubles numbers and says, of each, which
of its remainder's it is: state with a changelog topic, exactly once."""

import sys

from quixstreams import Application

bootstrap, group, source, sink, count, folder = sys.argv[1:]
app = Application(
    broker_address=bootstrap, consumer_group=group, auto_offset_reset="earliest",
    processing_guarantee="exactly-once", state_dir=folder, auto_create_topics=True,
    loglevel="WARNING",
)  # fmt: skip


def count_numbers(number, state):
    seen = state.get("seen", 0) + 1
    state.set("seen", seen)
    return {"double": 2 * number, "seen": seen}


numbers = app.topic(source, value_deserializer="json")
doubles = app.topic(sink, value_serializer="json")
frame = app.dataframe(numbers)
frame = frame.apply(count_numbers, stateful=True).to_topic(doubles)
app.run(count=int(count), timeout=60)
