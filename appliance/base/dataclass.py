"""`dataclass` as the standard library's, with `__init__` made when it is first called.

The standard decorator compiles up to six methods for each class while its module is imported: more
than a quarter of the imports of a start. Here the other methods are closures, and `__init__` is
compiled for the classes that are used. Every class has slots. Compiled modules (setup.py) keep the
standard decorator, which mypyc knows.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        slots: bool,
        frozen: bool = False,
        eq: bool = True,
        kw_only: bool = False,
    ) -> Any:
        """The arguments mean what they mean in `dataclasses.dataclass`; slots must be True."""
        assert slots

        def decorate(cls: type) -> type:
            return _with_methods(cls, frozen=frozen, eq=eq, kw_only=kw_only)

        return decorate if cls is None else decorate(cls)


def _with_methods(cls: type, *, frozen: bool, eq: bool, kw_only: bool) -> type:
    own = set(cls.__dict__)
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else the standard decorator looks for the signature
    made: Any = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=True, kw_only=kw_only
    )(cls)
    methods: dict[str, Any] = {} if "__repr__" in own else {"__repr__": _repr}
    if eq:
        values = _compared(made)
        if "__eq__" not in own:
            methods["__eq__"] = _equal_by(values)
        if frozen and ("__hash__" not in own or cls.__hash__ is None):
            methods["__hash__"] = _hash_by(values)
        elif "__hash__" not in own:
            methods["__hash__"] = None
    if frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    for name, method in methods.items():
        setattr(made, name, method)
    made.__init__ = _init_of(made, frozen=frozen)
    return made  # type: ignore[no-any-return]


def _init_of(made: Any, *, frozen: bool) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its place and goes on there."""

    def __init__(self: object, *values: Any, **named: Any) -> None:
        made.__init__ = compiled = _compile_init(made, frozen=frozen)
        compiled(self, *values, **named)

    return __init__


def _compile_init(made: Any, *, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": dataclasses.MISSING}
    by_place = ["self"]
    by_name: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(made):
        name, word, value = field.name, field.name, field.name
        if field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            word = f"{name}=_absent"
            value = f"_make_{name}() if {name} is _absent else {name}"
        elif field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            word = f"{name}=_default_{name}"
        (by_name if field.kw_only else by_place).append(word)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    words = ", ".join([*by_place, *(["*", *by_name] if by_name else [])])
    lines = "\n ".join(body or ["pass"])
    exec(f"def __init__({words}):\n {lines}", known)
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _compared(made: Any) -> Callable[[Any], Any]:
    """A function: instance → tuple of the fields that are compared."""
    names = [field.name for field in dataclasses.fields(made) if field.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _equal_by(values: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hash_by(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [field.name for field in dataclasses.fields(self) if field.repr]
    told = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({told})"


def _refuse_assignment(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
