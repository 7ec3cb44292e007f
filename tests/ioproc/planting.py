"""Exceptions planted in whatever a story calls: each function of some modules, one after the other,
raises once while the story is in a chore. So a new one is in without being named."""

import inspect
import sys
from contextlib import contextmanager


class Planted(KeyError):
    """What nobody expects."""


class Plants:
    """One play of a story: what it calls in its chores, or one function that raises there once."""

    def __init__(self, place=None, raised=0):
        """place: (what it is an attribute of, its name). raised: how often by now."""
        self.place, self.seen, self.raised = place, {}, raised
        self._on = False

    @contextmanager
    def chores(self):
        """In here exceptions must cost no more than they say."""
        self._on = True
        before = sys.getprofile()
        if self.place is None:
            sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(before)
            self._on = False

    def _see(self, frame, event, _):
        if event == "call":
            self.seen[frame.f_code] = None

    def wrap(self, whole):
        if inspect.isgeneratorfunction(whole):
            return self._wrap_generator(whole)

        def planted(*args, **more):
            if self._on and not self.raised:
                self.raised += 1
                raise Planted("planted")
            return whole(*args, **more)

        return planted

    def _wrap_generator(self, whole):
        def planted(*args, **more):
            if self._on and not self.raised:
                self.raised += 1
                raise Planted("planted")
            yield from whole(*args, **more)

        return planted


def functions(modules):
    """Code → where it is, of all functions and methods that are written in these modules."""
    found = {}
    for module in modules:
        owners = [module, *(one for one in vars(module).values() if inspect.isclass(one))]
        for owner in owners:
            if getattr(owner, "__module__", module.__name__) != module.__name__:
                continue
            for name, one in vars(owner).items():
                if inspect.isfunction(one) and one.__module__ == module.__name__:
                    found[one.__code__] = owner, name
    return found


def _who_imports(one, name):
    """Modules that have it under its name."""
    every = [m for at, m in sys.modules.items() if at.startswith("appliance.")]
    return [module for module in every if vars(module).get(name) is one]


def play(monkeypatch, modules, story, but=()):
    """Play the story, then once more for each function that its chores call. but: names of those
    that must not raise, with the reason where they are listed. Returns the names of the others."""
    known, whole = functions(modules), Plants()
    story(whole)
    places = [known[code] for code in whole.seen if code in known]
    names, wrong = [], {}
    for owner, name in places:
        told = f"{owner.__name__.rpartition('.')[2]}.{name}"
        if told in but:
            continue
        plants = Plants((owner, name))
        with monkeypatch.context() as on_purpose:
            one = vars(owner)[name]
            for where in [owner, *_who_imports(one, name)]:
                on_purpose.setattr(where, name, plants.wrap(one))
            try:
                story(plants)
                if plants.raised:  # or it comes there only when the machine is slow, say
                    names.append(told)
            except Exception as failure:
                wrong[told] = f"{type(failure).__name__}: {failure}"[:300]
    assert not wrong, "\n".join(f"{name}: {why}" for name, why in sorted(wrong.items()))
    return names
