"""Damaged requests: decoding and converting them must return a value or raise a typed error.

`python -m tests.request_fuzz DIALECT [--count 100000] [--seed 1] [--only decode|check]` damages
requests of the corpus (and our own in `wire/requests`) at random, converts each to another format,
prints each distinct failure once with the smallest body that shows it, and the counts. `--only
decode` leaves out the conversion, `--only check` tries the vendors' rules on the raw body instead.
"""

import argparse
import json
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import corpus_harness
from toolwire import dialects
from toolwire.acceptance import violations
from toolwire.codec import translate
from toolwire.errors import ToolwireError
from toolwire.wire.json_access import parse_object

_ENVELOPE = {"model": "m", "project": "p", "user_prompt_id": "u"}
_FOLDER = Path(__file__).parent / "wire" / "requests"
OWN: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(_FOLDER.glob("*.json"))
}
"""A request of each format with as many kinds of members and parts as it has."""
OWN["code-assist"] = {**_ENVELOPE, "request": {**OWN["gemini"], "session_id": "s"}}

_deep: Any = "x"
for _ in range(450):
    _deep = [_deep] if _ % 2 else {"type": "object", "properties": _deep}
WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**30,
    "",
    "other",
    "\ud800",
    [],
    [None],
    [[]],
    ["x"],
    [{}],
    {},
    {"type": []},
    {"type": {}, "name": [], "text": {}},
    {"": None},
)
"""Values of every kind, for a place where another kind belongs."""
ONE_OF_EACH = (None, True, 1.5, 10**30, "other", [None], {}, {"type": []})
_BYTES = (b"null", b"[]", b"{}", b'"', b"\\", b"1e999", b"NaN", b"\xff", b"\x00", b"\\ud800", b",")
Place = tuple[Any, Any]
"""A list or object, and the index or key of a value in it."""


def places(value: Any) -> Iterator[Place]:
    """Every position of a JSON value but the root."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        inner = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, item in inner:
            yield holder, key
            if isinstance(item, dict | list):
                waiting.append(item)


def copied(value: Any) -> Any:
    """A copy that shares nothing: damage stays in its own request."""
    return json.loads(json.dumps(value))


def every_wrong_type(dialect: str) -> Iterator[bytes]:
    """Our own request with each value in turn replaced by wrong ones, and removed."""
    request = copied(OWN[dialect])
    for holder, key in list(places(request)):
        value = holder[key]
        for wrong in ONE_OF_EACH:
            holder[key] = wrong
            yield json.dumps(request).encode()
        del holder[key]
        yield json.dumps(request).encode()
        if isinstance(holder, list):
            holder.insert(key, value)
        else:
            holder[key] = value


def seeds(dialect: str, most: int = 400) -> list[bytes]:
    """Our own request and, where the corpus is present, recorded ones of moderate size."""
    own = [json.dumps(OWN[dialect]).encode()]
    if not corpus_harness.CORPUS.is_dir():
        return own
    source = "gemini" if dialect == "code-assist" else dialect
    bodies: set[bytes] = set()
    for row in corpus_harness.rows(source):
        request = row["request"]
        if isinstance(request, dict):
            whole = {**_ENVELOPE, "request": request} if dialect == "code-assist" else request
            bodies.add(json.dumps(whole).encode())
    small = sorted(body for body in bodies if len(body) < 12_000)
    return own * 10 + small[:: max(1, len(small) // most)]


def damaged(body: bytes, chance: random.Random) -> bytes:
    """The request with one to three values damaged, sometimes the text itself."""
    if chance.random() < 0.1:
        return _damaged_text(body, chance)
    request = json.loads(body)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        found = list(places(request))
        if not found:
            break
        _damage(chance.choice(found), found, chance)
    try:
        return json.dumps(request).encode()
    except RecursionError:  # nested inside a nested value
        return body


def _damage(place: Place, found: list[Place], chance: random.Random) -> None:
    holder, key = place
    other, other_key = chance.choice(found)
    match chance.randrange(10):
        case 0 | 1 | 2:
            holder[key] = copied(chance.choice(WRONG))
        case 3:
            del holder[key]
        case 4:
            holder[key] = copied(other[other_key])
        case 5:
            holder[key] = [holder[key]]
        case 6:
            holder[key] = {"type": holder[key], "text": copied(holder[key])}
        case 7 if isinstance(holder, list):
            holder.insert(key, copied(holder[key]))
        case 7 if isinstance(other_key, str):
            holder[other_key] = copied(other[other_key])
        case 8 if isinstance(holder, dict):
            holder[chance.choice(("", "type", "\ud800", "id", "name"))] = holder.pop(key)
        case 9 if chance.random() < 0.1:
            holder[key] = copied(_deep)
        case _:
            holder[key] = None


def _damaged_text(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    to = min(len(body), at + chance.randrange(1, 60))
    match chance.randrange(4):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + body[to:]
        case 2:
            return body[:at] + body[at:to] * 2 + body[to:]
        case _:
            return body[:at] + chance.choice(_BYTES) + body[at:]


def decode(dialect: str, body: bytes, _: int) -> None:
    dialects.get(dialect).decode_request(body)


def convert(dialect: str, body: bytes, number: int) -> None:
    """Decodes, repairs and encodes for one of the five formats in turn."""
    target = dialects.NAMES[number % len(dialects.NAMES)]
    json.loads(translate(body, dialect, target, model="m").http.body)


def check(dialect: str, body: bytes, number: int) -> None:
    """Checks the raw body against the vendor's rules, as the simulator does."""
    models = ("", "gpt-4o", "gpt-5", "claude-sonnet-5", "gemini-3.5-flash", "gemini-2.5-pro")
    request = parse_object(body, "request")
    list(violations(dialect, request, models[number % len(models)]))


def failures(
    dialect: str,
    bodies: Iterator[bytes],
    action: Callable[[str, bytes, int], None],
    counts: Counter[str],
) -> dict[str, bytes]:
    """Distinct untyped errors, each with the smallest body that raises it."""
    found: dict[str, bytes] = {}
    for number, body in enumerate(bodies):
        try:
            action(dialect, body, number)
            counts["accepted"] += 1
        except ToolwireError:
            counts["typed error"] += 1
        except Exception as error:
            counts["UNTYPED"] += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{frame.filename.rpartition('src/')[2]}:{frame.lineno} {frame.name}"
            name = f"{type(error).__name__} at {where}: {str(error)[:80]}"
            if len(body) < len(found.get(name, body + b" ")):
                found[name] = body
    return found


def random_bodies(dialect: str, count: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(f"{dialect} {seed}")
    sources = seeds(dialect)
    for _ in range(count):
        yield damaged(chance.choice(sources), chance)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.request_fuzz")
    parser.add_argument("dialect", choices=dialects.NAMES)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("decode", "check"), help="instead of converting")
    options = parser.parse_args()
    action = {"decode": decode, "check": check}.get(options.only, convert)
    counts: Counter[str] = Counter()
    bodies = random_bodies(options.dialect, options.count, options.seed)
    found = failures(options.dialect, bodies, action, counts)
    for name, body in sorted(found.items()):
        print(f"{name}\n    {body[:1500]!r}")
    print(options.dialect, dict(counts), f"{len(found)} distinct failures")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
