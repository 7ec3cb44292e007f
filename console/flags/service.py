"""--user: which of systemd's managers is meant."""

import click

for_user = click.option(
    "--user", "for_user", is_flag=True,
    help="A user service, without root; it starts when you log in.",
)  # fmt: skip
