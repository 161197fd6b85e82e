"""`toolwire convert`: convert a request body to another wire format."""

import sys

import click

from toolwire.cli.lines import each_line, fail, need
from toolwire.codec import translate
from toolwire.errors import ToolwireError, UnknownName
from toolwire.wire.json_access import JsonObject, dump, parse


@click.command("convert")
@click.option("--from", "source", metavar="DIALECT", help="Wire format of the input.")
@click.option("--to", "target", metavar="DIALECT", help="Wire format of the output.")
@click.option("--model", default="", help="Model name in the output.")
@click.option("--jsonl", is_flag=True, help="JSON Lines: one input object per line.")
def command(source: str | None, target: str | None, model: str, jsonl: bool) -> None:
    """Convert a request body from standard input; prints the request and what was lost.

    With --jsonl each line is {"id", "from", "to", "request"}.
    """
    if jsonl:
        each_line(lambda line: _line(line, source or "", target or "", model))
        return
    if source is None or target is None:
        raise click.UsageError("name both --from and --to, or use --jsonl")
    body = sys.stdin.buffer.read()
    try:
        result = _converted(body, source, target, model)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
    else:
        click.echo(dump(result))


def _line(line: JsonObject, source: str, target: str, model: str) -> JsonObject:
    named = line.get("model")
    return _converted(
        dump(line.get("request")).encode(),
        source or need(line, "from"),
        target or need(line, "to"),
        named if isinstance(named, str) else model,
    )


def _converted(body: bytes, source: str, target: str, model: str) -> JsonObject:
    translated = translate(body, source, target, model=model)
    losses = [{"path": loss.path, "what": loss.what, "why": loss.why} for loss in translated.losses]
    return {
        "request": parse(translated.http.body, "request"),
        "losses": losses,
        "path": translated.http.path,
        "names": translated.names,
    }
