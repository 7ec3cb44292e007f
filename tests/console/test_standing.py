"""`penstock status`: how an appliance stands, on one screen and by an exit code."""

import os
import shutil
import signal
from dataclasses import replace

import pytest

from console.model.asking.failure import UNREACHABLE, Failure
from console.model.local.attention import BAD, NOTE, Notice
from console.model.local.standing import DEGRADED, NOT_SERVING, WELL, Standing
from console.model.storage.disk import LogFolder
from console.model.storage.forecast import Forecast
from console.show.standing import lines, row
from tests.console import calm_cluster
from tests.console.calm_world import NOW_S, facts, happened, transactions
from tests.console_process import rows

FOLDER = LogFolder(
    "/srv/a", 10**12, 4 * 10**11, 6 * 10**11, "", {f"t{n}": n * 10**9 for n in range(8)}
)
GONE = Failure("nobody is there", "start it", code=UNREACHABLE)


def standing(**more):
    lags = {("reports", "orders"): 1200, ("reports", "payments"): 34, ("audit", "orders"): 0}
    lags |= {(f"g{n}", "orders"): n for n in range(1, 4)}
    known = replace(facts(), lags=lags, listeners=("PLAINTEXT://shop:9092", "TLS://shop:9093"))
    usual = {
        "facts": known, "cluster": calm_cluster.alone(), "folders": (FOLDER,),
        "forecasts": {0: Forecast(3.2 * 86_400, 2.0e6, 86_000.0)},
        "transactions": transactions(),
        "warnings": tuple(one for one in happened() if one.level in ("warning", "error")),
    }  # fmt: skip
    return Standing("shop:9092", NOW_S, **(usual | more))


def text(one):
    return "\n".join(lines(one, "1.2.3"))


def test_the_exit_code_says_the_worst():
    guess = (Notice(NOTE, "the disk would be full in 10 h", "make room"),)
    assert standing(notices=guess).code == WELL
    wrong = (Notice(BAD, "ioproc-0 is down", "wait"),)
    assert standing().code == WELL
    assert standing(notices=wrong).code == DEGRADED
    assert standing(notices=wrong, missing=("it is ending",)).code == NOT_SERVING
    assert standing(lost=GONE).code == NOT_SERVING


def test_one_screen_tells_all_of_it():
    told = text(standing())
    assert "penstock 1.2.3 at shop:9092: well, up 2 h 5 min, since " in told
    assert "one node alone" in told and "PLAINTEXT://shop:9092, TLS://shop:9093" in told
    assert "in 1.68 MB/s, 8.41k records/s; out 4.21 MB/s; 430 requests/s" in told
    assert "3 connections: librdkafka 2.6.1 ×1" in told and "1 throttled, e.g. loader" in told
    assert "4 of 5 groups behind: reports by 1,234, g3 by 3, g2 by 2\n" in told
    assert "a transaction of producer 4711, which hangs, keeps 12 records" in told
    assert "/srv/a: 60% used, 400 GB free, full in 3 d 4 h at the rate of the last 23 h" in told
    assert "t7 7.00 GB, t6 6.00 GB, t5 5.00 GB, t4 4.00 GB, t3 3.00 GB\n" in told
    assert "12 s ago warning supervisor child-died child=ioproc-0" in told
    assert told.count("\n") < 24


def test_what_is_wrong_is_told_first_and_once():
    down = "netproc-0 is down"
    told = lines(standing(notices=(Notice(BAD, down, "wait"),), missing=(down,)), "1")
    assert told[0].startswith("penstock 1 at shop:9092: not serving")
    assert told[1] == f"! {down}" and sum(down in one for one in told) == 1
    many = tuple(Notice(BAD, f"trouble {n}", "") for n in range(9))
    assert lines(standing(notices=many), "1")[5:7] == ["! trouble 4", "and 4 more"]
    bare = Standing("a:1", NOW_S, GONE)
    assert lines(bare, "1") == ["penstock 1 at a:1: not serving", "! nobody is there", "  start it"]


def test_sick_processes_are_first_with_their_restarts():
    known = facts()
    sick = replace(known.processes[0], state="down", restarts=3)
    told = lines(standing(facts=replace(known, processes=[*known.processes[1:], sick])), "1")
    first = next(one for one in told if one.startswith("processes"))
    assert first.split()[1:3] == ["control", "down"] and first.endswith("3 restarts")


def test_a_cluster_is_told_in_one_line():
    (told,) = (
        one for one in lines(standing(cluster=calm_cluster.cluster()), "1") if "nodes" in one
    )
    assert told.endswith(
        "2 of 3 nodes; node 2 leads the metadata, voters 1, 2, 3; 3 of 6 under-replicated"
    )


def test_names_cannot_paint_the_screen():
    known = replace(facts(), lags={("\x1b[2J\n", "t"): 5}, listeners=("\x1b[0m",))
    folder = replace(FOLDER, path="\x1b]0;x\a")
    told = lines(standing(facts=known, folders=(folder,), unknown=("\x1b",)), "1")
    assert all(one.isprintable() for one in told)


def test_programs_get_all_of_it():
    told = row(standing(), "1.2.3")
    assert (told["state"], told["code"], told["version"]) == ("well", 0, "1.2.3")
    assert told["groups"][0] == {"group": "reports", "lag": 1234} and len(told["groups"]) == 5
    assert told["folders"][0]["topics"]["t7"] == 7 * 10**9
    assert told["folders"][0]["full_s"] == 3.2 * 86_400
    assert told["transactions"][0]["held_back"] == 12
    bare = row(Standing("a:1", NOW_S, GONE), "1")
    assert bare.keys() == told.keys() and bare["processes"] is None
    assert bare["problems"] == [{"level": "not serving", "what": "nobody is there"}]


@pytest.fixture(scope="module")
def well(alone):
    """The exit code where nothing is wrong but, maybe, the disk of whoever runs this."""
    disk = shutil.disk_usage(alone.data_dir)
    return DEGRADED if disk.free < disk.total * 0.1 else WELL


def test_an_appliance_of_this_host_is_told_by_its_address_and_by_its_folder(run, alone, well):
    at = ("-b", alone.bootstrap)
    run("topic", "create", "standing", *at)
    run("produce", "standing", *at, stdin="one\ntwo\n")
    told = rows(run("status", *at, "--over", "0.1", "-o", "json", code=well))
    assert told["listeners"] == [f"PLAINTEXT://{alone.bootstrap}"] and told["up_s"] > 0
    assert {"control", "ioproc-0", "netproc-0"} <= {one["process"] for one in told["processes"]}
    assert all(one["restarts"] == 0 and one["memory_mb"] > 0 for one in told["processes"])
    assert told["folders"][0]["topics"]["standing"] > 0
    assert told["cluster"]["nodes"] == 1
    # A young one may not have written down yet what it does.
    assert not [one for one in told["unknown"] if not one.endswith("there is none yet")]
    by_folder = run("status", "--data", str(alone.data_dir), "--over", "0", code=well).stdout
    assert alone.bootstrap in by_folder and "standing" in by_folder


def test_where_nobody_is_it_is_not_serving(run, tmp_path):
    run("status", "-b", "127.0.0.1:1", code=2)
    told = rows(run("status", "--data", str(tmp_path), "-o", "json", code=2))
    assert told["state"] == "not serving" and "no folder" in told["problems"][0]["what"]


def test_a_process_that_was_replaced_is_told_with_its_cause(run, alone, well):
    def process():
        found = rows(run("stats", "-p", "--data", str(alone.data_dir), "-o", "json"))
        return next(one for one in found if one["process"] == "netproc-0")

    os.kill(process()["pid"], signal.SIGKILL)
    while process()["restarts"] == 0 or process()["state"] != "ready":
        pass
    run("wait", "--data", str(alone.data_dir), "-b", alone.bootstrap)
    told = run("status", "--data", str(alone.data_dir), "--over", "0", code=well).stdout
    (line,) = (one for one in told.splitlines() if "netproc-0 ready" in one)
    assert line.endswith(" 1 restart") and "child-died" in told


def test_connections_are_listed_by_the_short_name_too(run, alone):
    told = run("connections", "--data", str(alone.data_dir), "--over", "0", "-o", "json")
    assert isinstance(rows(told), list)
