"""JAAS entries, with what Apache Kafka says of wrong ones; secrets are in no error."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.authentication.jaas import PLAIN_MODULE, parse
from appliance.base.errors import ConfigError


def test_users_of_a_listener():
    login = parse(
        f'{PLAIN_MODULE} required username="admin" password="x"\n  user_admin="x" '
        "user_al_ice='q\"1;' // so\n/* or */ user_b=word ;"
    )
    assert login.module == PLAIN_MODULE
    assert login.users() == {"admin": "x", "al_ice": 'q"1;', "b": "word"}
    assert "word" not in repr(login)


def test_quotes_and_escapes():
    assert parse(r'M Required a="\"\\\n\101" "k 1"="v";').options == {"a": '"\\\nA', "k 1": "v"}


@pytest.mark.parametrize(("text", "why"), [
    ("", "Login module not specified"),
    ("  // nothing", "Login module not specified"),
    ("M", "control flag not specified"),
    ("M hidden;", "Invalid login module control flag"),
    ('M required a="hidden"', "not terminated by semi-colon"),
    ("M required a;", "Value not specified for key 'a'"),
    ("M required a=;", "Value not specified for key 'a'"),
    ("M required a=12hidden;", "Value not specified for key 'a'"),
    ("M required; N required;", "contains 2 login modules, should be 1 module"),
])  # fmt: skip
def test_what_is_wrong(text, why):
    with pytest.raises(ConfigError, match=why) as wrong:
        parse(text)
    assert "hidden" not in str(wrong.value).replace("'hidden", "")


@given(st.text(max_size=60))
def test_any_text_is_an_entry_or_an_error(text):
    for one in (text, f"M required {text}"):
        with contextlib.suppress(ConfigError):
            parse(one)
