"""`@path` in a prompt: mentioned files are appended, piped input is prepended."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.errors import BadInput
from toolwire.messages import Media, Message, Part, Text
from toolwire.tools.builtin.read_many_files import CUT_NOTE, DEFAULT_EXCLUDES
from toolwire.tools.files.contents import Content, mime_of, read_content
from toolwire.tools.files.encodings import printable
from toolwire.tools.files.paths import locate, real
from toolwire.tools.files.protection import Hidden, LeftOut, Visibility
from toolwire.tools.search.globs import Globs, complaint
from toolwire.tools.search.ignore import Ignored, rules_for
from toolwire.tools.search.walk import Walk, walk
from toolwire.tools.spec import ToolContext, ToolFailed, Workspace

BEGINS = "\n--- Content from referenced files ---"
ENDS = "\n--- End of content ---"
EMPTY = "(empty file)"
MOST_TEXT = 4 << 20
"""Characters that folders and patterns may add; a file named by itself always fits."""
MOST_FILES = 2000
"""Files that folders and patterns may add."""
MOST_NOTICES = 20

_MENTION = re.compile(
    # Not a mail address or an escaped sign; only plain white space ends a path, since names of
    # pictures contain other kinds.
    r'(?<![A-Za-z0-9_.+\-\\/@%])@(?:"([^"\n]+)"'
    r"|((?:\\.|[^ \t\n\r,;!?()\[\]{}.\\]|\\|\.(?!$|[ \t\n\r]))+))"
)
_ESCAPED = re.compile(r"\\([ \t()\[\]{};|*?$`'\"#&<>!~,.\\@])")
_AFTER = "'\"`:>*."
_RANGE = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")
_MAGIC = re.compile(r"[*?\[{]")
_REASONS = {
    Hidden.PROTECTED: "it is protected; mention it in a prompt that you type",
    Hidden.DENIED: "a rule denies it",
    Hidden.ASKED: "a rule requires approval; mention it in a prompt that you type",
}

Allows: TypeAlias = Callable[[Path], bool]
"""Whether a real path outside of the workspace may be read."""


NO_RESOURCES: Mapping[str, tuple[Text | Media, ...]] = {}


class Mentioned(msgspec.Struct, frozen=True, kw_only=True):
    """The user's message, and the result of its mentions."""

    message: Message
    files: tuple[str, ...] = ()
    """Absolute paths of the included files."""
    notices: tuple[str, ...] = ()
    """Mentions that were left as text, and why."""


def _never(path: Path) -> bool:
    del path
    return False


def user_message(
    prompt: str,
    context: ToolContext,
    *,
    piped: str = "",
    attached: Iterable[Path] = (),
    allows: Allows = _never,
    respect_git_ignore: bool = True,
    resources: Mapping[str, tuple[Text | Media, ...]] = NO_RESOURCES,
) -> Mentioned:
    """The user's message: piped input, a blank line, the prompt, then the files it mentions.

    Without a prompt the piped text is the prompt. Otherwise it is data: no mentions in it. Files
    that the user `attached` may be anywhere; BadInput if one cannot be. `resources` are the
    contents of mentions that do not name files.
    """
    prompt, piped = printable(prompt), printable(piped)
    text = f"{piped}\n\n{prompt}" if prompt and piped else prompt or piped
    # Piped text is untrusted: it never leads to a question about a file.
    gathering = _Gathering(context, allows, git=respect_git_ignore, typed=bool(prompt))
    for file in attached:
        gathering.attach(file)
    more: list[Text | Media] = []
    for name in mentions(prompt or piped):
        if name not in resources:
            gathering.add(name)
        elif resources[name]:
            more += (Text(f"\nContent from @{printable(name)}:\n"), *resources[name])
    parts = [*gathering.parts(), *more]
    body: tuple[Part, ...] = (Text(BEGINS), *parts, Text(ENDS)) if parts else ()
    return Mentioned(
        message=Message(role="user", parts=(Text(text), *body)),
        files=tuple(gathering.read),
        notices=_reported(gathering.notices),
    )


def _reported(notices: list[str]) -> tuple[str, ...]:
    """Every notice once; a text full of signs does not flood the screen."""
    reported = tuple(dict.fromkeys(notices))
    if len(reported) <= MOST_NOTICES:
        return reported
    return (*reported[:MOST_NOTICES], f"{len(reported) - MOST_NOTICES} more notices about mentions")


def mentions(prompt: str) -> list[str]:
    """The paths that a prompt mentions, without their escapes, each once."""
    found = (
        match[1] or _ESCAPED.sub(r"\1", match[2])
        for match in _MENTION.finditer(prompt)
        if match[1] or match[2].strip("\\")
    )
    return list(dict.fromkeys(found))


class _File(msgspec.Struct, frozen=True):
    """One file to include: its real path, its workspace folder, and what requested it."""

    path: Path
    workspace: Workspace
    named: bool
    """Named itself, not by its folder or a pattern."""
    lines: tuple[int, int] | None = None
    """The first and the last line that are mentioned; None for all."""


class _Gathering:
    def __init__(self, context: ToolContext, allows: Allows, *, git: bool, typed: bool) -> None:
        self._context = context
        self._workspace = context.workspace
        self._allows = allows
        self._git = git
        self._typed = typed
        self._visibility = Visibility(context, "read_file")
        self._left_out = LeftOut()
        self._files: dict[str, _File] = {}
        self._room = MOST_TEXT
        self.read: list[str] = []
        self.notices: list[str] = []

    def add(self, name: str) -> None:
        """Resolve one mention: a path, a pattern, or a path followed by punctuation."""
        pattern = _MAGIC.search(name)
        path = self._existing(name)
        if path:
            self._add_path(name, path)
        elif part := self._part(name):
            self._add_path(name, *part)
        elif pattern and self._add_pattern(name):
            return
        elif path := self._existing(name.rstrip(_AFTER)):
            self._add_path(name, path)
        else:
            self._tell(name, "no file matches the pattern" if pattern else "no such file")

    def _part(self, name: str) -> tuple[str, tuple[int, int]] | None:
        """The path and the lines of a mention such as `path:10-40`."""
        found = _RANGE.fullmatch(name.rstrip(_AFTER))
        path = self._existing(found[1]) if found else ""
        if not found or not path:
            return None
        first = max(int(found[2]), 1)
        return path, (first, max(int(found[3] or first), first))

    def attach(self, file: Path) -> None:
        """Include a file that the user named outside of the prompt, wherever it is."""
        found = real(file.absolute())
        if found is None or not stat.S_ISREG(_mode(found)):
            why = "is not a regular file" if found is not None and _mode(found) else "not found"
            raise BadInput(f"cannot attach {file}: {why}")
        workspace = self._workspace
        if locate(found, workspace) is None:
            workspace = msgspec.structs.replace(workspace, roots=(*workspace.roots, found.parent))
        context = msgspec.structs.replace(self._context, workspace=workspace)
        try:
            content = read_content(found, str(found), context)
        except ToolFailed as error:
            words = str(error).partition("\n")[0]
            raise BadInput(f"cannot attach {file}: {words}") from error
        if content.media is None and content.lines is None and found.suffix.lower() != ".svg":
            raise BadInput(f"cannot attach {file}: {content.note.strip()}")
        if content.lines is not None and content.lines.partial:
            self.notices.append(f"{file} is long: only its beginning is attached")
        self._files[str(found)] = _File(found, workspace, True)

    def parts(self) -> list[Text | Media]:
        """The contents of all files, in the order of their paths."""
        parts: list[Text | Media] = []
        left_out = 0
        for shown, file in sorted(self._files.items()):
            if not file.named and self._room <= 0:
                left_out += 1
                continue
            parts += self._contents(shown, file)
        if self._left_out:
            self.notices.append(f"mentions: {self._left_out.line('left out')}")
        if left_out:
            self.notices.append(
                f"{left_out} more files were left out: what is mentioned exceeds "
                f"{MOST_TEXT >> 20} MB; name the files that matter"
            )
        return parts

    def _tell(self, name: str, reason: str) -> None:
        self.notices.append(f"@{name} was left as text: {reason}")

    def _existing(self, name: str) -> str:
        """The absolute path of that name, if it exists."""
        if not name:
            return ""
        given = Path(name)
        if name == "~" or name.startswith("~/"):
            given = self._workspace.home / name[2:]
        paths = (os.path.normpath(root / given) for root in self._workspace.roots)
        return next((path for path in paths if os.path.lexists(path)), "")

    def _add_path(self, name: str, path: str, lines: tuple[int, int] | None = None) -> None:
        found = real(path)
        mode = _mode(found) if found is not None else 0
        if found is None or not mode:
            self._tell(name, "it cannot be read")
            return
        hidden = self._visibility.hides(path, named=self._typed)
        hidden = hidden or self._visibility.hides(found, named=self._typed)
        if hidden:
            self._tell(name, _REASONS[hidden])
            return
        folder = stat.S_ISDIR(mode)
        workspace = self._workspace
        if locate(path, workspace) is None:
            if not self._allows(found):
                self._tell(name, f"{found} is outside of the workspace")
                return
            outer = found if folder else found.parent
            workspace = msgspec.structs.replace(workspace, roots=(*workspace.roots, outer))
        else:
            hidden = self._hidden(found, folder)
            if hidden:
                self._tell(name, f"it is ignored by {hidden}")
                return
        if folder:
            self._add_folder(name, path, found, workspace)
        else:
            key = path if lines is None else f"{path}:{lines[0]}-{lines[1]}"
            self._files[key] = _File(found, workspace, True, lines)

    def _hidden(self, path: Path, folder: bool) -> str:
        rules = rules_for(path, self._workspace)
        match rules.ignored(path, folder=folder, git=self._git):
            case Ignored.NO:
                return ""
            case Ignored.GIT:
                return "git"
            case Ignored.OWN:
                return rules.own_file_for(path)

    def _add_folder(self, name: str, path: str, found: Path, workspace: Workspace) -> None:
        media = 0
        for below in self._walked(found, workspace, None):
            if mime_of(below):
                media += 1
            elif not self._add_found(name, os.path.join(path, below), workspace):  # noqa: PTH118 - text
                break
        if media:
            self.notices.append(
                f"@{name}: pictures, documents and recordings were left out ({media}); "
                "name each one that should be sent"
            )

    def _add_pattern(self, pattern: str) -> bool:
        added = False
        end = pattern.rpartition("/")[2].lower()
        if wrong := complaint([pattern]):
            self._tell(pattern, wrong)
            return True
        for root in self._workspace.roots:
            start = locate(root, self._workspace)
            if start is None:
                continue
            below = pattern.removeprefix(f"{root}/").removeprefix(f"{start}/")
            if below.startswith("/"):
                continue
            for path in self._walked(start, self._workspace, Globs([below])):
                # A pattern for everything means text; one that names the ending means the picture.
                if mime_of(path) and Path(path).suffix.lower() not in end:
                    continue
                added = True
                if not self._add_found(pattern, os.path.join(root, path), self._workspace):  # noqa: PTH118 - text
                    break
        return added

    def _walked(self, start: Path, workspace: Workspace, pattern: Globs | None) -> Iterator[str]:
        unwanted = Globs(DEFAULT_EXCLUDES)
        plan = Walk(
            start=start,
            workspace=workspace,
            rules=rules_for(start, workspace),
            git=self._git,
            enters=None if pattern is None else pattern.enters,
        )
        for file in walk(plan):
            if file.ignored or unwanted.matches(file.path):
                continue
            if pattern is None or pattern.matches(file.path):
                yield file.path

    def _add_found(self, name: str, path: str, workspace: Workspace) -> bool:
        """False if there are too many."""
        if len(self._files) >= MOST_FILES:
            self.notices.append(
                f"@{name}: only {MOST_FILES} files are attached; name the folders that matter"
            )
            return False
        found = locate(path, workspace)
        if found is None:
            return True
        hidden = self._visibility.hides(path) or self._visibility.hides(found)
        if self._left_out.add(hidden, path):
            return True
        if stat.S_ISREG(_mode(found)):
            self._files.setdefault(path, _File(found, workspace, False))
        return True

    def _contents(self, shown: str, file: _File) -> list[Text | Media]:
        context = msgspec.structs.replace(self._context, workspace=file.workspace)
        try:
            content = _content(file, shown, context)
        except ToolFailed as error:
            self.notices.append(f"{shown} was left out: {str(error).partition(chr(10))[0]}")
            return []
        self.read.append(printable(shown))
        if content.media is not None:
            return [content.media]
        text = _written(content, whole=file.lines is None)
        if not file.named:
            self._room -= len(text)
        return [Text(f"\nContent from @{printable(shown)}:\n"), Text(text or EMPTY)]


def _content(file: _File, shown: str, context: ToolContext) -> Content:
    if file.lines is None:
        return read_content(file.path, shown, context)
    first, last = file.lines
    given = shown.removesuffix(f":{first}-{last}")
    return read_content(file.path, given, context, first - 1, last - first + 1)


def _written(content: Content, *, whole: bool = True) -> str:
    lines = content.lines
    if lines is None:
        return content.note.strip()
    if not whole:
        return lines.text.rstrip("\n")
    return ((CUT_NOTE if lines.partial else "") + lines.text).strip()


def _mode(path: Path) -> int:
    """The file mode; 0 if the file does not exist or may not be read."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0
