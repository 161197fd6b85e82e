import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.policy.locations import Locations
from toolwire.policy.rule_file import dump, load, of_lists, with_absolute_paths
from toolwire.policy.rules import Rule, Verdict, path_matches
from toolwire.tools.spec import Effect

FILE = """
allow = ["read_file", "run_shell_command(git log)", "ShellTool(npm run test:*)"]
deny = ["run_shell_command(rm -rf)"]
ask = ["web_fetch"]

[[rule]]
decision = "allow"
tool = "write_file"
path = "build/**"
modes = ["default", "plan"]

[[rule]]
decision = "deny"
command = "git push --force"
reason = "Ask the team first."

[[rule]]
decision = "ask"
server = "mail"
effect = "network"
arguments = { to = "*@example.com" }
"""


def test_a_rule_file_is_read():
    assert load(FILE, "rules.toml") == (
        Rule(
            decision=Verdict.DENY,
            tool="run_shell_command",
            command=("rm", "-rf"),
            origin="rules.toml",
        ),
        Rule(decision=Verdict.ASK, tool="web_fetch", origin="rules.toml"),
        Rule(decision=Verdict.ALLOW, tool="read_file", origin="rules.toml"),
        Rule(
            decision=Verdict.ALLOW,
            tool="run_shell_command",
            command=("git", "log"),
            origin="rules.toml",
        ),
        Rule(
            decision=Verdict.ALLOW,
            tool="run_shell_command",
            command=("npm", "run", "test:*"),
            origin="rules.toml",
        ),
        Rule(
            decision=Verdict.ALLOW,
            tool="write_file",
            path="build/**",
            modes=(Mode.DEFAULT, Mode.PLAN),
            origin="rules.toml",
        ),
        Rule(
            decision=Verdict.DENY,
            tool="run_shell_command",
            command=("git", "push", "--force"),
            reason="Ask the team first.",
            origin="rules.toml",
        ),
        Rule(
            decision=Verdict.ASK,
            server="mail",
            effect=Effect.NETWORK,
            arguments=(("to", "*@example.com"),),
            origin="rules.toml",
        ),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("allow = [", "unreadable rule file rules.toml"),
        ('alow = ["x"]', "unknown field `alow`"),
        ('[[rule]]\ndecision = "perhaps"', "perhaps"),
        ('[[rule]]\ntool = "x"', "decision"),
        ('allow = ["run_shell_command(git log"]', "the bracket is not closed"),
        ('allow = ["run_shell_command(git log; ls)"]', "is not a plain command"),
        ('allow = ["run_shell_command($x)"]', "is not a plain command"),
        ('allow = ["run_shell_command(ls > x)"]', "is not a plain command"),
        ('[[rule]]\ndecision = "allow"\ncommand = "git log | sh"', "is not a plain command"),
        ('[[rule]]\ndecision = "allow"\ncommand = ""', "is not a plain command"),
        ('[[rule]]\ndecision = "allow"\ncommand = []', "is not a plain command"),
        ('allow = ["run_shell_command(X=1 ls)"]', "is not a plain command"),
        ('allow = ["run_shell_command(# ls)"]', "is not a plain command"),
        ('allow = ["run_shell_command()"]', "is not a plain command"),
    ],
)
def test_a_rule_file_that_cannot_be_read_is_an_error(text: str, complaint: str):
    with pytest.raises(BadInput, match=complaint.replace("`", ".")):
        load(text, "rules.toml")


def test_a_list_entry_with_a_star_is_the_whole_tool():
    (rule,) = of_lists(allowed=["run_shell_command(*)"])
    assert rule == Rule(decision=Verdict.ALLOW, tool="run_shell_command", origin="settings")


def test_relative_paths_are_of_the_workspace():
    rules = [Rule(decision=Verdict.ALLOW, path=each) for each in ("a/**", "~/b", "/c")]
    locations = Locations(roots=("/w/p",), home="/home/u")
    assert [rule.path for rule in with_absolute_paths(rules, locations)] == [
        "/w/p/a/**",
        "/home/u/b",
        "/c",
    ]


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/w/*", "/w/a", True),
        ("/w/*", "/w/a/b", False),
        ("/w/**", "/w/a/b", True),
        ("/w/**/x", "/w/x", True),
        ("/w/**/x", "/w/a/b/x", True),
        ("/w/?.py", "/w/a.py", True),
        ("/w/a.py", "/w/aXpy", False),
        ("/w/a", "/w/a\n", False),
    ],
)
def test_path_patterns(pattern: str, path: str, fits: bool):
    assert path_matches(pattern, path) is fits


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    st.builds(
        Rule,
        decision=st.sampled_from(Verdict),
        tool=st.just("some_tool"),
        server=texts,
        effect=st.sampled_from(Effect),
        command=st.lists(texts, max_size=3).map(tuple),
        path=texts,
        arguments=st.dictionaries(texts, texts, max_size=3).map(lambda given: tuple(given.items())),
        modes=st.lists(st.sampled_from(Mode), max_size=2).map(tuple),
        reason=texts,
        origin=st.just("saved"),
    )
)
def test_a_saved_rule_is_read_back_as_it_was(rule: Rule):
    assert load(dump(rule), "saved") == (rule,)
