"""kcat: the tool most people reach for first. Its simple consumer needs no group."""

import json
import shutil
import subprocess

import pytest

LIMIT_S = 60
pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


@pytest.fixture
def kcat(bootstrap):
    def run(*arguments, stdin="", check=True):
        done = subprocess.run(
            ["kcat", "-b", bootstrap, *arguments],
            input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back(kcat, topic, codec):
    lines = "".join(f"k{i}:value {i}\n" for i in range(500))
    kcat("-P", "-t", topic, "-K", ":", "-z", codec, stdin=lines)
    got = kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-K", ":").stdout
    assert got == lines


def test_headers_and_null_values(kcat, topic):
    kcat("-P", "-t", topic, "-K", ":", "-Z", "-H", "a=1", "-H", "b=2", stdin="key:\n")
    got = kcat("-C", "-t", topic, "-e", "-q", "-J").stdout
    record = json.loads(got)
    assert (record["key"], record["payload"], record["offset"]) == ("key", None, 0)
    assert record["headers"] == ["a", "1", "b", "2"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [("beginning", range(100)), ("90", range(90, 100)), ("-3", range(97, 100))],
)
def test_offsets(kcat, topic, offset, expected):
    kcat("-P", "-t", topic, stdin="".join(f"{i}\n" for i in range(100)))
    got = kcat("-C", "-t", topic, "-o", offset, "-e", "-q").stdout.split()
    assert got == [str(i) for i in expected]


def test_offset_of_a_time(kcat, topic):
    kcat("-P", "-t", topic, stdin="a\nb\n")
    stamp = int(kcat("-C", "-t", topic, "-e", "-q", "-f", "%T\n").stdout.split()[0])
    assert kcat("-C", "-t", topic, "-o", f"s@{stamp}", "-e", "-q").stdout == "a\nb\n"
    assert kcat("-Q", "-t", f"{topic}:0:{stamp}").stdout.split()[-1] == "0"


def test_listing(kcat, new_topic):
    topic = new_topic(3)
    listed = json.loads(kcat("-L", "-J").stdout)
    assert topic in {found["topic"] for found in listed["topics"]}
    (one,) = json.loads(kcat("-L", "-J", "-t", topic).stdout)["topics"]
    assert [p["partition"] for p in one["partitions"]] == [0, 1, 2]


def test_idempotent_and_acks(kcat, topic):
    kcat("-P", "-t", topic, "-X", "enable.idempotence=true", stdin="a\n")
    for acks in ("0", "1", "-1"):
        kcat("-P", "-t", topic, "-X", f"acks={acks}", stdin="a\n")
    assert kcat("-C", "-t", topic, "-e", "-q").stdout == "a\n" * 4
