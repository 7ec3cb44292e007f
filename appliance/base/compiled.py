"""Hints for the compiler of the hot modules, without effect in an interpreter.

`@mypyc_attr(allow_interpreted_subclasses=True)` on a compiled class lets a test put a subclass of
its own in the place of ours.
"""

from typing import Any

try:
    from mypy_extensions import mypyc_attr
except ImportError:  # it comes with the compiler

    def mypyc_attr(*attrs: str, **kwattrs: object) -> Any:  # type: ignore[misc]
        """Returns a decorator without effect: this code is interpreted."""
        return lambda decorated: decorated


__all__ = ["mypyc_attr"]
