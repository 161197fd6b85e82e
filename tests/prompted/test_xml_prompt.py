import pytest

from tests.prompted.xml_reading import READ, RUN, STRING, WRITE, read, tool
from toolwire.prompted.xml import teaching
from toolwire.request import FreeformTool, ServerTool, ToolChoice, ToolSpec

ASK = ToolSpec(
    name="ask_followup_question",
    description="Ask the user.",
    parameters={
        "type": "object",
        "required": ["question", "follow_up"],
        "properties": {
            "question": {"type": "string", "description": "What to ask.\nClearly."},
            "urgency": {"enum": ["low", "high"], "default": "low"},
            "follow_up": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {"text": STRING, "mode": {"type": ["string", "null"]}},
                },
            },
            "extra": {"type": "object"},
        },
    },
)

ASK_TAUGHT = """## ask_followup_question
Description: Ask the user.
Parameters:
- question (string, required): What to ask. Clearly.
- urgency (string, optional) One of: low, high. Default: low.
- follow_up (array of object, required)
  - item (object, required)
    - text (string, required)
    - mode (string or null, optional)
- extra (object, optional)
Usage:
<ask_followup_question>
<question>question here</question>
<urgency>urgency here</urgency>
<follow_up>
<item>
<text>text here</text>
<mode>mode here</mode>
</item>
…
</follow_up>
<extra>JSON here</extra>
</ask_followup_question>
Example:
<ask_followup_question>
<question>Which of the two should I change?</question>
<follow_up>
<item>
<text>some text</text>
</item>
</follow_up>
</ask_followup_question>"""


def test_a_tool_is_taught_with_its_parameters_a_skeleton_and_an_example():
    assert ASK_TAUGHT in teaching([ASK])


def test_the_rules_say_how_values_are_written():
    taught = teaching([READ])
    assert "Values are raw text" in taught
    assert "<![CDATA[" in taught
    assert "code fence" in taught


@pytest.mark.parametrize("spec", [READ, WRITE, RUN, ASK, tool("noop"), tool("a b", **{"c d": {}})])
def test_every_example_is_a_call_that_reads_back(spec: ToolSpec):
    example = teaching([spec]).rpartition("Example:\n")[2]
    (call,) = read(example, [spec]).message.calls
    assert (call.name, call.complete) == (spec.name, True)


def test_the_words_follow_whether_calls_may_be_parallel():
    assert "several calls" in teaching([READ])
    assert "several calls" in teaching([READ], parallel=True)
    single = teaching([READ], parallel=False)
    assert "at most one call" in single
    assert "several calls" not in single


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (ToolChoice(mode="required"), "You must call a tool in this answer."),
        (ToolChoice(mode="none"), "Do not call any tool in this answer; answer in words."),
        (
            ToolChoice(mode="required", names=("read_file",)),
            "You must call the tool `read_file` in this answer.",
        ),
        (
            ToolChoice(mode="required", names=("read_file", "execute_command")),
            "You must call one of these tools in this answer: read_file, execute_command.",
        ),
        (
            ToolChoice(names=("read_file",)),
            "In this answer you may call only these tools: read_file.",
        ),
    ],
)
def test_the_tool_choice_is_described_in_words(choice: ToolChoice, words: str):
    assert teaching([READ, RUN], choice).endswith(f"\n\n{words}")
    assert words not in teaching([READ, RUN], ToolChoice())


def test_a_freeform_tool_is_taught_with_its_grammar():
    taught = teaching([FreeformTool(name="patch", syntax="lark", grammar="start: x")])
    assert "follows this lark grammar:\nstart: x" in taught
    assert "<patch>\n<input>input here</input>\n</patch>" in taught


def test_tools_of_the_vendor_cannot_be_taught():
    assert teaching([ServerTool(dialect="gemini", kind="search", data="{}")]) == ""


def test_a_recursive_schema_is_taught_once_and_then_left_open():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    taught = teaching([ToolSpec(name="tree", parameters=node)])
    assert "- kids (array of object, optional)" in taught
    assert len(taught) < 8000
