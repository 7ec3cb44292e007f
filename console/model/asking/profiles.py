"""Where several appliances are, by names of one's own: `profiles.toml` in the user's settings.

    use = "prod"

    [profiles.prod]
    bootstrap = "a.example.org:9092,b.example.org:9092"
    command-config = "/home/me/prod.properties"
    data = "/var/lib/penstock"

A broker is named, the strongest first, by -b, by --profile or PENSTOCK_PROFILE, by
PENSTOCK_BOOTSTRAP, by the profile in use, else it is that of this host.
"""

import json
import os
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from console.model.access.private_files import opener
from console.model.asking.failure import Failure, unreadable, usage
from console.model.asking.link import DEFAULT_BOOTSTRAP, Link
from penstock.reach import SPEAKS_TLS

FILE: Final = "profiles.toml"
_CONFIG: Final = "command-config"
_DATA: Final = "data"
_ADDRESS: Final = "PENSTOCK_BOOTSTRAP"


@dataclass(slots=True, frozen=True)
class Profile:
    """bootstrap: HOST:PORT with commas between. command_config: a file with the properties of a
    client, for TLS and SASL; "" for none. data: the data folder, where it is one of this host; ""
    for none. name: of the profile; "" where nobody named one."""

    bootstrap: str
    command_config: str = ""
    data: str = ""
    name: str = field(default="", compare=False)


@dataclass(slots=True)
class Profiles:
    """By name. used: the one that holds when nothing is said, "" for none."""

    used: str = ""
    named: dict[str, Profile] = field(default_factory=dict)

    def find_profile(self, name: str) -> Profile:
        """Raises Failure with the names that there are."""
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "none yet"
            raise usage(
                f"there is no profile {name}: {known}",
                f"penstock profile add {name} HOST:PORT makes one",
            )
        return self.named[name]


def where(bootstrap: str | None, name: str | None) -> Profile:
    """The broker that is meant. bootstrap: of -b; name: of --profile. Raises Failure."""
    if bootstrap:
        return Profile(bootstrap)
    if name := name or os.environ.get("PENSTOCK_PROFILE"):
        return read().find_profile(name)
    if told := os.environ.get(_ADDRESS):
        return Profile(told)
    known = read()
    return known.find_profile(known.used) if known.used else Profile(DEFAULT_BOOTSTRAP)


def properties_of(file: str) -> dict[str, str]:
    """The properties of a --command-config file, in librdkafka's names; empty without a file.
    Raises Failure.
    """
    if not file:
        return {}
    from appliance.config.properties import parse_properties
    from console.model.access.java_client import as_librdkafkas

    try:
        said = {key: value for key, value, _ in parse_properties(Path(file).read_text())}
    except (OSError, UnicodeDecodeError) as problem:
        raise unreadable(file, problem) from None
    return as_librdkafkas(said)


def looking(said: Profile, timeout_s: float) -> Link:
    """To the broker that is meant, for a command that takes no properties: those of the profile. A
    listener with TLS of which nothing is said is spoken to without verifying it, where nothing is
    told but what everybody may know."""
    from penstock.door import Door
    from penstock.reach import barred

    given = properties_of(said.command_config)
    given.pop("bootstrap.servers", None)
    if said == Profile(DEFAULT_BOOTSTRAP) and not said.name and not os.environ.get(_ADDRESS):
        from console.model.asking import owner

        said, given = owner.way(said)
    if "security.protocol" not in given:
        with suppress(ValueError):  # of what is no HOST:PORT; the link says so
            trouble = barred(said.bootstrap, Door(given))
            if trouble is not None and SPEAKS_TLS in trouble.options:
                given |= {
                    "security.protocol": "ssl",
                    "enable.ssl.certificate.verification": "false",
                }
    return Link(said.bootstrap, given, timeout_s)


def path() -> Path:
    """The path of the file."""
    from platformdirs import user_config_path

    return user_config_path("penstock") / FILE


def read() -> Profiles:
    """Reads the file; empty when there is none. Raises Failure for one that is wrong."""
    file = path()
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError) as problem:
        raise Failure(f"{file}: {problem}", "mend it, or remove it") from None
    profiles = Profiles(str(found.get("use", "")))
    tables = found.get("profiles", {})
    for name, said in tables.items() if isinstance(tables, dict) else ():
        profiles.named[name] = _profile(file, name, said)
    return profiles


def _profile(file: Path, name: str, said: Any) -> Profile:
    if not isinstance(said, dict) or not isinstance(said.get("bootstrap"), str):
        raise Failure(f"{file}: profile {name} says no bootstrap", "mend it, or remove it")
    return Profile(said["bootstrap"], str(said.get(_CONFIG, "")), str(said.get(_DATA, "")), name)


def write_profiles(profiles: Profiles) -> None:
    """Into the file, whole or not at all."""
    lines = [f"use = {_text(profiles.used)}"] if profiles.used else []
    for name, one in sorted(profiles.named.items()):
        lines += ["", f"[profiles.{_text(name)}]", f"bootstrap = {_text(one.bootstrap)}"]
        for key, value in ((_CONFIG, one.command_config), (_DATA, one.data)):
            lines += [f"{key} = {_text(value)}"] if value else []
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    with open(new, "w", encoding="utf-8", opener=opener) as out:  # who writes it leads us elsewhere
        out.write("\n".join([*lines, ""]))
    os.replace(new, file)


def _text(value: str) -> str:
    """As TOML has it: JSON's text, but for surrogates and what JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
