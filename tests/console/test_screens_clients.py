"""What a client says of itself, below the list of clients: of the one under the cursor."""

from dataclasses import replace

import pytest

from console.screens.places import CLIENTS
from console.screens.rows import Rows
from tests.console import calm_world
from tests.console.seat import SMALL, sit, tab
from tests.console.test_screens_hostile import told


@pytest.mark.parametrize("size", [SMALL, (160, 50)], ids=["80x24", "160x50"])
def test_metrics_are_those_of_the_client_under_the_cursor(alone, size):
    facts = calm_world.facts()
    (shop,) = facts.pushing
    other = replace(shop, client=replace(shop.client, instance="another"))
    elsewhere = replace(shop, client=replace(shop.client, client_id="loader", address="10.0.0.9"))
    facts = replace(facts, pushing=(shop, other, elsewhere))

    async def act(seat):
        app = seat.app
        await seat.press(tab(CLIENTS))
        await seat.sees("Metrics of shop, 2 instances  18", "record.queue.time.max")
        assert "node.id=1" in seat.line("request.latency.avg")
        assert "3 push metrics" in seat.text()
        await seat.press("tab", "end")
        await seat.settled()
        pushed = app.view.query_one("#pushed", Rows)
        assert pushed.has_focus and pushed.at_end
        await seat.press("tab", "j")
        await seat.misses("Metrics of")  # whose id is the same on another host is another one
        await seat.press("tab")
        await seat.settled()
        assert app.view.query_one("#clients", Rows).has_focus, "what is not seen takes no keys"
        await seat.press("k")
        await seat.sees("Metrics of")

    def prepare(app):
        told(calm_world.answers() | {"facts": facts})(app)

    sit(alone.bootstrap, act, size=size, prepare=prepare)
