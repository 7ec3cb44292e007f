"""Where an appliance listens, as `--listen` says it, in the words of Kafka's settings."""

import socket

from appliance.base.errors import ConfigError
from appliance.config.broker import BrokerConfig
from appliance.config.listeners import in_url, parse_endpoint
from console.model.asking.failure import usage


def listeners(texts: tuple[str, ...], broker: BrokerConfig) -> dict[str, str]:
    """The settings for --listen, which is about clients: controllers are listened to as the
    settings say. localhost means both of the host's loopback addresses."""
    addresses = []
    for text in texts:
        try:
            one = parse_endpoint("--listen", text)
        except ConfigError:
            raise usage(
                f"--listen {text!r} is not HOST:PORT with a port from 0 to 65535",
                "for example --listen 127.0.0.1:9092, --listen [::1]:9092, --listen 0.0.0.0:9092",
            ) from None
        addresses.append(address(one.host, one.port))
        if one.host == "localhost" and one.port and _has_ipv6_loopback():
            addresses.append(f"[::1]:{one.port}")
    names = ["PLAINTEXT", *(f"PLAINTEXT_{n}" for n in range(2, len(addresses) + 1))]
    mapped = [*broker.list("listener.security.protocol.map")]
    controllers = [one for one in broker.opened() if broker.is_controllers(one.name)]
    return {
        "listeners": ",".join(
            [
                *(f"{n}://{a}" for n, a in zip(names, addresses, strict=True)),
                *(f"{one.name}://{address(one.host, one.port)}" for one in controllers),
            ]
        ),
        "listener.security.protocol.map": ",".join(
            [*mapped, *(f"{name}:PLAINTEXT" for name in names[1:])]
        ),
    }


def address(host: str, port: int) -> str:
    """As it is typed."""
    return f"{in_url(host)}:{port}"


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
