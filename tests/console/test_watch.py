"""`--watch` into a pipe: one picture behind the other, which a program can tell apart."""

import json
import subprocess

import pytest

from tests.console_process import started

WATCH = ("topic", "list", "watched", "-w", "--interval", "100ms")


@pytest.fixture(scope="module", autouse=True)
def topic(run):
    run("topic", "create", "watched", "--if-not-exists")


def test_each_picture_is_a_line_of_json(appliance):
    with started(appliance.bootstrap, *WATCH, "-o", "json", stdout=subprocess.PIPE) as process:
        pictures = [json.loads(process.stdout.readline()) for _ in range(3)]
    assert [one[0]["name"] for one in pictures] == ["watched"] * 3


def test_each_picture_is_a_document_of_yaml(appliance):
    with started(
        appliance.bootstrap, *WATCH, "-o", "yaml", stdout=subprocess.PIPE, text=True
    ) as process:
        told = [process.stdout.readline()]
        while told.count("---\n") < 2:
            told.append(process.stdout.readline())
    first, second, rest = "".join(told).split("---\n")
    assert first == second and first.startswith('- "name": "watched"\n') and rest == ""
