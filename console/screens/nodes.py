"""Nodes: who lives, who leads the metadata, what moves, and which replicas are missing, why, and
when they will be there."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from console.model.cluster.cluster_watch import ClusterSeen, Count, Disks, Pace
from console.model.cluster.nodes import FENCED, RUNNING, VOTER, Node
from console.model.cluster.versions import ENDING, Told
from console.model.local.local import Facts
from console.model.topics.move_changes import cancel
from console.model.topics.moves import Move
from console.model.topics.replicas import BEHIND, Behind, Missing
from console.screens.actions import ALL_NODES, bindings
from console.screens.places import TOPIC, Place, keeps
from console.screens.rows import Cell, Column, Rows
from console.screens.view import Part, View, Words
from console.show.figures import NOT_KNOWN, age, in_bytes, meter, short, some
from console.show.replicas import describe_missing

_WIDE: Final = 100
_VERSION_WHOLE: Final = 150
_BAR, _LONG_BAR = 10, 30
_NODES_MOST, _MOVES_MOST = 11, 6
_COLUMNS: Final = (
    Column("NODE", 4, right=True),
    Column("ADDRESS", 0),
    Column("RACK", 12, from_width=130),
    Column("ROLES", 14, from_width=105),
    Column("STATE", 8),
    Column("VERSION", 10, from_width=90, below_width=_VERSION_WHOLE),
    Column("VERSION", 22, from_width=_VERSION_WHOLE),
    Column("LEADERS", 7, right=True),
    Column("REPLICAS", 8, right=True),
    Column("BYTES", 8, right=True),
    Column("FREE", 8, right=True, from_width=120),
    Column("LEFT ISR", 8, right=True, from_width=_WIDE),
    Column("META LAG", 8, right=True),
    Column("HEARD OF", 10, right=True, from_width=150),
)
_MOVES: Final = (
    Column("TOPIC", 0),
    Column("PART", 4, right=True),
    Column("TO", 8),
    Column("AWAY FROM", 9, from_width=_WIDE),
    Column("", _BAR, below_width=_WIDE),
    Column("", _LONG_BAR, from_width=_WIDE),
    Column("LEFT", 9, right=True),
    Column("RATE", 10, right=True),
    Column("ETA", 8, right=True),
)
_MISSING: Final = (
    Column("TOPIC", 0),
    Column("PART", 4, right=True),
    Column("LEADER", 6, right=True, from_width=_WIDE),
    Column("ISR", 12, from_width=120),
    Column("NODE", 4, right=True),
    Column("WHY", 22, below_width=_WIDE),
    Column("WHY", 40, from_width=_WIDE),
    Column("RATE", 8, right=True),
    Column("ETA", 8, right=True),
)
_STYLES: Final = {RUNNING: "good", ENDING: "warn"}
_ALONE: Final = (
    "A single node: no record has a replica on another one. docs/cluster.md says how more"
    " appliances make a cluster of it."
)


class NodesView(View):
    """Three tables: the nodes, what moves, and the replicas that are not in sync. Enter in those
    goes to the topic."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ALL_NODES)
    has_filter: ClassVar[bool] = True
    DEFAULT_CSS = """
    NodesView #quorum { height: auto; max-height: 4; padding: 0 1; }
    NodesView #about { height: auto; max-height: 3; padding: 0 1; margin-top: 1; }
    NodesView #moves { border-top: solid $foreground 20%; }
    NodesView #missing { height: 1fr; border-top: solid $foreground 20%; }
    NodesView.large #quorum { padding: 0 2; }
    NodesView.large #about { max-height: 5; margin: 0; }
    """
    frames: ClassVar[Mapping[str, str]] = {
        "nodes": "Nodes  {}", "about": "Note", "moves": "Moving  {}",
        "missing": "Replicas that are not in sync  {}",
    }  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Words(name="quorum")
        yield Rows(_COLUMNS, name="nodes", opens=False)
        yield Words(name="about")
        yield Rows(_MOVES, name="moves")
        yield Rows(_MISSING, name="missing")

    def paint(self) -> None:
        seen = self.world.nodes.shown.value
        rows, missing = self.query_one("#nodes", Rows), self.query_one("#missing", Rows)
        moves = self.query_one("#moves", Rows)
        moves.display = bool(seen and seen.moves)
        missing.display = bool(seen and seen.several)
        if seen is None:
            rows.show_rows([], lambda key: (key,), empty=self.waiting())
            return
        disks = self.world.disks.shown.value or {}
        said = self.world.versions.shown.value or Told()
        found = {str(one): node for one, node in sorted(seen.nodes.all.items())}
        facts = None if self.world.is_foreign else self.world.facts.shown.value
        counts = {key: _count(seen, node, facts) for key, node in found.items()}
        self.query_one("#quorum", Words).show_parts(*_summary(seen))
        rows.styles.height = (3 if self.is_large else 1) + min(len(found), _NODES_MOST)
        rows.show_rows(
            list(found),
            lambda key: _cells(seen, found[key], counts[key], disks.get(found[key].id), said),
            lambda key, n: _by(found[key], counts[key], disks.get(found[key].id), said, n),
        )
        self._about(seen, disks)
        self._moves(moves, seen)
        self._missing(missing, seen)

    def on_rows_opened(self, event: Rows.Opened) -> None:
        """To the topic."""
        event.stop()
        self.post_message(self.Go(Place(TOPIC, event.key.split(" ")[0])))

    def action_cancel(self) -> None:
        """Proposes to cancel the reassignments of the topic under the cursor."""
        key = self.query_one("#moves", Rows).key
        if key is None:
            self.notify("nothing moves", markup=False)
        else:
            self.propose(cancel(key.split(" ")[0]))

    def _about(self, seen: ClusterSeen, disks: dict[int, Disks]) -> None:
        """Folders that failed; of a broker alone, that it is."""
        parts: list[Part] = [] if seen.several else [_ALONE]
        for number, one in disks.items():
            if one.offline:
                parts += ["\n"] if parts else []
                parts.append((f"! node {number}, offline: {', '.join(one.offline)}", "bold red"))
        about = self.query_one("#about", Words)
        about.display = bool(parts)
        about.show_parts(*parts)

    def _moves(self, rows: Rows, seen: ClusterSeen) -> None:
        found = {
            f"{one.topic} {one.partition}": one
            for one in seen.moves
            if keeps(self.filter_text, one.topic)
        }
        paces = seen.move_paces
        rows.styles.height = (3 if self.is_large else 2) + min(len(found), _MOVES_MOST)
        rows.show_rows(
            list(found),
            lambda key: _moving(found[key], paces.get(found[key].place, Pace())),
            lambda key, n: _moving_by(found[key], paces.get(found[key].place, Pace()), n),
            empty="no matching topic moves",
        )  # fmt: skip

    def _missing(self, rows: Rows, seen: ClusterSeen) -> None:
        found = {
            f"{one.topic} {one.partition} {copy.node}": (one, copy)
            for one in (seen.health.behind if seen.health is not None else ())
            for copy in one.missing
            if keeps(self.filter_text, one.topic)
        }

        def pace(key: str) -> Pace:
            one, copy = found[key]
            return seen.paces.get((one.topic, one.partition, copy.node), Pace())

        whole = "every replica is in sync"
        rows.show_rows(
            list(found),
            lambda key: _lacks(*found[key], seen.nodes.all.get(found[key][1].node), pace(key)),
            lambda key, n: _lacks_by(*found[key], pace(key), n),
            empty="none of a matching topic" if self.filter_text else whole,
        )  # fmt: skip


def _summary(seen: ClusterSeen) -> list[Part]:
    """The leader of the metadata quorum, and partitions that are not healthy."""
    quorum, health = seen.nodes.quorum, seen.health
    parts: list[Part] = [("Metadata ", "bold")]
    if quorum.leader is None:
        who = f" of the voters {', '.join(map(str, seen.voters))}" if seen.voters else ""
        parts.append((f"no leader, no majority{who}: nothing can be changed", "bold red"))
    else:
        more = f", {some(len(quorum.observers), 'observer')}" if quorum.observers else ""
        voters = some(len(quorum.voters), "voter")
        parts.append(f"node {quorum.leader} leads epoch {quorum.epoch}, {voters}{more}")
        parts.append((_spare(seen), "yellow"))
    if health is None:
        return parts
    parts += ["\n", ("Replicas ", "bold"), some(health.partitions, "partition")]
    for count, what, style in (
        (health.offline, "without a leader", "bold red"),
        (health.under_min_isr, "under min.insync.replicas", "bold red"),
        (health.under_replicated, "under-replicated", "yellow"),
        (health.not_preferred, "not led by the first replica", "dim"),
    ):
        if count:
            parts += [", ", (f"{count:,} {what}", style)]
    return [*parts, ", ", ("all in sync", "green")] if health.whole else parts


def _spare(seen: ClusterSeen) -> str:
    """The effect of dead voters, "" while all run."""
    voters = seen.nodes.quorum.voters
    away = sum(not seen.nodes.all[one].lives for one in voters)
    spare = len(voters) - away - (len(voters) // 2 + 1)
    if not away:
        return ""
    return f", {away} away: " + (f"{spare} more may go" if spare > 0 else "no more may fail")


def _count(seen: ClusterSeen, node: Node, facts: Facts | None) -> Count | None:
    """The replica counts of a node; of a single broker from its own figures."""
    if seen.several:
        return seen.counts.get(node.id, Count()) if node.address else None
    if facts is None:
        return None
    partitions = sum(one.partitions for one in facts.topics.values())
    return Count(partitions - sum(one.offline for one in facts.topics.values()), partitions)


def _cells(
    seen: ClusterSeen,
    node: Node,
    count: Count | None,
    disks: Disks | None,
    said: Told,
) -> tuple[Cell, ...]:
    leads = node.id == seen.nodes.quorum.leader
    folder = "bad" if disks and disks.offline else ""
    now, version = said.state(node), said.versions.get(node.id, NOT_KNOWN)
    return (
        (str(node.id), "good" if leads else ""), node.address or NOT_KNOWN,
        node.rack or NOT_KNOWN, _roles(node, leads),
        (now, _STYLES.get(now, "bad")), version, version,
        short(count.leaders if count else None), short(count.replicas if count else None),
        (in_bytes(disks.used if disks else None), folder),
        in_bytes(disks.free if disks else None),
        (short(count.left if count else None), "warn" if count and count.left else ""),
        (short(node.behind), "warn" if node.behind else ""), age(node.heard_s),
    )  # fmt: skip


def _roles(node: Node, leads: bool) -> str:
    return ", ".join("leader" if leads and one == VOTER else one for one in node.roles)


def _by(
    node: Node, count: Count | None, disks: Disks | None, said: Told, column: int
) -> str | float:
    of = count or Count(-1, -1, -1)
    version = said.versions.get(node.id, "")
    values: tuple[str | float | None, ...] = (
        -node.id, node.address, node.rack or "", _roles(node, False), said.state(node), version,
        version, of.leaders, of.replicas, disks.used if disks else None,
        disks.free if disks else None, of.left, node.behind, node.heard_s,
    )  # fmt: skip
    value = values[column]
    return -1 if value is None else value


def _moving(one: Move, pace: Pace) -> tuple[Cell, ...]:
    known = one.bytes is not None and one.copied is not None
    share = (one.copied or 0) / one.bytes if one.bytes else 1.0 if known else 0.0
    left = (one.bytes or 0) - (one.copied or 0) if known else None
    return (
        one.topic, str(one.partition), ",".join(map(str, one.adding)) or NOT_KNOWN,
        ",".join(map(str, one.removing)) or NOT_KNOWN,
        (meter(share, _BAR), "chart"), (meter(share, _LONG_BAR), "chart"),
        in_bytes(left), _rate(pace, in_bytes), _eta(pace),
    )  # fmt: skip


def _moving_by(one: Move, pace: Pace, column: int) -> str | float:
    left = float((one.bytes or 0) - (one.copied or 0))
    done = (one.copied or 0) / (one.bytes or 1)
    values: tuple[str | float | None, ...] = (
        one.topic, one.partition, len(one.adding), len(one.removing), done, done, left, pace.per_s,
        pace.done_s,
    )  # fmt: skip
    value = values[column]
    return -1.0 if value is None else value


def _rate(pace: Pace, form: Callable[[float], str]) -> str:
    return NOT_KNOWN if pace.per_s is None else f"{form(max(pace.per_s, 0.0))}/s"


def _eta(pace: Pace) -> str:
    return "never" if pace.per_s is not None and pace.done_s is None else age(pace.done_s)


def _lacks(one: Behind, copy: Missing, node: Node | None, pace: Pace) -> tuple[Cell, ...]:
    comes = copy.why == BEHIND
    style = "warn" if comes else "bad"
    return (
        one.topic, str(one.partition), str(one.leader) if one.leader >= 0 else ("none", "bad"),
        ",".join(map(str, one.isr)), str(copy.node), (_brief(copy, node), style),
        (
            describe_missing(copy, node).removeprefix(f"node {copy.node} ").removeprefix("is "),
            style,
        ),
        _rate(pace, short) if comes else "", _eta(pace) if comes else "",
    )  # fmt: skip


def _brief(copy: Missing, node: Node | None) -> str:
    """Why it is not in sync, in 22 characters."""
    if copy.why == BEHIND:
        return f"{short(copy.records)} records, {in_bytes(copy.bytes)}"
    if copy.why == FENCED and node is not None and node.heard_s is not None:
        return f"{copy.why} for {age(node.heard_s)}"
    return copy.why


def _lacks_by(one: Behind, copy: Missing, pace: Pace, column: int) -> str | float:
    records = float(copy.records or 0)
    values: tuple[str | float | None, ...] = (
        one.topic, one.partition, one.leader, len(one.isr), copy.node, records, records,
        pace.per_s, pace.done_s,
    )  # fmt: skip
    value = values[column]
    return -1.0 if value is None else value
