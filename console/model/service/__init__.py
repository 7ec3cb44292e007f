"""An appliance as a service of systemd: its units as they are shipped (`units/`), fitted to the
environment that this program was started in, and what installing and removing them does."""
