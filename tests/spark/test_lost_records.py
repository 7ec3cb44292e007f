"""Records that are gone before a job has read them: what is decided, without Spark."""

import json
from pathlib import Path

import pytest

from spark_local.cause import JobError
from spark_local.engine import checkpoint_files
from spark_local.folder import Folder, read_json
from spark_local.losses import Known, TopicState, after, continued, losses, stopped

OLD, NEW = "id-1", "id-2"


def state(first, end, name=OLD):
    return TopicState(name, {"0": first}, {"0": end})


@pytest.mark.parametrize(
    ("known", "seen", "position", "found"),
    [
        (Known(OLD), state(0, 50), {"0": 20}, []),
        (Known(OLD), state(0, 20), {"0": 20}, []),
        (Known(), state(0, 50, NEW), {"0": 20}, []),
        (Known(OLD), state(0, 50, ""), {"0": 20}, []),
        (Known(OLD), state(0, 50, NEW), {}, []),
        (Known(OLD), state(0, 50, NEW), {"0": 20}, [("recreated", None)]),
        (Known(OLD), state(3, 5, NEW), {"0": 20}, [("recreated", None)]),
        (Known(OLD), state(32, 50), {"0": 20}, [("deleted", 12)]),
        (Known(OLD, {"0": 30}), state(32, 50), {"0": 20}, [("deleted", 2)]),
        (Known(OLD, {"0": 32}), state(32, 50), {"0": 20}, []),
        (Known(OLD), state(2, 5), {"0": 20}, [("truncated", None)]),
        (Known(OLD), state(0, 50), {"1": 20}, []),
    ],
)
def test_a_loss_is_known_by_the_topics_id_and_its_offsets(known, seen, position, found):
    assert [(one.kind, one.records) for one in losses("t", known, seen, position)] == found


def test_a_job_stops_with_a_sentence_or_says_how_it_goes_on():
    (made,) = losses("t", Known(OLD), state(3, 50, NEW), {"0": 20})
    error = stopped("j", made)
    assert error.final
    assert error.problem == "topic t was deleted and created again: it is another topic"
    assert "penstock job reset j" in error.remedy
    assert continued(made).endswith(
        "continues at its start (partition: offset 0: 3), and the number of lost records is unknown"
    )
    (gone,) = losses("t", Known(OLD), state(32, 50), {"0": 20})
    assert "records of topic t, partition 0, were deleted before" in stopped("j", gone).problem
    assert continued(gone).startswith("12 records of topic t, partition 0, were deleted")
    assert "(offsets 20 to 31)" in continued(gone)


def test_what_was_counted_is_not_counted_again():
    seen = state(32, 50)
    known = after(Known(OLD), seen, losses("t", Known(OLD), seen, {"0": 20}))
    assert losses("t", known, seen, {"0": 20}) == []
    assert Known.of(json.loads(json.dumps(known.content()))) == known
    again = state(0, 5, NEW)
    known = after(known, again, losses("t", known, again, {"0": 20}))
    assert known == Known(NEW)
    assert after(Known(), seen, []) == Known(OLD)


def plan(**offsets):
    lines = [{"batchWatermarkMs": 0, "conf": {"a": "b"}}, *({t: at} for t, at in offsets.items())]
    return "v1\n" + "\n".join(map(json.dumps, lines)) + "\n"


def made(path: Path, batches, done):
    for folder in ("offsets", "commits", "sources/0", "sources/1"):
        (path / folder).mkdir(parents=True)
    for number, text in enumerate(batches):
        (path / "offsets" / str(number)).write_text(text)
        (path / "offsets" / f".{number}.crc").write_bytes(b"crc")
    for number in range(done):
        (path / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (path / "sources/0/0").write_bytes(b'\0v1\n{"t": {"0": 7}}')
    (path / "sources/1/0").write_bytes(b'\0v1\n{"u": {"0": 1}}')
    return path


def test_a_checkpoint_whose_batches_are_done_goes_on_at_another_place(tmp_path):
    batches = [plan(t={"0": 10, "1": 4}, u={"0": 3}), plan(t={"0": 20, "1": 8}, u={"0": 5})]
    place = made(tmp_path, batches, done=2)
    assert checkpoint_files.position(place, "t") == {"0": 20, "1": 8}
    checkpoint_files.move_position(place, "t", {"0": 3}, whole=True)
    assert (place / "offsets/1").read_text() == plan(t={"0": 3}, u={"0": 5})
    assert (place / "offsets/0").read_text() == batches[0]
    assert not (place / "offsets/.1.crc").exists()
    assert checkpoint_files.position(place, "t") == {"0": 3}
    assert checkpoint_files.position(place, "u") == {"0": 5}
    for name in ("nowhere", "conf"):
        assert checkpoint_files.position(place, name) == {}


def test_a_batch_that_was_not_done_reads_nothing_of_the_former_topic(tmp_path):
    batches = [plan(t={"0": 10, "1": 4}), plan(t={"0": 20, "1": 8})]
    place = made(tmp_path, batches, done=1)
    assert checkpoint_files.position(place, "t") == {"0": 10, "1": 4}
    assert checkpoint_files.unfinished(place) == 1
    checkpoint_files.move_position(place, "t", {"0": 3}, whole=False)
    assert (place / "offsets/0").read_text() == plan(t={"0": 3, "1": 4})
    assert (place / "offsets/1").read_text() == plan(t={"0": 3, "1": 8})


def test_the_first_batch_begins_where_its_source_says(tmp_path):
    place = made(tmp_path, [plan(t={"0": 20})], done=0)
    assert checkpoint_files.position(place, "t") == {"0": 7}
    checkpoint_files.move_position(place, "t", {"0": 2}, whole=True)
    assert (place / "sources/0/0").read_bytes() == b'\0v1\n{"t": {"0": 2}}'
    assert (place / "sources/1/0").read_bytes() == b'\0v1\n{"u": {"0": 1}}'
    assert (place / "offsets/0").read_text() == plan(t={"0": 2})


def test_the_plan_of_a_refused_batch_is_taken_back(tmp_path):
    place = made(tmp_path, [plan(t={"0": 10}), plan(t={"0": 20})], done=1)
    checkpoint_files.unplan(place, 1)
    assert checkpoint_files.unfinished(place) is None
    assert checkpoint_files.position(place, "t") == {"0": 10}
    assert sorted(one.name for one in (place / "offsets").iterdir()) == [".0.crc", "0"]


@pytest.mark.parametrize("name", ["metadata", "offsets/1", "offsets/0", "commits/1", "sources/0/0"])
@pytest.mark.parametrize("left", [0, 5, -3])
def test_a_file_that_a_power_cut_left_is_named(tmp_path, name, left):
    place = made(tmp_path, [plan(t={"0": 10}), plan(t={"0": 20})], done=2)
    (place / "metadata").write_text('{"id": "x"}')
    assert checkpoint_files.find_cut(place) == ""
    whole = (place / name).read_bytes()
    (place / name).write_bytes(whole[:left] if left else b"")
    assert checkpoint_files.find_cut(place) == name


def test_a_cut_file_of_a_job_is_one_sentence(tmp_path):
    place = Folder(tmp_path).at("j")
    place.path.mkdir()
    for name in ("state.json", "dead.json"):
        (place.path / name).write_text("")
    assert place.state() == {}
    with pytest.raises(JobError, match=r"dead.json of the job is cut.*penstock job reset j"):
        read_json(place.path / "dead.json")
