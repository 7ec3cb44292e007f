"""The console's sources, and which of them are asked where somebody is. It knows no widget."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from console.model.access import access, certificates
from console.model.access.audit_memory import AuditMemory, AuditSeen
from console.model.asking import configs
from console.model.asking.failure import Failure
from console.model.asking.link import Link, asking
from console.model.cluster import cluster
from console.model.cluster.cluster import Seen
from console.model.cluster.cluster_watch import ClusterSeen, Disks, disks
from console.model.cluster.cluster_watch import Watch as ClusterWatch
from console.model.cluster.versions import Told, read_versions
from console.model.decoding.choosing import Decoders
from console.model.decoding.memory import Choice, Choices, usual
from console.model.decoding.registry import Registry
from console.model.groups.group_watch import GroupSeen, GroupsSeen, GroupWatch
from console.model.jobs import job_watch
from console.model.jobs.job_preview import Preview, Previews
from console.model.local.events import EventsSeen, Feeds
from console.model.local.local import NOT_LOCAL, Facts, Local
from console.model.local.remembered import Memory, Remembered
from console.model.quotas import quotas
from console.model.records import leaf
from console.model.records.one import one as one_record
from console.model.storage import disk
from console.model.topics import topics
from console.model.topics.copies import Placed, placed
from console.model.topics.expiry import Risk
from console.model.topics.heat import HeatSeen, HeatWatch
from console.model.transactions.open_transactions import Open
from console.model.transactions.open_transactions import Watch as TransactionWatch
from console.screens import lines, resting
from console.screens.looks import read_certificates, read_folders, read_oldest
from console.screens.places import (
    ACLS,
    AUDIT,
    CAN,
    CERTIFICATES,
    CLIENTS,
    GROUP,
    GROUPS,
    HEAT,
    JOB,
    JOBS,
    LOG,
    NODES,
    OVERVIEW,
    PREVIEW,
    QUOTA,
    QUOTAS,
    RECORD,
    RECORDS,
    TAIL,
    TOPIC,
    TOPICS,
    TOPOLOGY,
    TRASH,
    TXNS,
    USERS,
    Place,
    record_of,
)
from console.screens.records.asked import Asked
from console.screens.sources import Hush, Source
from console.show.output import plain
from spark_local.board import TOPIC as TOPIC_OF_JOBS

T = TypeVar("T")
_KEPT: Final = 20
_LISTED: Final = (TRASH, TXNS)
_BESIDE: Final = {TOPICS: TOPIC, GROUPS: GROUP, RECORDS: RECORD, TAIL: RECORD}
"""List → the kind of what stands beside it in a wide window."""
_NEVER_S: Final = float("inf")
_LOCAL_S: Final = 1.2  # between two looks at what an appliance of this host counts


@dataclass(slots=True, frozen=True)
class TopicSeen:
    """One topic as its own view shows it. placed: its replicas, by the number of a partition, where
    there are several nodes."""

    topic: topics.Topic
    settings: list[configs.Setting]
    placed: Mapping[int, Placed] = field(default_factory=dict)


class World:
    """The sources over one Link, which must be read-only. filter_groups: which names the view of
    groups shows, read when they are asked. asked_records: topic → what was typed to find some.
    decoders: those that wait for nobody, for the loop. choices: which of them reads what. beside:
    what is shown beside the list where somebody is, None where nothing is. newest_first: how lists
    of records are sorted."""

    beside: Place | None = None
    newest_first = True

    def __init__(self, link: Link, jobs: str | None = None) -> None:
        """jobs: the jobs folder that somebody named."""
        assert link.read_only, "what changes something goes through the door"
        self.link = link
        self.filter_groups: Callable[[str], bool] = lambda name: True
        self.hush = Hush()
        local = Local(link, self.hush.breathe)
        self._watch = GroupWatch(link, lambda: self.data_dir)
        command = self._command
        self.cluster = Source("cluster", "", self._asking(cluster.read_cluster), every_s=2)
        self.nodes = self._cluster_wide()
        self.disks, self.versions = self._of_each_node()
        self.facts: Source[Facts] = Source(
            "counters", self._reading("penstock stats"), self._asking(lambda _: local.read_facts()),
            every_s=_LOCAL_S, retry_s=2, still=resting.still_facts,
        )  # fmt: skip
        self.folders: Source[list[disk.LogFolder]] = Source(
            "disks", "", self._asking(read_folders), every_s=10, retry_s=2,
        )  # fmt: skip
        self.topics = self._listed()
        self.groups: Source[GroupsSeen] = Source(
            "groups", command("penstock group list -o wide"),
            self._asking(lambda _: self._watch.many(self.filter_groups)), every_s=3,
            still=resting.still_groups,
        )  # fmt: skip
        self.risks: Source[tuple[Risk, ...]] = Source(
            "unread records that expire", command("penstock group lag"),
            self._asking(lambda _: self._watch.risks()), every_s=15, retry_s=5,
        )  # fmt: skip
        self.quotas: Source[quotas.Seen] = Source(
            "quotas", command("penstock quota usage"), self._asking(quotas.read_quotas), every_s=1
        )
        self._job_watch = job_watch.Watch(link, jobs)
        self._jobs_named = jobs
        self._job_details: dict[str, job_watch.Detail] = {}
        self._previews = Previews()
        self.jobs: Source[job_watch.Jobs] = Source(
            "jobs", lambda: self._line(Place(JOBS)), self._asking(self._jobs), every_s=1,
            still=resting.still_jobs,
        )  # fmt: skip
        self.oldest: Source[dict[str, int]] = Source(
            "oldest records", "",
            self._asking(lambda link: read_oldest(link, self.facts.shown.value)), every_s=15,
            retry_s=15,
        )  # fmt: skip
        self.transactions = self._opened()
        self.past, self.events, self.heat = self._in_memory()
        self.access, self.audit, self.certificates = self._about_access()
        self.trash: Source[list[topics.Deleted]] = Source(
            "deleted topics", command("penstock topic list --deleted"),
            self._asking(topics.deleted), every_s=5,
        )  # fmt: skip
        self.choices = Choices(usual(), link.bootstrap)
        url = os.environ.get("PENSTOCK_REGISTRY")
        self.decoders = Decoders(self.choices)
        self._patient = Decoders(self.choices, Registry(url) if url else None)
        self._decoding = threading.Lock()
        self.asked_records: dict[str, Asked] = {}
        self._details: dict[Place, Source[Any]] = {}

    @property
    def data_dir(self) -> str:
        """The folder of the appliance, when it is one of this host; "" else."""
        facts = self.facts.shown.value
        return facts.data_dir if facts is not None else ""

    @property
    def is_foreign(self) -> bool:
        """It is known that no counters of it can be read."""
        failure = self.facts.shown.failure
        return failure is not None and failure.name == NOT_LOCAL

    def asked(self, here: Place) -> list[Source[Any]]:
        """The sources that are asked while somebody is there."""
        found: list[Source[Any]] = [self.cluster, self.facts, *self._of_nodes(here)]
        found += self._of_access(here)
        if here.kind == OVERVIEW:
            found += self._overview()
        if here.kind in (OVERVIEW, GROUPS):
            found.append(self.risks)
        if here.kind == TXNS:
            found.append(self.transactions)
        if self.is_foreign and here.kind in (OVERVIEW, TOPICS, TOPOLOGY, JOBS, JOB):
            found.append(self.topics)
        if here.kind == TOPICS and self.data_dir:
            found.append(self.oldest)
        knows_jobs = bool(self._jobs_named) or self._knows_topics
        if here.kind in (OVERVIEW, TOPOLOGY, JOBS, JOB) and knows_jobs:
            found.append(self.jobs)
        found += self._of_groups(here)
        if here.kind in (QUOTAS, QUOTA):
            found.append(self.quotas)
        if here.kind == TRASH:
            found.append(self.trash)
        if here.kind == LOG and self.data_dir:
            found.append(self.events)
        if here.kind in self._asks and (here.kind not in (JOB, PREVIEW) or knows_jobs):
            found.append(self.detail(here))
        return found + self._beside(here)

    def _of_groups(self, here: Place) -> list[Source[Any]]:
        """Groups, and the partitions that are seen with their lag."""
        found: list[Source[Any]] = [self.heat] if here.kind == HEAT and self.data_dir else []
        wanted = here.kind in (GROUPS, HEAT) or (here.kind == TOPOLOGY and self.is_foreign)
        return [*found, self.groups] if wanted else found

    def _beside(self, here: Place) -> list[Source[Any]]:
        beside = self.beside
        seen = beside is not None and _BESIDE.get(here.kind) == beside.kind
        return [self.detail(beside)] if beside is not None and seen else []

    def _of_nodes(self, here: Place) -> list[Source[Any]]:
        """The sources about nodes, read at every place of a cluster. Skipped over SASL."""
        seen = self.nodes.shown.value
        if here.kind == NODES:
            return [self.nodes, self.disks, self.versions] if seen is not None else [self.nodes]
        says = here.kind == OVERVIEW or (seen is not None and seen.several)
        return [self.nodes] if says and self.link.is_asked else []

    def _of_access(self, here: Place) -> list[Source[Any]]:
        if here.kind == CERTIFICATES:
            known = self.facts.shown.value is not None or self.is_foreign
            return [self.certificates] if known else []
        found: list[Source[Any]] = [self.access] if here.kind in (USERS, ACLS, CAN) else []
        if here.kind in (USERS, AUDIT) and self.data_dir:
            found.append(self.audit)
        return found

    def _overview(self) -> list[Source[Any]]:
        found: list[Source[Any]] = [self.folders]
        if self.data_dir:
            found.append(self.past)
        if self._may_hold:
            found.append(self.transactions)
        return found

    @property
    def open_transactions(self) -> tuple[Open, ...]:
        """Those that may hold something back, as far as it is known."""
        return self.transactions.shown.value or () if self._may_hold else ()

    @property
    def _may_hold(self) -> bool:
        """An appliance of this host tells without being asked whether anything is held back; any
        other broker is asked where that can be done."""
        facts = self.facts.shown.value
        return bool(facts.held) if facts is not None else self.is_foreign and self.link.is_asked

    def request_updates(self) -> None:
        """Newer answers of everything, when it is asked next: something was changed."""
        for one in (*vars(self).values(), *self._details.values()):
            if isinstance(one, Source):
                one.request_update()

    def hasten(self) -> None:
        """Asks what rests as often as at first, because a key was pressed."""
        for one in (*vars(self).values(), *self._details.values()):
            if isinstance(one, Source):
                one.hasten()

    def main(self, here: Place) -> Source[Any]:
        """The source whose age is that of what is seen there."""
        if here.kind in (JOBS, JOB):
            return self.jobs
        if here.kind in self._asks:
            return self.detail(here)
        if here.kind in (GROUPS, HEAT):
            return self.groups if here.kind == GROUPS or self.is_foreign else self.heat
        if here.kind in (QUOTAS, QUOTA):
            return self.quotas
        if here.kind in (USERS, ACLS, CAN):
            return self.access
        if here.kind == AUDIT and not self.is_foreign:
            return self.audit
        if here.kind == CERTIFICATES:
            return self.certificates
        if here.kind in _LISTED:
            return self.trash if here.kind == TRASH else self.transactions
        if here.kind == LOG and not self.is_foreign:
            return self.events
        if here.kind in (OVERVIEW, TOPICS, TOPOLOGY):
            return self.topics if self.is_foreign else self.facts
        if here.kind == NODES:
            return self.nodes
        return self.facts if here.kind == CLIENTS else self.cluster

    def detail(self, here: Place) -> Source[Any]:
        """The source of one topic, group or job. The last few are kept, so that going back shows
        something at once.
        """
        source = self._details.pop(here, None)
        if source is None:
            ask = self._asks[here.kind]
            once = here.kind in (PREVIEW, RECORD)
            source = Source(
                f"{here.kind} {here.name}", lambda: self._line(here),
                self._asking(lambda link: ask(here.name)),
                every_s=_NEVER_S if once else 1 if here.kind == JOB else 3,
                retry_s=_NEVER_S if once else 1,
                still=resting.still_group if here.kind == GROUP else None,
            )  # fmt: skip
        self._details[here] = source
        for old in list(self._details)[:-_KEPT]:
            del self._details[old]
        return source

    def names(self) -> dict[str, list[str]]:
        """Names that were seen: TOPIC, GROUP, QUOTA and JOB → names."""
        known, jobs = self.groups.shown.value, self.jobs.shown.value
        used = self.quotas.shown.value
        return {
            TOPIC: sorted(self._topics),
            GROUP: [one.name for one in known.listed] if known is not None else [],
            QUOTA: quotas.clients(used) if used is not None else [],
            JOB: list(jobs.jobs) if jobs is not None else [],
        }

    def read_as(self, topic: str, part: str, choice: Choice) -> None:
        """From now on a KEY or VALUE of a topic is read so."""
        self.choices.choose(topic, part, choice)
        self.decoders.forget_schemas()
        self._patient.forget_schemas()

    def forget_decoded(self, topic: str) -> None:
        """The records of a topic are decoded in another way from now on: those that were looked
        into are asked for again when they are seen."""
        for place in list(self._details):
            if place.kind == RECORD and record_of(place)[0] == topic:
                del self._details[place]

    def is_large(self, source: Source[Any]) -> bool:
        """True if the source lists everything and is kept."""
        return source in (self.facts, self.topics, self.groups)

    def close(self) -> None:
        """End what was started to answer."""
        self._previews.close()

    @property
    def jobs_folder(self) -> str:
        """Where jobs are; "" where that is not of this host, or not known."""
        folder = self._job_watch.folder(self.data_dir)
        return str(folder.path) if folder is not None else ""

    @property
    def _topics(self) -> Iterable[str]:
        """Names of topics that were seen."""
        facts = self.facts.shown.value
        return facts.topics if facts is not None else self.topics.shown.value or ()

    @property
    def _knows_topics(self) -> bool:
        """True once the topics are known: `names` may be empty before."""
        return (self.topics if self.is_foreign else self.facts).shown.value is not None

    @property
    def _asks(self) -> dict[str, Callable[[str], Any]]:
        """The request for the details of one thing, by its kind."""
        return {
            TOPIC: self._topic, GROUP: self._group, JOB: self._job, PREVIEW: self._preview,
            RECORD: self._record,
        }  # fmt: skip

    def _command(self, words: str) -> str:
        return lines.asking(words, self.link.bootstrap)

    def _listed(self) -> Source[dict[str, Seen]]:
        """The topics of a broker whose counters cannot be read."""
        asked = cluster.Topics(self.link, self.hush.breathe)
        return Source(
            "topics", self._command("penstock topic list"),
            self._asking(lambda _: asked.read_topics()), every_s=5,
        )  # fmt: skip

    def _in_memory(self) -> tuple[Source[Remembered], Source[EventsSeen], Source[HeatSeen]]:
        """The sources read from an appliance's history, event rings and partition table."""
        memory, feeds = Memory(), Feeds()
        return (
            self._local("history", "", memory.read_memory, resting.still_past),
            self._local("events", self._reading("penstock event list"), feeds.read_events),
            self._local("partitions", "", HeatWatch().read_partitions),
        )

    def _about_access(
        self,
    ) -> tuple[
        Source[access.AccessSeen], Source[AuditSeen], Source[tuple[certificates.Shown, ...]]
    ]:
        """The sources about users and rules, the audit, and certificates."""
        memory = AuditMemory(self.hush.breathe)
        return (
            Source(
                "users and ACLs", self._command("penstock acl list"),
                self._asking(access.ask_access), every_s=3,
            ),
            self._local("audit", self._reading("penstock audit"), memory.read_news),
            Source(
                "certificates", "",
                self._asking(lambda link: read_certificates(link, self.facts.shown.value)),
                every_s=30, retry_s=5,
            ),
        )  # fmt: skip

    def _cluster_wide(self) -> Source[ClusterSeen]:
        """Nodes, the quorum, and the replicas of all partitions."""
        watch = ClusterWatch(self.link, self.hush.breathe)
        return Source(
            "nodes", self._command("penstock cluster status"),
            self._asking(lambda _: watch.read_cluster(time.monotonic())), every_s=3, retry_s=2,
            still=resting.still_cluster,
        )  # fmt: skip

    def _opened(self) -> Source[tuple[Open, ...]]:
        """The transactions that are open."""
        watch = TransactionWatch(self.link)
        return Source(
            "transactions", self._command("penstock txn list --open -o wide"),
            self._asking(lambda _: self._transactions(watch)), every_s=3, retry_s=5,
        )  # fmt: skip

    def _reading(self, words: str) -> Callable[[], str]:
        return lambda: lines.reading(words, self.data_dir)

    def _line(self, place: Place) -> str:
        return lines.line(place, self.link.bootstrap, "", self.jobs_folder)

    def _asking(self, ask: Callable[[Link], T]) -> Callable[[], T]:
        def asked() -> T:
            with asking(self.link):
                return ask(self.link)

        return asked

    def _local(
        self,
        name: str,
        line: str | Callable[[], str],
        look: Callable[[str], T],
        still: Callable[[T], object] | None = None,
    ) -> Source[T]:
        """A source read from an appliance's folder. look: is given the folder."""
        asked = self._asking(lambda _: look(self.data_dir))
        return Source(name, line, asked, every_s=_LOCAL_S, retry_s=2, still=still)

    def _of_each_node(self) -> tuple[Source[dict[int, Disks]], Source[Told]]:
        """The sources that ask each node."""
        return (
            Source("disks of nodes", "", self._asking(self._disks), every_s=10, retry_s=5),
            Source("versions of nodes", "", self._asking(self._versions), every_s=3, retry_s=5),
        )

    def _disks(self, link: Link) -> dict[int, Disks]:
        seen = self.nodes.shown.value
        return disks(link, seen.nodes.brokers) if seen is not None else {}

    def _versions(self, link: Link) -> Told:
        seen = self.nodes.shown.value
        return read_versions(link, seen.nodes) if seen is not None else Told()

    def _topic(self, name: str) -> TopicSeen:
        (found,) = topics.described(self.link, [name])
        settings = configs.settings(self.link, configs.Target(configs.TOPIC, name))
        seen = self.nodes.shown.value
        if seen is None or not seen.several:
            return TopicSeen(found, settings)
        return TopicSeen(found, settings, placed(self.link, name, seen.nodes.all))

    def _group(self, name: str) -> GroupSeen:
        return self._watch.one(name)

    def _transactions(self, watch: TransactionWatch) -> tuple[Open, ...]:
        facts = self.facts.shown.value
        return watch.read_transactions(time.time(), facts.held if facts is not None else ())

    def _jobs(self, link: Link) -> job_watch.Jobs:
        has_topic = TOPIC_OF_JOBS in self._topics
        return self._job_watch.read_jobs(self.data_dir, has_topic=has_topic)

    def _job(self, name: str) -> job_watch.JobSeen:
        folder = self._job_watch.folder(self.data_dir)
        if folder is None:
            raise Failure(
                "its log and its last failure are on the host of its runner",
                "penstock console --jobs DIR names the jobs folder there", name=NOT_LOCAL,
            )  # fmt: skip
        if name not in self._job_details:
            self._job_details[name] = job_watch.Detail(folder, name)
        return self._job_details[name].read_job()

    def _preview(self, job: str) -> Preview:
        return self._previews.preview_job(job, self.jobs_folder, self.link.properties)

    def _record(self, name: str) -> leaf.Leaf:
        topic, partition, offset = record_of(Place(RECORD, name))
        found = one_record(self.link, topic, partition, offset)
        with self._decoding:
            return leaf.leaf(found, self._patient, plain)
