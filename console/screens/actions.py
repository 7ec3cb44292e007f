"""Everything that can be done in the console, once: keys, footer, command palette, help, the table
in docs/console.md and a test are made of this list.

An action with a tier changes something in the broker: through the door (`changes/`) alone.
"""

from dataclasses import dataclass
from typing import Final

from textual.binding import Binding, BindingType

from console.model.asking.change import Tier
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
    LISTS,
    LOG,
    NODES,
    OVERVIEW,
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
    key_of,
)

APP: Final = "everywhere"
ROWS: Final = "in a table"
ALL_TOPICS: Final = "in Topics"
ONE_TOPIC: Final = "in a topic"
IN_TRASH: Final = "in deleted topics"
ALL_GROUPS: Final = "in Groups"
ONE_GROUP: Final = "in a group"
ALL_QUOTAS: Final = "in Quotas"
ONE_CLIENT: Final = "in a client's quotas"
A_JOB: Final = "among jobs"
ONE_JOB: Final = "in a job"
ALL_TXNS: Final = "in Txns"
PAST: Final = "on the overview"
IN_RECORDS: Final = "in records"
IN_RECORD: Final = "in a record"
IN_LOG: Final = "in the log"
ALL_NODES: Final = "in Nodes"
ALL_USERS: Final = "in Users"
ALL_ACLS: Final = "in ACLs"
ONE_RIGHT: Final = "in a right"
IN_AUDIT: Final = "in the audit"
ALL_CERTIFICATES: Final = "in Certificates"
IN_TOPOLOGY: Final = "in the topology"
IN_HEAT: Final = "in the heat map"
IN_GRID: Final = "among its cells"
KINDS: Final = {
    ALL_TOPICS: TOPICS, ONE_TOPIC: TOPIC, IN_TRASH: TRASH, ALL_GROUPS: GROUPS, ONE_GROUP: GROUP,
    ALL_QUOTAS: QUOTAS, ONE_CLIENT: QUOTA, A_JOB: JOBS, ONE_JOB: JOB, PAST: OVERVIEW,
    ALL_TXNS: TXNS, IN_RECORDS: RECORDS, IN_RECORD: RECORD, IN_LOG: LOG,
    ALL_NODES: NODES, ALL_USERS: USERS, ALL_ACLS: ACLS, ONE_RIGHT: CAN, IN_AUDIT: AUDIT,
    ALL_CERTIFICATES: CERTIFICATES, IN_TOPOLOGY: TOPOLOGY, IN_HEAT: HEAT,
}  # fmt: skip
"""Scope of a view → the kind of place where it is."""
_ALSO: Final = {A_JOB: (JOB,), IN_RECORDS: (TAIL,)}
"""Scope of a view → other kinds of places with the same actions."""
SCOPES: Final = (APP, ROWS, *KINDS, IN_GRID)


@dataclass(slots=True, frozen=True)
class Action:
    """call: Textual's name of the action: `action_…` of the App for APP, of the table for ROWS, of
    the view else. keys: the first one is shown. about: a sentence. footer: shown there. palette:
    can be found there; moving about in a table cannot. tier: of the
    change that it is, None when it changes nothing."""

    call: str
    keys: tuple[str, ...]
    title: str
    about: str
    scope: str = APP
    footer: bool = False
    palette: bool = True
    tier: Tier | None = None


_SEEN: Final = {
    OVERVIEW: "What needs attention, rates, latencies, processes.",
    TOPICS: "Every topic with its size and traffic.",
    GROUPS: "Every consumer group with its lag.",
    QUOTAS: "Every quota with its use, and who is throttled.",
    JOBS: "Every derived stream with its rates, lag and failures.",
    CLIENTS: "Who is connected, how fast, and who has to wait.",
    TXNS: "Open transactions, and what they hold back.",
    LOG: "What happens in the appliance, and what the console did.",
    NODES: "Nodes, their quorum, replicas that are missing or move.",
    USERS: "Who can log in, when they last did, and what they may do.",
}
_SHOWN: Final = {
    "enter": "Enter", "escape": "Esc", "pagedown": "PgDn", "pageup": "PgUp", "home": "Home",
    "end": "End", "space": "Space", "up": "↑", "down": "↓", "f1": "F1", "left": "←", "right": "→",
}  # fmt: skip

ACTIONS: Final = (
    *(
        Action(f"go('{kind}')", (key_of(kind),), kind.capitalize(), _SEEN[kind])
        for kind in LISTS
    ),
    Action(
        "jump", (":",), "Jump", "Go to what is typed: topic orders, g billing, log.", footer=True,
    ),
    Action(
        "filter", ("/",), "Filter",
        "Names with these words; !word: without; -f ords: letters.",
        footer=True,
    ),
    Action("topology", ("f",), "Topology", "Writers and readers of what is under the cursor."),
    Action("heat", ("h",), "Heat map", "Partitions by size, rate or lag, of all topics or of one."),
    Action("back", ("[",), "Back", "To where you were before."),
    Action("forward", ("]",), "Forward", "And ahead again."),
    Action("up", ("escape",), "Up", "From one topic to all topics, then to the overview."),
    Action(
        "copy", ("y",), "Copy", "Copy the command line that shows the same (OSC 52).", footer=True,
    ),
    Action("refresh", ("r",), "Refresh", "Ask again now."),
    Action("undo", ("u",), "Undo", "Take the last change back, where that can be done."),
    Action("pause", ("P",), "Pause", "Stop asking; press again to continue.", footer=True),
    Action("zone", ("Z",), "Time zone", "Times in UTC, or in the zone of this host."),
    Action("theme", ("T",), "Light or dark", "Change between a light and a dark picture."),
    Action("command_palette", ("ctrl+p",), "Palette", "Find an action, a topic or a group by name.",
           palette=False),
    Action("help", ("?", "f1"), "Help", "Show the keys that work here.", footer=True),
    Action("quit", ("q", "ctrl+q"), "Quit", "Leave the console.",
           footer=True),
    Action("suspend_process", ("ctrl+z",), "Suspend", "Back to the shell; its fg comes back here.",
           palette=False),
    Action("open", ("enter",), "Open", "Go into the row: again with a click.", ROWS, footer=True,
           palette=False),
    Action("move(1)", ("j", "down"), "Down", "One row down.", ROWS, palette=False),
    Action("move(-1)", ("k", "up"), "Up", "One row up.", ROWS, palette=False),
    Action("page(1)", ("ctrl+d", "pagedown"), "Page down", "Half a page down.", ROWS,
           palette=False),
    Action("page(-1)", ("ctrl+u", "pageup"), "Page up", "Half a page up.", ROWS, palette=False),
    Action("end(False)", ("g", "home"), "First", "To the first row.", ROWS, palette=False),
    Action("end(True)", ("G", "end"), "Last", "To the last row.", ROWS, palette=False),
    Action("sort", ("s",), "Sort", "By the next column; after the last one as at first.", ROWS,
           palette=False),
    Action("mark", ("space",), "Mark", "This row too: D takes all that are marked.", ROWS,
           palette=False),
    Action("walk(1)", ("right",), "Downstream", "To its readers; press again to continue there.",
           IN_TOPOLOGY, footer=True, palette=False),
    Action("walk(-1)", ("left",), "Upstream", "To its writers; press again to continue there.",
           IN_TOPOLOGY, footer=True, palette=False),
    Action("other", ("v",), "Other view", "By size, by rate, by lag: the next.", IN_HEAT,
           footer=True),
    Action("enter", ("enter",), "Open", "Into the topic of the partition.", IN_GRID, footer=True,
           palette=False),
    Action("cell(1)", ("right",), "Next", "One partition on.", IN_GRID, palette=False),
    Action("cell(-1)", ("left",), "Before", "One partition back.", IN_GRID, palette=False),
    Action("line(1)", ("j", "down"), "Down", "One line down.", IN_GRID, palette=False),
    Action("line(-1)", ("k", "up"), "Up", "One line up.", IN_GRID, palette=False),
    Action("screen(1)", ("ctrl+d", "pagedown"), "Page down", "Half a page down.", IN_GRID,
           palette=False),
    Action("screen(-1)", ("ctrl+u", "pageup"), "Page up", "Half a page up.", IN_GRID,
           palette=False),
    Action("edge(False)", ("g", "home"), "First", "To the first one.", IN_GRID, palette=False),
    Action("edge(True)", ("G", "end"), "Last", "To the last one.", IN_GRID, palette=False),
    Action("wider", ("z",), "Zoom out", "Charts of ten minutes, an hour, a day, a minute.", PAST,
           footer=True),
    *(
        Action(f"read_chart({by})", (key,), title, about, scope, palette=False)
        for scope in (PAST, ONE_GROUP)
        for by, key, title, about in (
            (-1, "<", "Read chart", "The value of the charts one column earlier; Esc ends it."),
            (1, ">", "Read on", "The value of the charts one column later."),
        )
    ),
    Action("changed", ("c",), "Changed", "Only settings with a value of the topic's own, or all.",
           ONE_TOPIC, footer=True),
    *(
        Action("describe", ("d",), "Whose quota", "Which quotas hold for a client: type who.",
               scope, footer=True)
        for scope in (ALL_QUOTAS, ONE_CLIENT)
    ),
    Action("job_preview", ("b",), "Preview", "What it would derive now; nothing is written.", A_JOB,
           footer=True),
    Action("tail", ("t",), "Tail", "Its log as it is written; who goes up in it reads.", ONE_JOB,
           footer=True),
    Action("other", ("v",), "Other view", "Its log, its last failure, Spark's own log, its SQL.",
           ONE_JOB, footer=True),
    Action("new", ("n",), "New topic", "Create a topic; what it would be is shown first.",
           ALL_TOPICS, footer=True, tier=Tier.PLAN),
    Action("trash", ("U",), "Undelete", "The deleted topics that can be brought back.",
           ALL_TOPICS),
    *(
        Action("delete", ("D",), "Delete topic", "With its records; its name is typed.", scope,
               footer=True, tier=Tier.NAME)
        for scope in (ALL_TOPICS, ONE_TOPIC)
    ),
    *(
        Action("produce", ("p",), "Produce", "Write a record: key, value, headers.", scope,
               footer=scope == ONE_TOPIC, tier=Tier.PLAN)
        for scope in (ALL_TOPICS, ONE_TOPIC, IN_RECORDS, IN_RECORD)
    ),
    Action("edit", ("e",), "Edit setting", "Give the setting under the cursor another value.",
           ONE_TOPIC, footer=True, tier=Tier.UNDO),
    Action("edit_all", ("E",), "Edit settings", "All settings of the topic, as lines.",
           ONE_TOPIC, tier=Tier.PLAN),
    Action("add_partitions", ("+",), "Add partitions", "More of them, and what that does to keys.",
           ONE_TOPIC, tier=Tier.PLAN),
    Action("replicas", ("N",), "Replicas", "On more or fewer nodes, or on others; it copies first.",
           ONE_TOPIC, tier=Tier.PLAN),
    Action("cancel", ("C",), "Cancel", "Take back what moves of the topic under the cursor.",
           ALL_NODES, footer=True, tier=Tier.PLAN),
    Action("trim", ("X",), "Trim", "Delete the oldest records; the topic's name is typed.",
           ONE_TOPIC, tier=Tier.NAME),
    Action("undelete", ("U",), "Undelete", "Bring the topic under the cursor back.", IN_TRASH,
           footer=True, tier=Tier.UNDO),
    Action("job_switch", ("S",), "Start or stop job", "Stop it after its batch, or start it.",
           A_JOB, footer=True, tier=Tier.PLAN),
    Action("job_restart", ("R",), "Restart job", "Stop it after its batch, and start it again.",
           A_JOB, tier=Tier.PLAN),
    Action("job_reset", ("o",), "Reset job", "It forgets how far it came; its name is typed.",
           A_JOB, tier=Tier.NAME),
    Action("job_remove", ("D",), "Remove job", "With how far it came; its name is typed.",
           A_JOB, tier=Tier.NAME),
    *(
        Action("browse", ("b",), "Browse", "The topic's records: seek, filter, export.", scope,
               footer=scope != IN_RECORDS)
        for scope in (ALL_TOPICS, ONE_TOPIC, IN_RECORDS, IN_RECORD)
    ),
    *(
        Action("tail", ("t",), "Tail", "The topic's records as they come.", scope,
               footer=True)
        for scope in (ALL_TOPICS, ONE_TOPIC)
    ),
    Action("tail", ("t",), "Tail", "Records as they come; of a paused tail: at the end now.",
           IN_RECORDS),
    Action("seek", ("o",), "From", "Type where to look: offsets, times, partitions.", IN_RECORDS,
           footer=True),
    Action("order", ("i",), "Order", "The newest records first, or the oldest.", IN_RECORDS),
    Action("more", ("m",), "Go on", "Search on from where it has stopped.", IN_RECORDS,
           footer=True),
    Action("export", ("x",), "Export", "Write the found records, or all, into a file.", IN_RECORDS,
           footer=True),
    *(
        Action("decoder", ("V",), "Decoder", "Values as the next decoder reads them; it is kept.",
               scope)
        for scope in (IN_RECORDS, IN_RECORD)
    ),
    *(
        Action("schema", ("A",), "Schema", "A file by which Avro or Protobuf is read; it is kept.",
               scope)
        for scope in (IN_RECORDS, IN_RECORD)
    ),
    Action("other", ("v",), "Other view", "Key and value as bytes, or decoded again.", IN_RECORD,
           footer=True),
    *(
        Action("resend", ("e",), "Send again", "Edit the record and send it once more.", scope,
               footer=scope == IN_RECORD, tier=Tier.PLAN)
        for scope in (IN_RECORDS, IN_RECORD)
    ),
    *(
        Action("tombstone", ("D",), "Tombstone", "Say that the record's key is gone.", scope,
               footer=scope == IN_RECORD, tier=Tier.PLAN)
        for scope in (IN_RECORDS, IN_RECORD)
    ),
    Action("why", ("d",), "Why", "What each decoder made of it; one of them for the topic.",
           IN_RECORD, footer=True),
    Action("wrap", ("w",), "Wrap", "Wrap long lines, or cut them.", IN_RECORD,
           footer=True),
    Action("level", ("l",), "Level", "Only this level and worse: notices, warnings, errors.",
           IN_LOG, footer=True),
    Action("tail", ("t",), "Tail", "What happens, as it happens; who goes up in it reads.", IN_LOG,
           footer=True),
    Action("other", ("v",), "Other view", "What happened, or what this console asked.", IN_LOG,
           footer=True),
    Action("offsets", ("o",), "Move offsets", "Somewhere else; what they would be is shown first.",
           ONE_GROUP, footer=True, tier=Tier.PLAN),
    *(
        Action("delete", ("D",), "Delete group", "With its offsets; its name is typed.", scope,
               footer=True, tier=Tier.NAME)
        for scope in (ALL_GROUPS, ONE_GROUP)
    ),
    Action("forget", ("F",), "Delete offsets", "Of the topic under the cursor; a name is typed.",
           ONE_GROUP, footer=True, tier=Tier.NAME),
    Action("remove", ("M",), "Remove member", "Put the member under the cursor out.",
           ONE_GROUP, footer=True, tier=Tier.PLAN),
    Action("abort", ("D",), "Abort transaction", "The one under the cursor; its id is typed.",
           ALL_TXNS, footer=True, tier=Tier.NAME),
    *(
        Action(call, (key,), title, about, scope, footer=True,
               tier=Tier.PLAN)
        for scope in (ALL_QUOTAS, ONE_CLIENT)
        for call, key, title, about in (
            ("new_quota", "n", "New quota", "Of a user, a client id, both, an address, or all."),
            ("edit_quota", "e", "Edit quota", "Other values for the quota under the cursor."),
            ("delete_quota", "D", "Take quota away", "What a weaker rule says holds then."),
        )
    ),
    *(
        Action("other", ("v",), "Other view", "Users, ACLs, audit, certificates: the next.", scope,
               footer=True)
        for scope in (ALL_USERS, ALL_ACLS, IN_AUDIT, ALL_CERTIFICATES)
    ),
    *(
        Action("ask", ("d",), "Who can", "Whether a user may do something, why, and who else may.",
               scope, footer=True)
        for scope in (ALL_USERS, ALL_ACLS, ONE_RIGHT)
    ),
    Action("ask", ("d",), "Why denied", "Which ACL decides about the denial under the cursor.",
           IN_AUDIT, footer=True),
    Action("level", ("l",), "Level", "Failed logins and denials, changes, or all.", IN_AUDIT,
           footer=True),
    Action("tail", ("t",), "Tail", "Entries as they come; who goes up reads.", IN_AUDIT),
    Action("new_user", ("n",), "New user", "With rights; its password goes into a file.", ALL_USERS,
           footer=True, tier=Tier.PLAN),
    Action("password", ("e",), "New password", "Of the user under the cursor, into a file.",
           ALL_USERS, footer=True, tier=Tier.PLAN),
    Action("remove_user", ("D",), "Remove user", "With its ACLs; its name is typed.", ALL_USERS,
           footer=True, tier=Tier.NAME),
    *(
        Action("new_acl", ("n",), "New ACL", "Allow or deny a user something.", scope,
               footer=True, tier=Tier.PLAN)
        for scope in (ALL_ACLS, ONE_RIGHT)
    ),
    Action("remove_acl", ("D",), "Remove ACL", "The one under the cursor, or all that are marked.",
           ALL_ACLS, footer=True, tier=Tier.PLAN),
)  # fmt: skip

VERBS: Final = {
    "n": "makes a new one", "e": "edits it", "E": "edits all of it", "D": "takes it away",
    "U": "brings back what was taken away", "+": "adds to it", "X": "takes its beginning away",
    "b": "looks into it", "t": "follows its end", "v": "shows it another way", "w": "wraps lines",
    "d": "tells why it is so", "o": "goes, or moves it, somewhere else", "m": "goes on",
    "p": "writes a record", "x": "writes a file", "V": "decodes it another way",
    "A": "decodes it by a schema", "l": "leaves only what is bad", "c": "leaves only what was set",
    "z": "shows more of the past", "S": "starts or stops it", "R": "restarts it",
    "F": "lets it forget", "M": "puts a member out", "N": "says on which nodes it is",
    "C": "takes back what is on its way", "i": "turns the order around",
    "<": "reads a chart farther back", ">": "farther on",
    "left": "goes to who writes", "right": "to who reads",
}  # fmt: skip
"""Key of a view → what it does, whatever view that is."""

CHANGES: Final = {
    key: [one for one in ACTIONS if one.tier is not None and key in one.keys]
    for key in dict.fromkeys(key for one in ACTIONS if one.tier is not None for key in one.keys)
}
"""Key → the changes that it is somewhere."""


def works(scope: str, kind: str) -> bool:
    """True if the actions of a scope can be done at a kind of place."""
    if scope == IN_GRID:
        return kind == HEAT
    home = KINDS.get(scope)
    return home is None or kind == home or kind in _ALSO.get(scope, ())


def bindings(scope: str) -> list[BindingType]:
    """Textual's bindings of a scope. What has ctrl in it works while something is typed, too."""
    return [
        Binding(
            key, one.call, one.title, show=one.footer and key == one.keys[0],
            key_display=shown(key), priority=scope == APP and key.startswith("ctrl+"),
        )
        for one in ACTIONS
        if one.scope == scope
        for key in one.keys
    ]  # fmt: skip


def shown(key: str) -> str:
    """A key as people write it: ^p, Enter, Esc."""
    if key.startswith("ctrl+"):
        return f"^{key[-1]}"
    return _SHOWN.get(key, key)


def grammar() -> str:
    """The meaning of letters in all views, as docs/console.md has it."""
    return ", ".join(f"`{shown(key)}` {does}" for key, does in VERBS.items())


def table() -> list[str]:
    """The lines of the table of keys in docs/console.md."""
    lines = ["| Key | | |", "|---|---|---|"]
    for scope in SCOPES:
        for one in ACTIONS:
            if one.scope == scope:
                keys = " ".join(f"`{shown(key)}`" for key in one.keys)
                where = "" if scope == APP else f" ({scope})"
                lines.append(f"| {keys} | {one.title}{where} | {one.about} |")
    return lines
