"""A command's modules are imported without looking for garbage, which is looked for afterwards."""

import gc
import sys

import pytest

from console import import_module


def test_nothing_is_collected_meanwhile(tmp_path, monkeypatch):
    (tmp_path / "noted_imports.py").write_text("import gc\nCOLLECTS = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert not import_module("noted_imports").COLLECTS
    assert gc.isenabled()
    del sys.modules["noted_imports"]


def test_a_module_that_raises_leaves_the_collector_at_work():
    with pytest.raises(ModuleNotFoundError):
        import_module("nothing_of_that_name")
    assert gc.isenabled()


def test_who_collects_nothing_goes_on_so():
    gc.disable()
    try:
        import_module("json")
        assert not gc.isenabled()
    finally:
        gc.enable()
