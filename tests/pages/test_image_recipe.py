"""The recipe of the image, as far as it can be tried without building one: its words are commands
that there are, it is nobody's root, its program serves, is healthy, and ends on its signal."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.pages.test_documentation import unknown

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "pages/release/Containerfile").read_text().replace("\\\n", " ")
LAST = RECIPE[RECIPE.rindex("\nFROM ") :]
DATA = "/var/lib/penstock"


def lines(word):
    return re.findall(rf"^ *{word} (.*)$", LAST, re.MULTILINE)


def words(word):
    (line,) = lines(word)
    return json.loads(line[line.index("[") :])


def test_it_is_small_and_not_root():
    assert "apt-get" not in LAST, "what compiles stays behind"
    assert lines("USER") == ["1000:1000"] and "--uid 1000" in LAST
    assert lines("VOLUME") == [DATA] and lines("EXPOSE") == ["9092"]
    assert f"-o penstock -g penstock -m 0750 {DATA}" in LAST


def test_another_base_can_be_named():
    bases = re.findall(r"^FROM (\S+)", RECIPE, re.MULTILINE)
    assert bases == ["${BASE}"] * 2
    assert re.search(r"^ARG BASE=\S+:3\.\d+-slim", RECIPE, re.MULTILINE)


def test_its_program_serves_is_healthy_and_ends_on_its_signal(tmp_path):
    start = [*words("ENTRYPOINT"), *words("CMD")]
    check = words("HEALTHCHECK")
    assert unknown(start) is None and unknown(check) is None
    data = str(tmp_path / "data")
    ours = [sys.executable, "-m", "console"]
    told = [{DATA: data, "0.0.0.0:9092": "127.0.0.1:0"}.get(word, word) for word in start[1:]]
    with subprocess.Popen([*ours, *told], stderr=subprocess.DEVNULL, cwd=ROOT) as program:
        try:
            patient = [data if word == DATA else word for word in check[1:]]
            patient[patient.index("--timeout") + 1] = "60"
            assert subprocess.run([*ours, *patient], cwd=ROOT, check=False).returncode == 0
            program.send_signal(signal.Signals[lines("STOPSIGNAL")[0]])
            assert program.wait(60) == 0
        finally:
            program.kill()
