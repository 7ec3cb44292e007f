"""A browser of this host without a window, told what to do over its own protocol (Chrome DevTools):
where to go, how large its screen is, which keys are pressed; and what it shows and asked for."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT_S = 60.0


def find_browser():
    """The path of the program, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@asynccontextmanager
async def opened(width, height, *, is_phone=False):
    """A page of so many CSS pixels."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        words = [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                 "--remote-debugging-port=0", f"--user-data-dir={home}"]  # fmt: skip
        process = subprocess.Popen(
            [*words, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            async with aiohttp.ClientSession() as session:
                page = Page(await _connected(session, Path(home) / "DevToolsActivePort"))
                hearing = asyncio.create_task(page.hear())
                await page.begin(width, height, is_phone)
                yield page
                hearing.cancel()
        finally:
            process.terminate()
            process.wait(LIMIT_S)


async def _connected(session, told):
    async with asyncio.timeout(LIMIT_S):
        while not told.exists() or not told.read_text().count("\n"):
            await asyncio.sleep(0.05)
    port = told.read_text().split()[0]
    async with session.get(f"http://127.0.0.1:{port}/json") as answer:
        targets = await answer.json()
    address = next(one["webSocketDebuggerUrl"] for one in targets if one["type"] == "page")
    return await session.ws_connect(address, max_msg_size=0)


class Page:
    """asked, sockets: the addresses that it asked for. wrong: what its console said of errors.
    heard: what came over its WebSockets."""

    def __init__(self, channel):
        self._channel = channel
        self._number = 0
        self._waiting = {}
        self.asked, self.sockets, self.wrong, self.heard = [], [], [], b""

    async def hear(self):
        async for message in self._channel:
            told = json.loads(message.data)
            method, params = told.get("method", ""), told.get("params", {})
            if "id" in told:
                self._waiting.pop(told["id"]).set_result(told)
            elif method == "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            elif method == "Network.webSocketCreated":
                self.sockets.append(params["url"])
            elif method == "Network.webSocketFrameReceived":
                frame = params["response"]
                data = frame["payloadData"]
                self.heard += base64.b64decode(data) if frame["opcode"] == 2 else data.encode()
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                self.wrong.append(params["entry"]["text"])
            elif method == "Runtime.exceptionThrown":
                self.wrong.append(params["exceptionDetails"]["text"])

    async def begin(self, width, height, is_phone):
        for domain in ("Page", "Network", "Log", "Runtime"):
            await self.ask(f"{domain}.enable")
        size = {"width": width, "height": height, "screenWidth": width, "screenHeight": height}
        size["deviceScaleFactor"] = 2 if is_phone else 1
        await self.ask("Emulation.setDeviceMetricsOverride", **size, mobile=is_phone)
        await self.ask("Emulation.setFocusEmulationEnabled", enabled=True)
        if is_phone:
            await self.ask("Emulation.setTouchEmulationEnabled", enabled=True)

    async def ask(self, method, **params):
        self._number += 1
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._channel.send_json({"id": self._number, "method": method, "params": params})
        told = await asyncio.wait_for(answer, LIMIT_S)
        assert "error" not in told, told
        return told["result"]

    async def go_to(self, address):
        await self.ask("Page.navigate", url=address)

    async def value(self, expression):
        """What an expression of JavaScript is in the page."""
        told = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return told["result"].get("value")

    async def until(self, expression):
        """Wait until it is true in the page."""
        async with asyncio.timeout(LIMIT_S):
            while not await self.value(expression):
                await asyncio.sleep(0.05)

    async def hears(self, words):
        """Wait until this came."""
        async with asyncio.timeout(LIMIT_S):
            while words.encode() not in self.heard:
                await asyncio.sleep(0.05)

    async def tap(self, x, y):
        """A finger, in CSS pixels."""
        await self.ask("Input.synthesizeTapGesture", x=x, y=y, gestureSourceType="touch")

    async def press(self, key):
        """A letter, a digit or a sign."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def photograph(self, path):
        told = await self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(told["data"]))
