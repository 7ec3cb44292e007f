"""The broker's configuration as loaded, every value with the place it came from. Nothing of it
changes but by `renew`, when the file was read again."""

import builtins
from collections.abc import Callable, Mapping
from typing import Final

from appliance.base.addresses import plain_address
from appliance.base.dataclass import dataclass
from appliance.base.errors import ConfigError
from appliance.config.listener_settings import declared, key_of, setting_of
from appliance.config.listeners import Endpoint, StaticVoter, in_url, parse_endpoint, parse_voter
from appliance.config.setting import INT_MAX, Setting, Value

DEFAULT: Final = "default"
FILE: Final = "file"
COMMAND_LINE: Final = "command line"
ENVIRONMENT: Final = "environment"
DYNAMIC: Final = "dynamic"
_KEPT_BY: Final = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}
"""Kafka's defaults for what every client relies on, as far as there are as many nodes."""
_NEXT_BEAT_MS: Final = 500
_HERE: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(slots=True, frozen=True)
class Entry:
    """A value set by somebody. `text` as it was written, `source`: ENVIRONMENT, FILE,
    COMMAND_LINE or DYNAMIC."""

    value: Value
    text: str
    source: str


class BrokerConfig:
    """Every broker setting's value: what was set, else through its synonyms, else the default."""

    __slots__ = ("_entries", "_under", "generation")

    def __init__(
        self, entries: Mapping[str, Entry] | None = None, under: Mapping[str, Entry] | None = None
    ) -> None:
        """under: entries that dynamic ones have taken the place of."""
        self._entries = dict(entries or {})
        self._under = dict(under or {})
        self.generation = 0  # one more with every `renew`

    @classmethod
    def of(cls, values: Mapping[str, str], source: str = COMMAND_LINE) -> "BrokerConfig":
        """From texts. Raises ConfigError for an unknown key or a wrong value."""
        entries = {}
        for name, text in values.items():
            setting = setting_of(name)
            if setting is None:
                raise ConfigError(f"Unknown configuration {name}")
            entries[name] = Entry(setting.parse(text), text, source)
        return cls(entries)

    def over(self, texts: Mapping[str, str]) -> "BrokerConfig":
        """This configuration with checked texts on top, as set while the broker runs."""
        entries = {
            name: Entry(declared(name).parse(text), text, DYNAMIC) for name, text in texts.items()
        }
        under = {name: one for name, one in self._entries.items() if name in entries}
        kept = {name: one for name, one in under.items() if one.source != DYNAMIC}
        return BrokerConfig({**self._entries, **entries}, {**self._under, **kept})

    def static(self) -> "BrokerConfig":
        """This configuration without what was set while the broker runs."""
        entries = {n: one for n, one in self._entries.items() if one.source != DYNAMIC}
        return BrokerConfig({**self._under, **entries})

    def renew(self, entries: Mapping[str, Entry | None]) -> None:
        """These hold from now on for whoever has this configuration; None: nobody sets it."""
        self._entries = self.renewed(entries)._entries
        self.generation += 1

    def renewed(self, entries: Mapping[str, Entry | None]) -> "BrokerConfig":
        """This configuration as `renew` would make it."""
        known = {**self._entries, **entries}
        found = {name: one for name, one in known.items() if one is not None}
        return BrokerConfig(found, self._under)

    def entry(self, name: str) -> Entry | None:
        """Returns the entry set under exactly this name."""
        return self._entries.get(name)

    def set_names(self) -> builtins.list[str]:
        """The keys that somebody set."""
        return builtins.list(self._entries)

    def get_value(self, name: str) -> Value:
        """The value in force."""
        entry = self._entries.get(name)
        if entry is not None:
            return entry.value
        setting = declared(name)
        for synonym, factor in setting.synonyms:
            value = self.get_value(synonym)
            if value is not None:
                assert isinstance(value, builtins.int)
                return value * factor if value >= 0 else value
        return self.default(name) if name in _KEPT_BY else setting.default

    def default(self, name: str) -> Value:
        """The value of a setting that nobody set."""
        if name not in _KEPT_BY:
            return declared(name).default
        return min(_KEPT_BY[name], self.brokers)

    def int(self, name: str) -> builtins.int:
        value = self.get_value(name)
        assert isinstance(value, builtins.int), f"{name} is not a number"
        return value

    def float(self, name: str) -> builtins.float:
        value = self.get_value(name)
        assert isinstance(value, builtins.float | builtins.int), f"{name} is not a number"
        return value

    def limit(self, name: str) -> builtins.int | None:
        """A number for which the greatest int stands for no limit (None)."""
        value = self.int(name)
        return None if value == INT_MAX else value

    def bool(self, name: str) -> builtins.bool:
        value = self.get_value(name)
        assert isinstance(value, builtins.bool), f"{name} is not a boolean"
        return value

    def text(self, name: str) -> str:
        value = self.get_value(name)
        assert isinstance(value, str), f"{name} is not a text"
        return value

    def list(self, name: str) -> tuple[str, ...]:
        value = self.get_value(name)
        assert isinstance(value, tuple), f"{name} is not a list"
        return value

    def setting(self, name: str) -> Setting:
        """The declaration."""
        return declared(name)

    def key_for(self, listener: str, name: str) -> str:
        """The key that says what a setting is for a listener: its own where somebody set that, else
        the setting of all."""
        own = key_of(listener, name)
        return own if own in self._entries else name

    def of_listener(self, listener: str, name: str) -> Value:
        """The value in force for one listener."""
        return self.get_value(self.key_for(listener, name))

    def endpoints(self) -> builtins.list[Endpoint]:
        """The listeners of clients and brokers, not those of controllers."""
        controllers = self.list("controller.listener.names")
        found = [parse_endpoint("listeners", text) for text in self.list("listeners")]
        return [endpoint for endpoint in found if endpoint.name not in controllers]

    def all_listeners(self) -> builtins.list[Endpoint]:
        """As they are written, opened or not. Raises ConfigError."""
        return [parse_endpoint("listeners", text) for text in self.list("listeners")]

    def opened(self) -> builtins.list[Endpoint]:
        """Every listener that is opened: those of clients and brokers first, so that the number of
        one is its place in `endpoints`; behind them the controllers'."""
        return self.endpoints() + [
            one for one in self.all_listeners() if self.is_controllers(one.name)
        ]

    def is_controllers(self, listener: str) -> builtins.bool:
        """True if a listener of this name serves controller requests only."""
        return listener in self.list("controller.listener.names")

    def voters(self) -> tuple[StaticVoter, ...]:
        """The controllers of a static quorum; none when the settings name none: this node is alone.
        Raises ConfigError."""
        key = "controller.quorum.voters"
        return tuple(parse_voter(key, text) for text in self.list(key))

    def seeds(self) -> builtins.list[Endpoint]:
        """Where a node that knows no voters asks for them. Raises ConfigError."""
        key = "controller.quorum.bootstrap.servers"
        return [parse_endpoint(key, text) for text in self.list(key)]

    @property
    def is_broker(self) -> builtins.bool:
        """True if this node is a broker: it has partitions and serves clients."""
        return "broker" in self.list("process.roles")

    @property
    def is_controller(self) -> builtins.bool:
        """True if this node is a controller: it may lead the metadata log."""
        return "controller" in self.list("process.roles")

    @property
    def silence_ms(self) -> builtins.int:
        """Returns the time after which a broker without heartbeat and answer is fenced, in ms: a
        heartbeat may be late."""
        next_ms = self.int("broker.heartbeat.interval.ms") + _NEXT_BEAT_MS
        return max(self.int("penstock.broker.silence.ms"), next_ms)

    @property
    def brokers(self) -> builtins.int:
        """How many brokers there are as far as the settings say: each voter is one, or who is asked
        for the voters, and where nodes are only one of both as many as are wanted."""
        if not (self.is_broker and self.is_controller):
            return 3
        seeds = len(self.list("controller.quorum.bootstrap.servers"))
        return max(1, len(self.list("controller.quorum.voters")), seeds)

    @property
    def several(self) -> builtins.bool:
        """True if there may be other nodes: several voters, a reachable controller listener,
        bootstrap servers, or a single role."""
        both = self.is_broker and self.is_controller
        opens = any(self.is_controllers(one.name) for one in self.all_listeners())
        listed = len(self.list("controller.quorum.voters"))
        return not both or listed > 1 or opens or bool(self.seeds())

    @property
    def joins(self) -> builtins.bool:
        """True if a new node joins an existing cluster: its bootstrap servers are other nodes.
        Raises ConfigError."""
        mine = [one for one in self.all_listeners() if self.is_controllers(one.name)]
        here = {(host, one.port) for one in mine for host in (*_HERE, one.host)}
        return any((one.host, one.port) not in here for one in self.seeds())

    def endpoint(self, name: str) -> Endpoint | None:
        """HOST:PORT of a setting that is one, None where it is not set. Raises ConfigError."""
        value = self.get_value(name)
        return parse_endpoint(name, str(value)) if value else None

    def advertised(self, listener: str) -> tuple[str, builtins.int] | None:
        """(host, port) that clients of a listener are told, None: the address that they reached."""
        for text in self.list("advertised.listeners"):
            endpoint = parse_endpoint("advertised.listeners", text)
            if endpoint.name == listener:
                return endpoint.host, endpoint.port
        return None

    def telling(self, host: Callable[[], str]) -> "BrokerConfig":
        """This configuration with what others are told of each listener. host(): what this host is
        called, where no other name is said. Of several nodes all have to tell the same of one, or
        clients would connect to it anew with each answer; who is alone tells what was reached."""
        key = "advertised.listeners"
        entry = self.entry(key)
        said = () if entry is None or entry.source == DEFAULT else self.list(key)
        told = {one.name: one for one in (parse_endpoint(key, text) for text in said)}
        if self.several:
            told = {one.name: one for one in self.endpoints()} | told
        texts = [f"{name}://{in_url(one.host or host())}:{one.port}" for name, one in told.items()]
        if not texts:
            return self
        entry = Entry(tuple(texts), ",".join(texts), DEFAULT)
        return BrokerConfig({**self._entries, key: entry}, self._under)

    def protocols(self) -> dict[str, str]:
        """Listener's name → the protocol that it stands for; PLAINTEXT for a controllers' one of
        which nothing is said, as in Apache Kafka."""
        pairs = (item.partition(":") for item in self.list("listener.security.protocol.map"))
        said = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}
        return dict.fromkeys(self.list("controller.listener.names"), "PLAINTEXT") | said

    def per_address(self, name: str) -> dict[str, builtins.int]:
        """A list of ADDRESS:NUMBER as a mapping. Raises ConfigError."""
        found = {}
        for item in self.list(name):
            address, _, number = item.rpartition(":")
            if not address or not number.isdigit():
                raise ConfigError(
                    f"Invalid value {item!r} for configuration {name}: it takes ADDRESS:NUMBER"
                )
            found[plain_address(address.strip().strip("[]"))] = builtins.int(number)
        return found
