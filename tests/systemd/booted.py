"""systemd as process 1 of a container, with Penstock installed there as docs/systemd.md says.

Its files are the host's own, and what it writes goes to memory (overlay on tmpfs); its network is a
loopback of its own. Mounts live in a mount namespace, so nothing is left when the container ends.

It ends when the process that started it does, however that ends. A container's process 1 outlives
a killed systemd-nspawn, so a process of its own session (`_ENDS`) kills everything that has the
container's mounts. Needs root and systemd-nspawn.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
READY_LIMIT_S = 60
LOOK_S = 0.5
COMMAND_LIMIT_S = 300
_STARTS = """
set -e
mount -t tmpfs tmpfs /run  # nspawn leaves a folder there
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
rm -f "$1/root/etc/machine-id"
place=$1; shift
trap 'kill -TERM "$boot"' TERM
trap 'again=yes' USR1
set +e
again=yes
while [ "$again" ]; do
    again=
    setpriv --pdeathsig KILL systemd-nspawn --directory="$place/root" "$@" &
    boot=$!
    while kill -0 "$boot" 2>/dev/null; do wait "$boot"; done
done
"""
"""TERM powers it off. After USR1 it boots once more, when it has ended, over what its disk has."""
_ENDS = """
import os, sys, time
from pathlib import Path

sys.stdin.read()  # its end: the process that started this one has ended
mark, me, quiet = sys.argv[1], os.getpid(), 0
while quiet < 5:  # a process may be forking meanwhile
    quiet += 1
    for one in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (one / "mountinfo").read_text() and int(one.name) != me:
                os.kill(int(one.name), 9)
                quiet = 0
        except OSError:
            pass
    time.sleep(0.1)
"""
_SCRIPT = """\
#!/opt/penstock/bin/python
import sys
from console import main
sys.exit(main())
"""


def impossible():
    """Why no systemd can be booted here; None when it can be tried."""
    if os.geteuid() != 0:
        return "only root can boot a container"
    for program in ("systemd-nspawn", "unshare", "nsenter", "setpriv"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: systemd-container, util-linux)"
    return None


def _packages():
    """Folders with this interpreter's packages → where they are in the container."""
    found = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    return {path: f"/opt/packages-{number}" for number, path in enumerate(found)}


def processes(place):
    """Ids of the processes that have the mounts of the container at `place`."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if _mount(place) in (one / "mountinfo").read_text():
                found.append(int(one.name))
    return found


def _mount(place):
    """What stands in /proc/PID/mountinfo of each process of the container."""
    return f"upperdir={place}/upper,"


class NotBooted(Exception):
    """The host does not let systemd-nspawn boot; the text has what it said."""


class Booted:
    """A booted systemd. `run` is a command in it, as its root."""

    def __init__(self, place):
        place.mkdir()
        self._log = place.with_suffix(".log")
        self._mark = uuid.uuid4().hex[:12]
        self._said = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._said.bind(f"\0penstock-{self._mark}")
        self._said.settimeout(LOOK_S)
        self._ends = subprocess.Popen(
            [sys.executable, "-c", _ENDS, _mount(place)],
            stdin=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(place), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=os.environ | {
                    "NOTIFY_SOCKET": f"@penstock-{self._mark}",
                    "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",
                },
            )  # fmt: skip
        self._boots()

    def _boots(self):
        try:
            self._leader = self._wait(self._said)
        except BaseException:
            self.close()
            raise

    def cut_the_power(self):
        """Everything in it is gone at once, and it boots again over what its disk has."""
        self._process.send_signal(signal.SIGUSR1)
        os.kill(self._leader, signal.SIGKILL)  # process 1: the kernel ends all others with it
        self._boots()

    def _command(self, place):
        binds = {sys.base_prefix: "/opt/python", CHECKOUT: "/opt/checkout"} | _packages()
        return [
            "setpriv", "--pdeathsig", "KILL",
            "unshare", "--mount", "--propagation", "private", "sh", "-c", _STARTS, "sh", place,
            f"--machine=penstock-{self._mark}", "--register=no", "--keep-unit",
            "--private-network", "--link-journal=no", "--console=pipe", "--notify-ready=yes",
            # The unit allows them, and a container of systemd 252 by itself does not.
            "--system-call-filter=landlock_create_ruleset landlock_restrict_self",
            *(f"--bind-ro={outer}:{inner}" for outer, inner in binds.items()),
            "--boot", "systemd.unit=basic.target",
        ]  # fmt: skip

    def _wait(self, said):
        """The pid of the container's process 1, when it has booted."""
        leader, end = None, time.monotonic() + READY_LIMIT_S
        while True:
            try:
                told = said.recv(4096).decode()
            except TimeoutError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise NotBooted(f"systemd-nspawn did not boot: {self.said()}") from None
                continue
            for line in told.splitlines():
                name, _, value = line.partition("=")
                if name == "X_NSPAWN_LEADER_PID":
                    leader = int(value)
                elif line == "READY=1" and leader is not None:
                    return leader

    def said(self):
        return self._log.read_text(errors="replace")[-2000:]

    def run(self, *words, code=0, stdin=""):
        """What a command in the container prints. It must end with `code`; None: as it likes."""
        done = subprocess.run(
            ["nsenter", *self._spaces(), *map(str, words)],
            capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False, input=stdin,
        )  # fmt: skip
        if code is not None:
            said = f"{done.stdout}{done.stderr}{self.journal('penstock*')}"
            assert done.returncode == code, f"{words}\n{said}"
        return done.stdout

    def penstock(self, *words, **more):
        """The command, as the user of the units."""
        program = ["runuser", "-u", "penstock", "--", "/opt/penstock/bin/penstock"]
        return self.run(*program, *words, **more)

    def show(self, unit, name):
        """One property of a unit."""
        return self.run("systemctl", "show", "-P", name, unit).strip()

    def journal(self, unit):
        """What a unit said in its newest run, and systemd of it; of a pattern: the last lines."""
        which = ["-n", "60", "-u", unit]
        if "*" not in unit:
            which = [f"_SYSTEMD_INVOCATION_ID={self.show(unit, 'InvocationID')}", "+",
                     f"INVOCATION_ID={self.show(unit, 'InvocationID')}"]  # fmt: skip
        return self.run("journalctl", "--no-pager", "-o", "cat", *which, code=None)

    def install(self):
        """Penstock as docs/systemd.md says, of this interpreter and this checkout."""
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = f"/opt/penstock/lib/{python}/site-packages"
        self.run("mkdir", "-p", "/opt/penstock/bin", packages)
        self.run("ln", "-s", f"/opt/python/bin/{python}", "/opt/penstock/bin/python")
        self.write(
            "/opt/penstock/pyvenv.cfg",
            "home = /opt/python/bin\ninclude-system-site-packages = false\n",
        )
        self.write(
            f"{packages}/penstock.pth", "\n".join(["/opt/checkout", *_packages().values(), ""])
        )
        # Or a Python whose library lies beside it takes the one of Debian, in another version.
        self.write("/etc/ld.so.conf.d/00-python.conf", "/opt/python/lib\n")
        self.run("ldconfig")
        self.write("/opt/penstock/bin/penstock", _SCRIPT, mode="755")
        self.run("/opt/penstock/bin/penstock", "service", "install", "--jobs", "--no-start")

    def copy(self, outer, inner):
        """A file of the host into the container."""
        with open(outer, "rb") as file:
            subprocess.run(
                ["nsenter", *self._spaces(), "tee", inner], stdin=file, stdout=subprocess.DEVNULL,
                check=True, timeout=COMMAND_LIMIT_S,
            )  # fmt: skip

    def _spaces(self):
        kinds = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd"]
        return [f"--target={self._leader}", *kinds]

    def write(self, path, text, mode="644"):
        """A file in the container."""
        script = 'printf %s "$1" > "$2"; chmod "$3" "$2"'
        self.run("sh", "-c", script, "sh", text, path, mode)

    def close(self):
        """Power it off; without mercy when it does not obey."""
        self._said.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._ends.stdin.close()
        self._ends.wait()
