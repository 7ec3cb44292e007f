"""The end of a file that grows."""

from console.model.local.tail import _READ_MOST, Tail


def texts(lines):
    return [one.text for one in lines]


def test_what_comes_is_told_once_and_whole_lines_only(tmp_path):
    file = tmp_path / "log"
    tail = Tail(file, 3)
    assert tail.read_lines() == []
    file.write_bytes(b"a\nb\nc\nd\nhal")
    assert texts(tail.read_lines()) == ["a", "b", "c", "d"]
    assert texts(tail.lines) == ["b", "c", "d"]
    with file.open("ab") as more:
        more.write(b"f\n\xff\n")
    assert texts(tail.read_lines()) == ["half", "�"]
    assert [one.at for one in tail.lines] == [6, 8, 13]
    assert tail.read_lines() == []
    file.write_bytes(b"anew\n")
    assert texts(tail.read_lines()) == ["anew"]
    assert texts(tail.lines) == ["anew"]


def test_of_a_long_file_the_end_is_read(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"".join(b"%07d\n" % n for n in range(100_000)))
    tail = Tail(file, 5)
    assert texts(tail.read_lines()) == [f"{n:07}" for n in range(99_995, 100_000)]
    with file.open("ab") as more:
        more.write(b"".join(b"%07d\n" % n for n in range(100_000)))
    assert len(tail.read_lines()) < _READ_MOST / 8 + 1
    assert tail.lines[-1].text == "0099999"
