"""The ruling on one command of a script: what it needs beyond reading the workspace."""

import posixpath
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from toolwire.policy import Mode
from toolwire.policy.locations import HiddenPaths, Location, Zone
from toolwire.policy.rules import Act, Invocation, Rule, Verdict
from toolwire.policy.ruling import Finding, Terms, by_mode, forbidding, permitting, rule_on, shown
from toolwire.policy.shell.commands import BUILTINS, effects_of, program_name
from toolwire.policy.shell.effects import Effects, is_harmless
from toolwire.policy.shell.programs import FOUND
from toolwire.tools.spec import Effect

_FIND_GLOBALS = {
    "-maxdepth": 2,
    "-mindepth": 2,
    "-depth": 1,
    "-xdev": 1,
    "-mount": 1,
    "-regextype": 2,
}


def leaving_out(words: tuple[str, ...], hidden: Sequence[str]) -> tuple[str, ...] | None:
    """The words of a search without files of these names; None if it cannot leave them out."""
    # By name, since a folder can be written in many ways; of options that contradict each other,
    # the last one wins.
    names = tuple(dict.fromkeys(path.rstrip("/").rsplit("/", 1)[-1] for path in hidden))
    match words[0].rsplit("/", 1)[-1]:
        case "grep" | "egrep" | "fgrep":
            options = [
                option
                for name in names
                for option in (f"--exclude={_escaped(name)}", f"--exclude-dir={_escaped(name)}")
            ]
            return _before_operands(words, options)
        case "rg" if not any(word.startswith("--ig") for word in words):
            return _before_operands(words, [f"--glob=!{_escaped(name)}" for name in names])
        case "find":
            return _find(words, names)
        case "git" if "ls-files" in words:
            paths = [f":(exclude){path.rstrip('/')}" for path in hidden]
            more = () if "--" in words else ("--", ".")
            return (*words, *more, *paths)
        case _:
            return None


def _before_operands(words: tuple[str, ...], options: list[str]) -> tuple[str, ...]:
    at = words.index("--") if "--" in words else len(words)
    return (*words[:at], *options, *words[at:])


def _find(words: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    at = 1
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!", ","):
        at += 1
    while at < len(words) and words[at] in _FIND_GLOBALS:
        at += _FIND_GLOBALS[words[at]]
    left_out = [
        part
        for name in names
        for part in ("!", "-name", _escaped(name), "!", "-path", f"*/{_escaped(name)}/*")
    ]
    rest = ("(", *words[at:], ")") if words[at:] else ()
    return (*words[:at], *left_out, *rest)


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[\]{}\\!])", r"\\\1", path)


Folders: TypeAlias = tuple[str, ...] | None
"""All folders a command may run in; None if they are not known."""
_MOST_INNER = 40
"""Commands inside commands of one text."""
_Environ: TypeAlias = tuple[tuple[str, str], ...]


class CommandRuling:
    """Collects findings on commands, and what they need to run."""

    def __init__(self, act: Act, terms: Terms) -> None:
        self.act = act
        self.terms = terms
        self.findings: list[Finding] = []
        self.roots: list[str] = []
        self.rules: list[Rule | None] = []
        """For each command that does more than read: the rule that allowed it."""
        self.touched: list[tuple[Location, bool]] = []
        """Every location that is touched, and whether it is written."""
        self.changed = False
        """An earlier command may have changed files, so their present state proves little."""
        self.linked = False
        """An earlier command may have created links."""
        self.by_table = False
        """Some program runs because it is known to be harmless."""
        self.left_out: list[str] = []
        """Files that rewritten searches leave out, with the reason."""
        self._inner = 0

    @abstractmethod
    def text(self, text: str, folders: Folders) -> str:
        """Rules on shell text inside a command; returns the text that runs instead."""

    def ask(self, reason: str) -> None:
        """Adds a finding that requires approval."""
        self.findings.append(Finding(decision=Verdict.ASK, reason=reason))

    def unproven(self, reason: str) -> None:
        """Adds the finding on text outside the grammar."""
        self.changed = self.linked = True
        if self.terms.mode is Mode.YOLO and not _forbids_commands(self.terms):
            self.rules.append(None)
        elif self.terms.mode is Mode.PLAN:
            why = f"Plan mode only reads, and what this command does is not certain: {reason}."
            self.findings.append(Finding(decision=Verdict.DENY, reason=why, rule="mode plan"))
        else:
            self.ask(f"What the command does is not certain: {reason}.")

    def locate_all(self, path: str, folders: Folders, *, writes: bool) -> tuple[Location, ...]:
        """All possible locations of a path."""
        locations = self.terms.locations.locate_all(path, folders, writes=writes)
        self.touched += [(location, writes) for location in locations]
        return locations

    def brought(self, locations: Iterable[Location]) -> Iterator[Finding]:
        """Findings on locations that an earlier command may have replaced by a link."""
        if not self.linked or self.terms.mode is Mode.YOLO:
            return
        for location in locations:
            if location.zone is Zone.INSIDE:
                yield Finding(
                    decision=Verdict.ASK,
                    reason=f"An earlier command may change where {shown(location.path)} leads.",
                )

    def on_command(
        self, words: tuple[str, ...], effects: Effects, folders: Folders, source: str
    ) -> tuple[tuple[str, ...], _Environ]:
        """Rules on a command and on what it starts; returns its words and variables as they run."""
        name = program_name(words[0])
        if not effects.runs_at or effects.changes:
            self.roots.append(name.rsplit("/", 1)[-1])
        invocation = Invocation(
            words=(name, *words[1:]),
            source=source,
            opaque=effects.opaque,
            covered_from=effects.covered_from,
        )
        act = msgspec.structs.replace(self.act, command=invocation)
        forbidden = forbidding(act, self.terms.rules)
        if forbidden is not None:
            self.findings.append(forbidden)
        elif effects.opaque:
            self._opaque(act, invocation)
        else:
            self.findings += self._permission(act, effects, folders)
            words, environ = self._started(words, effects, folders, source)
            self._repository(effects, folders)
            self._note(effects)
            return words, environ
        return words, ()

    def _forbidden(self, words: tuple[str, ...], source: str) -> None:
        """Adds the finding of a rule against a command that needs approval anyway."""
        invocation = Invocation(words=(program_name(words[0]), *words[1:]), source=source)
        act = msgspec.structs.replace(self.act, command=invocation)
        forbidden = forbidding(act, self.terms.rules)
        if forbidden is not None:
            self.findings.append(forbidden)

    def _note(self, effects: Effects) -> None:
        more = bool(effects.changes or effects.removes) or not effects.known
        self.linked = self.linked or more
        self.changed = self.changed or more or bool(effects.writes)

    def _opaque(self, act: Act, invocation: Invocation) -> None:
        """Rules on an opaque command: a rule has to name enough of its words."""
        terms = self.terms
        self.changed = self.linked = True
        permitted = self._permitting(act)
        if permitted is not None:
            self.rules.append(permitted)
            self.findings.append(Finding(decision=Verdict.ALLOW, rule=str(permitted)))
        elif terms.mode is Mode.YOLO and not _forbids_commands(terms):
            self.rules.append(None)
        elif terms.mode is Mode.PLAN:
            self.findings += rule_on(act, (), terms)
        else:
            self.ask(f"{shown(invocation.source)} needs approval: {invocation.opaque}.")

    def _permitting(self, act: Act) -> Rule | None:
        """The rule that allows a command; in plan mode only one made for it."""
        plan = self.terms.mode is Mode.PLAN
        found = permitting(act, self.terms)
        return next((rule for rule in found if not plan or Mode.PLAN in rule.modes), None)

    def _permission(self, act: Act, effects: Effects, folders: Folders) -> Iterator[Finding]:
        """What a command needs beyond reading the workspace, and every location it touches."""
        terms = self.terms
        name = act.command.words[0] if act.command else ""
        foreign = "" if name in BUILTINS else terms.locations.foreign(name)
        written = (*effects.writes, *effects.removes)
        writes = [
            location for path in written for location in self.locate_all(path, folders, writes=True)
        ]
        read = (*effects.reads, *effects.trees)
        reads = [
            location for path in read for location in self.locate_all(path, folders, writes=False)
        ]
        by_itself = all(by_mode(terms.mode, Effect.WRITE, location.zone) for location in writes)
        executes = bool(foreign or effects.changes or effects.removes) or not effects.known
        if not executes and by_itself:
            self.by_table = self.by_table or name not in BUILTINS
            yield Finding(decision=Verdict.ALLOW, rule=f"mode {terms.mode}")
        else:
            permitted = self._permitting(act)
            self.rules.append(permitted)
            if permitted is not None:
                yield Finding(decision=Verdict.ALLOW, rule=str(permitted))
                yield from self._elsewhere(folders)
            else:
                (found,) = rule_on(act, (), terms)
                why = "the workspace contains this program" if foreign else effects.changes
                yield _because(found, why)
        yield from self._findings_on(reads, "read_file", Effect.READ)
        yield from self._findings_on(writes, "write_file", Effect.WRITE)

    def read_locations(self, locations: Iterable[Location]) -> Iterator[Finding]:
        """Findings on locations that are read or listed."""
        return self._findings_on(tuple(locations), "read_file", Effect.READ)

    def _elsewhere(self, folders: Folders) -> Iterator[Finding]:
        """A rule covers the project: a folder with its own settings needs approval."""
        if self.terms.mode is Mode.YOLO:
            return
        for folder in folders or ():
            found = self.terms.locations.brings_settings(folder)
            if found:
                reason = f"{shown(folder)} contains settings of its own ({found})."
                yield Finding(decision=Verdict.ASK, reason=reason)

    def _findings_on(
        self, locations: Sequence[Location], tool: str, effect: Effect
    ) -> Iterator[Finding]:
        """Findings on locations; inside the workspace the command's own permission is enough."""
        act = Act(tool=tool, effect=effect, mode=self.terms.mode)
        for location in locations:
            if not location.is_near:
                yield from rule_on(act, (location,), self.terms)
                continue
            there = msgspec.structs.replace(act, path=location.path)
            forbidden = forbidding(there, self.terms.rules)
            if forbidden is not None:
                yield forbidden
        yield from self.brought(locations)

    def search(
        self,
        words: tuple[str, ...],
        trees: tuple[str, ...],
        folders: Folders,
        *,
        follows: bool,
        names: bool = False,
    ) -> tuple[str, ...]:
        """Every file below some folders is read: returns the words that leave out the hidden.

        `names`: it only lists files, which another command then reads.
        """
        locations = self.terms.locations
        if folders is None or (self.terms.mode is Mode.YOLO and not self._denies_paths()):
            return words
        for tree in trees:
            for location in locations.locate_all(tree, folders, writes=False):
                if location.zone is not Zone.INSIDE:
                    continue
                hidden = locations.hidden_below(location.path, self._denied(), follows)
                if hidden is None:
                    self.ask(f"{shown(tree)} contains too many files to check each of them.")
                    continue
                if self.terms.mode is Mode.YOLO:
                    hidden = tuple(each for each in hidden if each.denied)
                words = self._left_out(words, tree, hidden, links=follows and not names)
        return words

    def _left_out(
        self, words: tuple[str, ...], tree: str, hidden: tuple[HiddenPaths, ...], *, links: bool
    ) -> tuple[str, ...]:
        if not hidden:
            return words
        first = hidden[0]
        written = None
        if not links:
            written = leaving_out(words, tuple(each.path for each in hidden))
        if written is None:
            self.ask(f"{shown(tree)} contains {shown(first.path)} ({first.why}).")
            return words
        self.left_out += [f"{each.path} ({each.why})" for each in hidden]
        return written

    def _denies_paths(self) -> bool:
        rules = self.terms.rules
        return any(rule.path and rule.decision is not Verdict.ALLOW for rule in rules)

    def _denied(self) -> Callable[[str], bool] | None:
        """Whether a rule is against reading a path; None without such rules."""
        if not self._denies_paths():
            return None
        act = Act(tool="read_file", effect=Effect.READ, mode=self.terms.mode)

        def denied(path: str) -> bool:
            at_path = msgspec.structs.replace(act, path=path)
            return forbidding(at_path, self.terms.rules) is not None

        return denied

    def _started(
        self, words: tuple[str, ...], effects: Effects, folders: Folders, source: str
    ) -> tuple[tuple[str, ...], _Environ]:
        """Rules on the commands inside a command; returns the words and variables that run."""
        for name, value in effects.assigns:
            if not is_harmless(name, value):
                self.ask(f"It sets {name}, which may change what commands do.")
        written, environ = effects.words or words, effects.environ
        if effects.trees:
            written = self.search(written, effects.trees, folders, follows=effects.follows)
        for inner in effects.runs:
            self._inner += 1
            if self._inner > _MOST_INNER:
                self.ask("Too many commands are inside commands.")
            elif effects.fed:
                self._forbidden(inner, source)
                self.ask(f"{shown(source)} takes words from its input.")
            elif any(FOUND in word for word in inner):
                if self._reads_each(inner, folders, source) and not effects.lists:
                    written = self.search(
                        written, effects.reads, folders, follows=True, names=not effects.follows
                    )
            else:
                started = effects_of(inner)
                new, more = self.on_command(inner, started, folders, source)
                if effects.runs_at:
                    # Set where it starts: the command outside may clear its variables.
                    sets = ("env", *(f"{name}={value}" for name, value in more)) if more else ()
                    written = (*words[: effects.runs_at], *sets, *new)
                elif new != inner or started.folder is not None:
                    self.ask(f"{shown(source)} starts a command that has to be written anew.")
        if effects.script is not None:
            written = (*words[:-1], self.text(effects.script, folders))
        return written, environ

    def _reads_each(self, inner: tuple[str, ...], folders: Folders, source: str) -> bool:
        """Rules on a command that runs for every file found; whether it reads them."""
        named = f"./{FOUND}"
        plain = tuple(named if word == FOUND else word for word in inner)
        inside = effects_of(plain)
        parts = [word for word in plain if FOUND in word and word != named]
        touched = (*inside.writes, *inside.removes, *(each for run in inside.runs for each in run))
        if parts or FOUND in plain[0] or inside.opaque or inside.words or named in touched:
            self._forbidden(plain, source)
            self.ask(f"{shown(source)} does more than read what it finds.")
            return False
        if named in inside.trees:
            self.ask(f"{shown(source)} searches below what it finds.")
        self.on_command(plain, inside, folders, source)
        return named in inside.reads

    def _repository(self, effects: Effects, folders: Folders) -> None:
        """git runs without asking only if the repository's own settings start nothing."""
        if not effects.repository or self.terms.mode is Mode.YOLO:
            return
        for folder in folders or ():
            path = posixpath.normpath(posixpath.join(folder, effects.repository))
            settings = self.terms.locations.programs_of(path)
            if settings:
                named = ", ".join(settings[:3])
                self.ask(f"This repository's own settings may start programs ({named}).")


def _forbids_commands(terms: Terms) -> bool:
    """Whether a rule is against some commands, so that those not understood may be meant."""
    return any(rule.command and rule.decision is not Verdict.ALLOW for rule in terms.rules)


def _because(found: Finding, why: str) -> Finding:
    if found.decision is not Verdict.ASK or not why:
        return found
    return msgspec.structs.replace(found, reason=f"{found.reason.rstrip('.')}: {why}.")
