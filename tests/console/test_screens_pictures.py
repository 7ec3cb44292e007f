"""Every place as a picture, in both sizes and both themes, of an appliance whose answers never
change. `NEW_PICTURES=1 pytest tests/console/test_screens_pictures.py` draws them again: look at
what changed in `git diff`.

The pictures are text, since that can be read in a diff; what the themes do to it, colours, is held
to the contrast that WCAG asks for.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from textual.widget import Widget

from console.model.quotas.quota_rules import Client
from console.screens.places import Place
from tests.console import calm_access, calm_world
from tests.console.draw import DOCS, SELECTED
from tests.console.photograph import words_of
from tests.console.seat import LARGE, SMALL, sit
from tests.console.test_screens_hostile import told
from tests.console_process import typing

PICTURES = Path(__file__).parent / "pictures"
PLACES = (
    Place("overview"), Place("topics"), Place("topic", "orders"), Place("groups"),
    Place("group", "reports"), Place("quotas"), Place("jobs"), Place("job", "revenue"),
    Place("clients"), Place("txns"), Place("deleted"), Place("log"),
    Place("quota", Client("", "loader").text), Place("record", "orders 0:89990"),
    Place("preview", "revenue"), Place("records", "orders"), Place("nodes"), Place("users"),
    Place("acls"), Place("can", calm_access.QUESTION), Place("audit"), Place("certificates"),
    Place("topology"), Place("heat"),
)  # fmt: skip
IN_A_CLUSTER = (Place("nodes"), Place("overview"), Place("topic", "orders"), Place("groups"))
LEAST = 2.4
"""Contrast of the faintest words, which are hints; 1 is invisible."""
AGE = re.compile(r" +[●○◌] +\S+ \S+ *$")


@pytest.fixture(scope="module")
def shop(alone):
    """An appliance with the orders that are listed; everything else is made up."""
    fill(alone.bootstrap)
    return alone


def fill(bootstrap):
    """Forty orders."""
    typing(bootstrap)("topic", "create", "orders", "-p", "3", "-c", "retention.ms=-1")
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1000})
    for n in range(40):
        order = {"id": 9_007_199_254_740_993 + n, "total": n * 1.25, "paid": n % 3 == 0}
        value, key = json.dumps(order), f"customer-{n % 7}"
        told = [None, "null", b"\x82\xa2id\x2a\xa4paid\xc3"][n - 37] if n >= 37 else value
        at = calm_world.NOW_MS - 60_000 + n * 1500
        headers = [("trace", b"%d" % n)] if n % 2 else None
        producer.produce("orders", told, key, n % 3, timestamp=at, headers=headers)
    assert producer.flush(30) == 0


@pytest.fixture
def still(monkeypatch):
    """The clock on the wall stands, in a zone that all agree on."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: calm_world.NOW_S)
    yield
    monkeypatch.undo()
    time.tzset()


def prepared(app):
    told(calm_world.answers())(app)
    app.world.cluster.ask = lambda: calm_world.answers()["cluster"]


def looked(lines, address):
    """A screen without what differs from run to run: how old it is, and where the broker is."""
    kept = [AGE.sub(" ● now", line) for line in lines[:1]] + lines[1:]
    return "\n".join(line.replace(address, "localhost:9092").rstrip() for line in kept) + "\n"


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
def test_every_place_looks_as_it_did(shop, still, size):
    wrong = []

    async def act(seat):
        app = seat.app

        def drawn():
            return looked(seat.lines(), shop.bootstrap)

        async def look(place, named):
            await app.go_to(place)
            await seat.until(
                lambda place=place: app.world.main(place).shown.value is not None, str(place)
            )
            await seat.until(lambda: app.world.facts.shown.value is not None)
            await seat.settled()
            path = PICTURES / f"{named}-{size[0]}x{size[1]}.txt"
            if os.environ.get("NEW_PICTURES"):
                path.write_text(await seat.still_picture(drawn))
                return
            kept = path.read_text()
            try:
                await seat.until(lambda kept=kept: drawn() == kept)
            except AssertionError:
                wrong.append(f"{path.name} is now\n{drawn()}")

        for place in PLACES:
            await look(place, place.kind)
        calm_world.in_a_cluster(app)
        for place in IN_A_CLUSTER:
            await look(place, f"{place.kind}-in-a-cluster")

    sit(shop.bootstrap, act, size=size, prepare=prepared)
    assert not wrong, "\n".join(wrong)


def test_the_pictures_of_the_documentation_name_no_host_and_load_nothing():
    kept = {path.stem: path.read_text() for path in DOCS.glob("*.svg")}
    assert sorted(kept) == sorted(name for name, *_ in SELECTED)
    for name, text in kept.items():
        words = " ".join(words_of(text))
        assert "url(" not in text.replace("url(#", ""), name
        assert "localhost:9092" in words, name
        assert not re.findall(r"127\.0\.0\.1:\d{5}|/tmp/|/root/", words), name


@pytest.mark.parametrize("theme", ["penstock-dark", "penstock-light"])
def test_every_word_can_be_read_in_both_themes(shop, still, theme):
    faint = []

    async def act(seat):
        app = seat.app
        app.theme = theme
        for n, place in enumerate((*PLACES, *IN_A_CLUSTER)):
            if n == len(PLACES):
                calm_world.in_a_cluster(app)
            await app.go_to(place)
            await seat.until(
                lambda place=place: app.world.main(place).shown.value is not None, str(place)
            )
            await seat.settled()
            faint.extend(
                (place.kind, text.strip(), round(contrast, 1))
                for text, contrast in seat.shades()
                if contrast < LEAST
            )

    sit(shop.bootstrap, act, prepare=prepared)
    assert not faint


def test_a_place_whose_answers_stay_draws_nothing(shop, still, monkeypatch):
    drawn = []

    def refresh(widget, *args, original=Widget.refresh, **named):
        drawn.append(f"{type(widget).__name__} {widget.id}")
        return original(widget, *args, **named)

    async def act(seat):
        app = seat.app

        def redrawn():
            drawn.clear()
            app._paint()
            return set(drawn) - {"Words age"}  # it goes by the clock of the loop

        for place in PLACES:
            await app.go_to(place)
            await seat.until(
                lambda place=place: app.world.main(place).shown.value is not None, str(place)
            )
            await seat.until(lambda: not redrawn(), f"{place.kind} at rest, but it draws {drawn}")

    monkeypatch.setattr(Widget, "refresh", refresh)
    sit(shop.bootstrap, act, size=LARGE, prepare=prepared)
