"""Values that must have a form."""

import pytest

from appliance.base.errors import ConfigError
from appliance.config.topic_settings import TOPIC

LISTED = TOPIC["leader.replication.throttled.replicas"]


@pytest.mark.parametrize("text", ["", "*", "0:1", "0:1,12:3"])
def test_what_has_it_is_taken(text):
    assert LISTED.parse(text) == tuple(filter(None, text.split(",")))


@pytest.mark.parametrize("text", ["0", "0:1,x:2", "0:1:2", "**", "-1:2"])
def test_what_has_not_is_refused(text):
    with pytest.raises(ConfigError, match=r"^Invalid value .* for configuration leader"):
        LISTED.parse(text)
