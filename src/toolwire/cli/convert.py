"""`toolwire convert` and `schema`: convert a request or a schema, also as JSON Lines."""

import sys
from collections.abc import Callable

import click

from toolwire import dialects
from toolwire import schema as schemas
from toolwire.cli.terminal import fail
from toolwire.codec import translate
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.wire.json_access import JsonObject, dump, parse, parse_object
from toolwire.wire.surrogates import whole_characters


@click.command("convert")
@click.option("--from", "source", metavar="DIALECT", help="Wire format of the input.")
@click.option("--to", "target", metavar="DIALECT", help="Wire format of the output.")
@click.option("--model", default="", help="Model name in the output.")
@click.option("--jsonl", is_flag=True, help="JSON Lines: one input object per line.")
def convert_command(source: str | None, target: str | None, model: str, jsonl: bool) -> None:
    """Convert a request body from standard input; print the request and what was lost.

    With --jsonl each line is {"id", "from", "to", "request"}.
    """
    if jsonl:
        each_line(lambda line: _converted_line(line, source or "", target or "", model))
        return
    if source is None or target is None:
        raise click.UsageError("name both --from and --to, or use --jsonl")
    body = sys.stdin.buffer.read()
    try:
        result = _translated(body, source, target, model)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
    else:
        click.echo(dump(result))


def _converted_line(line: JsonObject, source: str, target: str, model: str) -> JsonObject:
    named = line.get("model")
    return _translated(
        dump(line.get("request")).encode(),
        source or need(line, "from"),
        target or need(line, "to"),
        named if isinstance(named, str) else model,
    )


def _translated(body: bytes, source: str, target: str, model: str) -> JsonObject:
    translated = translate(body, source, target, model=model)
    losses = [{"path": loss.path, "what": loss.what, "why": loss.why} for loss in translated.losses]
    return {
        "request": parse(translated.http.body, "request"),
        "losses": losses,
        "path": translated.http.path,
        "names": translated.names,
    }


@click.command("schema")
@click.option("--to", "target", metavar="DIALECT", help="Wire format of the output.")
@click.option("--strict", is_flag=True, help="Use OpenAI's strict form if nothing is lost by it.")
@click.option("--jsonl", is_flag=True, help="JSON Lines: one input object per line.")
def schema_command(target: str | None, strict: bool, jsonl: bool) -> None:
    """Convert the JSON Schema on standard input; print the schema and what was weakened.

    With --jsonl each line is {"id", "to", "schema"}.
    """
    if jsonl:
        each_line(lambda line: _schema_line(line, target or "", strict))
        return
    if target is None:
        raise click.UsageError("name the dialect with --to, or use --jsonl")
    body = sys.stdin.buffer.read()
    try:
        result = _converted_schema(parse(body, "schema"), target, strict)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
    else:
        click.echo(dump(result))


def _schema_line(line: JsonObject, target: str, strict: bool) -> JsonObject:
    return _converted_schema(
        line.get("schema"), target or need(line, "to"), strict or line.get("strict") is True
    )


def _converted_schema(schema: object, target: str, strict: bool) -> JsonObject:
    dialects.get(target)
    converted = schemas.convert(schema, schemas.profile_for(target, strict=strict))
    losses = [{"path": loss.path, "what": loss.what, "why": loss.why} for loss in converted.losses]
    result: JsonObject = {"schema": converted.schema, "losses": losses}
    return {**result, "strict": converted.strict} if strict else result


def error_object(error: ToolwireError) -> JsonObject:
    """Returns an error as the commands print it."""
    return {"kind": str(error.kind), "message": str(error)}


def each_line(answer: Callable[[JsonObject], JsonObject]) -> None:
    """Answers every line of standard input, in order."""
    out = sys.stdout
    for raw in sys.stdin.buffer:
        if not raw.strip():
            continue
        line: JsonObject = {}
        try:
            line = parse_object(whole_characters(raw), "line")
            text = dump({"id": line.get("id"), **answer(line)})
        except ToolwireError as error:
            text = _failed(line, error_object(error))
        except Exception as error:  # a fault of ours in one line must not cost the others
            message = f"{type(error).__name__}: {error}"
            text = _failed(line, {"kind": "internal", "message": message})
        out.write(text + "\n")
        out.flush()


def _failed(line: JsonObject, error: JsonObject) -> str:
    named = line.get("id")
    return dump({"id": None if isinstance(named, dict | list) else named, "error": error})


def need(line: JsonObject, key: str) -> str:
    """Returns a required string member of a line."""
    value = line.get(key)
    if not isinstance(value, str):
        raise BadInput(f'the line has no "{key}"')
    return value
