"""The way to a broker: where it is, how long it may take, and the clients that ask it.

A broker that is not there, not where it says, or that speaks another protocol is found out by
connections of our own first, so that the answer comes at once and not after a client's patience.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from console.model.asking.failure import UNREACHABLE, Failure, usage
from console.model.asking.refusals import failure_of, no_answer
from penstock.door import Door
from penstock.tokens import completed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

    from penstock.reach import Trouble

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
_T = TypeVar("_T")


def is_passing(error: "KafkaError", *, grouped: bool = False) -> bool:
    """True for an error that a consumer mends by itself or does not need to mend.

    grouped: the consumer is a member of a group. Without one librdkafka looks for the coordinator
    of its group.id all the same, and reads on when the principal has no right to that group.
    """
    from confluent_kafka import KafkaError

    not_needed = () if grouped else (KafkaError.GROUP_AUTHORIZATION_FAILED,)
    return error.retriable() or error.code() in (KafkaError._ALL_BROKERS_DOWN, *not_needed)


class Link:
    """Where the broker is and how to talk to it; makes clients. properties: librdkafka's.
    read_only: whatever would change something is refused here, where requests are made. Threads may
    share one."""

    def __init__(
        self,
        bootstrap: str,
        properties: dict[str, str],
        timeout_s: float,
        *,
        read_only: bool = False,
    ) -> None:
        self.read_only = read_only
        self.properties = completed({"bootstrap.servers": bootstrap} | properties)
        self.bootstrap = self.properties["bootstrap.servers"]
        self.door = Door(self.properties)
        self._told: tuple[str, ...] = ()
        self.timeout_s = timeout_s
        self._admin: AdminClient | None = None
        self._admin_before: AdminClient | None = None
        self._admin_of = ""
        self._found = False
        self._making = threading.Lock()

    @property
    def limit_s(self) -> float:
        """Seconds for one connection that only looks."""
        from penstock.reach import LIMIT_S

        return min(LIMIT_S, self.timeout_s)

    @property
    def is_asked(self) -> bool:
        """True if the console can send its own requests: over TLS and SASL too, but not by
        mechanisms like OAUTHBEARER."""
        return self.door.can_ask

    @property
    def living(self) -> str:
        """The servers to ask, HOST:PORT with commas between: the named ones, and when none of them
        is reachable also the brokers that they listed, so that a watch continues with another node.
        """
        from penstock.reach import unreachable

        lost = bool(self._told) and bool(unreachable(self.bootstrap, self.limit_s))
        return ",".join((self.bootstrap, *self._told)) if lost else self.bootstrap

    def knows(self, addresses: Iterable[str]) -> None:
        """The brokers of the cluster, as one of them told."""
        named = {one.strip() for one in self.bootstrap.split(",")}
        self._told = tuple(one for one in addresses if one not in named)

    def reach(self) -> None:
        """One of those that may be asked accepts a connection, or Failure (UNREACHABLE), which
        names who was."""
        from penstock.reach import unreachable

        try:
            reach(self.bootstrap, self.limit_s)
        except Failure:
            if not self._told or unreachable(",".join(self._told), self.limit_s):
                raise

    def admin(self) -> "AdminClient":
        """The same one as long as the same brokers are to be asked. Raises Failure when none can be
        reached, at each call: who watches sees an outage at once.

        librdkafka waits for the controller that it was told of, dead or not, until it asks for
        metadata again minutes later: another client asks at once. The one before is kept, since
        its requests would end with it."""
        if self._admin is not None:
            self.reach()
        from confluent_kafka.admin import AdminClient

        with self._making:
            if self._admin is None or self._admin_of != self.living:
                config = self._config()
                made = AdminClient(config)
                self._admin_before, self._admin_of = self._admin, config["bootstrap.servers"]
                self._admin = cast("AdminClient", _Reading(made)) if self.read_only else made
            return self._admin

    def _give_up_after(self, failure: Failure) -> None:
        """The next request has another client: this one may wait for a controller that is gone."""
        if failure.name == "_TIMED_OUT":
            self._admin_of = ""

    def allow(self, what: str, *, reads: bool) -> None:
        """Raises Failure (READ_ONLY) for what changes something where only reading is allowed."""
        if self.read_only and not reads:
            raise _read_only(what)

    def producer(self, **settings: object) -> "Producer":
        """Idempotent, acks=all, a key in the partition where Java's clients put it, unless -X or
        `settings` (with `_` for `.`) say otherwise."""
        from confluent_kafka import Producer

        self.allow("a producer", reads=False)
        usual = {"enable_idempotence": True, "partitioner": "murmur2_random"}
        config = self._config(**usual | settings)
        if config.get("acks", "all") not in ("all", "-1", -1):
            config |= {"enable.idempotence": False}
        return Producer(config)

    def consumer(
        self, *, on_error: "Callable[[KafkaError], object] | None" = None, **settings: object
    ) -> "Consumer":
        """For `assign`: it commits nothing and joins no group, unless `settings` say otherwise.
        What is damaged is refused. on_error: takes errors that librdkafka retries by itself.

        librdkafka asks for the coordinator of its group.id all the same, and has no consumer
        without one: the first consumer of an appliance makes __consumer_offsets, as with Kafka."""
        from confluent_kafka import Consumer

        base = {
            "group_id": "penstock-cli",
            "enable_auto_commit": False,
            "auto_offset_reset": "error",
            "check_crcs": True,
        }
        told = {} if on_error is None else {"error_cb": on_error}
        return Consumer(self._config(**base | settings) | told)

    def _config(self, **settings: object) -> dict[str, Any]:
        if not self._found:
            self._find()
        quiet = {"log_level": 0, "client.id": "penstock"}
        given = {k.replace("_", "."): v for k, v in settings.items()} | self.properties
        return quiet | given | {"bootstrap.servers": self.living}

    def _find(self) -> None:
        """Raises Failure when clients would not find the broker, or not speak as it does."""
        from penstock.door import NotUsable
        from penstock.reach import barred

        self.reach()
        if self.is_asked:
            try:
                trouble = barred(self.bootstrap, self.door, self.limit_s)
            except NotUsable as wrong:
                raise usage(str(wrong), "see the flags -X and --command-config") from None
            if trouble is not None:
                raise _barred(trouble, self.bootstrap)
        self._found = True

    def unspoken(self, server: str, problem: Exception) -> Failure | None:
        """Why a connection of our own to HOST:PORT failed so, where it is because the two speak
        differently or do not trust each other; None when it is not known to be."""
        from penstock.reach import unspoken

        if self._found and not self.door.uses_tls and not self.door.uses_sasl:
            return None
        trouble = unspoken(server, self.door, problem, self.limit_s)
        return None if trouble is None else _barred(trouble, server)

    def explained(self, failure: Failure) -> Failure:
        """The failure of a client, with the reason where it only says that it heard nothing."""
        if failure.code == UNREACHABLE:
            try:
                self.reach()
            except Failure as why:
                return why
            if failure.name == "_TRANSPORT":
                failure.message = (
                    f"{self.bootstrap} accepts connections but does not answer ({failure.message})"
                )
                failure.hint = "check that it is a Kafka listener, or retry"
        failure.where = failure.where or self.bootstrap
        return failure

    def wait(self, future: "Future[_T]", about: str = "") -> _T:
        """The result of a request to a broker about a topic. Raises Failure."""
        from confluent_kafka import KafkaException

        try:
            return future.result(self.timeout_s + 1)
        except KafkaException as refused:
            failure = self.explained(failure_of(refused.args[0]))
            self._give_up_after(failure)
            if about not in failure.message:
                failure.message = f"{about}: {failure.message}"
            raise failure from None
        except FutureTimeout:
            raise no_answer(self.bootstrap) from None

    def refused(self, future: "Future[Any]", about: str = "") -> Failure | None:
        """Why a request about one of several things failed; None when it did not."""
        try:
            self.wait(future, about)
        except Failure as failure:
            return failure
        return None


def _barred(trouble: "Trouble", where: str) -> Failure:
    """The failure of a connection. A usage error when other properties would mend it, because a
    retry is useless.
    """
    if trouble.login:
        words = "".join(f"-X {option} " for option in trouble.options)
        failure = usage(trouble.what, f"{words}--login USER; its password: --password-file FILE")
        failure.where = where
        return failure
    if trouble.options:
        failure = usage(trouble.what, " ".join(f"-X {option}" for option in trouble.options))
        failure.where = where
        return failure
    hint = ""
    if trouble.elsewhere:
        hint = "advertised.listeners of the broker must name it as its clients know it"
    return Failure(trouble.what, hint, where=where, code=UNREACHABLE, name="UNREACHABLE")


def _read_only(what: str) -> Failure:
    return Failure(
        f"{what}: read-only, nothing can be changed",
        "the console runs with --read-only",
        name="READ_ONLY",
    )


class _Reading:
    """An admin client that can only be asked, also whether a change would be accepted. It goes by
    the names of the methods: one that is new is refused until it is known to read."""

    def __init__(self, admin: "AdminClient") -> None:
        self._admin = admin

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._admin, name)
        if name.startswith(("list_", "describe_")):
            return method

        def checked(*args: Any, validate_only: bool = False, **given: Any) -> Any:
            if validate_only is not True:
                raise _read_only(name)
            return method(*args, validate_only=True, **given)

        return checked


def reach(bootstrap: str, limit_s: float) -> None:
    """One of the servers accepts a connection within so many seconds, or Failure (UNREACHABLE)."""
    from penstock.reach import unreachable

    for server in bootstrap.split(","):
        if not server.rpartition(":")[2].isdecimal():
            raise usage(f"{server!r} is not HOST:PORT", f"for example -b {DEFAULT_BOOTSTRAP}")
    try:
        problem = unreachable(bootstrap, limit_s)
    except ValueError as wrong:
        raise usage(str(wrong), f"for example -b {DEFAULT_BOOTSTRAP}") from None
    if problem:
        raise Failure(
            problem,
            "penstock up starts an appliance; -b HOST:PORT names another one",
            where=bootstrap,
            code=UNREACHABLE,
            name="UNREACHABLE",
        )


@contextmanager
def asking(link: Link) -> Iterator[None]:
    """Turns a client's errors within into a Failure that says where, and whether a full disk is the
    reason.
    """
    from confluent_kafka import KafkaException

    from console.model.storage.disk import or_full

    try:
        yield
    except KafkaException as refused:
        error = refused.args[0]
        if error.name() in ("_INVALID_ARG", "_CONFLICT", "_NOT_IMPLEMENTED"):
            raise usage(error.str(), "see the flags -X and --command-config") from None
        raise or_full(link, link.explained(failure_of(error))) from None
    except Failure as failure:
        raise or_full(link, failure) from None
