"""What `config lint` and `config show` share: the text of a server.properties file."""

from pathlib import Path

from appliance.cli.exits import usage


def text_of(path: str) -> str:
    """Raises Failure (USAGE) for a file that cannot be read."""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise usage(f"{path} cannot be read: {problem}") from None
