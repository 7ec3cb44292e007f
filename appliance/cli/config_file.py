"""What `config lint` and `config show` share: a server.properties file, read as `penstock up` reads
it."""

from pathlib import Path

from appliance.cli.exits import usage
from appliance.config.broker import BrokerConfig


def read(path: str) -> tuple[BrokerConfig, list[str]]:
    """(settings, warnings). Raises Failure (USAGE) for a file that cannot be read, ConfigError for
    what is wrong in it."""
    from appliance.config.load import load

    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise usage(f"{path} cannot be read: {problem}") from None
    return load(text, {}, file_name=path)
