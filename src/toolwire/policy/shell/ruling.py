"""The ruling on shell text: walks a proven script, and writes the script that then runs."""

import posixpath
from typing import TypeAlias

import msgspec

from toolwire.policy import Mode
from toolwire.policy.locations import Zone
from toolwire.policy.rules import Act
from toolwire.policy.ruling import Terms, forbidding, rule_on, shown
from toolwire.policy.shell import Assignment, Command, Script, Subshell, Unproven, Word, prove
from toolwire.policy.shell.command_ruling import CommandRuling, Folders
from toolwire.policy.shell.commands import effects_of
from toolwire.policy.shell.effects import Effects, is_harmless
from toolwire.policy.shell.programs import FOUND
from toolwire.policy.shell.runners import Inner, inner
from toolwire.policy.shell.syntax import Pipeline, PipelineStep, Redirect, Stage
from toolwire.tools.spec import Effect

_FIND_PRINTS_OTHERWISE = frozenset(
    {"-printf", "-ls", "-exec", "-delete", "-quit", "-fprint", "-fls"}
)
_GIT_NAMES = frozenset(
    {"-c", "-d", "-m", "-o", "-z", "--cached", "--deleted", "--modified", "--others"}
    | {"--exclude-standard"}
)
_XARGS = frozenset({"-0", "-r", "-t", "--null", "--no-run-if-empty", "-n", "-P"})


class Listed(msgspec.Struct, frozen=True):
    """Both commands written so that a name cannot become two words or an option."""

    producer: tuple[str, ...]
    words: tuple[str, ...]
    effects: Effects


def with_nulls(producer: tuple[str, ...], words: tuple[str, ...]) -> Listed | None:
    """A lister of files and the xargs behind it; None if the names cannot be separated."""
    started = inner(words)
    if not isinstance(started, Inner) or not started.words:
        return None
    options = tuple(word for word in words[1 : started.at] if word.startswith("-"))
    if not all(word in _XARGS or word[:2] in ("-n", "-P") for word in options):
        return None
    found = _producer(producer)
    if found is None:
        return None
    written, roots, prefixed = found
    command = started.words if prefixed else (*started.words, "--")
    head = tuple(word for word in words[1 : started.at] if word not in ("-0", "--null", "--"))
    effects = Effects(reads=roots, runs=((*command, FOUND),), lists=True)
    return Listed(written, ("xargs", "-0", *head, *command), effects)


def _producer(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    """The lister with NUL between names, where it looks, and whether names start with a folder."""
    match words[:1]:
        case ("find",):
            return _find(words)
        case ("git",) if "ls-files" in words:
            at = words.index("ls-files")
            rest = words[at + 1 :]
            if all(word in _GIT_NAMES for word in rest if word.startswith("-")):
                return (*words[: at + 1], "-z", *rest), (".",), False
        case ("rg",) if {"-l", "--files", "--files-with-matches"} & set(words):
            return (words[0], "-0", *words[1:]), (".",), False
        case ("grep",) if any(word in words for word in ("-l", "-rl", "-lr", "-rli", "-ril")):
            return (words[0], "-Z", *words[1:]), (".",), False
        case _:
            pass
    return None


def _find(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    if _FIND_PRINTS_OTHERWISE & set(words):
        return None
    at = 1
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!"):
        at += 1
    starts, expression = words[1:at], words[at:]
    if any(word in ("-L", "-H", "-follow") for word in words):
        return None
    if "-print0" in expression:
        written = words
    elif "-print" in expression:
        written = tuple("-print0" if word == "-print" else word for word in words)
    elif expression:
        written = ("find", *starts, "(", *expression, ")", "-print0")
    else:
        written = ("find", *starts, "-print0")
    return written, starts or (".",), True


_MOST_FOLDERS = 16
_DEEPEST = 4
"""Shell texts inside shell texts."""
_Words: TypeAlias = tuple[str, ...]


class _Where(msgspec.Struct, frozen=True):
    """The folders after a command succeeded, and after it failed."""

    done: Folders
    failed: Folders

    @property
    def either(self) -> Folders:
        return _union(self.done, self.failed)


def _union(one: Folders, other: Folders) -> Folders:
    if one is None or other is None:
        return None
    found = tuple(dict.fromkeys((*one, *other)))
    return found if len(found) <= _MOST_FOLDERS else None


class ShellRuling(CommandRuling):
    """Rules on one shell text; `findings` holds what was found on each part."""

    def __init__(self, act: Act, terms: Terms) -> None:
        super().__init__(act, terms)
        self._shells = 0

    def rule(self, text: str, directory: str) -> str:
        """Rules on a text that starts in a directory; returns what runs, empty if unproven."""
        forbidden = forbidding(self.act, self.terms.rules)
        if forbidden is not None:
            self.findings.append(forbidden)
        start = self.terms.locations.locate(directory or ".", writes=False)
        if start.zone is not Zone.INSIDE and self.terms.mode is not Mode.YOLO:
            self.ask("It runs outside the workspace.")
        script = Unproven(self.terms.unproven) if self.terms.unproven else prove(text)
        if isinstance(script, Unproven):
            self.unproven(script.reason)
            return ""
        written, _ = self._script(script, (start.path,))
        if self.by_table and self.rules and self.terms.locations.search_path:
            yolo = self.terms.mode is Mode.YOLO
            if not yolo:
                self.ask(
                    "The search path holds folders of the workspace, which may contain programs."
                )
        return written.text or ":"

    def text(self, text: str, folders: Folders) -> str:
        """Rules on a text inside a command; returns the text that runs instead."""
        self._shells += 1
        script = prove(text)
        if self._shells > _DEEPEST:
            script = Unproven("shells are inside shells")
        if isinstance(script, Unproven):
            self.unproven(script.reason)
            return text
        return self._script(script, folders)[0].text

    def _script(self, script: Script, folders: Folders) -> tuple[Script, _Where]:
        steps: list[PipelineStep] = []
        where = _Where(folders, folders)
        for step in script.steps:
            start = where.either
            if step.operator != ";":
                start = where.done if step.operator == "&&" else where.failed
            pipeline, after = self._pipeline(step.pipeline, start)
            steps.append(PipelineStep(step.operator, pipeline))
            if step.operator == "&&":
                after = _Where(after.done, _union(where.failed, after.failed))
            elif step.operator == "||":
                after = _Where(_union(where.done, after.done), after.failed)
            where = after
        return Script(tuple(steps)), where

    def _pipeline(self, pipeline: Pipeline, folders: Folders) -> tuple[Pipeline, _Where]:
        stages: list[Stage] = []
        where = _Where(folders, folders)
        for stage in pipeline.stages:
            if isinstance(stage, Subshell):
                script, _ = self._script(stage.script, folders)
                redirects = self._redirects(stage.redirects, folders)
                stages.append(Subshell(script=script, redirects=redirects))
                where = _Where(folders, folders)
            else:
                where = self._stage(stage, folders, stages)
        if len(stages) > 1:
            # Each of several runs in a shell of its own.
            where = _Where(folders, folders)
        if pipeline.negated:
            where = _Where(where.failed, where.done)
        return Pipeline(stages=tuple(stages), negated=pipeline.negated), where

    def _stage(self, command: Command, folders: Folders, stages: list[Stage]) -> _Where:
        """Rules on a command and adds what runs to the stages before it."""
        for assignment in command.assignments:
            if not is_harmless(assignment.name, assignment.value):
                self.ask(f"It sets {assignment.name}, which may change what commands do.")
        redirects = self._redirects(command.redirects, folders)
        words = self._expanded(command.words, folders)
        if not words:
            stages.append(msgspec.structs.replace(command, redirects=redirects))
            return _Where(folders, folders)
        effects = effects_of(words)
        if effects.fed and stages and isinstance(before := stages[-1], Command):
            listed = with_nulls(tuple(word.text for word in before.words), words)
            if listed is not None:
                words, effects = listed.words, listed.effects
                # Only these two name links.
                follows = listed.producer[0] in ("find", "git")
                named = self.search(
                    listed.producer, effects.reads, folders, follows=follows, names=True
                )
                stages[-1] = _with_words(before, named)
        words, environ = self.on_command(words, effects, folders, command.source)
        set_here = tuple(Assignment(name, value) for name, value in environ)
        written = Command(
            assignments=(*command.assignments, *set_here),
            redirects=redirects,
            source=command.source,
        )
        stages.append(_with_words(written, words))
        return self._after(effects, folders)

    def _redirects(self, redirects: tuple[Redirect, ...], folders: Folders) -> tuple[Redirect, ...]:
        """Rules on the files that redirections open; each is what the file tools would do."""
        written: list[Redirect] = []
        for redirect in redirects:
            if redirect.opens is None:
                written.append(redirect)
                continue
            target = self._home(redirect.target)
            written.append(msgspec.structs.replace(redirect, target=Word(target, quoted=True)))
            writes = redirect.opens == "write"
            tool, effect = ("write_file", Effect.WRITE) if writes else ("read_file", Effect.READ)
            act = Act(tool=tool, effect=effect, mode=self.terms.mode)
            locations = self.locate_all(target, folders, writes=writes)
            self.findings += rule_on(act, locations, self.terms)
            self.findings += self.brought(locations)
            if writes and any(location.zone is not Zone.DEVICE for location in locations):
                self.changed = True
        return tuple(written)

    def _home(self, word: Word) -> str:
        return f"{self.terms.locations.home}{word.text[1:]}" if word.tilde else word.text

    def _expanded(self, words: tuple[Word, ...], folders: Folders) -> _Words:
        """The words with home folders and file patterns replaced by what they expand to."""
        found: list[str] = []
        for at, word in enumerate(words):
            if not word.pattern:
                found.append(self._home(word))
                continue
            matched = self._matched(word, folders) if at else None
            if matched is None:
                self.ask(f"What {shown(word.text)} matches is known only when it runs.")
                matched = (word.text,)
            if any(name.startswith("-") and name != word.text for name in matched):
                self.ask(f"A file that {shown(word.text)} matches would be taken for an option.")
            found += matched
        return tuple(found)

    def _matched(self, word: Word, folders: Folders) -> _Words | None:
        if self.changed or folders is None or len(folders) != 1:
            return None
        home = self.terms.locations.home
        pattern = f"{home}{word.pattern[1:]}" if word.tilde else word.pattern
        listed = posixpath.dirname(pattern[: min(map(pattern.index, set("*?") & set(pattern)))])
        names = self.terms.locations.matches(folders[0], pattern)
        for path in (listed or ".", *(names or ())):
            # A protected name may be listed; whether the file is read is another question.
            locations = self.locate_all(path, folders, writes=False)
            outside = (location for location in locations if location.zone is not Zone.PROTECTED)
            self.findings += self.read_locations(outside)
        return names if names is None or names else (self._home(word),)

    def _after(self, effects: Effects, folders: Folders) -> _Where:
        """Where the next command runs."""
        if effects.folder is None or folders is None:
            return _Where(folders, folders)
        locations = self.terms.locations
        folder = locations.home if effects.folder == "~" else effects.folder
        reached: list[str] = []
        sure = not self.changed
        for each in folders:
            path = posixpath.normpath(posixpath.join(each, folder))
            if locations.locate(posixpath.join(each, folder), writes=False).zone is not Zone.INSIDE:
                if self.terms.mode is not Mode.YOLO:
                    self.ask(f"cd {shown(folder)} leaves the workspace.")
                return _Where(None, None)
            self.findings += self.brought(locations.locate_all(path, (each,), writes=False))
            reached.append(path)
            sure = sure and locations.is_folder(path)
        return _Where(tuple(reached), () if sure else folders)


def _with_words(command: Command, words: _Words) -> Command:
    return msgspec.structs.replace(command, words=tuple(Word(word, quoted=True) for word in words))
