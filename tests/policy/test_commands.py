import shlex

import pytest

from toolwire.policy.shell import Script, prove
from toolwire.policy.shell.command_ruling import leaving_out
from toolwire.policy.shell.commands import effects_of, inner_commands
from toolwire.policy.shell.effects import NOTHING, Effects
from toolwire.policy.shell.ruling import with_nulls


def of(text: str) -> Effects:
    return effects_of(tuple(shlex.split(text)))


@pytest.mark.parametrize(
    "text",
    [
        "echo -n $x",
        "true",
        "printf %s\\n a",
        "[ -f a ]",
        "set -euo pipefail",
        "date +%F",
        "python3 --version",
        "node -v",
        "awk 'NR>1 {s += $3} END {print s}'",
        "jq .a",
        "tr a b",
    ],
)
def test_a_command_that_only_computes_does_nothing(text: str):
    assert of(text) == NOTHING


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("cat a b", Effects(reads=("a", "b"))),
        ("cat -", Effects()),
        ("head -5 a", Effects(reads=("a",))),
        ("head -n5 a", Effects(reads=("a",))),
        ("/usr/bin/cat a", Effects(reads=("a",))),
        ("sort -o b a", Effects(reads=("a",), writes=("b",))),
        ("sort -ob a", Effects(reads=("a",), writes=("b",))),
        ("sort --output=b a", Effects(reads=("a",), writes=("b",))),
        ("uniq a b", Effects(reads=("a",), writes=("b",))),
        ("xxd a b", Effects(reads=("a",), writes=("b",))),
        ("tee -a b", Effects(writes=("b",))),
        ("cp a b", Effects(reads=("a",), writes=("b", "b/a"))),
        ("cp -t d x/a", Effects(reads=("x/a",), writes=("d", "d/a"))),
        ("rm -rf a", Effects(removes=("a",))),
        ("mv a d", Effects(removes=("a",), writes=("d", "d/a"))),
        ("sed -n 1,5p a", Effects(reads=("a",))),
        ("sed -i.bak s/a/b/ f", Effects(reads=("f",), writes=("f", "f.bak"))),
        ("grep x a", Effects(reads=("a",))),
        ("grep -r x", Effects(trees=(".",))),
        ("grep -R x d", Effects(trees=("d",), follows=True)),
        ("grep -f p a", Effects(reads=("p", "a"))),
        ("find a -newer b", Effects(reads=("a", "b"))),
        ("find -L a", Effects(reads=("a",), trees=("a",), follows=True)),
        ("find . -exec wc {} +", Effects(reads=(".",), runs=(("wc", "{}"),))),
        ("tar tf a.tar", Effects(reads=("a.tar",))),
        ("cd a", Effects(folder="a")),
        ("timeout 5 ls a", Effects(runs=(("ls", "a"),), runs_at=2)),
        ("env A=1 ls", Effects(runs=(("ls",),), runs_at=2, assigns=(("A", "1"),))),
    ],
)
def test_a_known_command_does_what_its_words_say(text: str, effects: Effects):
    assert of(text) == effects


@pytest.mark.parametrize(
    "text",
    [
        "sort --ou=b a",
        "sort --compress-program=x a",
        "ls --unknown",
        "printf %n PATH",
        "printf -v a b",
        "[ -v x ]",
        "test -R x",
        "less +!id a",
        "ps eww",
        "date -f a",
        "find . -delete",
        "find . -ok rm {} ;",
        "find . -execdir x ;",
        "sed e",
        "sed 's/a/b/e' f",
        "sed 'w x' f",
        "sed -f x f",
        "awk 'BEGIN{system(\"id\")}'",
        "awk '{print > \"f\"}'",
        'awk \'/"/ {print > "f"} /"/\'',
        "awk 'BEGIN{ARGV[1]=\"x\"}'",
        "awk -f x",
        "jq -f x",
        "jq 'import \"a\" as a; .'",
        "rg --pre x y",
        "git diff --output=x",
        "git diff --outp=x",
        "git grep -O x",
        "git log --help",
        "git -c a=b log",
        "git --git-dir=x log",
        "git diff --no-index a b",
        "git blame --contents x y",
        "git ls-remote ext::x --upload-pack=y",
        "git clone ext::x",
        "git submodule foreach x",
        "git clean -fd",
        "python3 -c x",
        "python3 -",
        "python3",
        "python3 /dev/fd/0",
        "python3 -m timeit x",
        "node -e x",
        "node --import data:x a.js",
        "bash a.sh -c".replace("a.sh ", "-x "),
        "ssh -oProxyCommand=x h",
        "ssh-agent x",
        "start-stop-daemon x",
        "sg x -c y",
        "capsh x",
        "make -f -",
        "make SHELL=x",
        "make --eval=x",
        "tar xf a",
        "tar --to-command=x -xf a",
        "curl -K x",
        "curl -H @x u",
        "curl --etag-save x u",
        "curl file:///x",
        "chmod --reference=a b",
        "chmod -R 777 .",
        "md5sum -c a",
        "strings @a",
        "xargs -I{} x {}",
        "eval x",
        "exec x",
        "trap x EXIT",
        "read x",
        "export X=1",
        "sqlite3 x.db",
        "sqlite3 x.db .shell",
        "docker run x",
    ],
)
def test_an_option_that_is_not_known_or_code_is_opaque(text: str):
    assert of(text).opaque


@pytest.mark.parametrize(
    "text", ["npm test", "make all", "python3 a.py", "pytest -q", "./run.sh", "curl u", "git push"]
)
def test_what_runs_or_changes_more_needs_a_permission(text: str):
    effects = of(text)
    assert not effects.opaque
    assert effects.changes or not effects.known


@pytest.mark.parametrize(
    "text",
    ["git status", "git log -1", "git diff", "git show HEAD:a", "git blame a", "git -C s log"],
)
def test_git_that_reads_starts_nothing_of_the_repository(text: str):
    effects = of(text)
    assert effects.words is not None
    assert "core.fsmonitor=false" in effects.words
    assert ("GIT_ALLOW_PROTOCOL", "none") in effects.environ
    assert effects.repository


def test_every_command_inside_a_command_is_found():
    words = ("sudo", "-u", "x", "env", "A=1", "bash", "-c", "rm a; timeout 5 ls")
    names = [found[0] for found in inner_commands(words)]
    assert names == ["sudo", "env", "bash", "rm", "timeout", "ls"]


def test_names_on_their_way_to_xargs_cannot_become_other_words():
    found = with_nulls(("find", "src", "-name", "*.py"), ("xargs", "grep", "x"))
    assert found is not None
    assert found.producer == ("find", "src", "(", "-name", "*.py", ")", "-print0")
    assert found.words == ("xargs", "-0", "grep", "x")
    listed = with_nulls(("git", "ls-files"), ("xargs", "wc", "-l"))
    assert listed is not None
    assert listed.words == ("xargs", "-0", "wc", "-l", "--")
    assert with_nulls(("echo", "a"), ("xargs", "cat")) is None
    assert with_nulls(("find", "."), ("xargs", "-I{}", "cat", "{}")) is None


def test_a_search_leaves_out_what_may_not_be_read():
    assert leaving_out(("rg", "-g", ".env", "x"), (".env",)) == (
        *("rg", "-g", ".env", "x"),
        "--glob=!.env",
    )
    assert leaving_out(("grep", "-r", "x", "--", "d"), ("a/.env",)) == (
        *("grep", "-r", "x", "--exclude=.env", "--exclude-dir=.env"),
        *("--", "d"),
    )
    assert leaving_out(("find", ".", "-type", "f"), ("k.pem",)) == (
        *("find", ".", "!", "-name", "k.pem", "!", "-path", "*/k.pem/*"),
        *("(", "-type", "f", ")"),
    )
    assert leaving_out(("diff", "-r", "a", "b"), ("k.pem",)) is None


def test_a_quoted_star_stays_quoted_beside_a_pattern():
    script = prove("ls a?\"b *\"'c'")
    assert isinstance(script, Script)
    assert script.text == "'ls' 'a'?'b *c'"


@pytest.mark.parametrize(
    "text",
    [
        "git log --format --output=x",
        "npm --omit --script-shell=x test",
        "sort -k --output=x a",
        "timeout -k --foreground 5 ls",
        "head -n --version",
    ],
)
def test_a_value_that_looks_like_an_option_is_not_known_to_be_one(text: str):
    assert of(text).opaque or of(text).writes


def test_a_negative_number_is_a_value():
    assert of("head -n -5 a") == Effects(reads=("a",))
