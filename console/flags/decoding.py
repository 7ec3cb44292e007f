"""--decode and what belongs to it: how bytes are read, as Decoders for a command."""

import functools
from collections.abc import Callable
from typing import Any

import click

from console.model.asking.failure import usage
from console.model.asking.link import Link
from console.model.decoding.choosing import Decoders
from console.model.decoding.decoded import AUTO, AVRO, CHOICES, KEY, PROTOBUF, VALUE
from console.model.decoding.memory import Choice, Choices, usual
from console.model.decoding.registry import Registry

registry_flag = click.option(
    "--registry", metavar="URL", envvar="PENSTOCK_REGISTRY",
    help="A schema registry, for --decode.  [default: $PENSTOCK_REGISTRY]",
)  # fmt: skip


def decoded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags to a command with a Link; it gets `decoders`, None without --decode."""

    @click.option(
        "--decode", type=click.Choice(CHOICES), metavar="HOW",
        help=f"Format of values: {', '.join(CHOICES)}.",
    )  # fmt: skip
    @click.option(
        "--decode-key", type=click.Choice(CHOICES), metavar="HOW",
        help="Format of keys.  [default: auto]",
    )  # fmt: skip
    @click.option(
        "--schema", metavar="FILE", help="Schema: .avsc for avro, descriptors (.desc) for protobuf."
    )
    @click.option(
        "--message", metavar="NAME", default="", help="The message type in the .desc file."
    )
    @registry_flag
    @functools.wraps(command)
    def wrapped(
        link: Link,
        *args: object,
        decode: str | None,
        decode_key: str | None,
        schema: str | None,
        message: str,
        registry: str | None,
        **kwargs: object,
    ) -> object:
        decoders = None
        if decode is not None or decode_key is not None:
            given = _given(decode or AUTO, decode_key or AUTO, schema, message)
            choices = Choices(usual(), link.bootstrap, given, keeps=False)
            decoders = Decoders(choices, Registry(registry) if registry else None)
        elif schema or message:
            raise usage("--schema and --message say how --decode avro or protobuf reads")
        return command(link, *args, decoders=decoders, **kwargs)

    return wrapped


def _given(decode: str, decode_key: str, schema: str | None, message: str) -> dict[str, Choice]:
    """The chosen decoders by part. Reads the schema file now, so that a mistake in it shows at
    once.
    """
    chosen = {VALUE: decode, KEY: decode_key}
    if not schema:
        return {part: Choice(name) for part, name in chosen.items()}
    from console.model.decoding.schemas import load

    kind = load(schema, message).kind
    if kind not in chosen.values():
        raise usage(f"{schema} is a schema of {kind}: say --decode {kind}")
    assert kind in (AVRO, PROTOBUF)
    return {
        part: Choice(name, schema, message) if name == kind else Choice(name)
        for part, name in chosen.items()
    }
