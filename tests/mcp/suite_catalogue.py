"""What the conformance suite expects of a server: its tools, prompts and resources."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from toolwire.mcp.lists import members
from toolwire.mcp.peer import RpcError
from toolwire.mcp_server.catalogue import Catalogue, OfferedPrompt, OfferedResource, OfferedTool
from toolwire.mcp_server.exchange import ELICITATION, ROOTS, SAMPLING, ServedRequest, asked
from toolwire.mcp_server.exchange import input_required as needs
from toolwire.mcp_server.protocol import MISSING_CAPABILITY
from toolwire.request import JsonObject

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJ"
    "RU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
NOTHING: JsonObject = {"type": "object", "properties": {}}
SCHEMA_2020: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
Handler = Callable[[JsonObject, ServedRequest], Awaitable[JsonObject]]


def text(words: str) -> JsonObject:
    return {"content": [{"type": "text", "text": words}]}


def form(message: str, **properties: JsonObject) -> JsonObject:
    required = [name for name, one in properties.items() if "default" not in one]
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return {"message": message, "requestedSchema": schema}


def question(words: str, most: int = 100) -> JsonObject:
    content = {"type": "text", "text": words}
    return {"messages": [{"role": "user", "content": content}], "maxTokens": most}


STRING: JsonObject = {"type": "string"}
IMAGE: JsonObject = {"type": "image", "data": PNG, "mimeType": "image/png"}
NAME = asked(ELICITATION, form("What is your name?", name=STRING))
CONFIRM = asked(ELICITATION, form("Please confirm", ok={"type": "boolean"}))


def catalogue() -> Catalogue:
    """Everything the suite asks for in either revision."""

    async def complete(
        reference: JsonObject, name: str, typed: str, others: JsonObject
    ) -> Sequence[str]:
        return [each for each in ("paris", "park", "party") if each.startswith(typed)]

    found = Catalogue("conformance", logs=True, changes=True, complete=complete, page=50)
    tools: dict[str, tuple[Handler, JsonObject]] = {
        **{name: (fixed(result), NOTHING) for name, result in FIXED.items()},
        **{name: (handler, NOTHING) for name, handler in HANDLERS.items()},
        "test_sampling": (sampling, _one("prompt")),
        "test_elicitation": (elicitation, _one("message")),
        "json_schema_2020_12_tool": (fixed(text("ok")), SCHEMA_2020),
        "test_x_mcp_header": (fixed(text("ok")), MARKED),
    }

    async def change_tools(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
        found.changed("tools")
        return text("changed")

    async def change_prompts(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
        found.changed("prompts")
        return text("changed")

    tools["test_trigger_tool_change"] = (change_tools, NOTHING)
    tools["test_trigger_prompt_change"] = (change_prompts, NOTHING)
    for name, (run, schema) in tools.items():
        found.add(OfferedTool(name=name, description=name, run=run, parameters=schema))
    found.add(*PROMPTS, *RESOURCES)
    return found


def _one(name: str) -> JsonObject:
    return {"type": "object", "properties": {name: STRING}, "required": [name]}


MARKED: JsonObject = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    },
    "required": ["region"],
}


def fixed(result: JsonObject) -> Handler:
    async def run(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
        return result

    return run


FIXED: dict[str, JsonObject] = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {
        "content": [
            {
                "type": "resource",
                "resource": {
                    "uri": "test://embedded-resource",
                    "mimeType": "text/plain",
                    "text": "This is an embedded resource content.",
                },
            }
        ]
    },
    "test_multiple_content_types": {
        "content": [
            {"type": "text", "text": "Multiple content types test:"},
            IMAGE,
            {
                "type": "resource",
                "resource": {
                    "uri": "test://mixed-content-resource",
                    "mimeType": "application/json",
                    "text": '{"test":"data","value":123}',
                },
            },
        ]
    },
    "test_error_handling": {
        **text("This tool intentionally returns an error for testing"),
        "isError": True,
    },
}


async def logging(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await exchange.log("info", words, "suite")
        await asyncio.sleep(0.05)
    return text("logged")


async def progress(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    for done in (0, 50, 100):
        await exchange.progress(done, 100)
        await asyncio.sleep(0.05)
    return text("done")


async def sampling(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    answer = await exchange.ask(SAMPLING, question(str(arguments.get("prompt"))))
    return text(f"LLM response: {members(answer.get('content')).get('text')}")


async def elicitation(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    schema = form(
        str(arguments.get("message")),
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    return _elicited("User response", await exchange.ask(ELICITATION, schema))


async def defaults(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    schema = form(
        "Defaults",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "default": True},
    )
    return _elicited("Elicitation completed", await exchange.ask(ELICITATION, schema))


async def enums(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Title {n}"} for n in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    schema = form(
        "Choices",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return _elicited("Elicitation completed", await exchange.ask(ELICITATION, schema))


def _elicited(words: str, answer: JsonObject) -> JsonObject:
    content = json.dumps(answer.get("content", {}))
    return text(f"{words}: action={answer.get('action')}, content={content}")


async def missing_capability(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    if not exchange.can(SAMPLING):
        data = {"requiredCapabilities": {"sampling": {}}}
        raise RpcError(MISSING_CAPABILITY, "sampling is needed", data)
    return text("ok")


async def asks_name(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    name = members(members(exchange.inputs.get("user_name")).get("content")).get("name")
    return needs({"user_name": NAME}) if name is None else text(f"Hello, {name}!")


async def asks_sample(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    given = exchange.inputs.get("capital_question")
    if given is None:
        asks = asked(SAMPLING, question("What is the capital of France?"))
        return needs({"capital_question": asks})
    return text(str(members(given["content"]).get("text")))


async def asks_roots(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    given = exchange.inputs.get("client_roots")
    return needs({"client_roots": asked(ROOTS, {})}) if given is None else text(json.dumps(given))


async def asks_with_state(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    if exchange.state != "confirm" or "confirm" not in exchange.inputs:
        return needs({"confirm": CONFIRM}, "confirm")
    return text("state-ok")


async def asks_all(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    wanted = {
        "user_name": NAME,
        "greeting": asked(SAMPLING, question("Generate a greeting", 50)),
        "client_roots": asked(ROOTS, {}),
    }
    missing = {key: one for key, one in wanted.items() if key not in exchange.inputs}
    return needs(wanted, "all") if missing else text("complete")


async def asks_twice(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    name = await exchange.ask(ELICITATION, form("Step 1: What is your name?", name=STRING), "step1")
    words = "Step 2: What is your favorite color?"
    color = await exchange.ask(ELICITATION, form(words, color=STRING), "step2")
    return text(f"{members(name.get('content'))} {members(color.get('content'))}")


async def asks_what_it_may(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    wanted: JsonObject = {}
    if exchange.can(ELICITATION):
        wanted["user_name"] = NAME
    if exchange.can(SAMPLING):
        wanted["greeting"] = asked(SAMPLING, question("Generate a greeting", 50))
    return needs(wanted) if wanted else text("nothing may be asked")


HANDLERS: dict[str, Handler] = {
    "test_tool_with_logging": logging,
    "test_logging_tool": logging,
    "test_tool_with_progress": progress,
    "test_reconnection": progress,
    "test_elicitation_sep1034_defaults": defaults,
    "test_elicitation_sep1330_enums": enums,
    "test_missing_capability": missing_capability,
    "test_streaming_elicitation": asks_name,
    "test_input_required_result_elicitation": asks_name,
    "test_input_required_result_sampling": asks_sample,
    "test_input_required_result_list_roots": asks_roots,
    "test_input_required_result_request_state": asks_with_state,
    "test_input_required_result_multiple_inputs": asks_all,
    "test_input_required_result_multi_round": asks_twice,
    "test_input_required_result_tampered_state": asks_with_state,
    "test_input_required_result_capabilities": asks_what_it_may,
}


def _messages(*contents: JsonObject) -> JsonObject:
    return {"messages": [{"role": "user", "content": content} for content in contents]}


async def simple_prompt(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    return _messages({"type": "text", "text": "This is a simple prompt for testing."})


async def prompt_with_arguments(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    one, two = arguments["arg1"], arguments["arg2"]
    return _messages({"type": "text", "text": f"Prompt with arguments: arg1='{one}', arg2='{two}'"})


async def prompt_with_resource(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    words = "Embedded resource content for testing."
    resource = {"uri": arguments["resourceUri"], "mimeType": "text/plain", "text": words}
    return _messages(
        {"type": "resource", "resource": resource},
        {"type": "text", "text": "Please process the embedded resource above."},
    )


async def prompt_with_image(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    return _messages(IMAGE, {"type": "text", "text": "Please analyze the image above."})


async def prompt_that_asks(arguments: JsonObject, exchange: ServedRequest) -> JsonObject:
    given = members(members(exchange.inputs.get("user_context")).get("content")).get("context")
    if given is None:
        asks = form("What context should the prompt use?", context=STRING)
        return needs({"user_context": asked(ELICITATION, asks)})
    return _messages({"type": "text", "text": f"Context: {given}"})


def _argument(name: str) -> JsonObject:
    return {"name": name, "description": name, "required": True}


PROMPTS = (
    OfferedPrompt(name="test_simple_prompt", description="simple", get=simple_prompt),
    OfferedPrompt(
        name="test_prompt_with_arguments",
        description="arguments",
        get=prompt_with_arguments,
        arguments=(_argument("arg1"), _argument("arg2")),
    ),
    OfferedPrompt(
        name="test_prompt_with_embedded_resource",
        description="resource",
        get=prompt_with_resource,
        arguments=(_argument("resourceUri"),),
    ),
    OfferedPrompt(name="test_prompt_with_image", description="image", get=prompt_with_image),
    OfferedPrompt(
        name="test_input_required_result_prompt", description="asks", get=prompt_that_asks
    ),
)


def _contents(
    **more: Any,
) -> Callable[[str, Mapping[str, str], ServedRequest], Awaitable[JsonObject]]:
    async def read(uri: str, values: Mapping[str, str], exchange: ServedRequest) -> JsonObject:
        return {"contents": [{"uri": uri, **more}]}

    return read


async def from_template(uri: str, values: Mapping[str, str], exchange: ServedRequest) -> JsonObject:
    body = {"id": values["id"], "templateTest": True, "data": f"Data for ID: {values['id']}"}
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(body)}]}


RESOURCES = (
    OfferedResource(
        uri="test://static-text",
        name="static text",
        description="text",
        mime="text/plain",
        read=_contents(
            mimeType="text/plain", text="This is the content of the static text resource."
        ),
    ),
    OfferedResource(
        uri="test://static-binary",
        name="static binary",
        description="picture",
        mime="image/png",
        read=_contents(mimeType="image/png", blob=PNG),
    ),
    OfferedResource(
        uri="test://watched-resource",
        name="watched",
        description="watched",
        mime="text/plain",
        read=_contents(mimeType="text/plain", text="watched"),
    ),
    OfferedResource(
        uri="test://template/{id}/data",
        name="template",
        description="template",
        mime="application/json",
        read=from_template,
    ),
)


if __name__ == "__main__":
    # As a server on standard input and output.
    from toolwire.mcp_server.server import McpServer
    from toolwire.mcp_server.stdio import serve_stdio

    asyncio.run(serve_stdio(McpServer(catalogue()), 0, 1))
