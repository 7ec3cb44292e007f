"""Every kind of request over TLS, to an appliance that has no other listener: commands, the model's
own requests and the Python client do the same as without."""

import confluent_kafka as ck
import pytest

import penstock
from console.model.access import certificates
from console.model.access.certificates import Secured, Shown, Watch
from console.model.asking import names, profiles
from console.model.asking.failure import UNREACHABLE, USAGE, Failure
from console.model.asking.link import Link, asking
from console.model.local.local import data_folder
from console.model.local.standing import DEGRADED, at_folder
from console.model.local.standing import Watch as Standing
from penstock.door import Door
from penstock.local import Appliance
from tests.console_process import rows, typing
from tests.tls_front import DAY, HOUR, Authority, keystore


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory, authority):
    """It speaks TLS alone, to whoever comes."""
    settings = keystore(authority, "broker", "localhost", "127.0.0.1")
    settings["listeners"] = "SSL://127.0.0.1:0"
    with Appliance(tmp_path_factory.mktemp("secure") / "data", settings) as running:
        yield running


@pytest.fixture(scope="module")
def closed(tmp_path_factory, authority):
    """It speaks to those alone who have a certificate; its own one ends in ten days."""
    settings = keystore(authority, "closed", "localhost", "127.0.0.1")
    settings |= {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
    }
    with Appliance(tmp_path_factory.mktemp("closed") / "data", settings) as running:
        yield running


@pytest.fixture(scope="module")
def trusting(authority):
    return {"security.protocol": "SSL", "ssl.ca.location": str(authority.ca)}


@pytest.fixture(scope="module")
def known(authority, trusting):
    cert, key, _ = authority.certificate("me", password="secret")
    own = {"certificate.location": cert, "key.location": key, "key.password": "secret"}
    return trusting | {f"ssl.{name}": str(value) for name, value in own.items()}


def flags(properties):
    return [word for key, value in properties.items() for word in ("-X", f"{key}={value}")]


@pytest.fixture(scope="module")
def run(secure, trusting):
    """A command with the flags that TLS needs."""
    bare = typing(secure.bootstrap)
    return lambda *words, **more: bare(*words, *flags(trusting), **more)


# Commands -----------------------------------------------------------------------------------------


def test_topics_and_records(run):
    run("topic", "create", "tls.a", "-p", "2")
    run("produce", "tls.a", stdin="one\ntwo\n")
    told = run("consume", "tls.a", "-o", "start", "-e").stdout.split()
    assert sorted(told) == ["one", "two"]
    (topic,) = rows(run("topic", "describe", "tls.a", "-o", "json"))
    assert topic["partitions"][0]["missing"] == [] and topic["partitions"][0]["elr"] == []
    (setting,) = rows(run("config", "get", "-t", "tls.a", "retention.ms", "-o", "json"))
    assert setting["doc"] and setting["default"] == "604800000"


def test_settings_of_everything(run):
    for target in (("-g", "g"), ("--cluster",)):
        run("config", "get", *target)
    run("config", "set", "--cluster", "log.cleaner.backoff.ms=14000", "--yes")
    assert "14000" in run("config", "get", "--cluster").stdout


def test_quotas_groups_and_transactions(run):
    run("quota", "set", "--client-id", "loader", "produce=9MB/s", "--yes")
    assert "loader" in run("quota", "list").stdout
    run("topic", "create", "tls.b")
    run("produce", "tls.b", stdin="x\n")
    run("group", "seek", "readers", "-t", "tls.b", "--to", "start", "--yes")
    assert "readers" in run("group", "list").stdout
    run("group", "delete-offsets", "readers", "-t", "tls.b", "--yes")
    run("txn", "list")
    assert "alone" in run("cluster", "status").stdout


def test_what_is_wrong_with_the_way_is_one_sentence(secure, appliance, trusting):
    bare = typing(secure.bootstrap)
    for words in (("topic", "list"), ("quota", "list"), ("produce", "x"), ("status",)):
        told = bare(*words, code=USAGE)
        assert f"penstock: {secure.bootstrap} is a listener with TLS" in told.stderr, words
        assert "-X security.protocol=SSL -X ssl.ca.location=FILE" in told.stderr
        assert told.stdout == "" and told.stderr.count("\n") <= 2
    told = bare("topic", "list", "-X", "security.protocol=SSL", code=USAGE)
    assert "has a certificate that is not trusted" in told.stderr
    told = bare("topic", "list", *flags(trusting | {"ssl.ca.location": "/no/such"}), code=USAGE)
    assert "ssl.ca.location=/no/such: No such file" in told.stderr
    told = typing(appliance.bootstrap)("topic", "list", *flags(trusting), code=USAGE)
    assert f"{appliance.bootstrap} is a listener without TLS" in told.stderr
    assert "-X security.protocol=PLAINTEXT" in told.stderr


def test_who_has_no_certificate_is_told_and_who_has_one_is_served(closed, trusting, known):
    bare = typing(closed.bootstrap)
    told = bare("topic", "list", *flags(trusting), code=USAGE)
    assert "asks clients for a certificate" in told.stderr
    assert "-X ssl.certificate.location=FILE -X ssl.key.location=FILE" in told.stderr
    bare("topic", "create", "tls.c", *flags(known))
    bare("quota", "set", "--client-id", "loader", "produce=9MB/s", "--yes", *flags(known))
    assert "tls.c" in bare("topic", "list", *flags(known)).stdout


def test_a_profile_says_how(secure, trusting, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in trusting.items()))
    bare = typing("127.0.0.1:1")
    add = ("profile", "add", "secured", secure.bootstrap, "--command-config", str(file))
    bare(*add)
    try:
        bare("--profile", "secured", "topic", "create", "tls.profile")
        assert "tls.profile" in bare("--profile", "secured", "topic", "list").stdout
        told = bare("--profile", "secured", "doctor", "-o", "json", code=None)
        assert told.returncode in (0, 1, 2) and "certificate" in told.stdout
    finally:
        bare("profile", "remove", "secured")


def test_jobs_say_that_they_need_a_client_file(secure, tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(
        'sql = "SELECT a FROM events"\n[sources.events]\ntopic = "events"\nschema = "a STRING"\n'
        '[sink]\ntopic = "out"\n'
    )
    jobs = ("--jobs", str(tmp_path / "jobs"))
    for words in (("serve", *jobs), ("run", str(job), *jobs), ("preview", str(job), *jobs)):
        told = typing(secure.bootstrap)("job", *words, code=USAGE)
        assert f"{secure.bootstrap} is a listener with TLS" in told.stderr, words
        assert "--command-config FILE" in told.stderr


def test_names_for_the_shell(run, secure, trusting):
    run("topic", "create", "tls.tab")
    assert "tls.tab" in names.topics(secure.bootstrap, 30, Door(trusting))
    assert names.topics(secure.bootstrap, 30) == []
    assert names.topics(secure.bootstrap, 30, Door(trusting | {"ssl.ca.location": "/no"})) == []


# Commands that are told no properties ------------------------------------------------------------


def test_the_folder_of_an_appliance_of_this_host_is_found(secure, closed):
    link = profiles.looking(profiles.Profile(secure.bootstrap), 30)
    with asking(link):
        assert data_folder(link) == str(secure.data_dir)
    bare = typing(secure.bootstrap)
    bare("wait", "-b", secure.bootstrap, "--probe", "--timeout", "60")
    told = bare("wait", "--data", str(closed.data_dir), "--probe", "--timeout", "60")
    assert "not probed: every listener asks for a certificate" in told.stderr


def test_a_link_that_only_looks_says_what_it_lacks(closed, appliance):
    link = profiles.looking(profiles.Profile(closed.bootstrap), 30)
    with pytest.raises(Failure, match="asks clients for a certificate"), asking(link):
        link.admin()
    assert (
        "security.protocol"
        not in profiles.looking(profiles.Profile(appliance.bootstrap), 30).properties
    )


def test_a_node_that_joins_is_told_that_its_peers_need_a_plain_listener(secure, tmp_path):
    from console.commands.up import _join

    with pytest.raises(Failure, match="is a listener with TLS") as told:
        _join(secure.bootstrap, 2, str(tmp_path), None, "", (), (), None)
    assert "without TLS" in told.value.hint and told.value.code == USAGE


def test_status_by_the_folder_takes_a_listener_that_is_spoken_to_so(
    fresh_appliance, authority, trusting
):
    one = fresh_appliance(
        **keystore(authority, "both", "127.0.0.1"),
        listeners="SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    )
    folder = str(one.data_dir)
    plain = at_folder(folder, Link("", {}, 30))
    assert plain.bootstrap == one.bootstrap, "who starts it is told that one, too"
    secured = at_folder(folder, Link("", dict(trusting), 30))
    assert secured.bootstrap != one.bootstrap
    for link in (plain, secured):
        assert Standing(link, folder).read_standing().lost is None


# Certificates told --------------------------------------------------------------------------------


def test_status_says_that_a_certificate_ends(closed, secure, known, trusting):
    for link in (Link(closed.bootstrap, known, 30), Link(secure.bootstrap, trusting, 30)):
        found = Standing(link).read_standing()
        (notice,) = [one for one in found.notices if "certificate" in one.what]
        assert f"the certificate of SSL at {link.bootstrap} ends in 9 days" in notice.what
        assert found.code == DEGRADED


def test_a_certificate_is_looked_at_once_a_minute():
    asked, now_s = [], [0.0]

    def shows(host, port, limit_s):
        asked.append(port)
        raise ConnectionRefusedError(111, "Connection refused")

    watch = Watch(shows, lambda: now_s[0])
    one, other = Secured("A", "h", 1), Secured("B", "h", 2)
    assert watch.read_certificates([one]) == (Shown(one, None, "Connection refused"),)
    now_s[0] = certificates.EVERY_S - 1
    watch.read_certificates([one])
    assert asked == [1]
    watch.read_certificates([one, other])
    now_s[0] = 2 * certificates.EVERY_S
    watch.read_certificates([one, other])
    assert asked == [1, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("now_s", "says"),
    [
        (-3 * 86_400.0, "is not valid for another 3 days"),
        (0.0, ""),
        (16 * 86_400.0, ""),
        (16 * 86_400.0 + 1, "ends in 13 days"),
        (30 * 86_400.0 - 3600, "ends in 1 hour"),
        (30 * 86_400.0 - 1, "ends in less than a minute"),
        (30 * 86_400.0, "has ended less than a minute ago"),
        (31 * 86_400.0, "has ended 1 day ago"),
    ],
)
def test_the_time_of_a_certificate_in_words(now_s, says):
    found = certificates.ShownCertificate(0.0, 30 * 86_400.0, (), "")
    assert certificates.describe_problem(found, now_s) == says


def test_doctor_finds_certificates_that_clients_refuse(fresh_appliance, authority, run):
    import datetime

    begins = datetime.datetime.now(datetime.UTC) - 3 * DAY
    one = fresh_appliance(
        **keystore(authority, "ended", "127.0.0.1", begins=begins, lasts=HOUR),
        listeners="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,NAMED://127.0.0.1:0",
        **{"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,NAMED:SSL"},
        **{
            f"listener.name.named.{key}": value
            for key, value in keystore(authority, "other", "other.example", lasts=DAY).items()
        },
    )
    told = typing(one.bootstrap)("doctor", "-b", one.bootstrap, "-o", "json", code=2)
    found = [each for each in rows(told) if each["check"] == "certificate"]
    words = {(each["level"], each["found"]) for each in found}
    assert words == {
        ("critical", "its certificate (CN=ended) has ended 2 days ago"),
        ("critical", "its certificate (CN=other) ends in 23 hours"),
        ("warning", "its certificate (CN=other) is for other.example"),
    }
    assert all(each["remedy"] for each in found)


# The Python client --------------------------------------------------------------------------------


def test_the_python_client_passes_properties_on(secure, closed, trusting, known):
    for one, properties in ((secure, trusting), (closed, known)):
        said = {key.replace(".", "_"): value for key, value in properties.items()}
        link = penstock.connect(one.bootstrap, **said)
        with link.producer() as producer:
            producer.produce("tls.client", b"hello")
        assert [message.value() for message in link.read("tls.client")] == [b"hello"]
        assert one.connect(**said).partitions("tls.client") == [("tls.client", 0)]


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        (
            {},
            "is a listener with TLS; connect(..., security_protocol='SSL', ssl_ca_location='FILE')",
        ),
        ({"security_protocol": "SSL"}, "has a certificate that is not trusted: "),
        (
            {"security_protocol": "SSL", "ssl_ca_location": "/no/such"},
            "ssl.ca.location=/no/such: No such file",
        ),
    ],
)
def test_the_python_client_says_what_it_lacks(secure, properties, says):
    with pytest.raises(ck.KafkaException) as told:
        penstock.connect(secure.bootstrap, **properties).admin()
    assert says in told.value.args[0].str()


def test_the_python_client_says_that_there_is_no_tls(appliance, trusting):
    said = {key.replace(".", "_"): value for key, value in trusting.items()}
    with pytest.raises(ck.KafkaException) as told:
        penstock.connect(appliance.bootstrap, **said).admin()
    told = told.value.args[0].str()
    assert "is a listener without TLS; connect(..., security_protocol='PLAINTEXT')" in told


def test_a_broker_that_is_away_is_unreachable_over_tls_too(trusting):
    link = Link("127.0.0.1:1", trusting, 5)
    with pytest.raises(Failure, match="cannot be reached") as told, asking(link):
        link.admin()
    assert told.value.code == UNREACHABLE


# The console --------------------------------------------------------------------------------------


def test_the_console_shows_over_tls_what_a_setting_is_for(run, secure, trusting, monkeypatch):
    from console.screens.places import Place
    from tests.console import seat as seats

    def link(bootstrap, **more):
        return Link(bootstrap, dict(trusting), 10.0, **more)

    monkeypatch.setattr(seats, "reading", lambda bootstrap: link(bootstrap, read_only=True))
    monkeypatch.setattr(seats, "writing", link)
    run("topic", "create", "tls.seen")

    async def act(seat):
        await seat.sees("cleanup.policy", "Clean-up of old segments")
        await seat.press("e")
        await seat.form()
        await seat.press("ctrl+u")
        await seat.type("compact")
        await seat.sees("delete (default)  →  compact")
        await seat.press("enter")
        await seat.back()
        await seat.until(lambda: "compact" in seat.line("cleanup.policy  "), "what was changed")

    seats.sit(secure.bootstrap, act, size=seats.LARGE, first=Place("topic", "tls.seen"))
