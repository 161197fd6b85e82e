from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolwire.messages import CallKind
from toolwire.request import FreeformTool, ServerTool, ToolSpec
from toolwire.wire.names import NameRule, ToolNames, WireTool

CHAT = NameRule()
GEMINI = NameRule(63, allowed="a-zA-Z0-9_.:-", first="a-zA-Z_")
LONG = NameRule(128)
RULES = (CHAT, GEMINI, LONG)


def spec(name: str, namespace: str = "") -> ToolSpec:
    return ToolSpec(name=name, namespace=namespace)


@pytest.mark.parametrize(
    ("rule", "name", "accepted"),
    [
        (CHAT, "read_file-2", True),
        (CHAT, "2read", True),
        (CHAT, "a" * 64, True),
        (CHAT, "a" * 65, False),
        (CHAT, "", False),
        (CHAT, "math.hypot", False),
        (CHAT, "réad", False),
        (CHAT, "read\n", False),
        (GEMINI, "math.hypot:x", True),
        (GEMINI, "_x", True),
        (GEMINI, "2read", False),
        (GEMINI, "a" * 63, True),
        (GEMINI, "a" * 64, False),
        (LONG, "a" * 128, True),
        (LONG, "a" * 129, False),
    ],
)
def test_a_rule_says_which_names_it_takes(rule: NameRule, name: str, accepted: bool):
    assert rule.accepts(name) is accepted


def test_a_name_that_fits_stands_for_itself():
    names = ToolNames([spec("read_file")])
    assert names.wire_name("read_file") == "read_file"
    assert names.original("read_file") == WireTool("read_file")
    assert names.plain


def test_a_name_that_does_not_fit_gets_an_alias_and_comes_back():
    names = ToolNames([spec("math.hypot")])
    alias = names.wire_name("math.hypot")
    assert alias == "math_hypot_f236e3fd"
    assert names.original(alias) == WireTool("math.hypot")
    assert not names.plain


def test_an_alias_does_not_depend_on_the_other_tools():
    alone = ToolNames([spec("math.hypot")]).wire_name("math.hypot")
    others = [spec("math_hypot"), spec("x" * 99), spec("math:hypot"), spec("math.hypot")]
    assert ToolNames(others).wire_name("math.hypot") == alone


def test_names_that_fit_stay_whatever_comes_before_them():
    alias = ToolNames([spec("a.b")]).wire_name("a.b")
    names = ToolNames([spec("a.b"), spec(alias)])
    assert names.wire_name(alias) == alias
    assert names.wire_name("a.b") != alias
    assert names.original(names.wire_name("a.b")) == WireTool("a.b")


def test_a_name_of_the_past_that_is_not_offered_is_fitted_too():
    names = ToolNames([spec("now")])
    alias = names.wire_name("back.then")
    assert CHAT.accepts(alias)
    assert names.original(alias) == WireTool("back.then")


def test_an_unknown_name_stands_for_itself():
    assert ToolNames([spec("a")]).original("made up!") == WireTool("made up!")


def test_a_name_must_begin_as_the_rule_says():
    alias = ToolNames([spec("2do")], GEMINI).wire_name("2do")
    assert alias.startswith("t_2do_")
    assert GEMINI.accepts(alias)


def test_a_namespace_becomes_part_of_the_name_where_the_format_has_none():
    names = ToolNames([spec("add", "math"), spec("add")])
    assert names.wire_name("add", "math") == "math__add"
    assert names.wire_name("add") == "add"
    assert names.original("math__add") == WireTool("add", "math")


def test_a_namespace_named_like_its_tool_adds_nothing():
    names = ToolNames([spec("weather")])
    assert names.wire_name("weather", "weather") == "weather"
    assert names.original("weather") == WireTool("weather")
    alone = ToolNames([spec("weather", "weather")])
    assert alone.wire_name("weather", "weather") == "weather"
    assert alone.original("weather") == WireTool("weather", "weather")


def test_a_choice_finds_the_tool_in_its_namespace():
    names = ToolNames([spec("add", "math"), spec("sub", "math"), spec("sub")])
    assert names.chosen_name("add") == "math__add"
    assert names.chosen_name("sub") == "sub"
    assert names.chosen_name("unknown") == "unknown"


@pytest.mark.parametrize("turned", [False, True])
def test_a_tool_without_a_namespace_keeps_its_name_before_one_with(turned: bool):
    tools = [spec("add", "math"), spec("math__add")]
    names = ToolNames(reversed(tools) if turned else tools)
    assert names.wire_name("math__add") == "math__add"
    assert names.original(names.wire_name("add", "math")) == WireTool("add", "math")


@pytest.mark.parametrize("turned", [False, True])
def test_tools_that_read_alike_with_their_namespaces_keep_their_aliases_in_any_order(turned: bool):
    tools = [spec("b__c.d", "a"), spec("c.d", "a__b")]
    names = ToolNames(reversed(tools) if turned else tools)
    one, other = names.wire_name("b__c.d", "a"), names.wire_name("c.d", "a__b")
    assert (names.original(one).namespace, names.original(other).namespace) == ("a", "a__b")
    assert one == ToolNames([tools[0]]).wire_name("b__c.d", "a")
    assert other == ToolNames([tools[1]]).wire_name("c.d", "a__b")


@pytest.mark.parametrize("turned", [False, True])
def test_a_name_may_stand_in_several_namespaces_where_the_format_keeps_them(turned: bool):
    tools = [spec("add", "math"), spec("add"), spec("add", "music")]
    names = ToolNames(reversed(tools) if turned else tools, keep_namespaces=True)
    assert {names.wire_name("add", space) for space in ("", "math", "music")} == {"add"}
    assert names.original("add") == WireTool("add")


def test_a_tool_offered_twice_is_one_tool():
    assert ToolNames([spec("add"), spec("add")]).plain


def test_a_freeform_tool_is_marked_where_it_has_to_be_wrapped():
    tools = [FreeformTool(name="patch"), spec("add")]
    wrapped = ToolNames(tools, wrap_freeform=True)
    assert wrapped.original("patch") == WireTool("patch", wrapped=True)
    assert wrapped.kind("patch") is CallKind.FREEFORM
    assert wrapped.kind("add") is None
    assert wrapped.kind("unknown") is None
    assert ToolNames(tools).original("patch") == WireTool("patch")


def test_tools_the_vendor_runs_take_no_name():
    server = ServerTool(dialect="gemini", kind="google_search", data="{}")
    assert ToolNames([server]).plain


names_of_tools = st.one_of(
    st.text(max_size=140),
    st.text("ab._:-", min_size=1, max_size=6),
    st.sampled_from(["a__b", "a", "b", "a_b", "a.b", "a:b", "x" * 64, "x" * 65, "x" * 129]),
)
namespaces = st.sampled_from(["", "", "a", "a__b", "näh"])


@given(
    st.lists(st.tuples(namespaces, names_of_tools), unique=True), st.sampled_from(RULES), st.data()
)
def test_every_set_of_names_is_accepted_distinct_and_reversible(
    pairs: list[tuple[str, str]], rule: NameRule, data: st.DataObject
):
    # Such a namespace says that the tool of this very name was loaded late.
    assume(not any(space == name and ("", name) in pairs for space, name in pairs))
    offered = data.draw(st.integers(0, len(pairs)))
    names = ToolNames([spec(name, space) for space, name in pairs[:offered]], rule)
    wire = {(space, name): names.wire_name(name, space) for space, name in pairs}
    assert all(map(rule.accepts, wire.values()))
    assert len(set(wire.values())) == len(pairs)
    for (space, name), wire_name in wire.items():
        assert names.original(wire_name) == WireTool(name, space)
        assert names.wire_name(name, space) == wire_name


@given(st.lists(names_of_tools, unique=True), st.sampled_from(RULES), st.randoms())
def test_names_do_not_depend_on_the_order_of_the_tools(
    wanted: list[str], rule: NameRule, chance: Random
):
    shuffled = list(wanted)
    chance.shuffle(shuffled)
    one, other = (ToolNames(map(spec, order), rule) for order in (wanted, shuffled))
    assert [one.wire_name(name) for name in wanted] == [other.wire_name(name) for name in wanted]
