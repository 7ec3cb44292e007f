"""All that the console knows of a broker: its sources, and which of them are asked where somebody
is. Nothing here knows a widget.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from console.model import cluster, configs, disk, quotas, topics
from console.model.cluster import Cluster, Seen
from console.model.expiry import Risk
from console.model.group_watch import GroupSeen, GroupsSeen, GroupWatch
from console.model.link import Link, asking
from console.model.local import Facts, Local
from console.screens import lines
from console.screens.places import GROUP, GROUPS, OVERVIEW, QUOTA, QUOTAS, TOPIC, TOPICS, Place
from console.screens.sources import Source

T = TypeVar("T")
_KEPT: Final = 20


@dataclass(slots=True, frozen=True)
class TopicSeen:
    """One topic as its own view shows it."""

    topic: topics.Topic
    settings: list[configs.Setting]


class World:
    """The sources over one Link, which must be read-only. filter_groups: which names the view of
    groups shows, read when they are asked."""

    def __init__(self, link: Link) -> None:
        assert link.read_only, "the console changes nothing"
        self.link = link
        self.filter_groups: Callable[[str], bool] = lambda name: True
        local = Local(link)
        self._watch = GroupWatch(link, lambda: self.data_dir)
        command = self._command
        self.cluster: Source[Cluster] = Source("cluster", "", self._asking(cluster.look), every_s=2)
        self.facts: Source[Facts] = Source(
            "counters", "penstock stats", self._asking(lambda _: local.look()), every_s=1, retry_s=2
        )
        self.folders: Source[list[disk.LogFolder]] = Source(
            "disks", "",
            self._asking(lambda link: disk.log_folders(link, used=False)), every_s=10, retry_s=2,
        )  # fmt: skip
        self.topics: Source[dict[str, Seen]] = Source(
            "topics", command("penstock topic list"), self._asking(cluster.topics), every_s=5
        )
        self.groups: Source[GroupsSeen] = Source(
            "groups",
            command("penstock group list -o wide"),
            self._asking(lambda _: self._watch.many(self.filter_groups)),
            every_s=3,
        )
        self.risks: Source[tuple[Risk, ...]] = Source(
            "unread records that expire", command("penstock group lag"),
            self._asking(lambda _: self._watch.risks()), every_s=15, retry_s=5,
        )  # fmt: skip
        self.quotas: Source[quotas.Seen] = Source(
            "quotas", command("penstock quota usage"), self._asking(quotas.look), every_s=1
        )
        self._details: dict[Place, Source[Any]] = {}

    @property
    def data_dir(self) -> str:
        """Of the appliance, when it is one of this host; "" else."""
        facts = self.facts.shown.value
        return facts.data_dir if facts is not None else ""

    @property
    def is_foreign(self) -> bool:
        """It is known that no counters of it can be read."""
        failure = self.facts.shown.failure
        return failure is not None and failure.name == "NOT_LOCAL"

    def asked(self, here: Place) -> list[Source[Any]]:
        """The sources that are asked while somebody is there."""
        found: list[Source[Any]] = [self.cluster, self.facts]
        if here.kind == OVERVIEW:
            found.append(self.folders)
        if here.kind in (OVERVIEW, GROUPS):
            found.append(self.risks)
        if self.is_foreign and here.kind in (OVERVIEW, TOPICS):
            found.append(self.topics)
        if here.kind == GROUPS:
            found.append(self.groups)
        if here.kind in (QUOTAS, QUOTA):
            found.append(self.quotas)
        if here.kind in (TOPIC, GROUP):
            found.append(self.detail(here))
        return found

    def main(self, here: Place) -> Source[Any]:
        """The source whose age is that of what is seen there."""
        if here.kind in (TOPIC, GROUP):
            return self.detail(here)
        if here.kind == GROUPS:
            return self.groups
        if here.kind in (QUOTAS, QUOTA):
            return self.quotas
        if here.kind in (OVERVIEW, TOPICS):
            return self.topics if self.is_foreign else self.facts
        return self.cluster

    def detail(self, here: Place) -> Source[Any]:
        """Of one topic or group. The last few are kept, so that going back shows something at
        once."""
        source = self._details.pop(here, None)
        if source is None:
            ask = self._topic if here.kind == TOPIC else self._group
            source = Source(
                f"{here.kind} {here.name}", lines.line(here, self.link.bootstrap, ""),
                self._asking(lambda link: ask(here.name)), every_s=3,
            )  # fmt: skip
        self._details[here] = source
        for old in list(self._details)[:-_KEPT]:
            del self._details[old]
        return source

    def names(self) -> dict[str, list[str]]:
        """Names that were seen: TOPIC, GROUP and QUOTA → names."""
        facts, seen, known = (
            self.facts.shown.value,
            self.topics.shown.value,
            self.groups.shown.value,
        )
        used = self.quotas.shown.value
        return {
            TOPIC: sorted(facts.topics if facts is not None else seen or ()),
            GROUP: [one.name for one in known.listed] if known is not None else [],
            QUOTA: quotas.clients(used) if used is not None else [],
        }

    def _command(self, words: str) -> str:
        return lines.asking(words, self.link.bootstrap)

    def _asking(self, ask: Callable[[Link], T]) -> Callable[[], T]:
        def asked() -> T:
            with asking(self.link):
                return ask(self.link)

        return asked

    def _topic(self, name: str) -> TopicSeen:
        (found,) = topics.described(self.link, [name])
        return TopicSeen(found, configs.settings(self.link, configs.Target(configs.TOPIC, name)))

    def _group(self, name: str) -> GroupSeen:
        return self._watch.one(name)
