"""Compiles the modules that every request passes through, when a wheel is built where C can be.

mypyc makes them of the same source; what it gives is in docs/decisions/0008. PENSTOCK_COMPILE=0
leaves everything interpreted; PENSTOCK_COMPILE=1 compiles for an editable installation too, and
fails where that is not possible. Without it a failure is reported and the wheel is interpreted.
"""

import gc
import os
import shutil
import sys
import sysconfig
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # a build backend leaves the project's own folder out
from pages.release import version  # noqa: E402

HOT = {
    "authorization": ["authorizer", "rights", "standard"],
    "ring": ["counters", "ring"],
    "wire": [
        "produce", "fetch", "request_head", "batch_header", "batch", "varint", "record_walk",
        "offset_messages", "own_batch", "fields", "plain", "messages", "markers", "error_codes",
        "ranges",
    ],
    "handlers": [
        "coordinate", "exchange", "k00_produce", "k01_fetch", "fetch_answer", "fetch_look",
        "fetch_rights", "fetch_sessions", "fetch_state", "fetch_watch", "sequence_gap_guard",
        "transactional_produce", "transaction_verification",
    ],
    "ioproc/requests": ["appends", "reads"],
    "ioproc/turn": ["dispatch", "core"],
    "ioproc": ["netproc_peer", "partition_failures", "main", "served_partitions", "ioproc_peers"],
    "ioproc/durability": ["journals", "group_commit"],
    "ioproc/partitions": [
        "partition", "file_positions", "read_rules", "partition_rows", "fetch_watches",
    ],
    "ioproc/coordination": [
        "marker_sender", "coordinator_host", "coordinator_partition", "pending_requests",
    ],
    "coordinators/runtime": ["call", "records", "routing", "shard", "turn"],
    "coordinators/transactions": [
        "answers", "delayed_requests", "partitions", "record_bytes", "replay", "routing", "shard",
        "state", "transaction", "transaction_end",
    ],
    "coordinators/groups": [
        "offsets", "offset_fetch", "offset_records", "offset_store", "pending_offsets", "replay",
        "routing", "shard", "transactional_offsets",
    ],
    "replication": ["progress"],
    "shell": ["answers", "links", "loop"],
    "netproc/transport": ["transport"],
    "netproc/connections": [
        "client_activity", "connection", "connection_states", "connection_sweep", "connections",
        "connections_state", "frame_pace", "framing", "long_answers", "receivers", "send_queue",
    ],
    "netproc/requests": ["partition_routes", "intake", "host", "completions", "metadata_replay"],
    "netproc/memory": ["slabs", "admission"],
    "netproc": ["server"],
    "netproc/files": ["fetch_cursors", "page_cache", "segment_files"],
    "netproc/in_flight": ["exchanges", "outbox"],
    "logstore": [
        "log", "active", "segments", "segment", "indexes", "lookup", "producer_state", "epochs",
        "flush", "fast_sync", "journal",
    ],
}  # fmt: skip

MUST = os.environ.get("PENSTOCK_COMPILE") == "1"
NEVER = os.environ.get("PENSTOCK_COMPILE") == "0"
SPLIT = os.environ.get("PENSTOCK_COMPILE_SPLIT") != "0"
"""One C file for each module, compiled side by side in groups: less than half of a single file's
processor time, and requests cost the same (docs/decisions/0008)."""
GROUP_BYTES = 2_400_000
"""Of C files in one group: the headers take longer than a small module."""
MOST_ALIKE = 16
"""Shims in one library, which is copied under the name of each."""
LEVEL = os.environ.get("PENSTOCK_COMPILE_LEVEL") or ("3" if MUST else "g")
"""How much the C compiler optimizes. Who installs from source waits for it: level g takes six
tenths of level 1's time, and what is published is made with 3 (docs/decisions/0008, 0111)."""
TYPED = ("kio", "zstandard", "cryptography", "pyjwt")
"""Dependencies with types that the hot modules reach. What has none is the same C without it."""


def can_compile() -> bool:
    """Whether there is a C compiler, and Python's headers for it."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return shutil.which(compiler) is not None and headers.exists()


def requirements() -> list[str]:
    """What mypyc needs: itself, and the dependencies whose types it reads."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    return ["mypy>=1.18", *(one for one in project["dependencies"] if one.startswith(TYPED))]


def extensions() -> list[Extension]:
    """The hot modules as C, and none where there is no mypyc or it refuses."""
    try:
        from mypyc.build import mypycify

        hot = [f"appliance/{room}/{name}.py" for room, names in HOT.items() for name in names]
        made = mypycify(
            hot, opt_level=LEVEL, debug_level="0", group_name="appliance", multi_file=SPLIT
        )
        gc.freeze()  # three million objects of mypy stay: at its end Python looks through them
        return list(made)
    except (ImportError, SystemExit) as why:
        if MUST:
            raise
        sys.stderr.write(f"warning: Penstock stays interpreted: mypyc: {why}\n")
        return []


def group(sources: list[str], folder: str) -> list[str]:
    """The C files to compile instead of `sources`: those of mypyc for our modules are included by
    a few files in `folder`, so that the headers, as long as a small module, are read less often;
    so are those of its runtime."""
    ours = [one for one in sources if Path(one).name.startswith("__native_appliance___")]
    ours.sort(key=lambda one: (-Path(one).stat().st_size, one))
    bins = max(1, sum(Path(one).stat().st_size for one in ours) // GROUP_BYTES)
    # mypyc's runtime; it can be one file, as mypyc makes it of a program in one file.
    runtime = [one for one in sources if ours and not Path(one).name.startswith("__native")]
    groups = [some for some in (*(ours[number::bins] for number in range(bins)), runtime) if some]
    made = []
    for number, some in enumerate(groups):
        file = Path(folder) / f"group{number}.c"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f'#include "{Path(one).resolve()}"\n' for one in some))
        made.append(str(file))
    return made + [one for one in sources if one not in ours and one not in runtime]


def alike(shims: list[Extension]) -> list[list[Extension]]:
    """Shims that can be one library: mypyc's shim of a module has the last part of its name as the
    symbol, so modules of the same last part are in different ones."""
    found: list[dict[str, Extension]] = []
    for one in shims:
        last = one.name.rpartition(".")[2]
        fitting = (names for names in found if last not in names and len(names) < MOST_ALIKE)
        free = next(fitting, None)
        if free is None:
            found.append(free := {})
        free[last] = one
    return [list(names.values()) for names in found]


class AllOrNothing(build_ext):
    """The extensions call each other, so a part of them is worse than none. C files are compiled
    side by side, several modules in each. Of the shims, one for each module, a few libraries are
    compiled and copied under all names: the compiler and the linker start less often."""

    def build_extensions(self) -> None:
        compile_one_by_one = self.compiler.compile

        def compile_side_by_side(sources: list[str], **options: object) -> list[str]:
            grouped = group(sources, self.build_temp)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda source: compile_one_by_one([source], **options), grouped)
                return [file for files in made for file in files]

        self.compiler.compile = compile_side_by_side
        # mypyc's own library is beside the packages, the shims are in them.
        shims = [one for one in self.extensions if "." in one.name]
        for number, some in enumerate(alike(shims)):
            self.build_alike(some, f"{self.build_temp}/shims{number}.c")
        for one in self.extensions:
            if one not in shims:
                self.build_extension(one)

    def build_alike(self, shims: list[Extension], file: str) -> None:
        """Compile `file`, which includes all of these shims, and copy the library for each."""
        text = "".join(
            f"#define PyInit___init__ PyInit_unused_{number}\n"
            f'#include "{Path(one.sources[0]).resolve()}"\n#undef PyInit___init__\n'
            for number, one in enumerate(shims)
        )
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text)
        shims[0].sources = [file]
        self.build_extension(shims[0])
        for one in shims[1:]:
            place = Path(self.get_ext_fullpath(one.name))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.get_ext_fullpath(shims[0].name), place)

    def run(self) -> None:
        try:
            super().run()
        except Exception as why:
            if MUST:
                raise
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            self.warn(f"Penstock stays interpreted, its hot modules do not compile: {why}")


class WithUnits(build_py):
    """systemd's units go along as data of the command that installs them."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            shutil.copytree(
                "systemd", f"{self.build_lib}/console/model/service/units", dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("README.md"),
            )  # fmt: skip


wished = MUST or (not NEVER and can_compile())
building = {"bdist_wheel"} | ({"build_ext", "editable_wheel"} if MUST else set())
setup(
    # The installer asks first what is needed, then for the metadata, then for the wheel.
    setup_requires=requirements() if wished and "egg_info" in sys.argv else [],
    ext_modules=extensions() if wished and building & set(sys.argv) else [],
    version=version.of(HERE),
    cmdclass={"build_ext": AllOrNothing, "build_py": WithUnits},
)
