"""Maps Spark's errors to one sentence with its remedy, and to whether a retry may help. Spark's own
text stays in its log.
"""

import re
import traceback
from pathlib import Path
from typing import Final

from spark_local.cause import JobError
from spark_local.engine.clients import ClientsGone
from spark_local.engine.transactions import transactional_id
from spark_local.mistakes import JobFileError

_LOST: Final = re.compile(
    r"offset was changed from (\d+) to (\d+)|Cannot fetch (?:offset|records)|OffsetOutOfRange|"
    r"data may have been (?:lost|missed)|KAFKA_DATA_LOSS|"
    r"Offsets? .{0,40}out of range",
)
_PLAN: Final = re.compile(r"^[\s:|]*(?:\+-|:-|~|'[A-Z]).*$", re.MULTILINE)
"""Lines of a plan. They quote settings and texts of the query, which say nothing of the failure."""
_PYTHON: Final = re.compile(
    r"^(?!py4j)((?:\w+\.)*[A-Z]\w+(?:Exception|Error)(?:: .+)?)$", re.MULTILINE
)
_TRACED: Final = "Traceback (most recent call last)"
_SPARKS: Final = ("pyspark", "py4j", "spark_local")
_CORRECT: Final = "correct the query and add the job again"
_QUERY: Final = {"AnalysisException", "ParseException"}
_PARTITION: Final = re.compile(r"\b([\w.-]+)-(\d+)(?:'s offset was changed| offset)")
_AWAY: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException|Network)|"
    r"ConnectException|No resolvable bootstrap|Call\(callName|Failed to get metadata|"
    r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT|Broker transport failure|Local: Timed out|"
    r"Timed out waiting for a node|not present in metadata",
)
_FENCED: Final = re.compile(r"(?:ProducerFenced|InvalidProducerEpoch|InvalidPidMapping)Exception")
_DENIED: Final = re.compile(
    r"(Topic|Group|TransactionalId|Cluster)AuthorizationException|"
    r"(TOPIC|GROUP|TRANSACTIONAL_ID|CLUSTER)_AUTHORIZATION_FAILED"
)
_DENIALS: Final = {
    "topic": "the user of the job may not read, write or create a topic that it needs",
    "group": "the user of the job may not use its consumer group",
    "transactionalid": "the user of the job may not use the transactional id {}",
    "cluster": "the user of the job may not write idempotently, or create topics",
}
_NOT_LOGGED_IN: Final = re.compile(r"SaslAuthenticationException|_AUTHENTICATION|SASL_AUTH")
_NO_TLS: Final = re.compile(r"SslAuthenticationException|SSLHandshakeException")
_STATE: Final = re.compile(r"STATE_STORE|StateSchema|state schema|CHECKPOINT|incompatible .*state")
_TOO_LARGE: Final = re.compile(
    r"RecordTooLargeException|RecordBatchTooLargeException|MESSAGE_TOO_LARGE"
)
_VALUE: Final = re.compile(
    r"\[(?:(?:BINARY_|INTERVAL_)?ARITHMETIC_OVERFLOW|CAST_(?:INVALID_INPUT|OVERFLOW)|"
    r"DATETIME_OVERFLOW|DIVIDE_BY_ZERO|INTERVAL_DIVIDED_BY_ZERO|INVALID_ARRAY_INDEX\w*|"
    r"NUMERIC_\w*OUT_OF\w+|DATETIME_FIELD_OUT_OF_BOUNDS|CANNOT_PARSE_TIMESTAMP|"
    r"INVALID_VARIANT_CAST)\b|java\.lang\.ArithmeticException"
)
"""What an expression raises for a value: the same value raises it each time."""
_CHANGED: Final = re.compile(
    r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SOURCE_IGNORE_DELETE|"
    r"Cannot process (?:overwrite|delete) snapshot"
)
_EXPIRED: Final = re.compile(
    r"the snapshot was expired or removed|DELTA_(?:VERSIONS_NOT_CONTIGUOUS|"
    r"TRUNCATED_TRANSACTION_LOG|FILE_NOT_FOUND_DETAILED)"
)
_MALFORMED: Final = re.compile(
    r"MALFORMED_RECORD_IN_PARSING|Malformed records? (?:are|is) detected"
)


def translate(problem: BaseException, job: str) -> JobError:
    """Always a JobError; `final` when another attempt cannot help."""
    if isinstance(problem, JobError):
        return problem
    if isinstance(problem, JobFileError):
        return JobError(str(problem.mistakes[0]), "correct the job file and add it again")
    text = _PLAN.sub("", _text(problem))
    root = root_cause(text)
    if _names(problem) & _QUERY and "without watermark" in text:
        return JobError(
            "rows of mode append are final, and without a watermark no group of this query ever is",
            'write [sink] mode = "update" (and key), or event_time and watermark in the source and '
            "group by a window of that time; then add the job again",
        )
    if _names(problem) & _QUERY:
        return JobError(_first(str(problem)), _CORRECT)
    if _LOST.search(text):
        return _lost(text, job)
    if cause := _of_kafka(text, job) or _of_table(text, job):
        return cause
    if isinstance(problem, ClientsGone):
        return JobError(str(problem), "the runner starts another one", final=False, waits=True)
    if _MALFORMED.search(text):
        remedy = (
            'mend the file, or write options = {mode = "DROPMALFORMED"} to pass such lines over'
        )
        return JobError(f"a file has a line that does not fit the schema: {root}", remedy)
    if found := _VALUE.search(text):
        return _value(text, found[0], root)
    if "IllegalArgumentException" in _names(problem):
        return JobError(_first(str(problem)), _CORRECT)
    if _STATE.search(text):
        remedy = f"penstock job reset {job} starts over, or go back to the former query"
        return JobError(f"the kept state does not fit the query any more: {root}", remedy)
    return JobError(
        _in_python(problem) or root,
        f"penstock job logs {job} --error has its trace, --runner Spark's own log", final=False,
    )  # fmt: skip


def _value(text: str, found: str, root: str) -> JobError:
    """The same records make it fail again and again. found: what names it."""
    if "KafkaRecordToRowConverter" in text:
        problem = f"a record's timestamp is not in milliseconds, and too large for Spark: {root}"
        return JobError(problem, "correct its producer, and start behind that record (start = …)")
    line = next((one for one in text.splitlines() if found in one), root)
    told = root if found in root else root_cause(line)
    remedy = "correct the query: try_cast, try_add, try_divide and others give NULL instead"
    return JobError(f"a value makes the query fail, whenever it is tried: {told}", remedy)


def _of_kafka(text: str, job: str) -> JobError | None:
    """The cause of an error from a broker or its absence."""
    if _TOO_LARGE.search(text):
        size = re.search(r"message is (\d+) bytes", text)
        problem = f"a row{f' of {int(size[1]):,} bytes' if size else ''} is larger than the sink's "
        remedy = "raise max.message.bytes of the topic, or derive smaller rows; then start the job"
        return JobError(problem + "topic takes", remedy)
    if "UnknownTopicOrPartition" in text:
        remedy = "penstock topic create makes it; the job waits for it"
        problem = "a topic that the job needs is not there"
        return JobError(problem, remedy, final=False, waits=True)
    if _FENCED.search(text):
        return JobError(
            "the job's transaction was ended from outside: by its timeout ([sink] "
            "transaction_timeout), by an operator, or by another runner with a job of this name",
            "the batch is written again; if that happens often, write a smaller max_records or a "
            "longer transaction_timeout", final=False,
        )  # fmt: skip
    if "transaction.max.timeout.ms" in text:
        problem = "[sink] transaction_timeout is longer than the broker lets transactions take"
        return JobError(problem, "write a shorter one, or raise its transaction.max.timeout.ms")
    if denied := _DENIED.search(text):
        kind = (denied[1] or denied[2]).replace("_", "").lower()
        problem = _DENIALS[kind].format(transactional_id(job))
        remedy = f"an administrator allows it, as penstock user add --can job:{job} does"
        return JobError(problem, remedy, final=False)
    if _NOT_LOGGED_IN.search(text):
        problem = "the broker refuses the login"
        return JobError(problem, "correct the client file, and start the job again", final=False)
    if _NO_TLS.search(text):
        problem = f"the TLS handshake with the broker failed: {root_cause(text)}"
        return JobError(problem, "correct ssl.ca.location and the certificate of the client file")
    return away() if _AWAY.search(text) else None


def _of_table(text: str, job: str) -> JobError | None:
    """The cause of an error from a table that is read as a stream."""
    if _CHANGED.search(text):
        remedy = 'write on_change = "skip" in its source, which passes over what is no append'
        return JobError("rows of a table that is read were changed or deleted", remedy)
    if _EXPIRED.search(text):
        problem = "snapshots of a table that is read have expired before the job read them"
        return JobError(problem, f"penstock job reset {job} starts over with what is there")
    return None


def trace(problem: BaseException) -> str:
    """All that is known of a failure: Python's trace, then the JVM's with its causes."""
    told = "".join(traceback.format_exception(problem))
    jvm = "\n".join(dict.fromkeys(_stacks(problem)))
    return told if jvm in told else f"{told}\n{jvm}"


def _stacks(problem: BaseException) -> list[str]:
    found = [str(getattr(problem, "_stackTrace", "") or "")]
    causes = (getattr(problem, "_cause", None), problem.__cause__)
    for cause in causes:
        found += _stacks(cause) if isinstance(cause, BaseException) else []
    return [one for one in found if one]


def _in_python(problem: BaseException) -> str:
    """The error raised by the job's own Python, with its kind and place; "" for Spark's own."""
    if type(problem).__module__.partition(".")[0] in _SPARKS or isinstance(problem, RuntimeError):
        return ""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [one for one in frames if not {*Path(one.filename).parts} & {*_SPARKS}]
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return _one_line(f"{type(problem).__name__}: {problem}{where}")


def away() -> JobError:
    """The error when none of the job's bootstrap servers answers."""
    remedy = "the job continues when it answers again"
    return JobError("the appliance cannot be reached", remedy, final=False, waits=True)


def _lost(text: str, job: str) -> JobError:
    where = _PARTITION.search(text)
    moved = re.search(r"offset was changed from (\d+) to (\d+)", text)
    which = f" of topic {where[1]}, partition {where[2]}," if where else ""
    span = f" {moved[1]} to {int(moved[2]) - 1}" if moved and moved[2] > moved[1] else ""
    return JobError(
        f"records{span}{which} were deleted before the job read them",
        f"penstock job reset {job} starts over with the records that exist; "
        'on_loss = "continue" skips them',
    )


def root_cause(text: str) -> str:
    """The innermost cause that a stack trace names, one line. What failed in Python below Spark is
    the last line of Python's own trace."""
    causes = list(re.finditer(r"^Caused by: (.+)$", text, re.MULTILINE))
    line = causes[-1][1] if causes else _first(text)
    below = text.rfind(_TRACED)
    if below > (causes[-1].start() if causes else -1):
        raised = _PYTHON.findall(text, below)
        line = raised[-1] if raised else line
    elif line.startswith("An error occurred while calling"):
        called = re.search(r"^: (.+)$", text, re.MULTILINE)
        line = called[1] if called else line
    return re.sub(r"^(?:[a-z_]\w*\.)+(\w+(?:Exception|Error)): ", r"\1: ", _one_line(line))


def _first(text: str) -> str:
    return _one_line(next((line for line in text.splitlines() if line.strip()), text))


def _one_line(text: str) -> str:
    """Without what Spark adds for programs; the place in the query stays."""
    line = re.sub(r"\s*SQLSTATE: \w+", "", text).strip(" ;.:\n")
    line = re.sub(r"\.?; (line \d+)", r", \1", line)
    return line[:400] or "no reason was given"


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
