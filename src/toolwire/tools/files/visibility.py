"""The one filter for what tools show: denied, protected and asked-about files are left out."""

from enum import StrEnum
from pathlib import Path

import msgspec

from toolwire.tools.files.protection import Protection
from toolwire.tools.spec import ToolContext, ToolOutput

_MOST_NAMED = 20


class Hidden(StrEnum):
    """Why a file is left out of a result; the values are those of a rule's decision."""

    NO = ""
    PROTECTED = "protected"
    DENIED = "deny"
    ASKED = "ask"


class Visibility:
    """What one tool may show of the files that it comes across."""

    def __init__(self, context: ToolContext, tool: str, *, names_only: bool = False) -> None:
        """`names_only`: the tool shows names, and those of protected files are not secret."""
        self._tool = tool
        self._restricts = context.restricts
        self._protection = None if names_only else Protection(context.workspace, context.environ)

    @property
    def everything(self) -> bool:
        """Whether nothing at all is hidden."""
        return self._restricts is None and self._protection is None

    def hides(self, path: str | Path, *, named: bool = False) -> Hidden:
        """Why an absolute path is left out; one that the call names was ruled on already.

        Links are not followed: check the path and its target.
        """
        ruled = Hidden.NO
        if self._restricts is not None:
            ruled = Hidden(self._restricts(self._tool, str(path)))
        if ruled is Hidden.DENIED:
            return ruled
        if named:
            return Hidden.NO
        if ruled is Hidden.NO and self._protection is not None and self._protection.hides(path):
            return Hidden.PROTECTED
        return ruled


class LeftOut:
    """Counts the files that a result lacks, for a note of one line."""

    def __init__(self, *, names: bool = True) -> None:
        """`names`: whether files are named where a rule does not deny them."""
        self._names = names
        self._found: dict[Hidden, dict[str, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, why: Hidden, name: str) -> bool:
        """Count a file that is hidden for a reason; False if there is none."""
        if why is Hidden.NO:
            return False
        self._found.setdefault(why, {})[name] = None
        return True

    def join(self, other: "LeftOut", prefix: str = "") -> None:
        """Count what another result lacks as well."""
        for why, names in other._found.items():
            for name in names:
                self.add(why, prefix + name)

    def line(self, verb: str = "Left out") -> str:
        """How many files were left out and why; empty if none were."""
        if not self._found:
            return ""
        counts = [self._counted(why) for why in _WORDS if why in self._found]
        askable = self._names and any(why is not Hidden.DENIED for why in self._found)
        way = " Name one in read_file, which asks, if you need it." if askable else ""
        return f"{verb}: {', '.join(counts)}.{way}"

    def _counted(self, why: Hidden) -> str:
        found = self._found[why]
        listed = self._names and why is not Hidden.DENIED
        return f"{len(found)} {_WORDS[why]}" + (f" ({_listed(found)})" if listed else "")


def with_line(output: ToolOutput, line: str) -> ToolOutput:
    """The same output with a line for the model at its end."""
    if not line:
        return output
    return msgspec.structs.replace(output, text=f"{output.text}\n{line}")


_WORDS = {
    Hidden.PROTECTED: "protected",
    Hidden.DENIED: "denied by a rule",
    Hidden.ASKED: "that a rule asks about",
}


def _listed(names: dict[str, None]) -> str:
    shown = sorted(names)[:_MOST_NAMED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
