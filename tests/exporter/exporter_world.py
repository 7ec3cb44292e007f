"""Tables as an appliance has them, made by hand, and an exporter over them."""

import os
import re

from appliance.base.ids import TopicId
from appliance.base.os_disk import OsDisk
from appliance.config.broker import BrokerConfig
from appliance.exporter.post import Post
from appliance.exporter.scrape import Exporter
from appliance.metadata.parts import PartitionImage, TopicImage
from appliance.ring import partition_table as columns
from appliance.ring.lag_table import NO_GROUPS, GroupTotals, Lag, Members
from appliance.ring.process_table import HEARTBEAT, READY
from appliance.ring.tables import Shape, Tables
from appliance.shell.log import Log

SECOND = 1_000_000_000
SHAPE = Shape(ioprocs=2, netprocs=2, partition_rows=64, quota_windows=11)
SAMPLE = re.compile(r"([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')


def parse(text):
    """(name, labels) → value. Strict: every line is a sample or a head, no series comes twice, the
    samples of a metric stand together behind their head."""
    found, heads, current = {}, set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ")[2]
            assert current not in heads, f"{current} begins twice"
            heads.add(current)
        elif line.startswith("# TYPE "):
            assert line.split(" ")[2] == current
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, inside, value = match.groups()
            assert name == current or re.fullmatch(f"{current}_(bucket|sum|count)", name), line
            labels = LABEL.findall(inside or "")
            assert ",".join(f'{key}="{text}"' for key, text in labels) == (inside or ""), line
            key = (
                name,
                frozenset(
                    (a, b.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\"))
                    for a, b in labels
                ),
            )
            assert key not in found, f"{line} comes twice"
            found[key] = float(value)
    return found


class World:
    """One appliance's tables. `scrape` returns {(name, labels): value}; `value` one of them."""

    def __init__(self, folder, shape=SHAPE, **settings):
        self.tables = Tables(memoryview(bytearray(Tables.bytes_needed(shape))), shape)
        config = BrokerConfig.of({key.replace("_", "."): str(v) for key, v in settings.items()})
        post = Post(
            config=config,
            folders=(str(folder),),
            tables=self.tables,
            listener=None,
            target=None,
            addresses=(),
            supervisor=os.getpid(),
            started_ms=1_700_000_000_500,
        )
        self.exporter = Exporter(post, OsDisk(), Log("exporter"))
        self.image = self.exporter._follower.image
        self.groups = [NO_GROUPS, NO_GROUPS]
        self.now_ns = 100 * SECOND

    def serve(self):
        """Everybody is ready."""
        processes = self.tables.processes
        for peer in processes.peers:
            processes.occupy(peer)
            processes.set_pid(peer, os.getpid())
            processes.set_state(peer, READY)
        processes.set_cluster_ready(True)
        self.turn()

    def turn(self, *but, seconds=0.0):
        """So much time goes by, and all loops but some turn."""
        self.now_ns += int(seconds * SECOND)
        for peer in self.tables.processes.peers:
            if peer not in but:
                self.tables.processes.row_word(peer, HEARTBEAT)[0] += 1

    def look(self):
        self.exporter.sample_all(self.now_ns)
        return self.exporter.verdict(self.now_ns)

    def topic(self, name, partitions=1, replicas=(1,), isr=None, status=columns.ONLINE):
        """A topic with so many partitions: their handles."""
        topic_id = name.encode().ljust(16, b"-")[:16]
        parts = [
            PartitionImage(
                index=n, leader=replicas[0], leader_epoch=0, partition_epoch=0,
                replicas=tuple(replicas), isr=tuple(replicas if isr is None else isr),
            )
            for n in range(partitions)
        ]  # fmt: skip
        topic = TopicImage(name=name, topic_id=topic_id, partitions=parts)
        self.image.topics_by_id[topic_id] = self.image.topics_by_name[name] = topic
        self.exporter._version += 1
        table, idle = self.tables.partitions, self.tables.partitions.idle_rows()
        handles = [
            table.reuse(idle.pop(0)[1], TopicId(topic_id), n)
            if idle
            else table.add(TopicId(topic_id), n)
            for n in range(partitions)
        ]
        for handle in handles:
            self.tables.partitions.set(handle, columns.STATUS, status)
        return handles

    def set(self, handle, **values):
        for name, value in values.items():
            self.tables.partitions.set(handle, getattr(columns, name), value)

    def group(self, *lags):
        self.tables.lags.write_lags(0, [Lag(*one) for one in lags], 0, self.groups[0])
        self.tables.lags.write_lags(1, [], 0, self.groups[1])

    def coordinate(self, ioproc, states, members=(), left_out=0):
        """What an I/O process says of its groups. members: (how many, group)."""
        self.groups[ioproc] = GroupTotals(states, [Members(*one) for one in members], left_out)
        self.group()

    def scrape(self):
        return parse(self.exporter.page(self.now_ns))


def value(found, name, **labels):
    return found[name, frozenset(labels.items())]


def series(found, name):
    """The labels of every series of a metric, as dictionaries."""
    return [dict(labels) for known, labels in found if known == name]
