"""`penstock help`."""

import click

from console.root import root


@click.command("help")
@click.argument("command", nargs=-1)
def command(command: tuple[str, ...]) -> None:
    """Show help for a command, or list all commands.

    \b
    penstock help
    penstock help topic create
    """
    context = click.Context(root, info_name="penstock", **root.context_settings)
    found: click.Command = root
    for word in command:
        if not isinstance(found, click.Group):
            raise click.UsageError(f"{context.command_path!r} has no command {word!r}.", context)
        name, inner, _ = found.resolve_command(context, [word])
        assert inner is not None, "resolve_command fails for an unknown name"
        context = click.Context(inner, info_name=name, parent=context, **inner.context_settings)
        found = inner
    click.echo(found.get_help(context))
