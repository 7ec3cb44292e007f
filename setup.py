"""Pure Python unless asked: with PENSTOCK_COMPILE=1 in the environment mypyc compiles the modules
that every request passes through. The source is the same; see docs/decisions/0008.
"""

import os
import tomllib
from pathlib import Path

from setuptools import setup

HOT = {
    "ring": ["ring"],
    "wire": [
        "produce", "fetch", "request_head", "batch_header", "batch", "varint", "record_walk",
    ],
    "handlers": ["exchange", "k00_produce", "k01_fetch", "fetch_sessions"],
    "ioproc": ["core", "asker", "partition", "syncing", "rows", "reading", "coordinating"],
    "shell": ["links", "loop"],
    "netproc": [
        "connection", "routes", "slabs", "server", "cursors", "outbox", "page_cache",
    ],
    "logstore": [
        "log", "log_state", "segment", "indexes", "lookup", "producer_state", "epochs", "flush",
    ],
}  # fmt: skip

if os.environ.get("PENSTOCK_COMPILE") == "1":
    try:
        from mypyc.build import mypycify
    except ImportError:
        # The compiler reads the types of what we import, so the build needs all of that too.
        project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
        setup(setup_requires=["mypy>=1.18", *project["dependencies"]])
    else:
        hot = [f"appliance/{room}/{name}.py" for room, names in HOT.items() for name in names]
        setup(ext_modules=mypycify(hot, opt_level="3"))
else:
    setup()
