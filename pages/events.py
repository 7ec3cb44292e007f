"""The page of events: what lines of the log mean, by the name that each of them has."""

from typing import Final

from console.model.meanings.events import EVENTS
from pages.markdown import NOTE, anchored, plain, table

_INTRO: Final = f"""\
# Events of the log

{NOTE}

Each line of the log has a name that stays, and fields: for people, as logfmt in the journal, or as JSON with
`penstock.log.format=json`:

```json
{{"time": "2026-11-22T14:03:22.123Z", "level": "warning", "process": "netproc-0", "event": "connection-refused", "fields": {{"peer": "10.0.0.7", "why": "…"}}}}
```

`penstock event list -f` shows all of them of a running appliance; a line of the log is left out where the same event
came a moment ago (`lines_left_out` says how many). How much is written, by Kafka's own tools or by ours, until the
appliance ends:

```
kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type broker-loggers --entity-name 1 --add-config root=WARN
penstock config set penstock.control=DEBUG --loggers 1
```

Loggers are `root`, `penstock.supervisor`, `.control`, `.ioproc`, `.netproc` and `.exporter`. `DEBUG` writes what else
only `penstock event list` tells (who changed what, groups that rebalance), `TRACE` leaves nothing out, `FATAL` writes
nothing.
"""


def text() -> str:
    """All of it, as Markdown."""
    rows = [(anchored(name), plain(meaning)) for name, meaning in sorted(EVENTS.items())]
    return f"{_INTRO}\n{table(('event', 'meaning'), rows)}"
