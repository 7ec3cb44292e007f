"""The commands of the client side against a real appliance, as a shell script sees them."""

import csv
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from confluent_kafka import KafkaException

import penstock
from benchmarks.kafka import free_port
from console.root import root
from tests.console_process import PENSTOCK, rows, started, typing

_numbers = itertools.count(1)


@pytest.fixture
def topic(run):
    """The name of a new topic with three partitions."""
    name = f"console.{next(_numbers)}"
    run("topic", "create", name, "-p", "3")
    return name


def test_topics_are_created_listed_described_and_deleted(run):
    made = rows(run("topic", "create", "life.a", "life.b", "-p", "2", "-o", "json"))
    assert [(r["name"], r["status"], r["partitions"]) for r in made] == [
        ("life.a", "created", 2),
        ("life.b", "created", 2),
    ]
    assert run("topic", "ls", "-r", r"^life\.", "-o", "name").stdout == "life.a\nlife.b\n"
    described = rows(run("topic", "info", "life.a", "-o", "json"))[0]
    assert described["name"] == "life.a"
    assert [p["end"] for p in described["partitions"]] == [0, 0]
    run("topic", "delete", "-r", r"life\..", "--yes")
    assert run("topic", "list", "-r", r"^life\.", "-o", "name").stdout == ""


def test_a_topic_that_exists_is_a_failure_unless_that_is_all_right(run, topic):
    told = json.loads(run("topic", "create", topic, "-o", "json", code=1).stdout)["error"]
    assert told["code"] == "TOPIC_ALREADY_EXISTS"
    assert told["kafka_code"] == 36
    assert "--if-not-exists" in told["hint"]
    run("topic", "create", topic, "--if-not-exists")


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "describe", "-o", "json"),
        ("topic", "config", "get", "-o", "json"),
        ("topic", "add-partitions", "-n", "1", "--yes", "-o", "json"),
        ("topic", "trim", "-o", "end", "--yes", "--output", "json"),
        ("consume", "-e", "-J"),
    ],
)
def test_what_is_not_there_is_named_in_kafkas_words(run, command):
    told = json.loads(run(*command, "not.there", code=1).stdout)["error"]
    assert told["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert told["kafka_code"] == 3
    assert "not.there" in told["message"]
    assert "topic list" in told["hint"]


def test_names_of_errors_are_kafkas_where_librdkafka_shortens_them(run, topic):
    told = json.loads(run("topic", "create", "a/b", "-o", "json", code=1).stdout)["error"]
    assert (told["code"], told["kafka_code"]) == ("INVALID_TOPIC_EXCEPTION", 17)


def test_among_several_a_failure_is_a_row_and_the_code_is_1(run, topic):
    made = rows(run("topic", "create", f"{topic}.new", topic, "-o", "json", code=1))
    assert [r["status"] for r in made] == ["created", "failed"]
    assert "TOPIC_ALREADY_EXISTS" in made[1]["error"]


def test_a_dry_run_changes_nothing(run, topic):
    run("topic", "create", f"{topic}.dry", "--dry-run")
    run("topic", "delete", topic, "--dry-run")
    run("topic", "add-partitions", topic, "--to", "9", "--dry-run")
    run("topic", "config", "set", topic, "retention.ms=1", "--dry-run")
    assert run("topic", "list", "-r", topic, "-o", "csv").stdout.splitlines()[1:] == [
        f"{topic},3,1,0"
    ]
    assert rows(run("topic", "config", "get", topic, "--changed", "-o", "json")) == []


@pytest.mark.parametrize(
    "args", [("delete", "T"), ("trim", "T", "-o", "end"), ("add-partitions", "T", "-n", "1")]
)
def test_what_cannot_be_undone_needs_yes_without_a_terminal(run, topic, args):
    run("produce", topic, "-p", "0", stdin="one\n")
    told = run("topic", *(topic if a == "T" else a for a in args), code=2)
    assert "--yes" in told.stderr
    assert rows(run("topic", "describe", topic, "-o", "json"))[0]["records"] == 1


def test_settings_are_set_shown_with_their_source_and_unset(run, topic):
    changed = rows(run("topic", "config", "set", topic, "retention.ms=5000", "-o", "json"))
    assert (changed[0]["before"], changed[0]["after"]) == ("604800000", "5000")
    shown = rows(run("topic", "config", "get", topic, "--changed", "-o", "json"))
    assert [(r["key"], r["value"], r["source"]) for r in shown] == [
        ("retention.ms", "5000", "topic")
    ]
    run("topic", "config", "unset", topic, "retention.ms")
    assert rows(run("topic", "config", "get", topic, "--changed", "-o", "json")) == []
    refused = run("topic", "config", "set", topic, "retention.ms=soon", code=1)
    assert "retention.ms" in refused.stderr


def test_partitions_are_added_by_total_or_by_number(run, topic):
    run("topic", "add-partitions", topic, "-n", "1", "--yes")
    done = rows(run("topic", "add-partitions", topic, "--to", "6", "--yes", "-o", "json"))[0]
    assert (done["before"], done["added"], done["after"]) == (4, 2, 6)
    again = rows(run("topic", "add-partitions", topic, "--to", "6", "-o", "json"))[0]
    assert (again["before"], again["after"], again["status"]) == (6, 6, "the same")
    run("topic", "add-partitions", topic, "--to", "5", "--yes", code=2)
    run("topic", "add-partitions", topic, "--to", "7", "-n", "1", code=2)


def test_records_go_in_by_line_key_and_format_and_come_out_by_format(run, topic):
    run("produce", topic, "-p", "1", "-K:", "-H", "who=me", stdin="a:1\nb:2\nno key\n")
    run("produce", topic, "-p", "1", "-f", "%k,%v", stdin="c,3,4\n")
    run("produce", topic, "-p", "1", "-k", "gone", "-Z", stdin="\n")
    out = run("consume", topic, "-e", "-p", "1", "-f", "%t/%p/%o %k=%v %h %K %V\\n").stdout
    assert out.splitlines() == [
        f"{topic}/1/0 a=1 who=me 1 1",
        f"{topic}/1/1 b=2 who=me 1 1",
        f"{topic}/1/2 =no key who=me -1 6",
        f"{topic}/1/3 c=3,4  1 3",
        f"{topic}/1/4 gone=  4 -1",
    ]


def test_json_keeps_every_byte(run, topic, tmp_path):
    file = tmp_path / "bytes"
    file.write_bytes(b"\xff\x00\n")
    run("produce", topic, "-p", "0", str(file))
    run("produce", topic, "-p", "0", "-H", "h=ü", stdin="grün\n")
    first, second = map(json.loads, run("consume", topic, "-e", "-J").stdout.splitlines())
    assert first["value_base64"] == "/wAK"
    assert first["key"] is None
    assert second["value"] == "grün"
    assert second["headers"] == [{"key": "h", "value": "ü"}]


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        (["start"], "012345"), (["beginning"], "012345"), (["2"], "2345"), (["+4"], "45"),
        (["-2"], "45"), (["end"], ""), (["@1000"], "012345"), (["s@2500"], "2345"),
        (["@1001", "e@3001"], "123"), (["1h"], ""), (["e@2000"], "01"), (["-99"], "012345"),
    ],
)  # fmt: skip
def test_the_grammar_of_offsets(run, appliance, stamped, offsets, expected):
    args = [part for offset in offsets for part in ("-o", offset)]
    assert run("consume", stamped, "-e", "-f", "%v", *args).stdout == expected


@pytest.fixture(scope="module")
def stamped(run, appliance):
    """Values 0 to 5 at the seconds 1000, 1001 … (2000 s and more from the third on) since 1970."""
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": appliance.bootstrap})
    run("topic", "create", "stamped", "-p", "1", "-c", "retention.ms=-1")
    stamps = {0: 1_000_000, 1: 1_500_000, 2: 2_500_000, 3: 3_000_500, 4: 4_000_000, 5: 5_000_000}
    for number, stamp in stamps.items():
        producer.produce("stamped", b"%d" % number, timestamp=stamp)
    assert producer.flush(30) == 0
    return "stamped"


@pytest.mark.parametrize("wrong", ["x", "@soon", "stored", "++1", "1.5"])
def test_a_wrong_offset_is_a_usage_error(run, stamped, wrong):
    assert "hint" in run("consume", stamped, "-e", "-o", wrong, code=2).stderr or wrong == "stored"


def test_an_offset_that_is_not_there_says_what_is(run, stamped):
    assert "from 0 to 6" in run("consume", stamped, "-e", "-o", "77", code=1).stderr


def test_only_so_many(run, stamped):
    assert run("consume", stamped, "-n", "2", "-f", "%v").stdout == "01"


def test_trimming_takes_what_is_before_the_offset(run, topic):
    run("produce", topic, "-p", "2", stdin="a\nb\nc\n")
    plan = rows(run("topic", "trim", topic, "-o", "-1", "--yes", "--output", "json"))
    assert {r["partition"]: r["deleted"] for r in plan} == {0: 0, 1: 0, 2: 2}
    assert run("consume", topic, "-e").stdout == "c\n"
    run("topic", "trim", topic, "-p", "2", "-o", "99", "--yes", code=1)


def test_every_form_of_output(run, topic):
    assert topic in run("topic", "list").stdout
    run("produce", topic, "-p", "0", stdin="x\n")
    title, row = run("topic", "list", topic, "-o", "wide").stdout.splitlines()
    *_, records, size = row.split()
    assert title.split()[-2:] == ["RECORDS", "BYTES"] and records == "1" and int(size) > 60
    lines = run("topic", "list", "-o", "jsonl").stdout.splitlines()
    assert topic in [json.loads(line)["name"] for line in lines]
    table = list(csv.DictReader(run("topic", "list", "-o", "csv").stdout.splitlines()))
    assert {"name": topic, "partitions": "3", "replicas": "1", "under_replicated": "0"} in table


def test_nobody_there_is_code_3_and_says_what_to_do(run):
    port = free_port()
    told = run("topic", "list", "-b", f"127.0.0.1:{port}", code=3)
    assert "console up starts an appliance" in told.stderr.splitlines()[-1]
    told = run("topic", "list", "--bootstrap-server", f"127.0.0.1:{port}", "-o", "json", code=3)
    assert json.loads(told.stdout)["error"]["code"] == "UNREACHABLE"


def test_a_broker_that_says_it_is_where_nobody_finds_it_is_told_at_once(fresh_appliance):
    one = fresh_appliance(advertised_listeners="PLAINTEXT://kafka1.invalid:9092")
    warning = "warning: advertised.listeners: kafka1.invalid cannot be resolved by this host"
    assert warning in one.log_text()
    lost = "says it is at kafka1.invalid:9092, which this host cannot resolve"
    for words in (["topic", "list"], ["produce", "hello"], ["consume", "hello"]):
        done = typing(one.bootstrap)(*words, code=3)
        cause, hint = done.stderr.splitlines()
        assert cause.endswith(f"{one.bootstrap} answers, but it {lost} [UNREACHABLE]")
        assert "advertised.listeners" in hint
    with pytest.raises(KafkaException, match=lost):
        penstock.connect(one.bootstrap).admin()


@pytest.mark.parametrize(
    "args",
    [
        ("no-such-command",),
        ("topic", "lst"),
        ("topic", "list", "-o", "xml"),
        ("topic", "list", "-b", "nonsense"),
        ("topic", "list", "-X", "nonsense"),
        ("topic", "list", "-X", "no.such.property=1"),
        ("consume", "x", "-f", "%y"),
        ("produce", "x", "-f", "%k"),
        ("topic",),
    ],
)
def test_wrong_usage_is_code_2(run, args):
    assert run(*args, code=2).stderr


def test_a_reader_that_goes_away_is_no_error(appliance, topic):
    env = os.environ | {"PENSTOCK_BOOTSTRAP": appliance.bootstrap}
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PENSTOCK, "topic", "list"], stdout=writer, stderr=subprocess.PIPE, env=env,
        timeout=60, check=False,
    )  # fmt: skip
    os.close(writer)
    assert done.stderr == b""


def test_ctrl_c_ends_a_consumer_with_130(appliance, run, topic):
    run("produce", topic, "-p", "0", stdin="first\n")
    with started(appliance.bootstrap, "consume", topic, stdout=subprocess.PIPE) as one:
        assert one.stdout.readline() == b"first\n"
        one.send_signal(signal.SIGINT)
        assert one.wait(30) == 130


def test_help_has_examples_and_loads_no_client(run):
    assert "penstock demo" in run("--help").stdout
    for words in (["topic", "create"], ["consume"], ["produce"], ["log", "dump"], ["up"]):
        assert "penstock " + " ".join(words) in run(*words, "--help").stdout
    code = (
        "import sys; from console.root import root; "
        "root.get_help(root.make_context('penstock', ['version'])); "
        "bad = {'confluent_kafka', 'rich', 'kio', 'appliance.config'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_help_groups_the_commands_by_purpose(run):
    told = run("help").stdout
    assert told == run("--help").stdout
    titles = re.findall(r"^(\w+):$", told, re.M)
    assert titles == ["Options", "Start", "Data", "Jobs", "Operate", "Repair"]
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", told, re.M)
    assert sorted(listed) == sorted(root.list_commands(click.Context(root)))


@pytest.mark.parametrize("words", [("topic",), ("topic", "config", "set"), ("help",)], ids=" ".join)
def test_help_of_a_command_is_its_own_help(run, words):
    assert run("help", *words).stdout == run(*words, "--help").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("topci",), "There is no command 'topci'. Did you mean topic?"),
        (("topic", "lsit"), "There is no command 'lsit'. Did you mean list?"),
        (("version", "x"), "'penstock version' has no command 'x'."),
    ],
    ids=["command", "inner", "leaf"],
)
def test_help_of_what_is_no_command(run, words, told):
    done = run("help", *words, code=2)
    assert told in done.stderr
    assert done.stdout == ""


def test_no_command_loads_what_only_tests_of_kio_need():
    """Wherever hypothesis is installed kio would load it: a third of an appliance's start."""
    code = (
        "import atexit, sys\n"
        "def at_end():\n"
        "    import appliance.wire.messages\n"
        "    print('hypothesis.strategies' in sys.modules)\n"
        "atexit.register(at_end); sys.argv[1:] = ['--help']\n"
        "from console import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("False\n"), done


def test_version(run):
    told = rows(run("version", "-o", "json"))
    assert told["hot_modules"] in ("compiled", "interpreted")
    assert run("version").stdout == (
        f"penstock {version('penstock')}, hot modules {told['hot_modules']}\n"
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", told["confluent_kafka"])
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", told["librdkafka"])


COMMANDS = [
    *(
        ("up",),
        ("demo",),
        ("produce",),
        ("consume",),
        ("version",),
        ("stats",),
        ("event",),
        ("event", "list"),
        ("log",),
        ("log", "dump"),
        ("metadata",),
        ("metadata", "repair"),
    ),
    *(("topic",), ("topic", "create"), ("topic", "list"), ("topic", "describe")),
    *(("topic", "delete"), ("topic", "config"), ("topic", "config", "get")),
    *(("topic", "config", "set"), ("topic", "config", "unset")),
    *(("topic", "add-partitions"), ("topic", "trim"), ("topic", "alter-config")),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_has_an_example(words):
    context = click.Context(root, info_name="penstock")
    command = root
    for word in words:
        command = command.get_command(context, word)
        context = click.Context(command, info_name=word, parent=context)
    assert re.search(rf"^ +(.*\| )?penstock {' '.join(words)}\b", command.get_help(context), re.M)
