"""git: subcommands that only read, with their options; the rest needs a rule.

What reads runs with hooks, file-system monitors, pagers, external differs, text converters and
remote helpers switched off. A repository whose own configuration names other programs is asked
about (`Effects.repository`).
"""

import msgspec

from toolwire.policy.shell.effects import Effects, Line, of_line, opaque, read_line, syntax
from toolwire.policy.shell.syntax import names

_OVERRIDES = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "diff.ignoreSubmodules=dirty",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
)
ENVIRON = (
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
)
_DIFF = """
    -abBCDMRWuvwzptcr --patch --no-patch -s --raw --minimal --patience --histogram --stat?T
    --numstat --shortstat --dirstat?T --summary --patch-with-stat --compact-summary --name-only
    --name-status --no-color --color?T --color-moved?T --word-diff?T --word-diff-regex=T
    --color-words?T --no-renames --rename-empty --check --full-index --binary --abbrev?T
    --break-rewrites?T --find-renames?T --find-copies?T --find-copies-harder --pickaxe-all
    --pickaxe-regex --irreversible-delete --text --ignore-cr-at-eol --ignore-space-at-eol
    --ignore-space-change --ignore-all-space --ignore-blank-lines --function-context --exit-code
    --quiet --no-ext-diff --no-textconv --ignore-submodules?T --submodule?T --no-prefix
    --default-prefix --relative?T --no-relative --patch-with-raw --cumulative --ita-visible-in-index
    -U=T --unified=T --diff-algorithm=T --diff-filter=T -S=T -G=T --inter-hunk-context=T
    --src-prefix=T --dst-prefix=T --line-prefix=T --output-indicator-new=T
    --output-indicator-old=T --output-indicator-context=T --stat-width=T --stat-count=T
    --stat-name-width=T --ws-error-highlight=T --anchored=T -l=T"""
_LOG = f"""{_DIFF} -# -iEFPgmqh --oneline --graph --decorate?T --no-decorate --all --branches?T
    --tags?T
    --remotes?T --merges --no-merges --first-parent --follow --reverse --full-history --dense
    --sparse --simplify-merges --simplify-by-decoration --ancestry-path?T --cherry --cherry-pick
    --cherry-mark --left-right --left-only --right-only --boundary --date-order
    --author-date-order --topo-order --walk-reflogs --no-walk?T --do-walk --source --abbrev-commit
    --no-abbrev-commit --parents --children --timestamp --log-size --show-pulls --all-match
    --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp --fixed-strings
    --perl-regexp --merge --not --no-notes --notes?T --no-expand-tabs --expand-tabs?T --mailmap
    --no-mailmap --use-mailmap --cc --combined-all-paths --diff-merges=T --no-diff-merges
    --full-diff --relative-date --clear-decorations --no-min-parents --no-max-parents -n=T
    --max-count=T --skip=T --since=T --after=T --until=T --before=T --since-as-filter=T --author=T
    --committer=T --grep=T --grep-reflog=T --min-parents?T --max-parents?T --pretty?T --format?T
    --date=T --encoding=T -L=T --glob=T --exclude=T --decorate-refs=T --decorate-refs-exclude=T
    --exclude-first-parent-only --show-linear-break?T --count --objects --disk-usage?T
    --max-age=T --min-age=T --remove-empty --bisect-all"""
_LIST = """--format=T --sort=T --contains?T --no-contains?T --merged?T --no-merged?T --points-at=T
    --count=T --color?T --no-color --column?T --no-column --omit-empty -i --ignore-case"""
READS: dict[str, str] = {
    "status": """-szb --short --branch --show-stash --porcelain?T --long --ignored?T -u?T
        --untracked-files?T --ignore-submodules?T --column?T --no-column --ahead-behind
        --no-ahead-behind --renames --no-renames --find-renames?T --null | R*""",
    "diff": f"{_DIFF} -# -0123 --cached --staged --merge-base --base --ours --theirs --cc | R*",
    "log": f"{_LOG} | R*",
    "show": f"{_LOG} | R*",
    "whatchanged": f"{_LOG} | R*",
    "reflog": f"{_LOG} | T R*",
    "rev-list": f"{_LOG} --pretty?T --header --quiet --no-commit-header | R*",
    "shortlog": "-cnse --numbered --summary --email --committer --group=T --all --since=T --until=T"
    " --author=T --no-merges --merges -w?T --format=T | R*",
    "diff-tree": f"""{_DIFF} --root --stdin --no-commit-id -m -c --cc -r -t --pretty?T --format?T |
    R*""",
    "blame": """-bcfelnpstwCM --root --show-stats --porcelain --line-porcelain --show-name
        --show-number --show-email --first-parent --date=T -L=T --abbrev=T --since=T
        --ignore-rev=T --ignore-revs-file=R --no-textconv --color-lines --color-by-age | R*""",
    "annotate": "-L=T -b -l -t | R*",
    "grep": """-# -ahHIinLlvwEGFPpWcqroz --text --ignore-case --word-regexp
        --invert-match --extended-regexp --basic-regexp --fixed-strings --perl-regexp
        --line-number --column --files-with-matches --name-only --files-without-match --count
        --only-matching --all-match --quiet  --cached
        --show-function --function-context --heading
        --break --null --full-name --color?T --no-color --and --or --not -A=T -B=T -C=T
        --after-context=T --before-context=T --context=T -m=T --max-count=T -e=T -f=R
        --max-depth=T --threads=T --no-textconv | T*""",
    "ls-files": """-cdmokiutvzsfx --cached --deleted --modified --others --ignored --stage
    --unmerged
        --killed --directory --no-empty-directory --eol --deduplicate --exclude-standard
        --error-unmatch --full-name --abbrev?T -x=T --exclude=T -X=R --exclude-from=R
        --exclude-per-directory=T --with-tree=T --format=T | R*""",
    "ls-tree": """-drtlz --long --name-only --name-status --object-only --full-name --full-tree
        --abbrev?T --format=T | T R*""",
    "rev-parse": """-q --verify --quiet --sq --short?T --abbrev-ref?T --symbolic
        --symbolic-full-name --all --branches?T --tags?T --remotes?T --show-toplevel --git-dir
        --absolute-git-dir --git-common-dir --is-inside-git-dir --is-inside-work-tree
        --is-bare-repository --is-shallow-repository --show-prefix --show-cdup
        --show-superproject-working-tree --show-object-format?T --show-ref-format --revs-only
        --no-revs --flags --no-flags --default=T --glob=T --exclude=T --since=T --until=T --not
        --git-path=T --path-format=T --local-env-vars | T*""",
    "describe": """--all --tags --contains --long --always --exact-match --debug --first-parent
        --dirty?T --broken?T --abbrev?T --candidates=T --match=T --exclude=T | T*""",
    "cat-file": "-pets --batch-check?T --unordered --buffer --follow-symlinks | T T",
    "merge-base": "-a --all --octopus --independent --is-ancestor --fork-point | T*",
    "for-each-ref": f"{_LIST} --shell --perl --python --stdin --include-root-refs | T*",
    "show-ref": """-hdsq --head --heads --branches --tags --dereference --hash?T --verify --abbrev?T
        --quiet --exists | T*""",
    "name-rev": "--tags --all --name-only --no-undefined --always --refs=T --exclude=T | T*",
    "count-objects": "-vH --verbose --human-readable |",
    "check-ignore": "-qvnz --quiet --verbose --non-matching --no-index | T*",
    "check-attr": "-az --all --cached | T*",
    "cherry": "-v --abbrev?T | T*",
    "var": "-l | T",
    "version": "--build-options |",
    "help": "-ag --all --guides --no-verbose |",
    "symbolic-ref": "-q --quiet --short --recurse --no-recurse | T",
    "fsck": "--no-dangling --no-progress --connectivity-only |",
    "range-diff": f"{_DIFF} --creation-factor=T --left-only --right-only --no-dual-color | T*",
    "remote": "",
    "branch": "",
    "tag": "",
    "stash": "",
    "worktree": "",
    "config": "",
    "notes": "",
}
_SHOWS_DIFFS = names("diff log show whatchanged reflog diff-tree")
_BRANCH = (
    f"-arvlq --all --remotes --verbose --show-current --list --abbrev=T --no-abbrev {_LIST} | T*"
)
_TAG = f"-l --list -n?T {_LIST} | T*"
_CONFIG = """-zl --list --get --get-all --get-regexp --get-urlmatch --show-origin --show-scope
    --name-only --null --bool --int --path --local --type=T --includes --no-includes --default=T"""
_GLOBAL = frozenset({"--no-pager", "-P", "--literal-pathspecs", "--no-optional-locks"})
_MIXED = names("branch tag remote stash worktree config notes symbolic-ref reflog")
_REMOTE = "-46qvn --quiet --verbose --progress --no-progress --ipv4 --ipv6"
CHANGES: dict[str, str] = {
    "add": """-AnvufN --all --no-all --dry-run --verbose --update --force --intent-to-add --refresh
        --ignore-errors --renormalize --sparse --chmod=T | R*""",
    "commit": """-aqvnsoi --all --amend --no-edit --quiet --verbose --no-verify --allow-empty
        --allow-empty-message --signoff --no-signoff --reset-author --only --include --dry-run
        --short --porcelain --no-gpg-sign --no-post-rewrite --status --no-status -m=T --message=T
        --author=T --date=T --fixup=T --squash=T -C=T --reuse-message=T --trailer=T --cleanup=T
        --untracked-files?T | R*""",
    "checkout": """-qfltdm --quiet --force --detach --track --no-track --ours --theirs --merge
    --guess
        --no-guess --overlay --no-overlay --progress --no-progress --ignore-skip-worktree-bits
        -b=T -B=T --orphan=T --conflict=T | W*""",
    "switch": """-dfqmt --detach --force --quiet --merge --track --no-track --guess --no-guess
        --discard-changes --progress --no-progress -c=T -C=T --create=T --force-create=T
        --orphan=T | T*""",
    "restore": """-SWqm --staged --worktree --quiet --ours --theirs --merge --overlay --no-overlay
        --progress --no-progress -s=T --source=T --conflict=T | W*""",
    "reset": "-qN --soft --mixed --hard --merge --keep --quiet --refresh --no-refresh | W*",
    "merge": """-qnv --no-ff --ff --ff-only --squash --no-squash --commit --no-commit --abort
        --continue --quit --no-edit --stat --no-stat --quiet --verbose --no-verify
        --allow-unrelated-histories --signoff -m=T --message=T -s=T --strategy=T -X=T
        --strategy-option=T --into-name=T | T*""",
    "rebase": """-qfv --abort --continue --skip --quit --quiet --verbose --stat --no-stat
    --autostash
        --no-autostash --no-verify --root --autosquash --no-autosquash --rebase-merges?T --no-ff
        --keep-base --fork-point --no-fork-point --update-refs --signoff --onto=T -s=T
        --strategy=T -X=T --strategy-option=T --empty=T | T*""",
    "cherry-pick": """-nxs --no-commit --signoff --abort --continue --skip --quit --allow-empty
        --keep-redundant-commits --ff -m=T --mainline=T --strategy=T -X=T | T*""",
    "revert": """-ns --no-commit --no-edit --signoff --abort --continue --skip --quit -m=T
    --mainline=T
        --strategy=T -X=T | T*""",
    "push": f"""{_REMOTE} -uf --set-upstream --all --tags --follow-tags --force
        --force-with-lease?T --force-if-includes --delete -d --dry-run --prune --mirror --atomic
        --no-verify --porcelain --thin --no-thin | T*""",
    "fetch": f"""{_REMOTE} -apPtf --all --append --tags --no-tags --prune --prune-tags --force
    --dry-run
        --unshallow --atomic --depth=T --deepen=T --shallow-since=T --shallow-exclude=T -j=T
        --jobs=T --refmap=T | T*""",
    "pull": f"""{_REMOTE} -aprt --all --append --tags --no-tags --prune --rebase?T --no-rebase --ff
        --ff-only --no-ff --squash --no-squash --commit --no-commit --autostash --no-autostash
        --no-edit --stat --no-stat --force --dry-run --unshallow --no-verify
        --allow-unrelated-histories --depth=T -s=T --strategy=T -X=T --strategy-option=T | T*""",
    "clone": f"""{_REMOTE} -lsn --local --no-hardlinks --no-checkout --bare --mirror --single-branch
        --no-single-branch --no-tags --dissociate --shallow-submodules --sparse --depth=T
        --shallow-since=T -b=T --branch=T -j=T --jobs=T --filter=T | W W""",
    "ls-remote": f"""{_REMOTE} -ht --heads --branches --tags --refs --exit-code --get-url --sort=T
    --symref | T*""",
    "rm": "-rfnq --force --dry-run --cached --ignore-unmatch --quiet --sparse | D*",
    "mv": "-fknv --force --dry-run --verbose --sparse | D* W",
    "clean": "",
    "init": "-q --quiet --bare --shared?T -b=T --initial-branch=T --object-format=T | W",
    "apply": """-Rzvq3 --stat --numstat --summary --check --index --cached --3way --reverse --reject
        --recount --verbose --quiet --allow-empty --whitespace=T -p=T -C=T --exclude=T
        --include=T | R*""",
    "gc": "-q --quiet --auto --aggressive --prune?T --no-prune --force |",
    "stash": """-qupaSk --quiet --include-untracked --all --keep-index --no-keep-index --staged
        --index -m=T --message=T | T*""",
    "branch": """-dDmMcCfaruqvt --delete --move --copy --force --track?T --no-track --unset-upstream
        --quiet -u=T --set-upstream-to=T | T*""",
    "tag": "-adfln --annotate --delete --force --no-sign -m=T --message=T --cleanup=T | T*",
    "remote": "-vtfn --verbose --push --all --add --delete --prune --dry-run -m=T | T*",
    "worktree": "-fbdqvn --force --detach --lock --verbose --expire=T -b=T -B=T --reason=T | T W*",
    "notes": "-fq --force --ref=T -m=T --message=T | T*",
    "symbolic-ref": "-dq --delete --quiet -m=T | T*",
    "reflog": "--expire=T --all --rewrite --updateref --stale-fix --dry-run --verbose | T*",
    "update-index": "-q --refresh --really-refresh --assume-unchanged --no-assume-unchanged"
    " --skip-worktree --no-skip-worktree --add --remove --force-remove --chmod=T | R*",
    "hash-object": "-w -t=T --path=T | R*",
    "bundle": "-q --quiet --progress --all --branches --tags | T W T*",
    "prune": "-nv --dry-run --verbose --expire=T |",
    "repack": "-adfAqlk |",
    "pack-refs": "--all --no-prune |",
}


def effects(words: tuple[str, ...]) -> Effects:
    """What a git command does."""
    at = 1
    folder = None
    while at < len(words) and (words[at] in _GLOBAL or words[at] == "-C"):
        if words[at] == "-C":
            if folder is not None or at + 1 >= len(words):
                return opaque("git is used with -C more than once", at)
            folder = words[at + 1]
            at += 1
        at += 1
    if at == len(words) or words[at:] == ("--version",):
        return Effects()
    name = words[at]
    if name.startswith("-"):
        return opaque(f"git is used with {name.partition('=')[0]}, which can make it run", at)
    reading = _reading(name, words, at)
    if reading is not None:
        return _quiet(reading, words, at, folder)
    return _changing(name, words, at, folder)


def _reading(name: str, words: tuple[str, ...], at: int) -> Effects | None:
    """What a subcommand does if it only reads; None otherwise."""
    known = _syntax_of(name, words, at)
    if known is None:
        return None
    line = read_line(words, syntax(known), at + 1)
    if line.has("--help"):
        return opaque("git starts a viewer for its manual", at + 1)
    if name in ("branch", "tag") and not _lists(name, line):
        return None
    if name == "symbolic-ref" and len(line.operands) != 1:
        return None
    if name == "reflog" and line.operands and line.operands[0][0] in ("delete", "expire", "drop"):
        return None
    found = of_line(f"git {name}", line, syntax(known))
    if found.opaque:
        return None if name in _MIXED else found
    pathspecs = tuple(_paths(found.reads))
    return msgspec.structs.replace(found, reads=pathspecs)


def _syntax_of(name: str, words: tuple[str, ...], at: int) -> str | None:
    rest = words[at + 1 :]
    match name:
        case "branch":
            return _BRANCH
        case "tag":
            return _TAG
        case "remote":
            shows = not rest or rest in (("-v",), ("--verbose",), ("show",))
            return "-v --verbose | T*" if shows or rest[0] == "get-url" else None
        case "stash":
            return f"{_LOG} | T T" if rest and rest[0] in ("list", "show") else None
        case "worktree":
            return "-vz --porcelain --verbose | T" if rest and rest[0] == "list" else None
        case "notes":
            return "| T T" if rest and rest[0] in ("list", "show") else None
        case "config":
            return _config(rest)
        case _:
            return READS.get(name)


def _config(rest: tuple[str, ...]) -> str | None:
    """`git config` that reads: one name without a value, or an option that says so."""
    operands = [word for word in rest if not word.startswith("-")]
    gets = any(word.startswith("--get") for word in rest) or rest[:1] == ("get",)
    lists = any(word in ("--list", "-l") for word in rest) or rest == ("list",)
    if gets:
        return f"{_CONFIG} | T T T"
    if lists and len(operands) <= (rest == ("list",)):
        return f"{_CONFIG} | T"
    return f"{_CONFIG} | T" if len(operands) == 1 and operands[0] not in ("edit", "unset") else None


def _lists(name: str, line: Line) -> bool:
    """Whether `branch` or `tag` lists: an operand would otherwise name a new one."""
    if name == "branch" and line.has("--show-current"):
        return not line.operands
    listing = (
        "-l",
        "--list",
        "--contains",
        "--no-contains",
        "--merged",
        "--no-merged",
        "--points-at",
    )
    return not line.operands or line.has(*listing, "-n" if name == "tag" else "--list")


def _paths(operands: tuple[str, ...]) -> list[str]:
    """Operands as paths: revisions are paths of files that do not exist."""
    found: list[str] = []
    for operand in operands:
        if operand.startswith(":"):
            continue
        revision, colon, path = operand.partition(":")
        found.append(path or "." if colon else revision)
    return found


def _quiet(reading: Effects, words: tuple[str, ...], at: int, folder: str | None) -> Effects:
    """The same with everything switched off through which git would start other programs."""
    if reading.opaque:
        return reading
    name = words[at]
    more: tuple[str, ...] = ()
    shows = name in _SHOWS_DIFFS and words[at + 1 : at + 2] not in (("delete",), ("exists",))
    if shows or words[at : at + 2] == ("stash", "show"):
        more = ("--no-ext-diff", "--no-textconv")
    if name in ("diff", "status"):
        more += ("--ignore-submodules=dirty",)
    if name in ("blame", "grep"):
        more += ("--no-textconv",)
    given = words[at + 1 :]
    head = 1 if name == "stash" else 0
    # They would be listed by `git config --list`.
    overrides = () if name == "config" else _OVERRIDES
    overrides = tuple(part for each in overrides for part in ("-c", each))
    return msgspec.structs.replace(
        reading,
        words=("git", *overrides, *words[1:at], name, *given[:head], *more, *given[head:]),
        environ=ENVIRON,
        repository=folder or ".",
        reads=(*reading.reads, folder) if folder is not None else reading.reads,
    )


def _changing(name: str, words: tuple[str, ...], at: int, folder: str | None) -> Effects:
    """A subcommand that changes something: a rule may allow it with the options that are known."""
    known = CHANGES.get(name)
    if known is None or (name == "remote" and words[at + 1 : at + 2] == ("update",)):
        return opaque(f"git {name} is not known to be harmless", at + 1)
    if name == "clean":
        return opaque("git clean removes files that git does not know", at)
    line = read_line(words, syntax(known), at + 1)
    found = of_line(f"git {name}", line, syntax(known))
    if found.opaque:
        return found
    for operand, position in line.operands:
        if "::" in operand.partition("/")[0]:
            return opaque(f"{operand[:40]} names a program", position)
    folders = () if folder is None else (folder,)
    return msgspec.structs.replace(
        found,
        changes=f"git {name} changes the repository or contacts another",
        reads=(*_paths(found.reads), *folders),
        writes=(*_paths(_local(found.writes)), *folders),
        removes=tuple(_paths(found.removes)),
    )


def _local(operands: tuple[str, ...]) -> tuple[str, ...]:
    """Operands without addresses of other repositories."""
    return tuple(each for each in operands if "://" not in each and "@" not in each)
