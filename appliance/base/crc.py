"""CRC32C (Castagnoli) of a buffer: `crc32c(data, value=0) -> int`, value: of what came before it.

It is the C function of the package of that name. The package itself imports the parser of its own
command line and looks up its own version, by which 50 modules come along that every process would
keep: so its extension is loaded without it, and the package only where that is not found.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final


def _found() -> Callable[..., int]:
    package = find_spec("crc32c")  # which does not run it
    places = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c as of_package

        return of_package
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., int] = module.crc32c
    return found


crc32c: Final = _found()
