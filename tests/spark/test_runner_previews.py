"""Previews by the runner of a jobs folder: what is asked in files, and answered by its Spark."""

import threading

import pytest

from spark_local.folder import Folder
from spark_local.questions import Questions, ask_runner

pytestmark = pytest.mark.filterwarnings(  # py4j leaves its sockets to the collector
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
JOB = """
sql = "SELECT who, at, name FROM events JOIN names USING (who)"
[sources.events]
topic = "{source}"
schema = "who STRING, at TIMESTAMP"
[tables.names]
topic = "{names}"
key = "who"
schema = "who STRING, name STRING"
[sink]
topic = "nowhere-{source}"
"""


def test_a_question_is_answered_once_and_leaves_nothing(tmp_path):
    folder = Folder(tmp_path)
    assert ask_runner(folder, {"n": 0}) is None, "there is no runner"
    with folder.locked():
        assert ask_runner(folder, {"n": 0}) is None, "a runner that takes no questions"
        runner = Questions(folder)
        runner.clear_questions()
        answers = []
        asker = threading.Thread(target=lambda: answers.append(ask_runner(folder, {"n": 1})))
        asker.start()
        while not (taken := list(runner.take_questions())):
            assert asker.is_alive()
        ((name, question),) = taken
        assert list(runner.take_questions()) == []
        runner.answer_question(name, {"n": question["n"] + 1})
        asker.join(30)
        assert answers == [{"n": 2}]
        runner.answer_question(name, {"n": 3})  # nobody waits for it
        assert list((folder.runner / "asked").iterdir()) == []


def test_the_runner_previews_a_job_and_keeps_nothing(bench):
    from spark_local.engine.look import Preview

    source, names = bench.topic("in"), bench.topic("names")
    bench.write(source, {"who": "a", "at": "2013-01-01T00:00:00Z"}, b"text")
    bench.write(names, {"who": "a", "name": "Ada"}, key="a")
    file = bench.path / "seen.toml"
    file.write_text(JOB.format(source=source, names=names))
    question = {"file": str(file), "base": str(bench.path), "rows": 5, "last": 10,
                "bootstrap": bench.broker.bootstrap}  # fmt: skip
    with bench.folder.locked():
        found = Preview.of_json(ask_runner(bench.folder, question))
        assert [(row["who"], row["name"]) for row in found.rows] == [("a", "Ada")]
        assert found.rows[0]["at"].startswith("2013-01-01 00:00:00")
        assert found.kinds == {"who": "string", "at": "timestamp", "name": "string"}
        (bad, of, reasons) = found.unreadable["events"]
        assert (bad, of) == (1, 2) and "it is not JSON" in reasons[0]
        elsewhere = {**question, "bootstrap": "other:9092"}
        assert ask_runner(bench.folder, elsewhere) == {"unable": True}
        file.write_text(file.read_text().replace("SELECT who", "SELECT whom"))
        told = ask_runner(bench.folder, question)
        assert "whom" in told["problem"] and told["remedy"]
        assert ask_runner(bench.folder, {**question, "file": "/none.toml"}) == {"unable": True}
    assert list((bench.folder.runner / "asked").iterdir()) == []
    assert f"nowhere-{source}" not in bench.link.admin().list_topics(timeout=30).topics
