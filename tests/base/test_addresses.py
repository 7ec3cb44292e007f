"""One form of an address."""

import pytest

from appliance.base.addresses import plain_address


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::FFFF:7f00:1", "127.0.0.1"),
        ("0:0:0:0:0:ffff:10.1.2.3", "10.1.2.3"),
        ("::1", "::1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("::127.0.0.1", "::7f00:1"),
        ("localhost", "localhost"),
        ("peer:9092", "peer:9092"),
        ("", ""),
    ],
)
def test_each_address_has_one_form(written, plain):
    assert plain_address(written) == plain
    assert plain_address(plain) == plain
