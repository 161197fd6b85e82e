import msgspec

from toolwire.policy import Mode
from toolwire.policy.engine import rule
from toolwire.policy.locations import HiddenPaths, Locations
from toolwire.policy.rules import Rule, Verdict
from toolwire.policy.ruling import Ruling, Terms
from toolwire.tools.spec import Effect, Permit, SandboxSpec

GROUND = Locations(roots=("/w",), home="/home/u")
WRITING = SandboxSpec(level="workspace-write")
TERMS = Terms(locations=GROUND, sandbox=WRITING)


def shell(command: str, terms: Terms = TERMS) -> Ruling:
    return rule("run_shell_command", Effect.EXECUTE, (), {"command": command}, terms)


def allowing(words: str, **members: object) -> Terms:
    made = {"decision": "allow", "tool": "run_shell_command", "command": words.split(), **members}
    return msgspec.structs.replace(TERMS, rules=(msgspec.convert(made, Rule),))


def test_what_runs_unasked_is_the_text_that_was_proven():
    ruling = shell("ls  -la   'src'; head <a")
    assert ruling.decision is Verdict.ALLOW
    assert ruling.permit == Permit(command="'ls' '-la' 'src'; 'head' <'a'", sandbox=WRITING)


def test_what_a_person_approves_runs_as_they_saw_it_and_may_use_the_network():
    ruling = shell("npm install >../log 2>&1")
    assert ruling.decision is Verdict.ASK
    assert ruling.approved == Permit(
        sandbox=SandboxSpec(level="approved", network=True, writable=("/log",))
    )


def test_a_yes_to_other_rights_runs_outside_the_sandbox():
    assert shell("sudo apt install x").approved == Permit()


def test_plan_mode_confines_to_reading():
    terms = msgspec.structs.replace(TERMS, mode=Mode.PLAN)
    permit = shell("ls", terms).permit
    assert permit is not None
    assert permit.sandbox.level == "read-only"


def test_a_rule_may_open_the_network_or_the_sandbox():
    network = shell("npm install && ls", allowing("npm install", network=True)).permit
    outside = shell("npm install && ls", allowing("npm install", sandbox="off")).permit
    neither = shell("npm install && ls", allowing("npm install")).permit
    assert network is not None
    assert outside is not None
    assert neither is not None
    assert (network.sandbox.level, network.sandbox.network) == ("workspace-write", True)
    assert outside.sandbox == SandboxSpec()
    assert (neither.sandbox.level, neither.sandbox.network) == ("workspace-write", False)


def test_without_a_sandbox_nothing_is_confined():
    terms = msgspec.structs.replace(TERMS, sandbox=SandboxSpec())
    ruling = shell("npm install", terms)
    assert ruling.permit is not None
    assert ruling.permit.sandbox == SandboxSpec()
    assert ruling.approved == Permit()


def test_a_search_leaves_out_hidden_files_and_says_so():
    hidden = (HiddenPaths(".env", "credentials"),)
    locations = msgspec.structs.replace(GROUND, hidden_below=lambda folder, denied, links: hidden)
    permit = shell("rg x", msgspec.structs.replace(TERMS, locations=locations)).permit
    assert permit is not None
    assert permit.command == "'rg' '--no-config' 'x' '--glob=!.env'"
    assert permit.note == "Left out of the search: .env (credentials)."


def test_git_gets_its_protection_where_it_starts():
    permit = shell("env -i git log").permit
    assert permit is not None
    assert permit.command.startswith("'env' '-i' 'env' 'GIT_ALLOW_PROTOCOL=none'")


def test_known_programs_are_not_found_in_the_workspace():
    locations = msgspec.structs.replace(GROUND, search_path="/usr/bin:/bin")
    terms = msgspec.structs.replace(TERMS, locations=locations)
    permit = shell("ls", terms).permit
    assert permit is not None
    assert permit.environ == (("PATH", "/usr/bin:/bin"),)
    mixed = msgspec.structs.replace(allowing("npm test"), locations=locations)
    assert shell("npm test", mixed).decision is Verdict.ALLOW
    assert shell("npm test && ls", mixed).decision is Verdict.ASK
