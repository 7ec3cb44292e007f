"""Which errors an answer tells of, found in its plain values by the fields that its schema has.

Every error code of Kafka's answers is in a field `error_code`, at the top or within arrays, but for
AddPartitionsToTxn, where each partition has a `partition_error_code`. Only the paths that lead to
one are walked, so looking costs far less than encoding. Callers: whoever encodes an answer from
plain values, to count its errors.
"""

from collections.abc import Generator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from appliance.wire.fields import StructLayout
from appliance.wire.messages import layout_of, response_type

SLICE: Final = 256
"""Rows between two stops."""
_FIELDS: Final = ("error_code", "partition_error_code")


class _Plan(NamedTuple):
    """field: that has the struct's own code, "" when it has none. below: fields whose structs have
    one, whether the field is an array of them, and their plans."""

    field: str
    below: tuple[tuple[str, bool, "_Plan"], ...]


def collect_codes(api_key: int, version: int, values: Mapping[str, Any]) -> list[int]:
    """The codes other than NONE in the answer that `values` describe, in their order, each as often
    as it is there."""
    codes: list[int] = []
    _collect(_plan(api_key, version), values, codes)
    return codes


def told_in_slices(
    api_key: int, version: int, values: Mapping[str, Any]
) -> Generator[None, None, list[int]]:
    """Yields after every SLICE rows and returns the list that `told` returns."""
    codes: list[int] = []
    yield from _collect_in_slices(_plan(api_key, version), values, codes, [0])
    return codes


def _collect_in_slices(
    plan: _Plan, values: Mapping[str, Any], codes: list[int], count: list[int]
) -> Generator[None, None, None]:
    if plan.field and (code := values.get(plan.field)):
        codes.append(int(code))
    for name, array, nested in plan.below:
        found = values.get(name)
        if not found:
            continue
        for one in found if array else (found,):
            if nested.below:
                yield from _collect_in_slices(nested, one, codes, count)
            else:
                _collect(nested, one, codes)
            count[0] += 1
            if count[0] % SLICE == 0:
                yield


def _collect(plan: _Plan, values: Mapping[str, Any], codes: list[int]) -> None:
    if plan.field and (code := values.get(plan.field)):
        codes.append(int(code))
    for name, array, nested in plan.below:
        found = values.get(name)
        if not found:
            continue
        if not array:
            _collect(nested, found, codes)
        elif nested.below:
            for one in found:
                _collect(nested, one, codes)
        else:
            field = nested.field
            for one in found:
                if code := one.get(field):
                    codes.append(int(code))  # noqa: PERF401 - mostly there is none to be added


@cache
def _plan(api_key: int, version: int) -> _Plan:
    return _plan_of(layout_of(response_type(api_key, version)))


def _plan_of(layout: StructLayout) -> _Plan:
    below = []
    for field in layout.fields:
        if field.nested is not None:
            nested = _plan_of(field.nested)
            if nested.field or nested.below:
                below.append((field.name, field.array, nested))
    codes = [field.name for field in layout.fields if field.name in _FIELDS]
    assert len(codes) <= 1, "a struct has one code"
    return _Plan("".join(codes), tuple(below))
