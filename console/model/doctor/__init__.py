"""Diagnoses this host for an appliance, and an appliance on this host.

`host.py` is the only door to the operating system, `gather.py` makes Facts (`facts.py`) of what is
behind it, and the judges (`storage/storage.py`, `system.py`, `processes.py`, `network.py`) make
findings of Facts: they are pure. `judge.py` puts those in order.
"""
