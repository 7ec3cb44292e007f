"""What shells read to complete `penstock`: click's own scripts, by where each shell looks."""

from collections.abc import Iterator
from typing import Final

from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from console.root import COMPLETE, root

_SHELLS: Final[tuple[tuple[str, type[ShellComplete]], ...]] = (
    ("usr/share/bash-completion/completions/penstock", BashComplete),
    ("usr/share/zsh/vendor-completions/_penstock", ZshComplete),
    ("usr/share/fish/vendor_completions.d/penstock.fish", FishComplete),
)


def scripts() -> Iterator[tuple[str, str]]:
    """Paths below / and what is in them."""
    for path, shell in _SHELLS:
        made = shell(root, {}, "penstock", COMPLETE)
        # Bash alone is asked for its version before, and this may not be its host.
        yield path, made.source_template % made.source_vars()
