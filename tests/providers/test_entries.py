import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests import acceptance
from toolwire import dialects, providers
from toolwire.dialects.quirks import Quirks
from toolwire.history import repair
from toolwire.messages import (
    Media,
    MediaKind,
    Message,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.prompted.leaked import FORMATS
from toolwire.providers import ApiKey, OAuth, Provider, catalogue
from toolwire.providers.document import changed, described, document
from toolwire.request import ModelRequest, Reasoning, ToolChoice, ToolSpec

PACKAGE = Path(providers.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
WIRE_ID = re.compile(r"[a-zA-Z0-9]{9}")


def every() -> list[Provider]:
    return [providers.get(name) for name in providers.names()]


def models_of(provider: Provider) -> list[str]:
    known = [info.id for info in catalogue.models(provider.name)]
    fitting = [re.sub(r"\*|\[(.)[^]]*\]", r"\1", rule.pattern) for rule in provider.rules]
    return [*known, *fitting, "some-model"]


def test_every_file_is_an_entry_and_every_entry_a_file() -> None:
    machinery = {"custom", "addresses", "catalogue", "describe", "document", "upstream"}
    files = {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("_")}
    assert files - machinery == {name.replace("-", "_") for name in providers.names()}


@pytest.mark.parametrize("name", providers.names())
def test_an_entry_is_complete(name: str) -> None:
    entry = providers.get(name)
    assert entry.name == name
    assert entry.title
    assert entry.docs
    for dialect in (entry.dialect, *(other for other, _ in entry.other_dialects)):
        assert dialects.get(dialect).name == dialect
    if isinstance(entry.auth, OAuth):
        assert entry.auth.terms
    if isinstance(entry.auth, ApiKey) and not entry.auth.optional:
        assert entry.auth.env
        assert entry.auth.url.startswith("https://")
    if entry.default_model:
        assert catalogue.find(name, entry.default_model) is not None


@pytest.mark.parametrize("name", providers.names())
def test_an_address_is_encrypted_unless_it_is_this_machine(name: str) -> None:
    entry = providers.get(name)
    urls = [entry.base_url, *(url for _, url in (*entry.other_dialects, *entry.special_urls))]
    for url in urls:
        local = re.match(r"http://(localhost|127\.0\.0\.1):", url) is not None
        assert local if entry.local else url.startswith("https://")
        assert not url.endswith("/")
        blanks = set(re.findall(r"\{(\w+)\}", url))
        assert blanks <= {blank.name for blank in entry.placeholders}


@pytest.mark.parametrize("name", providers.names())
def test_every_quirk_that_is_set_has_its_reason_and_no_other(name: str) -> None:
    entry = providers.get(name)
    reasons = [quirk for quirk, _ in entry.reasons]
    assert sorted(reasons) == sorted(changed(entry.quirks))
    assert all(reason for _, reason in entry.reasons)
    assert all(rule.reason for rule in entry.rules)


@pytest.mark.parametrize("name", providers.names())
def test_a_rule_can_be_reached_and_names_known_things(name: str) -> None:
    entry = providers.get(name)
    patterns = [rule.pattern for rule in entry.rules]
    assert len(patterns) == len(set(patterns))
    for rule in entry.rules:
        assert rule.pattern == rule.pattern.lower()
        assert set(rule.leaked) <= set(FORMATS)
        if rule.dialect:
            assert entry.with_dialect(rule.dialect).dialect == rule.dialect


def test_no_entry_holds_a_secret() -> None:
    secret = re.compile(r"sk-[A-Za-z0-9]{8}|gsk_|ghp_|AIza|-----BEGIN|eyJ[A-Za-z0-9]{10}")
    for path in [*PACKAGE.glob("*.py"), PACKAGE / "models.json", PAGE]:
        assert secret.search(path.read_text("utf-8")) is None, path


def test_a_description_never_shows_what_a_variable_holds() -> None:
    class Everything(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return "hush"

        def get(self, key: str, default: object = None) -> str:  # pyright: ignore[reportIncompatibleMethodOverride] - every variable is set
            return "hush"

    for entry in every():
        assert "hush" not in json.dumps(described(entry, Everything()))


def test_the_page_is_what_the_entries_say() -> None:
    assert PAGE.read_text("utf-8") == document()


def test_names_loads_no_entry_and_get_only_one() -> None:
    code = (
        "import sys; from toolwire import providers; providers.names();"
        "before = {m for m in sys.modules if m.startswith('toolwire.providers.')};"
        "providers.get('groq');"
        "print(*({m for m in sys.modules if m.startswith('toolwire.providers.')} - before));"
        "print(*before); print('aiohttp' in sys.modules, 'asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    got, before, heavy = done.stdout.splitlines()
    assert set(got.split()) == {"toolwire.providers.groq", "toolwire.providers._open_models"}
    assert not {f"toolwire.providers.{name}" for name in providers.names()} & set(before.split())
    assert heavy == "False False"


def request_for(model: str) -> ModelRequest:
    """A conversation from somewhere else, in the middle of its calls, with every setting."""
    image = Media.of_bytes(MediaKind.IMAGE, "image/png", b"png")
    calls = (
        ToolCall(id="call_a-very.long:id", name="read", arguments='{"path":"a"}'),
        ToolCall(id="functions.read:0", name="read", arguments='{"path":"b"}'),
    )
    results = (
        ToolResult(call_id="call_a-very.long:id", parts=(Text(text="hi"), image)),
        ToolResult(call_id="functions.read:0", parts=(Text(text="gone"),), is_error=True),
    )
    messages = (
        Message(role="user", parts=(Text(text="read a and b"), image)),
        Message(role="assistant", parts=(Thinking(text="hm"), Text(text="Reading."), *calls)),
        Message(role="user", parts=results),
        Message(role="user", parts=(Text(text="and now?"),)),
    )
    return ModelRequest(
        model=model,
        system=(Text(text="Be brief."),),
        messages=messages,
        tools=(
            ToolSpec(
                name="read",
                description="Read a file.",
                parameters={
                    "type": "object",
                    "properties": {"path": {"type": "string"}},
                    "required": ["path"],
                },
                strict=True,
            ),
            ToolSpec(name="now", parameters={}),
        ),
        tool_choice=ToolChoice(mode="required"),
        parallel_calls=False,
        max_output_tokens=4000,
        temperature=0.5,
        reasoning=Reasoning(enabled=True),
        stream=True,
    )


@pytest.mark.parametrize("name", providers.names())
def test_a_tool_calling_request_with_its_quirks_is_accepted_by_the_vendors_types(name: str) -> None:
    whole = providers.get(name)
    for model in models_of(whole):
        for entry in {
            whole.for_model(model).dialect: whole.for_model(model),
            **{other: whole.with_dialect(other) for other, _ in whole.other_dialects},
        }.values():
            quirks = entry.quirks_for(model)
            codec = dialects.get(entry.dialect)
            request = request_for(model)
            origin = Origin(codec.family, name, model)
            fitted = repair(request.messages, origin, quirks.history or codec.history).messages
            http = codec.encode_request(
                msgspec.structs.replace(request, messages=fitted), quirks
            ).http
            body = json.loads(http.body)
            acceptance.check(entry.dialect, as_openai_names_it(body))
            held_to_quirks(body, entry.dialect, quirks)
            if entry.prepare is not None:
                json.loads(entry.prepare(http).body)


def as_openai_names_it(body: dict[str, object]) -> dict[str, object]:
    # Mistral's word is not in OpenAI's types.
    return {**body, "tool_choice": "required"} if body.get("tool_choice") == "any" else body


def held_to_quirks(body: dict[str, object], dialect: str, quirks: Quirks) -> None:
    text = json.dumps(body)
    if not quirks.sampling and dialect not in ("gemini", "code-assist"):
        assert "temperature" not in body
    if dialect != "openai-chat":
        return
    assert quirks.max_tokens_field in body
    assert ("stream_options" in body) == quirks.stream_usage
    assert ("parallel_tool_calls" in body) == quirks.parallel_flag
    expected = quirks.required_word if "required" in quirks.tool_choices else None
    assert body.get("tool_choice") == expected
    if quirks.reasoning_field:
        assert f'"{quirks.reasoning_field}"' in text
    if quirks.history is not None and quirks.history.id_length:
        ids = re.findall(r'"tool_call_id": "([^"]*)"', text)
        assert ids
        assert all(WIRE_ID.fullmatch(found) for found in ids)
