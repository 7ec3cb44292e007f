"""Users that a new cluster begins with, in the words of kafka-storage format."""

import base64

import pytest

from appliance.authentication.mechanisms import BY_NAME
from appliance.authentication.scram import Credential, is_password
from appliance.base.errors import ConfigError
from appliance.control.folder.bootstrap_users import records

SALT = base64.b64encode(b"s" * 16).decode()


def one(text):
    (record,) = records([text], bytes)
    return record


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("word", ["password=a b,iterations=8192", 'iterations=8192,password="a b"'])
def test_the_password_is_the_users(mechanism, word):
    made = one(f"{mechanism}=[name=alice,{word}]")
    assert (made.name, made.iterations) == ("alice", 8192)
    credential = Credential(made.salt, made.stored_key, made.server_key, made.iterations)
    assert is_password(BY_NAME[mechanism], credential, "a b")
    assert not is_password(BY_NAME[mechanism], credential, "a")


def test_a_salted_password_is_taken_as_it_is():
    made = one(f'SCRAM-SHA-256=[name=a,salt="{SALT}",saltedpassword="{SALT}"]')
    assert (made.salt, made.iterations) == (b"s" * 16, 4096)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SCRAM-SHA-1=[name=a,password=tops3cret]", "SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("name=a,password=tops3cret", "takes SCRAM-SHA-512="),
        ("SCRAM-SHA-256=[password=tops3cret]", "supply a name"),
        ("SCRAM-SHA-256=[name=a]", "one of password and saltedpassword"),
        ("SCRAM-SHA-256=[name=a,password=]", "is empty"),
        ("SCRAM-SHA-256=[name=a,password=tops3cret,salt=%]", "salt is not base64"),
        ("SCRAM-SHA-256=[name=a,password=tops3cret,iterations=4095]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=tops3cret,iterations=99999999]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=tops3cret,other=1]", "each of name"),
    ],
)
def test_what_cannot_be_is_refused_without_the_password(text, why):
    with pytest.raises(ConfigError, match=why) as refused:
        one(text)
    assert "tops3cret" not in str(refused.value)


def test_a_user_is_named_once_for_a_mechanism():
    twice = ["SCRAM-SHA-256=[name=a,password=x]"] * 2
    with pytest.raises(ConfigError, match="named twice"):
        records(twice, bytes)
    both = [twice[0], "SCRAM-SHA-512=[name=a,password=x]"]
    assert len(records(both, bytes)) == 2
