"""Looking for records, without a broker: what is typed, what is kept, how far a search is."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model.asking.failure import Failure
from console.model.groups.offsets import AT, END, START, TIME, Bounds, Place
from console.model.records.filters import Filter
from console.model.records.scan import ENDLESS, Scan
from console.model.records.seeking import Named, Range, Seek, Span, parse_seek, seek_of, span

NOW = 1_700_000_000_000
MOST = (1 << 63) - 1
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "seek"),
    [
        ("", Seek()),
        ("start", Seek()),
        ("-50", Seek(Range(Place(END, -50)))),
        ("+3 e@2h", Seek(Range(Place(START, 3), Place(TIME, NOW - 2 * HOUR)))),
        ("2h ago", Seek(Range(Place(TIME, NOW - 2 * HOUR)))),
        ("90 min ago..1 hour ago",
         Seek(Range(Place(TIME, NOW - 5_400_000), Place(TIME, NOW - HOUR)))),
        ("1h 30m ago", Seek(Range(Place(TIME, NOW - 5_400_000)))),
        (f"{MOST}", Seek(Range(Place(AT, MOST)))),
        ("100..250", Seek(Range(Place(AT, 100), Place(AT, 250)))),
        ("..47", Seek(Range(Place(START), Place(AT, 47)))),
        ("0:123", Seek(None, (Named(0, 0, Range(Place(AT, 123))),))),
        ("0:100..200, 2-4:-10 end",
         Seek(Range(Place(END)), (Named(0, 0, Range(Place(AT, 100), Place(AT, 200))),
                                  Named(2, 4, Range(Place(END, -10)))))),
        ("@1970-01-02T00:00:00Z", Seek(Range(Place(TIME, 86_400_000)))),
        ("@1970-01-02 00:00:00Z", Seek(Range(Place(TIME, 86_400_000)))),
    ],
)  # fmt: skip
def test_a_seek_says_where_to_look(text, seek):
    assert parse_seek(text, NOW) == seek


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("12x", "12x"), ("end 2x ago", "2x"), ("..", ".."), ("5 6", "6"), ("0:1 0:2", "0:2"),
        ("3-1:5", "3-1:5"), ("0:", "0:"), ("@nine", "@nine"), ("[/red]", "[/red]"), ("\0", "x00"),
        ("e@1h e@2h", "e@2h"), ("stored", "stored"), ("99999999999999999999999:1", "1"),
    ],
)  # fmt: skip
def test_what_is_no_seek_is_quoted(text, quoted):
    if text.startswith("9999"):
        assert parse_seek(text, NOW).named[0].low > MOST
        return
    with pytest.raises(Failure, match="not a place") as wrong:
        parse_seek(text, NOW)
    assert quoted in wrong.value.message


def test_a_clock_is_the_last_time_that_it_was_so():
    place = parse_seek("@12:34", NOW).rest.first
    assert place.kind == TIME and NOW - 86_400_000 < place.number <= NOW


@given(st.text(max_size=30))
def test_any_text_is_a_seek_or_refused(text):
    try:
        parse_seek(text, NOW)
    except Failure as wrong:
        told = wrong.hint
        assert told


def test_a_span_lies_within_what_is_there_and_tells_what_has_expired():
    edge = Bounds(100, 200)
    assert span(0, None, edge) == Span(100, 200, 100)
    assert span(0, 50, edge) == Span(100, 100, 50)
    assert span(150, 180, edge) == Span(150, 180)
    assert span(500, None, edge) == Span(200, 200)
    assert span(150, MOST, edge) == Span(150, 200)
    assert seek_of({("t", 1): Span(5, 9), ("t", 0): Span(3, 3)}) == "1:5..9"


# Filters ------------------------------------------------------------------------------------------

VALUE = b'{"a": {"b": [5, 9223372036854775807, -9223372036854775808, 0.1]}, "name": "Bob [/red]",'
VALUE += b' "x y": null, "t": true, "\\u00fc": "\\u0041", "list": [{"n": 1}, {"n": 2}]}'
HEADERS = [("trace", b"abc-123"), ("none", None), ("[/red]", b"\xff")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", True),
        ("bob", True),
        ('"bob"', False),
        ('"Bob ["', True),
        ("bob nobody", False),
        ("bob !nobody", True),
        ("!bob", False),
        ("EU-7", True),
        ("key:eu- value:bob header:ABC", True),
        ("value:eu-", False),
        ("header.trace:abc", True),
        ("header.trace:none", False),
        ("header.none:null", True),
        ("header.absent:null", False),
        ("header:trace", True),
        ("key:null", False),
        ("/b.b \\[/", False),
        ("/B.b \\[/", True),
        ("/b.b \\[/i", True),
        ("key:/^eu-\\d$/", True),
        ("partition:0,3-5", True),
        ("!partition:3", False),
        ("partition:4", False),
        ("$.a.b[0] = 5", True),
        ("$.a.b[0]=5.0", True),
        ('$.a.b[0] = "5"', False),
        ("$.a.b[1] = 9223372036854775807", True),
        ("$.a.b[1] = 9223372036854775806", False),
        ("$.a.b[1] > 9223372036854775806", True),
        ("$.a.b[2] = -9223372036854775808", True),
        ("$.a.b[-1] = 0.1", True),
        ("$.a.b[3] = 0.1000000000000000055511151231257827", False),
        ("$.a.b[4]", False),
        ("$.a.b[*] = 5", True),
        ("$.a.b[*] = 6", False),
        ("!$.a.b[*] = 6", True),
        ("$.list[*].n >= 2", True),
        ("$.list[*].n > 2", False),
        ("$.name = bob", False),
        ('$.name = "Bob [/red]"', True),
        ("$.name ~ bob", True),
        ('$.name ~ "bob"', False),
        ("$.name ~ /^B/", True),
        ("$.name < C", True),
        ("$.name < 5", False),
        ("$.name != 5", True),
        ("$.nothing != 5", False),
        ("!$.nothing = 5", True),
        ('$["x y"] = null', True),
        ('$["x y"]', True),
        ("$.t = true", True),
        ("$.t = 1", False),
        ('$.ü = "A"', True),
        ("$.a = 5", False),
        ("$[0]", False),
        ("key:$.a", False),
        ("$5", False),
    ],
)  # fmt: skip
def test_a_filter_keeps_what_it_says(text, kept):
    keep = Filter(text)
    headers = HEADERS if keep.reads_headers else ()
    assert (keep.partition(3) and keep.keeps(b"eu-7", VALUE, headers)) is kept


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("!", 1), ("bob !", 5), ('bob "open', 5), ("/a(/", 1), ("x /a/b", 6), ("/open", 1),
        ("partition:x", 11), ("partition:5-3", 11), ("key:", 5), ("$.a.", 4), ("$.a[x]", 4),
        ("$.a =", 6), ("$.a < true", 7), ("header:$.a = 1", 1), ('$.a"x', 4),
        ("$.a = 1e9999999999999999999", 7), ("/(?<=x)/", 1), (f"$.a = {'9' * 5000}", 7),
    ],
)  # fmt: skip
def test_what_is_no_filter_is_told_with_its_place(text, at):
    with pytest.raises(Failure, match=f"character {at}:") as wrong:
        Filter(text)
    assert wrong.value.hint


HOSTILE = (
    None, b"", b"\xff\xfe[/red]", b"\0\x1b[31m", b"[" * 5000, b"9" * 5000, b"NaN", b"1e99999999999",
    b'{"a": NaN}', b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'"\\ud800"', b"{" * 3,
    b"\xef\xbb\xbf{}", b'{"a":' + b"9" * 5000 + b"}", b"x" * (1 << 20),
    "\ud800".encode("utf-16", "surrogatepass"),
)  # fmt: skip


@pytest.mark.parametrize("text", ["$.a = 1", "$[*] > 0", "$", "$ ~ x", "x", "/x/i", '"\\""', "ü"])
def test_no_value_breaks_a_filter(text):
    keep = Filter(text)
    for value in HOSTILE:
        assert keep.keeps(value, value, [("h", value)]) in (True, False)


def test_an_expression_takes_linear_time():
    assert not Filter("/(a*)*b/").keeps(None, b"a" * 200_000, ())


@given(st.text(max_size=40))
def test_any_text_is_a_filter_or_refused(text):
    try:
        assert Filter(text).keeps(b"k", VALUE, HEADERS) in (True, False)
    except Failure as wrong:
        told = wrong.message
        assert told.startswith("the filter, character ")


@given(st.integers(-(1 << 70), 1 << 70), st.integers(-(1 << 70), 1 << 70))
def test_whole_numbers_are_compared_exactly(a, b):
    value = f'{{"n": {a}}}'.encode()
    assert Filter(f"$.n < {b}").keeps(None, value, ()) is (a < b)
    assert Filter(f"$.n = {b}").keeps(None, value, ()) is (a == b)


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=3), st.text('0Aßü"\\ ', max_size=5)
)
def test_what_is_quoted_is_found_again(number, words):
    quoted = words.replace("\\", "\\\\").replace('"', '\\"')
    assert Filter(f'"{quoted}"').keeps(None, f"<{words}>".encode(), ())
    assert Filter(f"$ = {number:f}").keeps(None, str(Decimal(number)).encode(), ())


# A search -----------------------------------------------------------------------------------------


class Message:
    """As confluent-kafka has it, as far as a search looks at it."""

    def __init__(self, partition, offset, value=b"v", key=None):
        self.at, self._key, self._value = (partition, offset), key, value

    def topic(self):
        return "t"

    def partition(self):
        return self.at[0]

    def offset(self):
        return self.at[1]

    def key(self):
        return self._key

    def value(self):
        return self._value

    def headers(self):
        return None


def scan(spans, text="", limit=None):
    spans = {("t", n): one for n, one in enumerate(spans)}
    return Scan(spans, Filter(text), lambda message: message.at, limit)


def messages(partition, first, stop):
    return [Message(partition, n, b"%d" % n) for n in range(first, stop)]


def test_a_search_is_over_when_everything_was_looked_at():
    it = scan([Span(5, 10), Span(0, 0)])
    assert it.round() == {("t", 0): 5}
    assert it.match_messages(messages(0, 4, 12)) == [(0, n) for n in range(5, 10)]
    assert it.is_done and not it.round()
    assert it.progress(1.0).records == 5 and not it.progress(1.0).left


def test_gaps_and_marks_of_transactions_are_no_records():
    it = scan([Span(0, 100)])
    assert it.match_messages([Message(0, 7), Message(0, 60)]) == [(0, 7), (0, 60)]
    assert it.positions == {("t", 0): 61} and it.progress(0.0).at == 61
    it.ended(("t", 0), 100)
    assert it.is_done and not it.progress(0.0).held_back
    again = scan([Span(0, 100)])
    assert again.match_messages([Message(0, 150)]) == [] and again.is_done  # the rest is a gap


def test_what_lies_behind_an_open_transaction_is_told():
    it = scan([Span(0, 100)])
    it.match_messages(messages(0, 0, 40))
    it.ended(("t", 0), 40)
    assert it.is_done and it.progress(0.0).held_back == 60 and it.progress(0.0).of == 40


def test_what_expires_while_it_stands_still_is_told():
    it = scan([Span(0, 100)])
    it.match_messages(messages(0, 0, 10))
    it.edges(("t", 0), 30, 100)
    assert it.positions[("t", 0)] == 30 and it.progress(0.0).expired == 20
    it.edges(("t", 0), 500, 600)
    assert it.is_done and it.progress(0.0).expired == 90


def test_a_log_that_ends_before_where_we_are_is_over():
    it = scan([Span(0, 100)])
    it.match_messages(messages(0, 0, 50))
    it.edges(("t", 0), 0, 20)
    assert it.is_done


def test_partitions_share_what_may_be_found():
    it = scan([Span(0, 1000)] * 4, limit=20)
    assert len(it.round()) == 4
    found = []
    for n in range(4):
        found += it.match_messages(messages(n, 0, 1000))
        assert not it.wants(("t", n))
    assert found == [(n, at) for n in range(4) for at in range(5)]
    assert it.is_full and not it.round()
    it.raise_limit()
    assert it.round() == {("t", n): 5 for n in range(4)}
    assert it.match_messages(messages(3, 5, 1000)) == [(3, at) for at in range(5, 10)]


def test_a_share_that_one_partition_does_not_need_goes_to_others():
    it = scan([Span(0, 1000), Span(0, 3)], limit=20)
    places = it.round()
    found = it.match_messages(messages(0, places[("t", 0)], 1000)) + it.match_messages(
        messages(1, 0, 3)
    )
    while places := it.round():
        assert set(places) == {("t", 0)}
        found += it.match_messages(messages(0, places[("t", 0)], 1000))
    assert sorted(found) == [(0, n) for n in range(17)] + [(1, n) for n in range(3)]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=4),
    st.integers(1, 20), st.randoms(), st.sampled_from(["", "1", "!2"]),
)  # fmt: skip
def test_a_search_that_is_stopped_anywhere_finds_each_record_once(ends, limit, chance, text):
    it = scan([Span(min(one), max(one)) for one in ends], text, limit)
    keep, found = Filter(text), []
    for _ in range(1000):
        if it.is_done:
            break
        places = it.round()
        if not places:
            it.raise_limit()
            continue
        for (_, partition), at in places.items():
            stop = max(ends[partition])
            found += it.match_messages(messages(partition, at, chance.randint(at + 1, stop + 2)))
    assert it.is_done
    assert sorted(found) == [
        (n, at)
        for n, one in enumerate(ends)
        for at in range(min(one), max(one))
        if keep.keeps(None, b"%d" % at, ())
    ]
    assert it.progress(0.0).records == sum(max(one) - min(one) for one in ends)


def test_how_long_it_takes_still_is_known_from_how_long_it_took():
    it = scan([Span(0, 1000)])
    assert it.progress(10.0).eta_s is None
    it.match_messages(messages(0, 0, 250))
    told = it.progress(11.0)
    assert (told.at, told.left, told.records_s, told.eta_s) == (250, 750, 250.0, 3.0)
    it.rested()
    assert it.progress(500.0).eta_s is None


def test_a_tail_follows_its_end_and_can_jump_ahead():
    it = scan([Span(50, ENDLESS)])
    assert it.match_messages(messages(0, 50, 60)) and not it.is_done
    it.ended(("t", 0), 60)
    assert it.wants(("t", 0)) and it.positions == {("t", 0): 60}
    assert it.skip(("t", 0), 1000) == 940
    it.edges(("t", 0), 0, 40)  # it was made anew
    assert it.positions == {("t", 0): 40}


def test_partitions_that_a_filter_leaves_out_are_not_fetched():
    it = scan([Span(0, 9)] * 3, "partition:1")
    assert list(it.round()) == [("t", 1)]
