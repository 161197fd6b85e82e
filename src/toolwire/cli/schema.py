"""`toolwire schema`: convert a JSON Schema to what a wire format supports."""

import sys

import click

from toolwire import dialects
from toolwire import schema as schemas
from toolwire.cli.lines import each_line, fail, need
from toolwire.errors import ToolwireError, UnknownName
from toolwire.wire.json_access import JsonObject, dump, parse


@click.command("schema")
@click.option("--to", "target", metavar="DIALECT", help="Wire format of the output.")
@click.option("--strict", is_flag=True, help="OpenAI's strict form, where nothing is lost by it.")
@click.option("--jsonl", is_flag=True, help="JSON Lines: one input object per line.")
def command(target: str | None, strict: bool, jsonl: bool) -> None:
    """Convert the JSON Schema on standard input; prints the schema and what was weakened.

    With --jsonl each line is {"id", "to", "schema"}.
    """
    if jsonl:
        each_line(lambda line: _line(line, target or "", strict))
        return
    if target is None:
        raise click.UsageError("name the dialect with --to, or use --jsonl")
    body = sys.stdin.buffer.read()
    try:
        result = _converted(parse(body, "schema"), target, strict)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
    else:
        click.echo(dump(result))


def _line(line: JsonObject, target: str, strict: bool) -> JsonObject:
    return _converted(
        line.get("schema"), target or need(line, "to"), strict or line.get("strict") is True
    )


def _converted(schema: object, target: str, strict: bool) -> JsonObject:
    dialects.get(target)
    converted = schemas.convert(schema, schemas.profile_for(target, strict=strict))
    losses = [{"path": loss.path, "what": loss.what, "why": loss.why} for loss in converted.losses]
    result: JsonObject = {"schema": converted.schema, "losses": losses}
    return {**result, "strict": converted.strict} if strict else result
