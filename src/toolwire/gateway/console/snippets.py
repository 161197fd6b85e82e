"""Programs that send a request to the gateway: curl, Python and TypeScript."""

import shlex

from toolwire.gateway.console.parts import document_of
from toolwire.wire.json_access import dump, object_or_empty

LANGUAGES = ("curl", "python", "typescript")
_HEADERS = {
    "anthropic-messages": "x-api-key",
    "gemini": "x-goog-api-key",
}
_VARIABLE = "TOOLWIRE_TOKEN"


def snippet(language: str, dialect: str, origin: str, path: str, body: bytes) -> str:
    """The program; the key is read from the environment."""
    document = document_of(body)
    text = dump(document) if document is not None else body.decode("utf-8", "replace")
    header = _HEADERS.get(dialect, "authorization")
    if language == "curl":
        return _curl(header, origin, path, text)
    if language == "python":
        return _python(dialect, header, origin, path, object_or_empty(document), text)
    return _typescript(dialect, header, origin, path, object_or_empty(document), text)


def _curl(header: str, origin: str, path: str, text: str) -> str:
    before = "Bearer " if header == "authorization" else ""
    return (
        f"curl {shlex.quote(origin + path)} \\\n"
        f'  -H "{header}: {before}${_VARIABLE}" \\\n'
        "  -H 'content-type: application/json' \\\n"
        f"  --data-raw {shlex.quote(text)}\n"
    )


_CLIENTS = {
    "openai-chat": ("openai", "OpenAI", "chat.completions.create", "/v1"),
    "openai-responses": ("openai", "OpenAI", "responses.create", "/v1"),
    "anthropic-messages": ("anthropic", "Anthropic", "messages.create", ""),
}


def _python(
    dialect: str, header: str, origin: str, path: str, body: dict[str, object], text: str
) -> str:
    client = _CLIENTS.get(dialect)
    if client is None:
        before = "Bearer " if header == "authorization" else ""
        return (
            "import json\nimport os\nimport urllib.request\n\n"
            f"body = json.loads({text!r})\n"
            "request = urllib.request.Request(\n"
            f"    {origin + path!r},\n"
            "    json.dumps(body).encode(),\n"
            f'    {{"content-type": "application/json", "{header}": '
            f'f"{before}{{os.environ[{_VARIABLE!r}]}}"}},\n'
            ")\n"
            "print(urllib.request.urlopen(request).read().decode())\n"
        )
    package, name, method, base = client
    streamed = body.get("stream") is True
    shown = "for event in answer:\n    print(event)\n" if streamed else "print(answer)\n"
    return (
        f"import json\nimport os\n\nfrom {package} import {name}\n\n"
        f'client = {name}(base_url="{origin}{base}", api_key=os.environ["{_VARIABLE}"])\n'
        f"answer = client.{method}(**json.loads({text!r}))\n{shown}"
    )


def _typescript(
    dialect: str, header: str, origin: str, path: str, body: dict[str, object], text: str
) -> str:
    client = _CLIENTS.get(dialect)
    if client is None:
        before = "Bearer " if header == "authorization" else ""
        return (
            f'const answer = await fetch("{origin}{path}", {{\n'
            '  method: "POST",\n'
            f'  headers: {{ "content-type": "application/json", "{header}": '
            f"`{before}${{process.env.{_VARIABLE}}}` }},\n"
            f"  body: JSON.stringify({text}),\n"
            "});\nconsole.log(await answer.text());\n"
        )
    package, name, method, base = client
    module = "@anthropic-ai/sdk" if package == "anthropic" else package
    streamed = body.get("stream") is True
    shown = (
        "for await (const event of answer) console.log(event);\n"
        if streamed
        else "console.log(answer);\n"
    )
    return (
        f'import {name} from "{module}";\n\n'
        f'const client = new {name}({{ baseURL: "{origin}{base}", '
        f"apiKey: process.env.{_VARIABLE} }});\n"
        f"const answer = await client.{method}({text});\n{shown}"
    )
