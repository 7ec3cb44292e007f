"""ssl.principal.mapping.rules as Apache Kafka 4.3.1's SslPrincipalMapper answers them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import ConfigError
from appliance.certificates.principal_mapping import NoRule, Rules

DN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", DN, DN),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DN, "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DN, "duke"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/U", DN, "DUKE@SERVICEUSERS"),
        ("RULE:^CN=nobody.*$/$0/,RULE:^CN=(.*?),.*$/$1/,DEFAULT", DN, "Duke"),
        ("RULE:^CN=nobody.*$/$0/ , DEFAULT", DN, DN),
        ("RULE:^CN=nobody.*$/x/\nDEFAULT", DN, DN),
        (r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1\/x/L", DN, r"duke/x"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$5/", DN, "Duke@$5"),
        ("RULE:^CN=(.*?),.*$/$12/", DN, "Duke2"),
        ("RULE:^CN=(?<who>.*?),.*$/${who}!/", DN, "Duke!"),
        (r"RULE:^CN=(.*?),.*$/\$1/", DN, "$1"),
        ("RULE:.*/x/", "CN=a", "xx"),
        ("RULE:CN=(.*?)/<$1>/", "CN=abc", "<>abc"),
        (" ,,DEFAULT,", DN, DN),
        (r"RULE:^CN=(.*?),O=a\\,b$/$1/", "CN=x,O=a\\,b", "x"),
    ],
)
def test_the_first_rule_that_fits_the_whole_name_counts(rules, name, mapped):
    assert Rules(rules).apply(name) == mapped


def test_a_name_that_no_rule_fits_stands_for_nobody():
    with pytest.raises(NoRule, match="CN=Duke"):
        Rules("RULE:^CN=other$/x/").apply(DN)


@pytest.mark.parametrize(
    "rules",
    ["nonsense", "DEFAULT nonsense", "RULE:^CN=(.*)$/$1", "RULE:a/b/LL", "RULE:a", "default"],
)
def test_what_is_no_rule_is_refused_with_the_key_and_an_example(rules):
    with pytest.raises(ConfigError, match=r"listener\.name\.x\.ssl.*RULE:\^CN="):
        Rules(rules, "listener.name.x.ssl.principal.mapping.rules")


def test_a_group_that_the_pattern_has_not_is_refused():
    with pytest.raises(ConfigError, match="no group nope"):
        Rules("RULE:(.*)/${nope}/")


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "(", "[a"])
def test_a_pattern_that_is_not_of_re2_is_refused(pattern):
    with pytest.raises(ConfigError, match="RE2"):
        Rules(f"RULE:{pattern}/x/")


@given(st.text(max_size=60))
def test_any_text_is_rules_or_refused(text):
    with suppress(ConfigError):
        Rules(text)


@given(st.text(max_size=30))
def test_default_is_the_name_itself(name):
    assert Rules("DEFAULT").apply(name) == name
