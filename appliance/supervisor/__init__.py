"""Shared memory, forking, watching, restarting, signals, the data folder's lock and its clean
marker."""

from appliance.supervisor.layout import CannotStart, Layout, default_processes, online_cpus
from appliance.supervisor.main import run
from appliance.supervisor.succession import Successor

__all__ = ["CannotStart", "Layout", "Successor", "default_processes", "online_cpus", "run"]
