"""Bytewax: a dataflow of `python -m bytewax.run`, with BOOTSTRAP, SOURCE and SINK as variables.
Doubles all numbers that are there and ends; its recovery store knows the offsets."""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow

brokers = [os.environ["BOOTSTRAP"]]
flow = Dataflow("doubles")
numbers = kop.input("numbers", flow, brokers=brokers, topics=[os.environ["SOURCE"]], tail=False)
doubled = op.map(
    "double", numbers.oks, lambda one: KafkaSinkMessage(one.key, b"%d" % (2 * int(one.value)))
)
kop.output("doubles", doubled, brokers=brokers, topic=os.environ["SINK"])
