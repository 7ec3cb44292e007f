"""The time zone of what is shown: this host's, or UTC. It is that of the whole process, so what is
typed (`@12:00`) is meant in the same zone as what is seen."""

import os
import time


class Zone:
    """One for each console; `restore` gives the process its own zone back."""

    def __init__(self) -> None:
        self._own = os.environ.get("TZ")
        self._is_utc = False

    @property
    def zone_name(self) -> str:
        """As this host calls it: CET, UTC."""
        return time.tzname[bool(time.localtime().tm_isdst)]

    def switch(self) -> str:
        """To UTC, or back; the name of the zone from now on."""
        self._set(not self._is_utc)
        return self.zone_name

    def restore(self) -> None:
        """The zone that the process had."""
        if self._is_utc:
            self._set(False)

    def _set(self, utc: bool) -> None:
        self._is_utc = utc
        zone = "UTC" if utc else self._own
        if zone is None:
            os.environ.pop("TZ", None)
        else:
            os.environ["TZ"] = zone
        time.tzset()
