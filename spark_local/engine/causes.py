"""What Spark says when something fails → one sentence with its remedy, and whether trying again may
help. Spark's own story stays in its log."""

import re
from typing import Final

from spark_local.cause import JobError
from spark_local.mistakes import JobFileError

_LOST: Final = re.compile(
    r"offset was changed from (\d+) to (\d+)|Cannot fetch (?:offset|records)|OffsetOutOfRange|"
    r"data may have been (?:lost|missed)|KAFKA_DATA_LOSS|"
    r"Offsets? .{0,40}out of range|failOnDataLoss",
)
_PARTITION: Final = re.compile(r"\b([\w.-]+)-(\d+)(?:'s offset was changed| offset)")
_AWAY: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException|Network)|"
    r"ConnectException|No resolvable bootstrap|Call\(callName|Failed to get metadata|"
    r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT|Broker transport failure|Local: Timed out|"
    r"Timed out waiting for a node|not present in metadata",
)
_STATE: Final = re.compile(r"STATE_STORE|StateSchema|state schema|CHECKPOINT|incompatible .*state")
_MALFORMED: Final = re.compile(
    r"MALFORMED_RECORD_IN_PARSING|Malformed records? (?:are|is) detected"
)
_ANALYSIS: Final = {"AnalysisException", "ParseException", "IllegalArgumentException"}


def translate(problem: BaseException, job: str) -> JobError:
    """Always a JobError; `final` when another attempt cannot help."""
    if isinstance(problem, JobError):
        return problem
    if isinstance(problem, JobFileError):
        return JobError(str(problem.mistakes[0]), "correct the job file and add it again")
    text = _text(problem)
    root = root_cause(text)
    if _LOST.search(text):
        return _lost(text, job)
    if "UnknownTopicOrPartition" in text:
        remedy = "penstock topic create makes it; the job waits for it"
        return JobError("a topic that the job needs is not there", remedy, final=False)
    if _AWAY.search(text):
        remedy = "the job goes on when it answers again"
        return JobError("the appliance cannot be reached", remedy, final=False)
    if _MALFORMED.search(text):
        remedy = (
            'mend the file, or write options = {mode = "DROPMALFORMED"} to pass such lines over'
        )
        return JobError(f"a file has a line that does not fit the schema: {root}", remedy)
    if _names(problem) & _ANALYSIS:
        return JobError(_first(str(problem)), "correct the query and add the job again")
    if _STATE.search(text):
        remedy = f"penstock job reset {job} begins anew, or go back to the former query"
        return JobError(f"the kept state does not fit the query any more: {root}", remedy)
    return JobError(root, f"penstock job logs {job} --runner has Spark's own story", final=False)


def unreachable(cause: JobError) -> bool:
    """Whether it is waited for without end."""
    return not cause.final and ("cannot be reached" in cause.problem or "topic" in cause.problem)


def _lost(text: str, job: str) -> JobError:
    where = _PARTITION.search(text)
    moved = re.search(r"offset was changed from (\d+) to (\d+)", text)
    which = f" of topic {where[1]}, partition {where[2]}," if where else ""
    span = f" {moved[1]} to {int(moved[2]) - 1}" if moved and moved[2] > moved[1] else ""
    return JobError(
        f"records{span}{which} were deleted before the job read them",
        f'penstock job reset {job} begins anew with what is there; on_loss = "continue" goes on '
        "without them",
    )


def root_cause(text: str) -> str:
    """The innermost cause that a stack trace names, one line."""
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    line = causes[-1] if causes else _first(text)
    return re.sub(r"^(?:[a-z_]\w*\.)+(\w+(?:Exception|Error)): ", r"\1: ", line)[:400]


def _first(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), text) or "no reason was given"
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", line).strip()[:400]


def _names(problem: BaseException | None) -> set[str]:
    """Classes of a failure and of what it was caused by."""
    if problem is None:
        return set()
    return {type(problem).__name__} | _names(getattr(problem, "_cause", None))


def _text(problem: BaseException) -> str:
    """Message and, from the JVM, the stack trace with its causes."""
    parts = [str(problem) or type(problem).__name__, str(getattr(problem, "_stackTrace", ""))]
    causes = (getattr(problem, "_cause", None), problem.__cause__)
    parts += [_text(cause) for cause in causes if isinstance(cause, BaseException)]
    return "\n".join(parts)
