"""No command ends in a traceback or hangs, wherever it stands: without stderr, without a home, with
settings that are broken, and with a server that is away or no broker."""

import itertools
import os

import click
import pytest

from benchmarks.kafka import free_port
from tests.console.every_command import SAMPLES, words
from tests.console.forked_commands import CLOSED, FULL, Forks, leaves
from tests.console.odd_servers import ANSWERS, OddServer

FOUND = dict(leaves())
COMMANDS = [path for path in FOUND if " ".join(path) in SAMPLES]
PROFILES = {
    "broken": b"[profiles.x\nbootstrap = 1\n",
    "not text": b"\xff\xfe\x00a = \x80\n",
    "other types": b'use = 5\n[profiles]\nx = "y"\n',
    "a folder": None,
}
PROPERTIES = {"broken": b"security.protocol=NO\nssl.\xff\n= =\n\\u12", "a folder": None}
MOST_LINES = 12
"""Of stderr: a failure and what to do about it."""
PATIENCE = ("--timeout", "300ms")


def options(path):
    """The spellings of the command's options."""
    params = FOUND[path].params
    return {word for one in params if isinstance(one, click.Option) for word in one.opts}


EVERY = bool(os.environ.get("PENSTOCK_TEST_EVERY_KIND"))


def turns(paths, kinds):
    """Each command with one of the kinds, which take turns; with the variable, with all of them."""
    cycle = itertools.cycle(kinds)
    return [(path, kind) for path in paths for kind in (kinds if EVERY else [next(cycle)])]


def called(value):
    """A name for a command or a kind in the names of tests."""
    return "-".join(value) if isinstance(value, tuple) else str(value).replace(" ", "-")


REMOTE = [path for path in COMMANDS if "--bootstrap-server" in options(path)]
"""Commands that ask a broker."""


@pytest.fixture(scope="module")
def forks(appliance):
    made = Forks(PENSTOCK_BOOTSTRAP=appliance.bootstrap)
    yield made
    made.close()


@pytest.fixture(scope="module")
def places(appliance, run, tmp_path_factory):
    """What the samples name, with letters that ASCII lacks."""
    away = tmp_path_factory.mktemp("Größe-世界")
    file = away / "Datei-é"
    file.write_bytes(b"a = \xff\n")
    run("topic", "create", "samples", "--if-not-exists")
    return {
        "data": appliance.data_dir, "topic": "samples", "group": "sample-readers", "file": file,
        "away": away / "away", "jobs": away / "jobs", "copies": away / "copies",
    }  # fmt: skip


def told(done, typed):
    """What stderr has: no traceback, and not more than a person reads."""
    text = done.stderr.decode(errors="replace")
    for word in ("Traceback", "Exception ignored", "INTERNAL_ERROR", "Exception in thread"):
        assert word not in text, (typed, text)
    assert 0 <= done.returncode < 120, (typed, done.returncode, text)
    assert len(text.splitlines()) <= MOST_LINES, (typed, text)
    return text


@pytest.mark.parametrize(("path", "kind"), turns(COMMANDS, (CLOSED, FULL)), ids=called)
def test_without_a_stderr(forks, places, path, kind):
    typed = words(path, **places)
    whole = forks.run(*typed)
    told(whole, typed)
    done = forks.run(*typed, stderr=kind)
    assert done.returncode == whole.returncode, (kind, typed, whole.stderr)


@pytest.mark.parametrize("path", COMMANDS[::12], ids=called)
def test_without_any_stream(forks, path):
    nothing = forks.run(*path, "--no-such-option", stdout=CLOSED, stderr=CLOSED)
    assert nothing.returncode == 2, path


HOMES = {
    "unset": {},
    "not there": {"HOME": "/nowhere/at/all"},
    "unwritable": {"HOME": "/proc"},
    "a file": {"HOME": "/etc/hostname"},
    "empty": {"HOME": ""},
}
NO_XDG = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"))


@pytest.mark.parametrize(("path", "kind"), turns(COMMANDS, tuple(HOMES)), ids=called)
def test_without_a_home(forks, places, path, kind):
    typed = words(path, **places)
    told(forks.run(*typed, env=NO_XDG | {"HOME": None} | HOMES[kind]), typed)


@pytest.mark.parametrize(("path", "locale"), turns(COMMANDS, ("C", "POSIX")), ids=called)
def test_in_an_alphabet_that_lacks_the_names(forks, places, path, locale):
    typed = words(path, **places)
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    told(forks.run(*typed, encoding="ascii", env=env), typed)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Kind → folder of settings with such profiles; kind → such a file of properties."""
    folder = tmp_path_factory.mktemp("settings")

    def made(path, content):
        if content is None:
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return path

    for number, content in enumerate(PROFILES.values()):
        made(folder / str(number) / "penstock" / "profiles.toml", content)
    profiles = {kind: folder / str(number) for number, kind in enumerate(PROFILES)}
    numbers = enumerate(PROPERTIES.items())
    properties = {kind: made(folder / f"p{number}", one) for number, (kind, one) in numbers}
    return profiles, properties


@pytest.mark.parametrize(("path", "kind"), turns(COMMANDS, tuple(PROFILES)), ids=called)
def test_profiles_that_are_broken(forks, places, settings, path, kind):
    typed = words(path, **places)
    env = {"XDG_CONFIG_HOME": str(settings[0][kind]), "PENSTOCK_BOOTSTRAP": None}
    told(forks.run(*typed, *patient(path, typed), env=env | {"PENSTOCK_PROFILE": "x"}), typed)


WITH_PROPERTIES = [path for path in COMMANDS if "--command-config" in options(path)]


@pytest.mark.parametrize(
    ("path", "kind"), turns(WITH_PROPERTIES, (*PROPERTIES, "not there")), ids=called
)
def test_properties_that_are_broken(forks, places, settings, path, kind):
    typed = words(path, **places)
    file = settings[1].get(kind, "/nowhere/at/all")
    done = forks.run(*typed, *patient(path, typed), "--command-config", str(file))
    assert done.returncode and told(done, typed), (file, typed)


def patient(path, typed):
    """So that nobody waits for 30 seconds for what never comes."""
    return PATIENCE if "--timeout" in options(path) and "--timeout" not in typed else ()


@pytest.mark.parametrize("path", REMOTE, ids=called)
def test_a_server_that_is_away(forks, places, path):
    typed = [*words(path, **places), *patient(path, words(path, **places))]
    done = forks.run(*typed, env={"PENSTOCK_BOOTSTRAP": f"127.0.0.1:{free_port()}"})
    text = told(done, typed)
    assert done.returncode == 0 or text or done.stdout, typed


MET = [(("group", "list"), "hangs up")]
"""What ended as a fault of the command."""


@pytest.fixture(scope="module")
def servers():
    made = {kind: OddServer(kind) for kind in ANSWERS}
    yield made
    for one in made.values():
        one.close()


@pytest.mark.parametrize(("path", "kind"), turns(REMOTE, tuple(ANSWERS)) + MET, ids=called)
def test_a_server_that_is_no_broker(forks, places, servers, path, kind):
    typed = [*words(path, **places), *patient(path, words(path, **places))]
    done = forks.run(*typed, env={"PENSTOCK_BOOTSTRAP": servers[kind].address})
    text = told(done, typed)
    assert done.returncode == 0 or text or done.stdout, typed
