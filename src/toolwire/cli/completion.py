"""`toolwire completion`: the script by which a shell completes command lines."""

import click

from toolwire.cli.completion_values import beside


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell.

    bash: add eval "$(toolwire completion bash)" to ~/.bashrc; zsh: the same with zsh in ~/.zshrc,
    after compinit; fish: toolwire completion fish > ~/.config/fish/completions/toolwire.fish
    """
    click.echo(script(shell), nl=False)


def script(shell: str) -> str:
    """Returns the script of a shell."""
    return beside(f"completion.{shell}")
