"""`penstock console --web`: the same console in a browser of this host.

Only the loopback address is listened to, and only a browser with the token of the printed address
is answered: other users of the host have not got it. The token leaves the address bar for the
storage of the tab. There is no cookie: a browser sends cookies to every port of a host, so a page
that another user serves would be given it. Requests of other sites' pages are refused by Origin,
names that lead here by Host, and the page loads nothing from elsewhere (Content-Security-Policy).
"""

import os
import re
import secrets
import shlex
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from console.called import CALLED, called
from console.model.asking.failure import OK, usage
from console.model.asking.link import Link
from console.show.output import print_note
from penstock import tied
from penstock.local import OURSELVES

_HOST: Final = "127.0.0.1"
_STATIC: Final = "/static/"
_FONT: Final = "static/fonts/RobotoMono-VariableFont_wght.ttf"
"""Comes with textual-serve, whose page asks another site for it."""
_FONT_OF_OTHERS: Final = re.compile(r'<link[^>]*href="https?://fonts\.[^>]*>')
_HEAD: Final = f"""<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>
@font-face {{ font-family: "Roboto Mono"; font-weight: 100 700; src: url("/{_FONT}"); }}
html, body, body .shade {{ margin: 0; overflow: hidden; background: #0e1217; }}
</style>"""
_COLUMNS: Final = 80
"""The least that a page shows: on a telephone the letters are smaller."""
_FOOT: Final = f"""<script>
sessionStorage.setItem("token", new URLSearchParams(location.search).get("token"));
history.replaceState(null, "", "/");
const wide = Math.min(window.innerWidth, screen.width);  // a page may not know yet how wide it is
const cell = wide / {_COLUMNS} / 0.6;  // a letter's width, of its height
const terminal = document.getElementById("terminal");
if (cell < terminal.dataset.fontSize) terminal.dataset.fontSize = Math.max(6, Math.floor(cell));
new MutationObserver((_, seen) => {{  // keys go to the console at once
  const keys = terminal.querySelector("textarea");
  if (!keys || !document.body.classList.contains("-first-byte")) return;
  keys.focus();
  seen.disconnect();
}}).observe(document.body, {{attributes: true, attributeFilter: ["class"], subtree: true}});
</script></body>"""
_REFUSED: Final = """<!DOCTYPE html><meta charset="utf-8"><title>penstock console</title>
<p>open the address that penstock console --web has printed</p>
<script>
const token = sessionStorage.getItem("token");  // a tab that was let in is loaded again
if (token && !location.search) location.replace("/?token=" + encodeURIComponent(token));
</script>"""
_BACKSLASH: Final = "\\"
_NEW_LINE: Final = _BACKSLASH + "n"  # of a certificate as PEM


def serve(
    link: Link, place: tuple[str, ...], jobs: str | None, port: int, *, read_only: bool
) -> int:
    """Until Ctrl-C. Every browser that opens it has a console of its own. Raises Failure."""
    if find_spec("textual_serve") is None:
        raise usage("--web needs textual-serve", "pip install '.[web]' brings it")
    token = secrets.token_urlsafe(16)
    with socket.socket() as door, _properties(link) as file:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((_HOST, port))
        except OSError as problem:
            remedy = "choose another one with --port; 0 takes a free one"
            raise usage(f"port {port}: {problem.strerror}", remedy) from None
        port = door.getsockname()[1]
        command = [*OURSELVES, "console", *place, "-b", link.bootstrap]
        command += ["--command-config", file] if file else []
        command += ["--jobs", jobs] if jobs else []
        command += ["--read-only"] if read_only else []

        def ready(_: str) -> None:
            print_note(f"http://{_HOST}:{port}/?token={token}")
            print_note("Ctrl-C ends it.")

        # textual-serve hands these to every browser's console.
        os.environ |= tied.environment() | {CALLED: called()}
        _run(shlex.join(command), door, token, ready)
    return OK


@contextmanager
def _properties(link: Link) -> Iterator[str]:
    """A file with what the link's clients are told beyond the address, passwords among it, which
    nobody else may read; "" when that is nothing."""
    told = {key: value for key, value in link.properties.items() if key != "bootstrap.servers"}
    if not told:
        yield ""
        return
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
        for key, value in told.items():
            told_so = value.replace(_BACKSLASH, 2 * _BACKSLASH).replace("\n", _NEW_LINE)
            file.write(f"{key}={told_so}\n")
        file.flush()
        yield file.name


def _is_same(shown: str, wanted: str) -> bool:
    """In a time that does not tell how much of it is right."""
    return secrets.compare_digest(shown.encode(), wanted.encode())


def _headers(here: str) -> dict[str, str]:
    """Returns the headers of every page. The script in the page itself is textual-serve's."""
    return {
        "Content-Security-Policy": "default-src 'none'; script-src 'self' 'unsafe-inline'; "
        "style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data:; "
        f"connect-src 'self' ws://{here}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cache-Control": "no-store",
    }


def _run(command: str, door: socket.socket, token: str, ready: Callable[[str], None]) -> None:
    """textual-serve's pages behind a guard: the page is for who has the token, and only the page
    says where its WebSocket is. The files that come with textual-serve are for everybody."""
    from aiohttp import web
    from textual_serve.server import Server

    here = f"{_HOST}:{door.getsockname()[1]}"
    channel = f"/ws/{secrets.token_urlsafe(16)}"
    headers = _headers(here)

    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        if (
            request.host != here
            or request.headers.get("Origin", f"http://{here}") != f"http://{here}"
        ):
            raise web.HTTPForbidden(text=f"this is http://{here} for its own pages alone")
        is_page = request.path == "/" and _is_same(request.query.get("token", ""), token)
        if not (is_page or _is_same(request.path, channel) or request.path.startswith(_STATIC)):
            raise web.HTTPForbidden(text=_REFUSED, content_type="text/html", headers=headers)
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers.update(headers)
            if is_page and isinstance(response, web.Response):
                page = _FONT_OF_OTHERS.sub(_HEAD, response.text or "")
                page = page.replace(f'ws://{here}/ws"', f'ws://{here}{channel}"')
                response.text = page.replace("</body>", _FOOT)
        return response

    class Guarded(Server):  # type: ignore[misc]
        async def on_startup(self, app: web.Application) -> None:
            """Its own says hello."""

    async def made() -> web.Application:
        app: web.Application = await server._make_app()
        app.middlewares.append(web.middleware(guard))
        app.router.add_get(channel, server.handle_websocket)
        return app

    server = Guarded(command, _HOST, door.getsockname()[1], "penstock console")
    web.run_app(made(), sock=door, print=ready, access_log=None)
