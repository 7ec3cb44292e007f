"""Every scenario of the folder, line by line."""

from pathlib import Path

import pytest
from quorum_script import Script

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path):
    for number, text in enumerate(path.read_text().split("\n===\n"), 1):
        try:
            Script(text).run()
        except AssertionError as cause:
            raise AssertionError(f"scenario {number}: {cause}") from cause


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("voters A B C\nA stands\nexpect A leads", "line 3: expect A leads\nit asks"),
        ("voters A B C\nA stands\nsettle\nexpect A leads epoch 2", "line 4.*\nepoch: 1"),
        ("voters A B\nexpect A>B vote 1 log 0@0", "line 2.*\nit is: nothing"),
        ("voters A B\nB appends", "line 2: B appends\nB does not lead"),
    ],
)
def test_a_wrong_expectation_fails_and_says_where(text, why):
    with pytest.raises(AssertionError, match=why):
        Script(text).run()
