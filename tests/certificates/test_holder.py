"""A process goes on showing what can be used, whatever happens to files and settings."""

import datetime
import os
import subprocess
import sys
import time

import pytest

from appliance.base.caller import ANONYMOUS, Principal
from appliance.base.errors import ConfigError
from appliance.certificates import files
from appliance.certificates.principal_mapping import NoRule
from appliance.metadata.changes import ConfigChanged
from appliance.metadata.image_state import BROKER, TOPIC
from tests.certificates.authority import BEGINS, DAY, authority, name
from tests.certificates.shown import NOW_MS, SECOND_NS, client, handshake

LOOK_NS = 10 * SECOND_NS


def shown(held):
    return held.certificate("SSL").digest


def test_a_plain_listener_has_no_context_and_everybody_there_is_anonymous(place):
    held = place.certificates()
    assert held.context("PLAINTEXT") is None
    assert held.principal("PLAINTEXT", None) == ANONYMOUS
    assert held.certificate("PLAINTEXT") is None


def test_the_name_in_a_certificate_is_the_principal(place):
    held = place.certificates()
    der = place.root.sign(name("client", "Acme")).der
    assert held.principal("SSL", der) == Principal("User", "CN=client,O=Acme")
    assert held.principal("SSL", None) == ANONYMOUS


def test_rules_map_the_name_and_whom_none_fits_is_nobody(place):
    held = place.certificates(ssl_principal_mapping_rules="RULE:^CN=([a-z]+)$/$1/U")
    assert held.principal("SSL", place.root.sign("client").der).name == "CLIENT"
    with pytest.raises(NoRule):
        held.principal("SSL", place.root.sign("42").der)


def test_a_file_that_changed_is_shown_to_whoever_comes_next(place):
    held = place.certificates()
    before = held.context("SSL")
    new = place.write(place.root.sign("broker"))
    held.reload_changed(0)
    assert held.context("SSL") is not before
    _, theirs = handshake(held.context("SSL"), client(place.root))
    assert theirs.getpeercert(binary_form=True) == new.der
    ((event, fields),) = place.events()
    assert event == "certificate-renewed"
    assert fields["listener"] == "SSL" and fields["subject"] == "CN=broker"
    assert fields["valid_until"].startswith("2045-12-")
    handshake(before, client(place.root))  # who began with it ends with it


def test_files_are_looked_at_every_ten_seconds(place):
    held = place.certificates()
    held.reload_changed(SECOND_NS)
    before = shown(held)
    place.write(place.root.sign("broker"))
    held.reload_changed(SECOND_NS + LOOK_NS - 1)
    assert shown(held) == before
    held.reload_changed(SECOND_NS + LOOK_NS)
    assert shown(held) != before


def test_what_is_as_it_was_is_not_read_again(place):
    os.utime(place.store, ns=(1, 1))
    held = place.certificates()
    before = held.context("SSL")
    held.reload_changed(0)
    held.reload_changed(LOOK_NS)
    held.renew()
    assert held.context("SSL") is before
    assert not place.events()


def test_a_file_that_was_written_a_moment_ago_counts_as_changed(place):
    """It may be written once more with the same time, as far as the kernel counts it."""
    at_ns = time.time_ns() + 900_000_000
    os.utime(place.store, ns=(at_ns, at_ns))
    assert files.changed([files.stamp(str(place.store))])
    os.utime(place.store, ns=(1, 1))
    assert not files.changed([files.stamp(str(place.store))])
    before = files.stamp(str(place.store))
    earlier = before._replace(ctime_ns=before.ctime_ns - 1)
    assert files.changed([earlier]), "somebody else may read it now"


def test_a_link_that_points_elsewhere_is_a_change(place):
    """As certbot and Kubernetes renew."""
    one, other = place.folder / "1.pem", place.folder / "2.pem"
    one.write_bytes(place.pair.pem())
    other.write_bytes(place.root.sign("broker").pem())
    place.store.unlink()
    place.store.symlink_to(one)
    held = place.certificates()
    before = shown(held)
    (place.folder / "next").symlink_to(other)
    os.replace(place.folder / "next", place.store)
    held.reload_changed(0)
    assert shown(held) != before


def apart(place):
    """Key and chain in files of their own, as certbot leaves them."""
    key, chain = place.folder / "privkey.pem", place.folder / "fullchain.pem"
    key.write_bytes(place.pair.key_pem())
    chain.write_bytes(place.pair.chain_pem())
    place.given = {"ssl_keystore_location": chain, "penstock_ssl_key_location": key}
    return key, chain


def test_a_look_between_the_new_key_and_the_new_chain_changes_nothing(place):
    key, chain = apart(place)
    held = place.certificates()
    before, new = held.context("SSL"), place.root.sign("broker")
    key.write_bytes(new.key_pem())
    held.reload_changed(0)
    assert held.context("SSL") is before
    ((event, fields),) = place.events()
    assert event == "certificate-not-renewed"
    assert "does not belong to the first certificate" in fields["cause"]
    chain.write_bytes(new.chain_pem())
    held.reload_changed(LOOK_NS)
    _, theirs = handshake(held.context("SSL"), client(place.root))
    assert theirs.getpeercert(binary_form=True) == new.der
    assert [event for event, _ in place.events()] == ["certificate-renewed"]


@pytest.mark.parametrize("size", [0, 1, 100, 400])
def test_a_file_that_is_being_written_changes_nothing_until_it_is_whole(place, size):
    held = place.certificates()
    before, whole = shown(held), place.root.sign("broker").pem()
    place.store.write_bytes(whole[:size])
    held.reload_changed(0)
    assert shown(held) == before
    with place.store.open("ab") as file:
        file.write(whole[size:])
    held.reload_changed(LOOK_NS)
    assert shown(held) != before


def test_a_file_that_is_away_changes_nothing_and_is_said_once(place):
    held = place.certificates()
    before = held.context("SSL")
    place.store.unlink()
    for turn in range(3):
        held.reload_changed(turn * LOOK_NS)
    assert held.context("SSL") is before
    ((event, fields),) = place.events()
    assert event == "certificate-not-renewed" and "no such file" in fields["cause"]
    held.renew()
    assert [event for event, _ in place.events()] == ["certificate-not-renewed"]  # who asks hears
    place.write(place.root.sign("broker"))
    held.reload_changed(3 * LOOK_NS)
    assert held.context("SSL") is not before


def test_a_listener_that_never_had_one_serves_nobody_until_it_has(place):
    place.store.unlink()
    held = place.certificates()
    with pytest.raises(ConfigError, match="no such file"):
        held.context("SSL")
    assert [event for event, _ in place.events()] == ["certificate-missing"]
    place.write(place.root.sign("broker"))
    held.reload_changed(0)
    handshake(held.context("SSL"), client(place.root))


def test_trusted_certificates_are_read_again_too(place):
    held = place.certificates(ssl_client_auth="required", ssl_truststore_location=place.trust)
    other = authority("Other")
    shows = client(place.root, own=other.sign("client"), folder=place.folder)
    place.trust.write_bytes(other.chain_pem())
    held.reload_changed(0)
    ours, _ = handshake(held.context("SSL"), shows)
    assert ours.getpeercert(binary_form=True) is not None
    assert not place.events()  # it shows the same certificate


# Settings ----------------------------------------------------------------------------------------


def test_settings_that_changed_hold_after_a_renewal(place):
    held = place.certificates()
    place.given["ssl_keystore_location"] = other = place.folder / "other.pem"
    other.write_bytes(place.root.sign("broker").pem())
    before = shown(held)
    held.reload_changed(0)
    assert shown(held) == before
    held.renew()
    assert shown(held) != before


@pytest.mark.parametrize(
    ("change", "renews"),
    [
        (ConfigChanged(BROKER, "7", "listener.name.ssl.ssl.keystore.location"), True),
        (ConfigChanged(BROKER, "7", "ssl.cipher.suites"), True),
        (ConfigChanged(BROKER, "", "ssl.client.auth"), True),
        (ConfigChanged(BROKER, "7", "listener.name.ssl.penstock.ssl.key.location"), True),
        (ConfigChanged(BROKER, "8", "listener.name.ssl.ssl.keystore.location"), False),
        (ConfigChanged(BROKER, "7", "log.retention.ms"), False),
        (ConfigChanged(TOPIC, "7", "ssl.client.auth"), False),
    ],
)
def test_what_was_committed_renews_when_it_concerns_a_listener_here(place, change, renews):
    held = place.certificates()
    before = held.context("SSL")
    place.write(place.root.sign("broker"))
    held.follow([change], node_id=7)
    assert (held.context("SSL") is not before) == renews


def test_a_listener_that_was_opened_later_is_held_too(place):
    held = place.certificates()
    place.given["listeners"] = "PLAINTEXT://:0,SSL://:0,MORE://:0"
    place.given["listener_security_protocol_map"] = "PLAINTEXT:PLAINTEXT,SSL:SSL,MORE:SSL"
    held.add(["SSL", "MORE"])
    handshake(held.context("MORE"), client(place.root))
    assert held.context("MORE") is not held.context("SSL")


# Names that must stay (KIP-978) ------------------------------------------------------------------


def test_another_subject_is_refused_unless_it_is_allowed(place):
    held = place.certificates()
    before = shown(held)
    place.write(place.root.sign("other"))
    held.reload_changed(0)
    assert shown(held) == before
    ((_, fields),) = place.events()
    assert "ssl.allow.dn.changes" in fields["cause"] and "'CN=other'" in fields["cause"]
    place.given["ssl_allow_dn_changes"] = "true"
    held.renew()
    assert held.certificate("SSL").subject == "CN=other"


def test_a_host_that_is_lost_is_refused_unless_it_is_allowed_and_more_may_come(place):
    place.write(place.root.sign("broker", hosts=("localhost", "a.example")))
    held = place.certificates()
    place.write(place.root.sign("broker", hosts=("a.example", "localhost", "b.example")))
    held.reload_changed(0)
    assert "DNS:b.example" in held.certificate("SSL").names
    place.write(place.root.sign("broker", hosts=("localhost",)))
    held.reload_changed(LOOK_NS)
    assert "DNS:b.example" in held.certificate("SSL").names
    assert "DNS:a.example, DNS:b.example any more" in place.events()[-1][1]["cause"]
    place.given["listener_name_ssl_ssl_allow_san_changes"] = "true"
    held.renew()
    assert held.certificate("SSL").names == ("DNS:localhost",)


def test_a_check_changes_nothing(place):
    held = place.certificates()
    before = held.context("SSL")
    place.write(place.root.sign("other"))
    with pytest.raises(ConfigError, match=r"ssl\.allow\.dn\.changes"):
        held.check(place.settings())
    held.check(place.settings(ssl_allow_dn_changes="true"))
    assert held.context("SSL") is before


# Time --------------------------------------------------------------------------------------------


def at(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


def test_a_certificate_that_is_over_is_shown_and_warned_about_once(place):
    place.write(place.root.sign("broker", days=20))
    held = place.certificates()
    for turn in range(3):
        held.reload_changed(turn * LOOK_NS)
    assert held.context("SSL") is not None
    ((event, fields),) = place.events()
    assert event == "certificate-not-valid"
    assert fields["cause"] == "it was valid until 2026-01-21 00:00:00 UTC"


def test_one_that_is_not_valid_yet_is_warned_about_and_good_when_its_time_has_come(place):
    place.write(place.root.sign("broker", begins=at(NOW_MS) + DAY))
    held = place.certificates()
    assert "not valid before" in place.events()[0][1]["cause"]
    place.clock.ms += 2 * 86_400_000
    held.reload_changed(0)
    assert not place.events()


def test_one_that_ends_while_it_is_shown_is_warned_about(place):
    place.write(place.root.sign("broker", days=(at(NOW_MS) - BEGINS).days + 1))
    held = place.certificates()
    held.reload_changed(0)
    assert not place.events()
    place.clock.ms += 86_400_000 * 2
    held.reload_changed(LOOK_NS)
    assert [event for event, _ in place.events()] == ["certificate-not-valid"]


def test_where_nothing_speaks_tls_nothing_of_it_is_brought_in():
    """Every process of every appliance imports the doors to it."""
    program = """
import sys
from appliance.base.clock import OsClock
from appliance.certificates.holder import Certificates
from tests.config.loading import load
from appliance.control.requests.tls_validation import ListenerTlsCheck
from appliance.shell.log import Log
from appliance.supervisor import tls_validation

config, _ = load(None, {"listeners": "PLAINTEXT://:0"})
tls_validation.TlsValidation(config, config, Log("x"))
held = Certificates(lambda: config, ["PLAINTEXT"], Log("x"), OsClock())
held.reload_changed(0)
held.renew()
held.check(config)
print([one for one in ("ssl", "cryptography", "re2") if one in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_one_of_several_processes_tells(place):
    from appliance.certificates.holder import Certificates

    held = Certificates(place.settings, ["SSL"], place.log, place.clock, tells=False)
    place.write(place.root.sign("broker"))
    held.reload_changed(0)
    place.store.unlink()
    held.reload_changed(LOOK_NS)
    assert not place.events()
