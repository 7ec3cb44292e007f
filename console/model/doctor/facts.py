"""Facts of a host and of the appliance on it, as plain values. Sizes are in bytes."""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.ring.bound_table import ReachedBound
from appliance.ring.security_table import LoginCount
from console.model.access.certificates import Shown


@dataclass(slots=True, frozen=True)
class Space:
    """A file system. free: for whoever is not root. inodes: 0 where they are not counted."""

    total: int
    free: int
    inodes: int = 0
    inodes_free: int = 0


@dataclass(slots=True, frozen=True)
class Mount:
    """Where a path lies: the kind of file system and its options."""

    kind: str
    options: frozenset[str]


@dataclass(slots=True, frozen=True)
class Owner:
    """mode: the permission bits. changed_s: when it was last written, by the wall clock."""

    uid: int
    mode: int
    changed_s: float


@dataclass(slots=True, frozen=True)
class Folder:
    """A log folder. What cannot be looked into is None; problem: the error that the appliance says
    it is offline with. formatted: it is an appliance's; any other folder's owner and rights are
    nobody's business here, least of all to be changed."""

    path: str
    space: Space | None
    mount: Mount | None = None
    owner: Owner | None = None
    problem: str = ""
    formatted: bool = False


@dataclass(slots=True, frozen=True)
class Process:
    """One process of the appliance. files_limit: 0 when it is not known. swapped: bytes in swap.
    shared, touched: bytes of shared memory that it may use, and that it has used."""

    name: str
    pid: int
    uid: int
    files_open: int
    files_limit: int
    maps: int
    swapped: int
    shared: int = 0
    touched: int = 0


@dataclass(slots=True, frozen=True)
class Listening:
    """A socket of this host that listens. any_host: at every address. ours: an appliance's process
    has it, which is known for the one that is looked at."""

    address: str
    port: int
    any_host: bool
    ours: bool


@dataclass(slots=True, frozen=True)
class Advertised:
    """Where clients are sent. problem: why a connection to it failed, "" when it did not. shown:
    what a listener with TLS shows there, at looked_s by the wall clock; None: it is none."""

    node: int
    host: str
    port: int
    problem: str
    own: bool
    shown: Shown | None = None
    looked_s: float = 0.0


@dataclass(slots=True, frozen=True)
class Unit:
    """The systemd unit that an appliance runs in, with its limits; None: there is none."""

    name: str
    memory: int | None
    tasks: int | None
    tasks_now: int
    cpus: float | None


@dataclass(slots=True, frozen=True)
class Clock:
    """synchronised: None when the kernel does not say. jumped_s: how far the wall clock has been
    set since the appliance started, by what it wrote down then; 0.0 when none runs."""

    wall_s: float
    synchronised: bool | None
    jumped_s: float = 0.0


@dataclass(slots=True, frozen=True)
class System:
    """settings: of vm., by name. huge_pages: the mode in force, "" when there are none."""

    release: str
    machine: str
    python: tuple[int, int]
    compiled: bool
    cpus: int
    memory: int
    memory_available: int
    swap: int
    swap_free: int
    settings: Mapping[str, int]
    huge_pages: str
    shared: Space | None
    too_old: tuple[tuple[str, str, str], ...] = ()
    """(distribution, its version or "" when it is missing, the least that is declared)."""


@dataclass(slots=True, frozen=True)
class RefusedLogin:
    """A login of this node that another node refuses. address: HOST:PORT of that one. listener: by
    which nodes reach one another. cause: as that node, or its listener, says it."""

    address: str
    listener: str
    cause: str


@dataclass(slots=True, frozen=True)
class Facts:
    """host: None when the appliance is on another one. uid: of who asks. files_limit: what an
    appliance that this user starts could have. processes: none while no appliance runs."""

    uid: int
    host: System | None
    clock: Clock | None
    folders: tuple[Folder, ...]
    files_limit: int = 0
    partitions: int = 0
    processes: tuple[Process, ...] = ()
    listening: tuple[Listening, ...] = ()
    advertised: tuple[Advertised, ...] = ()
    unit: Unit | None = None
    remarks: tuple[str, ...] = ()
    logins: tuple[LoginCount, ...] = ()
    """Logins since the start, by listener and mechanism."""
    refused_logins: tuple[RefusedLogin, ...] = ()
    """Logins of this node at other nodes that were refused just now."""
    bounds: tuple[ReachedBound, ...] = ()
    """Bounds of what clients may use that were reached since the start."""

    @property
    def runs(self) -> bool:
        """True if the facts include a running appliance of this host."""
        return bool(self.processes)
