"""Two answers in, the places where they differ out."""

from typing import NamedTuple

from tests.differential.normal import Named

ABSENT = "absent"
"""Stands for a value where the other answer has one and this has none."""


class Difference(NamedTuple):
    """One field of one answer. script: SCRIPT/STEP."""

    api: str
    version: int
    script: str
    path: str
    ours: object
    kafka: object

    def __str__(self):
        return (
            f"{self.api} v{self.version} {self.script} {self.path}:\n"
            f"      ours {self.ours!r}\n     kafka {self.kafka!r}"
        )


def differing(ours, kafka, path=""):
    """(path, ours, kafka) of every place where two comparable values differ."""
    ours, kafka = _named(ours, kafka), _named(kafka, ours)
    if isinstance(ours, dict) and isinstance(kafka, dict):
        for key in [*kafka, *(key for key in ours if key not in kafka)]:
            inner = _step(path, key, isinstance(ours, Named))
            yield from differing(ours.get(key, ABSENT), kafka.get(key, ABSENT), inner)
    elif isinstance(ours, list) and isinstance(kafka, list) and len(ours) == len(kafka):
        for index, (one, other) in enumerate(zip(ours, kafka, strict=True)):
            yield from differing(one, other, f"{path}[{index}]")
    elif (ours != kafka or type(ours) is not type(kafka)) and not _goes_on(path, ours, kafka):
        yield path, ours, kafka


def _goes_on(path, ours, kafka):
    """Our text may go on where Kafka's ends, with the remedy, and may explain what Kafka does not;
    it begins with Kafka's own words."""
    if not path.endswith("error_message") or not isinstance(ours, str) or not ours:
        return False
    return kafka is None or (isinstance(kafka, str) and kafka != ABSENT and ours.startswith(kafka))


def _named(value, other):
    """An empty list is a mapping of named things when the other one is."""
    return Named() if value == [] and isinstance(other, Named) else value


def _step(path, key, named):
    if named:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def compare(ours, kafka, script, api_of_script):
    """The differences of two runs of a script. ours, kafka: [(step, API, version, answer)]."""
    found = []
    for (step, api, version, answer), other in zip(ours, kafka, strict=False):
        place = f"{script}/{step}"
        if other[:3] != (step, api, version):
            found.append(Difference(api, version, place, "step", step, other[0]))
            continue
        found += [
            Difference(api, version, place, path, one, two)
            for path, one, two in differing(answer, other[3])
        ]
    if len(ours) != len(kafka):
        steps = [[step for step, *_ in notes] for notes in (ours, kafka)]
        found.append(Difference(api_of_script, -1, script, "steps", *steps))
    return found
