"""The way from a command to a broker: the flags of every client command, and the clients.

`connected` puts a Link in front of a command's arguments. A broker that is not there, or not where
it says, is found out by plain connections first, so that the answer comes at once and not after a
client's patience.
"""

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from appliance.cli.exits import UNREACHABLE, Failure, usage

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
_T = TypeVar("_T")
_UNREACHABLE_NAMES: Final = frozenset(
    (
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_TIMED_OUT",
        "_RESOLVE",
        "_MSG_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "BROKER_NOT_AVAILABLE",
    )
)
_HINTS: Final = {
    "TOPIC_ALREADY_EXISTS": "say --if-not-exists when that is all right",
    "UNKNOWN_TOPIC_OR_PARTITION": "penstock topic list shows the topics that there are",
    "OFFSET_OUT_OF_RANGE": "penstock topic describe shows first and next offset of each partition",
    "MESSAGE_TOO_LARGE": "raise max.message.bytes of the topic, or send smaller records",
}


class Link:
    """Where the broker is and how to talk to it; makes clients."""

    def __init__(self, bootstrap: str, properties: dict[str, str], timeout_s: float) -> None:
        self.properties = {"bootstrap.servers": bootstrap} | properties
        self.bootstrap = self.properties["bootstrap.servers"]
        self.timeout_s = timeout_s
        self._admin: AdminClient | None = None
        self._found = False

    def admin(self) -> "AdminClient":
        """Always the same one: its requests end with it. Raises Failure when no broker can be
        reached, at each call: who watches sees an outage at once."""
        if self._admin is not None:
            reach(self.bootstrap)
        else:
            from confluent_kafka.admin import AdminClient

            self._admin = AdminClient(self._config())
        return self._admin

    def producer(self, **settings: object) -> "Producer":
        """Idempotent, acks=all, unless -X or `settings` (with `_` for `.`) say otherwise."""
        from confluent_kafka import Producer

        config = self._config(enable_idempotence=True, **settings)
        if config.get("acks", "all") not in ("all", "-1", -1):
            config |= {"enable.idempotence": False}
        return Producer(config)

    def consumer(self, **settings: object) -> "Consumer":
        """For `assign`: it commits nothing and knows no group, unless `settings` say otherwise.
        What is damaged is refused."""
        from confluent_kafka import Consumer

        base = {
            "group_id": "penstock-cli",
            "enable_auto_commit": False,
            "auto_offset_reset": "error",
            "check_crcs": True,
        }
        return Consumer(self._config(**base | settings))

    def _config(self, **settings: object) -> dict[str, Any]:
        if not self._found:
            self._find()
        quiet = {"log_level": 0, "client.id": "penstock"}
        return quiet | {k.replace("_", "."): v for k, v in settings.items()} | self.properties

    def _find(self) -> None:
        """Raises Failure when clients would not find the broker."""
        from penstock.reach import misplaced

        reach(self.bootstrap)
        plain = self.properties.get("security.protocol", "plaintext").lower() == "plaintext"
        if plain and (problem := misplaced(self.bootstrap)):
            raise Failure(
                problem,
                "advertised.listeners of the broker must name it as its clients know it",
                code=UNREACHABLE,
                name="UNREACHABLE",
            )
        self._found = True

    def explained(self, failure: Failure) -> Failure:
        """The failure of a client, with the reason where it only says that it heard nothing."""
        if failure.code == UNREACHABLE:
            try:
                reach(self.bootstrap)
            except Failure as why:
                return why
        return failure

    def wait(self, future: "Future[_T]", about: str = "") -> _T:
        """The result of a request to a broker about a topic. Raises Failure."""
        from confluent_kafka import KafkaException

        try:
            return future.result(self.timeout_s + 1)
        except KafkaException as refused:
            failure = self.explained(failure_of(refused.args[0]))
            if about not in failure.message:
                failure.message = f"{about}: {failure.message}"
            raise failure from None
        except FutureTimeout:
            raise _no_answer(self.bootstrap) from None


def reach(bootstrap: str) -> None:
    """One of the servers accepts a connection, or Failure (UNREACHABLE)."""
    from penstock.reach import unreachable

    for server in bootstrap.split(","):
        if not server.rpartition(":")[2].isdecimal():
            raise usage(f"{server!r} is not HOST:PORT", f"for example -b {DEFAULT_BOOTSTRAP}")
    try:
        problem = unreachable(bootstrap)
    except ValueError as wrong:
        raise usage(str(wrong), f"for example -b {DEFAULT_BOOTSTRAP}") from None
    if problem:
        raise Failure(
            problem,
            "penstock up starts an appliance; -b HOST:PORT names another one",
            code=UNREACHABLE,
            name="UNREACHABLE",
        )


def name_of_code(code: int) -> str:
    """Kafka's name of an error code; the number as text when we have no name for it."""
    from appliance.base import errors

    for name, known in vars(errors).items():
        if known == code and name.isupper():
            return name
    return str(code)


def _name(error: "KafkaError") -> str:
    """Kafka's name of the error; librdkafka shortens some. Its own errors begin with `_`."""
    name = name_of_code(error.code())
    return str(error.name()) if name == str(error.code()) else name


def failure_of(error: "KafkaError") -> Failure:
    """What a broker or librdkafka said, as ours."""
    name = _name(error)
    text = error.str() or name
    if name in _UNREACHABLE_NAMES:
        hint = "try again, or give it longer with --timeout SECONDS"
        return Failure(text, hint, code=UNREACHABLE, name=name, kafka_code=error.code())
    return Failure(text, _HINTS.get(name, ""), name=name, kafka_code=error.code())


def _no_answer(bootstrap: str) -> Failure:
    return Failure(
        f"{bootstrap} did not answer in time",
        "try again, or give it longer with --timeout SECONDS",
        code=UNREACHABLE,
        name="_TIMED_OUT",
    )


def key_values(items: Iterable[str], flag: str) -> dict[str, str]:
    """`KEY=VALUE` arguments as a mapping. Raises Failure (USAGE)."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise usage(f"{flag} {item!r} is not KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def connected(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -b, -X, --command-config and --timeout; the first argument is a Link then."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "--brokers",
        "bootstrap",
        metavar="HOST:PORT",
        help=f"The broker.  [default: $PENSTOCK_BOOTSTRAP or {DEFAULT_BOOTSTRAP}]",
    )
    @click.option(
        "-X",
        "--command-property",
        "properties",
        metavar="KEY=VALUE",
        multiple=True,
        help="A property of the client (librdkafka's names).",
    )
    @click.option(
        "--command-config", metavar="FILE", help="Properties of the client, Java's syntax."
    )
    @click.option(
        "--timeout", type=click.FloatRange(0.1, 3600), default=30.0, metavar="SECONDS",
        help="How long an answer may take.  [default: 30]",
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(
        *args: object,
        bootstrap: str | None,
        properties: tuple[str, ...],
        command_config: str | None,
        timeout: float,
        **kwargs: object,
    ) -> object:
        chosen = bootstrap or os.environ.get("PENSTOCK_BOOTSTRAP") or DEFAULT_BOOTSTRAP
        merged = _file(command_config) | key_values(properties, "-X")
        if bootstrap:
            merged.pop("bootstrap.servers", None)
        return _guarded(command, Link(chosen, merged, timeout), *args, **kwargs)

    return wrapped


def _guarded(command: Callable[..., Any], link: Link, *args: object, **kwargs: object) -> object:
    from confluent_kafka import KafkaException

    try:
        return command(link, *args, **kwargs)
    except KafkaException as refused:
        error = refused.args[0]
        if error.name() in ("_INVALID_ARG", "_CONFLICT", "_NOT_IMPLEMENTED"):
            raise usage(error.str(), "see the flags -X and --command-config") from None
        raise _or_full(link, link.explained(failure_of(error))) from None
    except Failure as failure:
        raise _or_full(link, failure) from None


def _or_full(link: Link, failure: Failure) -> Failure:
    """The failure, with its reason when that is a full disk."""
    from appliance.cli.disk_look import HINT, MAY_MEAN_FULL, nearly_full

    if failure.name in MAY_MEAN_FULL and "nearly full" not in failure.message:
        why = nearly_full(link)
        if why:
            failure.message += f"; {why}"
            failure.hint = HINT
    return failure


def _file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    from appliance.config.properties import parse_properties

    try:
        return {key: value for key, value, _ in parse_properties(Path(path).read_text())}
    except (OSError, UnicodeDecodeError) as problem:
        raise usage(f"{path} cannot be read: {problem}") from None
