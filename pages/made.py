"""Which pages are made of code, and of what."""

from collections.abc import Callable
from typing import Final

from console.model.monitoring import page as metrics
from pages import apis, bounds, commands, errors, events, settings

PAGES: Final[dict[str, Callable[[], str]]] = {
    "docs/reference/settings.md": settings.text,
    "docs/reference/commands.md": commands.text,
    "docs/reference/bounds.md": bounds.text,
    "docs/reference/apis.md": apis.text,
    "docs/reference/errors.md": errors.text,
    "docs/reference/events.md": events.text,
    "docs/metrics.md": metrics.text,
}
"""Path below the checkout → what makes its text."""
