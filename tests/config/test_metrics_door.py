"""The listener of metrics: who is refused to open it to others, and by what it may be opened."""

import pytest

from appliance.config.load import examine
from appliance.config.metrics_door import BASIC, LISTENER, PROTOCOL
from appliance.config.open_listeners import SETTING

OUTSIDE = {LISTENER: ":9404"}
TLS = {PROTOCOL: "SSL"}
CERTIFICATES = {"listener.name.metrics.ssl.client.auth": "required"}


def told(settings):
    """(errors, warnings) about these settings that name the listener of metrics."""
    _, remarks = examine(None, settings)
    mine = [one for one in remarks if "penstock.metrics" in one.text]
    return [one.text for one in mine if one.wrong], [one.text for one in mine if not one.wrong]


@pytest.mark.parametrize(
    "settings",
    [
        OUTSIDE, {LISTENER: "0.0.0.0:0"}, {LISTENER: "[::]:9404"}, {LISTENER: "edge.example:1"},
        OUTSIDE | TLS, OUTSIDE | CERTIFICATES, OUTSIDE | TLS | {"ssl.client.auth": "requested"},
        OUTSIDE | TLS | {"ssl.client.auth": "required",
                         "listener.name.metrics.ssl.client.auth": "none"},
    ],
)  # fmt: skip
def test_one_that_others_reach_without_credentials_is_refused_with_the_remedy(settings):
    (wrong,), _ = told(settings)
    assert "without credentials" in wrong and settings[LISTENER].rpartition(":")[2] in wrong
    for remedy in (BASIC, PROTOCOL, "listener.name.metrics.ssl.client.auth=required", SETTING):
        assert remedy in wrong
    assert told(settings | {SETTING: "allow"})[0] == []


@pytest.mark.parametrize(
    "settings",
    [
        {LISTENER: "localhost:9404"}, {LISTENER: "127.0.0.1:0"}, {LISTENER: "[::1]:0"},
        OUTSIDE | TLS | CERTIFICATES, OUTSIDE | TLS | {"ssl.client.auth": "required"},
        OUTSIDE | TLS | {BASIC: "prometheus:secret"}, {BASIC: "prometheus:secret"}, TLS,
    ],
)  # fmt: skip
def test_one_of_this_host_or_with_credentials_is_opened(settings):
    assert told(settings) == ([], [])


def test_a_password_in_the_clear_is_warned_about_and_shown_nowhere():
    wrong, (warning,) = told(OUTSIDE | {BASIC: "prometheus:secret"})
    assert not wrong and "in the clear" in warning and "secret" not in warning


@pytest.mark.parametrize("text", ["prometheus", "prometheus:", ":secret"])
def test_what_is_no_name_and_password_is_refused(text):
    (wrong,), _ = told({LISTENER: "localhost:9404", BASIC: text})
    assert "NAME:PASSWORD" in wrong and text.strip(":") not in wrong.replace("penstock", "")
