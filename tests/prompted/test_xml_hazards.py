import random
from time import process_time

import pytest

from tests.prompted.test_xml_parser import CALL, written, wrote
from tests.prompted.xml_reading import TOOLS, arguments, read
from toolwire.messages import Text
from toolwire.prompted.xml.parser import XmlLimits
from toolwire.prompted.xml.values import wrapped

# One test for each row of the known hazards of parsers for this format.


def cost(text: str) -> float:
    begun = process_time()
    read(list(text))
    return process_time() - begun


@pytest.mark.parametrize(
    "unit",
    ["<", "x", " ", "\n", "</content>", "<path>", "`", "]]>", "</content>\n<path>", "</content> <"],
)
def test_reading_character_by_character_is_linear(unit: str):
    head = "<write_to_file>\n<content>"
    small, large = (head + unit * (size // len(unit)) for size in (5_000, 40_000))
    assert cost(large) < 8 * 4 * max(cost(small), 0.005)


def test_a_mention_in_text_or_code_runs_nothing():
    text = f"The tag <read_file><path>a</path></read_file> and\n```\n{CALL}\n```"
    assert read(text).message.parts == (Text(text),)


def test_content_with_parameter_tags_does_not_overwrite_parameters():
    content = "<path>evil</path>\n<command>rm</command>\n<line_count>7</line_count>"
    assert read(wrote(content)).said == written(content)


def test_free_text_of_every_tool_ends_at_its_last_closing_tag():
    command = "echo '</command>' && cat <<E\n</command>\nE"
    text = f"<execute_command>\n<command>{command}</command>\n<cwd>x</cwd>\n</execute_command>"
    assert read(text).said == [("execute_command", {"command": command, "cwd": "x"})]
    old, new = "a</old_string>b", "c</new_string>\n<d>"
    text = f"<edit>\n<old_string>{old}</old_string>\n<new_string>{new}</new_string>\n</edit>"
    assert read(text).said == [("edit", {"old_string": old, "new_string": new})]


def test_content_keeps_its_inner_line_ends_and_other_parameters_are_trimmed():
    text = wrote("\n  a\n").replace("a.md", " a.md\n")
    assert read(text).said == written("\n  a\n")


def test_too_much_is_an_explicit_error():
    large = read(wrote("x" * 200_000))
    assert large.said == written("x" * 200_000)
    cut = read(wrote("x" * 200_000), limits=XmlLimits(call=100_000))
    assert [notice.kind for notice in cut.notices] == ["too_large"]
    assert not cut.message.calls[0].complete


def test_text_blocks_are_trimmed():
    assert read(f"\n\n a \n\n{CALL}\n\n b \n").said == ["a", ("read_file", {"path": "a.py"}), "b"]


def test_an_open_call_at_the_end_of_the_stream_is_incomplete():
    assert not read("<read_file>\n<path>a</path>").message.calls[0].complete


def test_both_thinking_tags_are_read_at_any_place():
    text = "one<think>two</think>three<thinking>four</thinking>"
    assert read(text).said == ["one", "two", "three", "four"]


EXAMPLES = [
    f"How to write:\n\n{wrote('hello')}\n\nand then\n{CALL}\nDone.",
    f"{wrote('a')}\n{wrote('b')}",
    f"{wrote(wrote('deep'))}",
    "TEXT = '''<write_to_file><path>a</path><content>x</content></write_to_file>'''",
    "</content>\n</write_to_file>\nleft over",
    "<write_to_file>\n<path>never closed</path>",
    "<write_to_file>\n<path>a</path>\n<content>x",
    "a</content></write_to_file>, b",
    "```\n</content>\n</write_to_file>\n```",
]


@pytest.mark.parametrize("content", EXAMPLES)
def test_content_that_quotes_calls_of_its_own_tool_is_not_cut(content: str):
    assert read(wrote(content)).said == written(content)
    assert read(list(wrote(content, "\n"))).said == written(content)


@pytest.mark.parametrize("content", EXAMPLES[:4])
def test_a_call_after_content_that_quotes_calls_is_made(content: str):
    both = [*written(content), ("read_file", {"path": "a.py"})]
    assert read(f"{wrote(content)}\n{CALL}").said == both


MESSAGE = (
    f"Text `<think>`.\n<think>hm</think>\n{wrote(EXAMPLES[0])}\nthen\n"
    "<execute_command>\n<command>\necho </command> é\n</command>\n<cwd>x</cwd>\n"
    "</execute_command>\n"
    f"{CALL}\n<edit>\n<old_string><![CDATA[</edit>]]></old_string>\n</edit>\n"
)


def test_a_cut_at_any_place_never_makes_another_call():
    whole = [(call.name, arguments(call.arguments)) for call in read(MESSAGE).message.calls]
    assert len(whole) == 4
    for end in range(len(MESSAGE)):
        calls = read(MESSAGE[:end], cut=True).message.calls
        complete = [(c.name, arguments(c.arguments)) for c in calls if c.complete]
        assert complete == whole[: len(complete)]
        assert all(call.complete for call in calls[:-1])
        assert len(calls) - len(complete) <= 1


FRAGMENTS = [
    *(f"<{tool.name}>" for tool in TOOLS),
    *(f"</{tool.name}>" for tool in TOOLS if tool.name != "write_to_file"),
    *("<path>", "</path>", "<content>", "</content>", "<line_count>", "</line_count>", "<item>"),
    *("<command>", "</command>", "<![CDATA[", "]]>", "<think>", "</think>", "</write_to_fil>"),
    *("```", "`", "~~~", "<", "</", ">", "&lt;", "é", "\u2028", "{", '"', "\\", "x", "some words"),
    *("\n", "\n", "\n", " ", "\n\n", "  "),
    CALL,
    f"\n{CALL}\n",
    "<write_to_file>\n<path>a</path>\n",
    "<execute_command>\n<command>rm -rf /</command>\n</execute_command>\n",
    "<content>x</content>\n<line_count>1</line_count>\n",
]


@pytest.mark.parametrize("many", [1000, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_contents_with_tags_in_them_are_never_a_call_nor_cut(many: int):
    chance = random.Random(7)  # a fixed seed: the same contents in every run
    for number in range(many):
        content = "x" + "".join(chance.choices(FRAGMENTS, k=chance.randrange(1, 25))) + "."
        count = number if number % 3 == 0 else None
        # A quoted beginning of the tool's own call is told from a real one by what follows it all.
        quoted = "<write_to_file>" in content
        after = chance.choice(["", "\n"] if quoted else ["", "\n", f"\n{CALL}", "\nDone."])
        text = (
            f"Now.\n<write_to_file>\n<path>a.md</path>\n<content>\n{content}\n</content>\n"
            + (f"<line_count>{count}</line_count>\n" if count is not None else "")
            + "</write_to_file>"
            + after
        )
        size = chance.choice([3, 17, len(text)])
        got = read(text[at : at + size] for at in range(0, len(text), size))
        expected: dict[str, object] = {"path": "a.md", "content": content}
        if count is not None:
            expected["line_count"] = count
        assert got.said[:2] == ["Now.", ("write_to_file", expected)], text
        assert len(got.message.calls) == (2 if CALL in after else 1), text


@pytest.mark.parametrize("many", [500, pytest.param(3000, marks=pytest.mark.sweep)])
def test_contents_with_any_tag_in_cdata_are_never_a_call_nor_cut(many: int):
    chance = random.Random(8)  # a fixed seed: the same contents in every run
    fragments = [*FRAGMENTS, "</write_to_file>", "</content>\n</write_to_file>\n"]
    for _ in range(many):
        content = "".join(chance.choices(fragments, k=chance.randrange(1, 25)))
        text = (
            f"<write_to_file>\n<path>a.md</path>\n<content>{wrapped(content)}</content>\n"
            f"</write_to_file>\n{CALL}"
        )
        assert read(text).said == [*written(content), ("read_file", {"path": "a.py"})]
