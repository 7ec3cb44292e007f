"""Every scenario of the folder, line by line."""

from pathlib import Path

import pytest
from scenario_runner import Script

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    for text in path.read_text().split("\n===\n"):
        Script(text).run()


def test_a_wrong_expectation_fails() -> None:
    with pytest.raises(AssertionError, match="line 2"):
        Script("A joins\nexpect A joined 1 range led by A A\n").run()
