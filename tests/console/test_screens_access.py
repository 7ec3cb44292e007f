"""Users, ACLs, rights and the audit as somebody sees and changes them: keys are pressed, then the
broker is asked."""

import os
import stat

import pytest

from appliance.config.acl_checks import STANDARD
from console.model.access import acls, users
from console.model.asking.link import Link
from console.screens.places import Place
from penstock.local import Appliance
from tests.console.seat import sit, tab

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def secured(tmp_path, monkeypatch):
    """An appliance with ACLs; whoever comes in is its super user. Files are written beside it."""
    monkeypatch.chdir(tmp_path)
    with Appliance(tmp_path / "data") as one:
        one.restart(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS")
        yield one


async def fill(seat, *values):
    """Type into the fields of a form, one after the other; None leaves one as it is."""
    for value in values:
        if value is not None:
            await seat.type(value)
        await seat.press("tab")


async def done(seat):
    await seat.plan()
    await seat.press("right", "enter")
    await seat.back()


def test_a_user_is_added_gets_rights_and_goes_again(secured, tmp_path):
    link = Link(secured.bootstrap, {}, 10.0)

    def known():
        return [one.name for one in users.all_users(link)]

    def rules():
        return [acls.sentence(one) for one in acls.rules(link)]

    async def act(seat):
        await seat.press(tab("users"))
        await seat.sees("User:ANONYMOUS", "everything", "by penstock.sock")
        await seat.press("j")
        await seat.sees("one of super.users")
        await seat.press("n")
        await seat.form()
        await fill(seat, "loader", "write:orders")
        await seat.press("enter")
        await seat.sees("loader.properties", "user add loader --can write:orders")
        await seat.plan()
        await seat.press("enter")  # Cancel
        assert known() == [] and not (tmp_path / "loader.properties").exists()
        await seat.press("enter")
        await done(seat)
        assert known() == ["loader"]
        assert rules() == ["allow write to User:loader on topic orders"]
        file = tmp_path / "loader.properties"
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        secret = file.read_text().split("sasl.password=")[1].split()[0]
        assert "sasl.username=loader" in file.read_text()
        await seat.sees("SCRAM 512", "1 ACL")
        assert secret not in seat.text()
        await seat.press("g", "enter")
        assert seat.app.here == Place("acls", "User:loader")
        await seat.sees("1 ACL, for User:loader")
        await seat.press("enter")
        await seat.sees("User:loader write topic orders: yes")
        await seat.press("escape", "n")  # of ACLs, all of them
        await seat.form()
        await fill(seat, "loader", "consumer", None)
        await seat.type("orders")
        await seat.press("enter")  # what can be taken back is done at once
        await seat.back()
        await seat.until(lambda: len(rules()) == 3, "read and describe")
        await seat.press("u")
        await done(seat)
        assert rules() == ["allow write to User:loader on topic orders"]
        await seat.press(tab("users"))
        await seat.sees("SCRAM 512")
        await seat.press("g", "D")
        await seat.sees("is removed, too".upper())
        await seat.type("loader")
        await seat.press("enter")
        await seat.back()
        await seat.until(lambda: known() == [] and rules() == [], "nothing left")

    sit(secured.bootstrap, act)


def test_a_denial_is_seen_and_says_which_rule_decides(secured):
    link = Link(secured.bootstrap, {}, 10.0)
    deny = acls.Target(2, "orders")
    acls.add(link, acls.product(["User:bert"], ["*"], 2, [(deny, 4)]))

    async def act(seat):
        await seat.press(tab("users"), "v")
        await seat.sees("deny", "write")
        await seat.press("v")
        await seat.sees("changed", "CreateAcls")
        await seat.press("/", *"nothing such", "enter")
        await seat.sees("no matching entries")
        await seat.press("escape", "enter")
        await seat.hears("only a denial has a reason")
        await seat.press(":", *"can bert write topic orders", "enter")
        await seat.sees("User:bert write topic orders: no", "deny write to User:bert on topic")
        assert "acl can User:bert write --topic orders" in seat.app._line()

    sit(secured.bootstrap, act, read_only=True)


def test_where_everybody_may_do_everything_it_says_so(alone):
    async def act(seat):
        await seat.press(tab("users"))
        await seat.sees("no authorizer: all is allowed")
        await seat.press("v", "v", "v")
        await seat.sees("no listener speaks TLS")
        assert seat.app.here == Place("certificates")
        await seat.press("v")
        assert seat.app.here == Place("users")

    sit(alone.bootstrap, act)
