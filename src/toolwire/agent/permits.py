"""What a ruled-on command runs as: the proven text, and how it is confined."""

from toolwire.agent.command_ruling import CommandRuling
from toolwire.agent.ground import Place
from toolwire.agent.rules import Mode
from toolwire.agent.ruling import Terms
from toolwire.tools.spec import Permit, SandboxSpec

_GAINS_RIGHTS = frozenset({"sudo", "su", "doas", "pkexec"})


def permits(shell: CommandRuling, text: str, terms: Terms) -> tuple[Permit, Permit]:
    """The permit of a command that runs unasked, and the one after a person said yes.

    What a person approved runs as they saw it; what runs unasked is the text that was proven.
    """
    path = terms.ground.search_path
    return (
        Permit(
            command=text,
            sandbox=_unasked(shell, terms),
            # What a rule allows may be a program of the workspace.
            environ=(("PATH", path),) if path and not shell.rules else (),
            note=_note(shell),
        ),
        Permit(sandbox=_approved(shell, terms)),
    )


def _note(shell: CommandRuling) -> str:
    if not shell.left_out:
        return ""
    named = ", ".join(dict.fromkeys(shell.left_out))
    return f"Left out of the search: {named}."


def _unasked(shell: CommandRuling, terms: Terms) -> SandboxSpec:
    spec = terms.sandbox
    if spec.level == "off":
        return spec
    rules = shell.rules
    if rules and all(rule is not None and rule.sandbox == "off" for rule in rules):
        return SandboxSpec()
    return SandboxSpec(
        level="read-only" if terms.mode is Mode.PLAN else spec.level,
        network=spec.network or any(rule is not None and rule.network for rule in rules),
        writable=(*spec.writable, *_far(shell, writes=True)),
        readable=(*spec.readable, *_far(shell, writes=False)),
    )


def _approved(shell: CommandRuling, terms: Terms) -> SandboxSpec:
    spec = terms.sandbox
    if spec.level == "off":
        return spec
    if not _GAINS_RIGHTS.isdisjoint(shell.roots):
        # Other rights cannot be gained inside; a yes to `sudo` is a yes to them.
        return SandboxSpec()
    return SandboxSpec(
        level="approved",
        network=True,
        writable=(*spec.writable, *_far(shell, writes=True)),
        readable=(*spec.readable, *_far(shell, writes=False)),
    )


def _far(shell: CommandRuling, *, writes: bool) -> tuple[str, ...]:
    """Places outside the workspace, or protected, that the ruling names."""
    far = (Place.OUTSIDE, Place.PROTECTED)
    found = (spot.path for spot, written in shell.places if spot.place in far and written == writes)
    return tuple(dict.fromkeys(found))
