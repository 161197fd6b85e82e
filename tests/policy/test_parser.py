import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.policy.shell import Script, Unproven, prove

PROVEN = [
    ("ls -la", "'ls' '-la'"),
    ("ls *.py", "'ls' *'.py'"),
    ('cat ~/x "$HOME/y z" ${HOME}', "'cat' ~/'x' ~/'y z' ~"),
    ("a && b || c; d\ne | f", "'a' && 'b' || 'c'; 'd'; 'e' | 'f'"),
    ("(cd a; ls) | wc # comment", "('cd' 'a'; 'ls') | 'wc'"),
    ("! grep -q x y", "! 'grep' '-q' 'x' 'y'"),
    ("a 2>/dev/null >&2 <in >>out", "'a' 2>'/dev/null' >&2 <'in' >>'out'"),
    ("a &>x &>>y", "'a' >'x' 2>&1 >>'y' 2>&1"),
    ("a <<'E'\n$(x) `y`\nE\nb", "'a' <<<'$(x) `y`'; 'b'"),
    ("a <<E\nplain\nE", "'a' <<<'plain'"),
    ("a <<E\nE", "'a' </dev/null"),
    ("a <<< 'b c'", "'a' <<<'b c'"),
    ("echo a{b,c}d {} {x}", "'echo' 'abd' 'acd' '{}' '{x}'"),
    ("echo 'a'\"b\"\\c$'\\t'", "'echo' 'abc\t'"),
    ('echo it\\\'s "a $ b" $', "'echo' 'it'\\''s' 'a $ b' '$'"),
    ("X=1 LC_ALL=C ls", "X='1' LC_ALL='C' 'ls'"),
    ("git log \\\n  --oneline", "'git' 'log' '--oneline'"),
    ("find . -exec grep x {} \\;", "'find' '.' '-exec' 'grep' 'x' '{}' ';'"),
    ("a#b #c", "'a#b'"),
    ("a >| b", "'a' >|'b'"),
    ("", ""),
    (" \n# only a comment\n", ""),
]
OUTSIDE = [
    "a <&0&>>f",
    "a >&2&>f",
    "p {,}~root",
    "p a{b,c}~",
    "? a",
    "p* a",
    "who$\\\nami",
    'echo "$\\\nx"',
    "< {x}>f a",
    "cat > {x}<f",
    "echo $x",
    'echo "$x"',
    "echo ${x}",
    "echo $(a)",
    "echo `a`",
    'echo "`a`"',
    "echo $((1))",
    "echo $[1]",
    "((1))",
    "[[ a ]]",
    "a &",
    "a |& b",
    "a <(b)",
    "a >(b)",
    "a <<E\n$x\nE",
    "a <<E\n\\x\nE",
    "a <<-E\nE",
    "a <<E",
    "a <>b",
    "a 3>b",
    "{x}>b a",
    "a >&b",
    "a > *",
    "f() { a; }",
    "function f { a; }",
    "if a; then b; fi",
    "for i in a; do b; done",
    "{ a; }",
    "case a in b) c;; esac",
    "while a; do b; done",
    "time a",
    "coproc a",
    "x=1",
    "x=(1)",
    "x[0]=1 a",
    "x+=1 a",
    "a=~/b c",
    "echo a=~",
    "echo ~user",
    'echo "$HOME"x',
    "echo a[b]c",
    "echo {1..3}",
    "echo {a,{b,c}}",
    "{a,b}",
    "a '",
    'a "',
    "a \\",
    "a (b)",
    "a )",
    "(a",
    "()",
    "a ;; b",
    "a && ",
    "&& a",
    "| a",
    "a || || b",
    "a\x00b",
    "a\rb",
    "a\u200bb",
    "a\u00a0b",
    'a $"b"',
    "!",
    "a > ",
    "a >#b",
    ": \"${x-'$(touch f)'}\"",
    "echo $'\\xff'",
    "x" * 40_000,
]


@pytest.mark.parametrize(("text", "written"), PROVEN)
def test_a_text_in_the_grammar_is_written_anew_with_every_word_quoted(text: str, written: str):
    script = prove(text)
    assert isinstance(script, Script), script
    assert script.text == written


@pytest.mark.parametrize("text", OUTSIDE, ids=lambda text: ascii(text[:40]))
def test_everything_else_is_unproven_with_a_reason(text: str):
    script = prove(text)
    assert isinstance(script, Unproven)
    assert script.reason


@given(st.text(alphabet="ab ;|&$(){}<>'\"`\\\n#=[]!*?~E-1,/", max_size=50))
@settings(max_examples=600)
def test_what_was_written_anew_is_read_as_the_same(text: str):
    script = prove(text)
    if isinstance(script, Script):
        again = prove(script.text)
        assert isinstance(again, Script)
        assert again.text == script.text


@given(st.text(max_size=60))
def test_any_text_is_read_without_failing(text: str):
    prove(text)
