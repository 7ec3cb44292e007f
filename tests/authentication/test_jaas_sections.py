"""JAAS files: the sections that Java's own reader finds in them, and errors that name the line."""

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.authentication.jaas_sections import fill_in, parse_sections
from appliance.base.errors import ConfigError
from benchmarks import kafka

JAVA = Path(__file__).with_name("JaasSections.java")
NAMES = ("KafkaServer", "sasl_ssl.KafkaServer", "a b", "Client")
FILES = {
    "one": 'KafkaServer { a.b.M required user_a="x y" user_b="z"; };',
    "two modules": 'KafkaServer {\n a.M required a="1";\n a.N optional b=c;\n};\n',
    "a listener's": 'sasl_ssl.KafkaServer { M required; }; KafkaServer { N Required; };',
    "quoted name": '"a b" { M required; };',
    "quoted module": 'KafkaServer { "a.M" "required" "k"="v"; };',
    "comments": "// x\n/* y\n */ KafkaServer { M required // z\n a=b; / more };\n };",
    "escapes": r'KafkaServer { M required a="\"\\\101\u"; };',
    "signs in words": "KafkaServer { a$M_1-x required a-b=c*d k.l=m.n; };",
    "star": "KafkaServer { M required principal=*; };",
    "slash": 'KafkaServer { M required a="${/}x"; };',
    "no modules": "KafkaServer { };",
    "empty": "  // nothing\n",
    "not expanded": 'KafkaServer { M required a="${no.such.thing}"; };',
    "number": "KafkaServer { M required a=12; };",
    "single quotes": "KafkaServer { M required a='b'; };",
    "no semicolon": "KafkaServer { M required a=b }; ",
    "no last semicolon": "KafkaServer { M required a=b; }",
    "no end": "KafkaServer { M required a=b; ",
    "no flag": "KafkaServer { M; };",
    "wrong flag": "KafkaServer { M sometimes; };",
    "no value": "KafkaServer { M required a; };",
    "no brace": "KafkaServer M required; };",
    "twice": "KafkaServer { M required; }; KafkaServer { N required; };",
    "a property alone": "org.M required a=b;",
}  # fmt: skip


def told(text):
    """As JaasSections.java prints it."""
    try:
        sections = parse_sections(text)
    except ConfigError:
        return "wrong"
    parts = []
    for name in NAMES:
        if name in sections:
            entries = (
                f"{one.module}{{{', '.join(f'{k}={v}' for k, v in sorted(one.options.items()))}}}"
                for one in sections[name]
            )
            parts.append(f"{name}[{''.join(entries)}]")
    return "".join(parts).replace("\n", "\\n")


@pytest.mark.skipif(kafka.unavailable() is not None, reason="there is no Java")
def test_java_finds_the_same(tmp_path):
    paths = []
    for number, text in enumerate(FILES.values()):
        paths.append(tmp_path / f"{number}.conf")
        paths[-1].write_text(text)
    done = subprocess.run(
        ["java", str(JAVA), ",".join(NAMES), *map(str, paths)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    theirs = dict(zip(FILES, done.stdout.split("\n")[:-1], strict=True))
    assert {name: told(text) for name, text in FILES.items()} == theirs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('KafkaServer {\n M required\n a="s3cret" b;\n};', r"^line 3: expected \[=\], found \[;\]"),
        ("KafkaServer {\n M required a=\n ='s3cret';\n};", r"^line 3: expected \[option value\]"),
        ("KafkaServer {\n M required a='s3cret';\n};", r"^line 2: expected \[option value\]$"),
        ("\n\nKafkaServer {\n", r"^line 4: expected \[module class name\], found the end"),
        ("A { M required; };\nA { M required; };", r"^line 2: the section A is there twice"),
        ("A {\n M s3cret;\n};", r"^line 2: Invalid control flag 's3cret'"),
        ('A { M required\n a="s3cret${user.x}"; };', r"^line 2: unable to expand property user.x"),
    ],
)
def test_errors_name_the_line_and_no_value(text, words):
    with pytest.raises(ConfigError, match=words) as wrong:
        parse_sections(text)
    assert "s3cret" not in str(wrong.value).replace("flag 's3cret'", "")


def test_lines_and_properties_of_the_jvm():
    text = fill_in('A {\n M required\n a="x${p}";\n N required; };', {"p": 'q"\\'})
    (first, second) = parse_sections(text)["A"]
    assert (first.line, second.line) == (2, 4)
    assert first.options == {"a": 'xq"\\'} and 'q"' not in repr(first)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text):
    for one in (text, f"KafkaServer {{ M required {text}"):
        with contextlib.suppress(ConfigError):
            parse_sections(one)
