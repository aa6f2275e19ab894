"""``tonnage completion``: completion of commands and flags, for bash, zsh and fish."""

from typing import Annotated

from typer import completion as typer_completion

from tonnage.cli.commands import COMPLETE
from tonnage.cli.options.types import Argument
from tonnage.cli.options.validate import refuse_unknown

SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, Argument("SHELL", f"One of {', '.join(SHELLS)}.")],
) -> None:
    """Print a script that completes commands and flags in a shell.

    For bash, add the first example to ~/.bashrc; for zsh, add the second to ~/.zshrc; for fish, run
    the third once.

    Examples:
        eval "$(tonnage completion bash)"
        eval "$(tonnage completion zsh)"
        tonnage completion fish > ~/.config/fish/completions/tonnage.fish
    """
    refuse_unknown("SHELL", [shell], SHELLS)
    script = typer_completion.get_completion_script(  # type: ignore[attr-defined]
        prog_name="tonnage", complete_var=COMPLETE, shell=shell
    )
    print(script)


def prepare() -> None:
    """Lets the parser answer a shell that asks for completions."""
    typer_completion.completion_init()  # type: ignore[attr-defined]
