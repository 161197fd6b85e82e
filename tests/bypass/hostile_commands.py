"""Hostile commands: hand-written ones from the text files, and products of tables."""

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tests.bypass.world import MARK, OUTSIDE, PORT, REPOSITORIES

_FILL = {
    "{run}": str(MARK),
    "{out}": str(OUTSIDE / "pwned"),
    "{url}": f"http://127.0.0.1:{PORT}/",
}

# Where bash expands; the payload takes the place of @.
_CONTEXTS = (
    ": @",
    "echo @",
    'echo "@"',
    "echo \"a'@'b\"",
    "echo 'a'\"@\"'b'",
    "echo \\\\@",
    'echo "\\\\@"',
    ": \"${x-'@'}\"",
    ': "${x-"@"}"',
    ": ${x:-@}",
    ': "${x:+y}${HOME:+@}"',
    ': "${HOME#@}"',
    ': "${HOME%%@}"',
    ': "${HOME/@/}"',
    ': "${HOME/h/@}"',
    ': "${HOME^^@}"',
    ": ${x?@}",
    ": ${a[@]}",
    ": $((@))",
    ": $[@]",
    "((@))",
    "[[ -n @ ]]",
    '[[ "@" ]]',
    "[[ a == @ ]]",
    "[[ a =~ @ ]]",
    "[ @ ]",
    "test @",
    "x=@",
    'x="@"',
    "x=@ ls",
    "x=a:@ ls",
    "a=(@)",
    'a=("@")',
    "declare x=@",
    "export x=@",
    "readonly x=@",
    "local x=@",
    "let @",
    "cat <<< @",
    'cat <<< "@"',
    "cat <<E\n@\nE",
    "cat <<E\n'@'\nE",
    'cat <<E\n"@"\nE',
    "cat <<-E\n\t@\n\tE",
    "cat <<E\n\\\\@\nE",
    "cat < @",
    "cat > @",
    "cat 2> @",
    "ls >& @",
    "ls | cat @",
    "ls @",
    "ls -- @",
    "ls ~/@",
    "ls {a,@}",
    "ls a{@,b}c",
    "ls *@*",
    "cd @",
    "ls && echo @",
    "ls || echo @; echo @",
    "ls; echo @",
    "ls\necho @",
    "ls &\necho @",
    "echo \\\n@",
    "echo a\\\nb @",
    "echo #\n echo @",
    "(echo @)",
    "{ echo @; }",
    "! echo @",
    "time echo @",
    "if echo @; then :; fi",
    "while echo @; do break; done",
    "for i in @; do :; done",
    "case @ in *) :;; esac",
    "case a in @) :;; esac",
    "select i in @; do break; done < a.txt",
    "f() { echo @; }; f",
    "coproc echo @",
    "eval echo @",
    "printf '%s' @",
    'printf "@"',
    "git log @",
    'git log --grep="@"',
    "grep -rn @ src",
    'grep "@" a.txt',
    "find . -name @",
    'find . -name "@"',
    "sed -n @ a.txt",
    'sed "@" a.txt',
    'awk "@" a.txt',
    'jq "@" data.json',
    "head -n @ a.txt",
    'cat "a.txt" "@"',
    "cat a.txt@",
    'echo $"@"',
    "echo $'a'@",
    "echo \"$(echo '@')@\"",
    '"@"',
    "@",
    "ls # a\\\n@",
    "ls #'\necho @ #'",
    "env echo @",
    "command echo @",
    "timeout 5 echo @",
    "echo a | xargs echo @",
)
_PAYLOADS = (
    "$({run})",
    "`{run}`",
    "<({run})",
    ">({run})",
    "${y:-$({run})}",
    "${y:=`{run}`}",
    "${b[$({run})]}",
    "$((b[$({run})]))",
    "$(\n{run}\n)",
    "$(: ; {run} #\n)",
    "`: \\`{run}\\``",
)
_READERS = (
    "cat @",
    "head -5 @",
    "tail -n 3 @",
    "nl @",
    "wc -l @; cat @",
    "grep . @",
    "grep -n '' a.txt @",
    "rg '' @",
    "sed -n 1,9p @",
    "sed '' a.txt @",
    "awk '{print}' @",
    "awk 1 a.txt @",
    "sort @",
    "uniq @",
    "cut -c1- @",
    "tac @",
    "rev @",
    "od -c @",
    "xxd @",
    "base64 @",
    "diff a.txt @",
    "comm a.txt @",
    "paste a.txt @",
    "fold @",
    "column @",
    "tr a a < @",
    "cat < @",
    "cat -n < @ | head",
    "jq -R . @",
    "strings @",
    "hexdump -C @",
    "more @",
    "less @",
    "git diff --no-index a.txt @",
    "git grep --no-index '' @",
    "find @ -exec cat {} +",
    "echo @ | xargs cat",
    "ls && cat @",
    "cd src && cat ../@",
    "true; cat a.txt @ 2>/dev/null",
)
_READ_PATHS = (
    ".env",
    "./.env",
    "src/../.env",
    "/srv/project/.env",
    "$PWD/.env",
    '"$PWD"/.env',
    ".en[v]",
    ".e*",
    "'.env'",
    ".e\\nv",
    "link-env",
    "link-secret",
    "./link-chain",
    "link-up",
    "link-folder/secret.txt",
    "link-home/.netrc",
    "link-proc/cwd/.env",
    "../outside/secret.txt",
    "/srv/outside/secret.txt",
    "/srv/./outside//secret.txt",
    "~/.netrc",
    "~dev/.ssh/id_rsa",
    "$HOME/.aws/credentials",
    "~/.toolwire/credentials.json",
    "/proc/self/cwd/.env",
    "/proc/self/root/srv/outside/secret.txt",
    "/dev/fd/../../../srv/outside/secret.txt",
    "deploy/id_ed25519",
)
_WRITERS = (
    "echo x > @",
    "echo x >> @",
    "echo x >| @",
    "echo x &> @",
    "cat a.txt > @",
    "ls 2> @",
    "> @",
    "touch @",
    "mkdir -p @",
    "cp a.txt @",
    "cp -f a.txt @",
    "cp -r src @",
    "mv a.txt @",
    "tee @ < a.txt",
    "cat a.txt | tee -a @",
    "sed -i s/a/b/ @",
    "sed -n 'w @' a.txt",
    "sort -o @ a.txt",
    "uniq a.txt @",
    "dd if=a.txt of=@",
    "install a.txt @",
    "ln -sf a.txt @",
    "ln -f a.txt @",
    "truncate -s 0 @",
    "awk '{print > \"@\"}' a.txt",
    "xxd a.txt @",
    "git diff --output=@",
    "tar cf @ a.txt",
    "rm -f @",
    "cd src && echo x > ../@",
)
_WRITE_PATHS = (
    "/srv/outside/pwned",
    "../outside/pwned",
    "/srv/outside/notes.txt",
    "link-notes",
    "link-new",
    "link-folder/pwned",
    "link-chain",
    ".git/hooks/post-commit",
    ".git/config",
    "./.git/config",
    "src/../.git/config",
    ".git/hooks/new",
    "nested/.git/config",
    "link-hook",
    "link-config",
    ".env",
    "link-env",
    ".toolwire/config.toml",
    "~/.bashrc",
    "$HOME/.profile",
    "~dev/.bash_aliases",
    "/proc/self/cwd/.git/config",
    "/tmp/pwned",
)
_WRAPPERS = (
    "env @",
    "command @",
    "nice @",
    "timeout 5 @",
    "nohup @",
    "exec @",
    "builtin command @",
    "time @",
    "stdbuf -oL @",
    "setsid -w @",
    "sudo @",
    "env -i PATH=/usr/bin:/bin HOME=/home/dev @",
    "LC_ALL=C @",
    "X=1 @",
    "! @",
    "( @ )",
    "{ @; }",
    "true && @",
    "false || @",
    "ls; @",
    "ls\n@",
    "ls | @",
    "@ | cat",
    "@ 2>/dev/null",
    "@ > /dev/null 2>&1",
    "@ &",
    "if @; then :; fi",
    "for i in 1; do @; done",
    "cd . && @",
    "cd src && cd .. && @",
    "echo x | xargs -I% @",
    "find . -maxdepth 0 -exec @ \\;",
    "xargs -a /dev/null -r @; @",
    "eval '@'",
    "\\@",
    "/usr/bin/@",
)
# Between two commands, or hidden in a word: only what bash itself takes as an end counts.
_JOINTS = (
    "\n",
    "\r\n",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    ";\n",
    "\n\n",
    " #\n",
    " # '\n",
    ' # "\n',
    " #\\\n",
    " # <<E\n",
    "\t;\t",
    "&\n",
    "\\\n;",
    "\\\n\n",
    " \\\r\n",
    " '\n';",
    ' "\n";',
    " $'\\'';",
    " '\\';",
    ' "\\\\";',
    " $'\\\\';",
    " a#b;",
    " \\#;",
    " ''#;",
    " $#;",
    " ${#};",
    " {;",
    " };",
    " !;",
    " [;",
    " ]];",
    " -- ;",
    " <<''\n\n",
    " <<E\nE\n",
    " <<'E'\n'E'\nE\n",
    " <<-E\n\t\tE\n",
    ' <<"E\\\\"\nE\\\n',
    " <<E\\ F\nE F\n",
    " <<E#\nE#\n",
    " <<#\n#\n",
    " 2<<E <&2\nE\n",
    " <<<'\n';",
    " <<< a#;",
    " \u00a0;",
    "\u2028\n",
    "\x0b;",
    "\x0c\n",
    " \x1b;",
    "\u200b\n",
    "\ufeff;",
    " \u0085\n",
    " \x7f;",
    " \x01;",
    " \u202e;",
)
_IN_REPOSITORIES = (
    "git -C @ status",
    "git -C @ diff",
    "git -C @ log -p",
    "git -C @ show HEAD",
    "git -C @ ls-files -m",
    "git -C @ blame file.txt",
    "git -C @ grep x",
    "git -C @ describe --always --dirty",
    "git -C @/deep/er status",
    "cd @ && git status",
    "cd @ && git diff",
    "cd @; git log -p",
    "cd @/deep && git status --short",
    "cd @/deep/er && git diff HEAD",
    "(cd @ && git stash list; git diff --stat)",
    "cd @\ngit status",
)
_SECOND = (
    "{run}",
    "touch PWNED",
    "cat .env",
    "cat /srv/outside/secret.txt",
    "$({run})",
)


def hostile_commands() -> tuple[str, ...]:
    """Every hostile command, each once, in a fixed order."""
    return tuple(dict.fromkeys(_fill(text) for text in (*written(), *_generated())))


def written() -> Iterator[str]:
    """The hand-written ones, with their placeholders."""
    for name in ("substitutions.txt", "programs.txt", "tricks.txt"):
        yield from _blocks(Path(__file__).with_name("hostile") / name)


def _generated() -> Iterator[str]:
    for context, payload in product(_CONTEXTS, _PAYLOADS):
        yield context.replace("@", payload)
    for reader, path in product(_READERS, _READ_PATHS):
        yield reader.replace("@", path)
    for writer, path in product(_WRITERS, _WRITE_PATHS):
        yield writer.replace("@", path)
    for joint, second in product(_JOINTS, _SECOND):
        yield f"ls{joint}{second}"
        yield f"echo 'a'{joint} {second}"
    for command, kind in product(_IN_REPOSITORIES, REPOSITORIES):
        yield command.replace("@", f"repos/{kind}")
    yield from _long()
    yield from _wrapped()


def _long() -> Iterator[str]:
    for size in (1000, 30_000, 40_000, 130_000):
        yield f"echo {'a' * size}; {{run}}"
        yield f"echo '{' ' * size}'; {{run}}"
        yield f"ls {'# ' * (size // 2)}\n{{run}}"
        yield f"echo {'a ' * (size // 2)}$({{run}})"
    for depth in (50, 400, 3000):
        yield f"echo {'$(echo ' * depth}$({{run}}){')' * depth}"
        yield f"{'(' * depth}{{run}}{')' * depth}"
        yield "ls; " * depth + "{run}"
        yield f"echo {'${x:-' * depth}$({{run}}){'}' * depth}"


def _wrapped() -> Iterator[str]:
    chance = random.Random(12)
    for text in _blocks(Path(__file__).with_name("hostile") / "programs.txt"):
        if "\n" not in text:
            yield chance.choice(_WRAPPERS).replace("@", text)


def _blocks(path: Path) -> Iterator[str]:
    """Texts of a file, one a line; a line that starts with a tab continues the one before."""
    text = ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("# "):
            continue
        if line.startswith("\t"):
            text += f"\n{line[1:]}"
            continue
        if text:
            yield text
        text = line
    if text:
        yield text


def _fill(text: str) -> str:
    for name, value in _FILL.items():
        text = text.replace(name, value)
    return text
