"""Hard streams of tool calls, written once; `rendering` spells each in every wire format."""

from typing import Any, NamedTuple


class Piece(NamedTuple):
    """A fragment of a call as a server may send it; `call` is the truth behind it."""

    call: int
    args: Any = None
    id: str | None = None
    name: str | None = None
    at: int | None = None


class Say(NamedTuple):
    """Text between the fragments."""

    text: str


class Wanted(NamedTuple):
    """A call as it must come out; id None for "any, but unique"."""

    name: str
    arguments: Any
    id: str | None = None
    status: str = "complete"


class Scenario(NamedTuple):
    """One stream and what it means."""

    name: str
    steps: tuple[Piece | Say, ...]
    wanted: tuple[Wanted, ...]
    text: str = ""
    end: str = "tool_calls"
    """tool_calls, stop, length, or broken."""
    not_in: frozenset[str] = frozenset()
    """Formats that cannot say this: Gemini's arguments, for one, are an object."""


A, B = {"path": "a"}, {"path": "b"}
A_TEXT, B_TEXT = '{"path":"a"}', '{"path":"b"}'


def _one(call: int, text: str, *, id: str | None, name: str, at: int | None) -> tuple[Piece, ...]:
    """A call in the usual way: a head, then pieces."""
    middle = len(text) // 2
    return (
        Piece(call, "", id, name, at),
        Piece(call, text[:middle], None, None, at),
        Piece(call, text[middle:], None, None, at),
    )


READ_A = _one(0, A_TEXT, id="call_a", name="read", at=0)
READ_B = _one(1, B_TEXT, id="call_b", name="read", at=1)
BOTH = (Wanted("read", A, "call_a"), Wanted("read", B, "call_b"))
ESCAPES = '{"s":"caf\\u00e9 \\ud83d\\ude00 naïve 数据"}'

OBJECT_ARGUMENTS = frozenset({"gemini", "code-assist"})

SCENARIOS = (
    Scenario("one call", READ_A, BOTH[:1]),
    Scenario("two calls in parallel", READ_A + READ_B, BOTH),
    Scenario(
        "two calls interleaved",
        (READ_A[0], READ_B[0], READ_A[1], READ_B[1], READ_B[2], READ_A[2]),
        BOTH,
    ),
    Scenario(
        "three calls that close out of order",
        (
            READ_A[0],
            READ_B[0],
            Piece(2, "{}", "call_c", "list", 2),
            READ_B[1],
            READ_B[2],
            READ_A[1],
            READ_A[2],
        ),
        (*BOTH, Wanted("list", {}, "call_c")),
    ),
    Scenario("text, then a call", (Say("Let me look. "), *READ_A), BOTH[:1], "Let me look. "),
    Scenario("a call, then text", (*READ_A, Say("Reading.")), BOTH[:1], "Reading."),
    Scenario(
        "text between the pieces",
        (READ_A[0], READ_A[1], Say("hm"), READ_A[2]),
        BOTH[:1],
        "hm",
    ),
    Scenario(
        "ids and names repeated on every piece",
        tuple(piece._replace(id="call_a", name="read") for piece in READ_A),
        BOTH[:1],
    ),
    Scenario(
        "ids empty on later pieces",
        tuple(
            piece._replace(id=piece.id or "", name=piece.name or "") for piece in READ_A + READ_B
        ),
        BOTH,
    ),
    Scenario(
        "index 0 for all, told apart by id",
        tuple(piece._replace(at=0) for piece in READ_A + READ_B),
        BOTH,
    ),
    Scenario(
        "index 0 for all, whole calls without ids",
        (Piece(0, A_TEXT, None, "read", 0), Piece(1, B_TEXT, None, "read", 0)),
        (Wanted("read", A), Wanted("read", B)),
    ),
    Scenario(
        "no index, whole calls with ids",
        (Piece(0, A_TEXT, "call_a", "read"), Piece(1, B_TEXT, "call_b", "read")),
        BOTH,
    ),
    Scenario(
        "no index, pieces after a head with an id",
        tuple(piece._replace(at=None) for piece in READ_A + READ_B),
        BOTH,
    ),
    Scenario(
        "no index, interleaved by id",
        tuple(
            piece._replace(at=None, id="call_a" if piece.call == 0 else "call_b", name="read")
            for piece in (READ_A[0], READ_B[0], READ_A[1], READ_B[1], READ_A[2], READ_B[2])
        ),
        BOTH,
    ),
    Scenario(
        "neither index nor id",
        (Piece(0, A_TEXT, None, "read"), Piece(1, B_TEXT, None, "write")),
        (Wanted("read", A), Wanted("write", B)),
    ),
    Scenario(
        "neither index nor id, one tool twice",
        (Piece(0, A_TEXT, None, "read"), Piece(1, B_TEXT, None, "read")),
        (Wanted("read", A), Wanted("read", B)),
    ),
    Scenario(
        "no id at all",
        tuple(piece._replace(id=None) for piece in READ_A + READ_B),
        (Wanted("read", A), Wanted("read", B)),
    ),
    Scenario(
        "the id comes with the second piece",
        (Piece(0, "", None, "read", 0), Piece(0, A_TEXT, "call_a", None, 0)),
        BOTH[:1],
    ),
    Scenario(
        "one id for two calls",
        tuple(piece._replace(id="call_a") if piece.id else piece for piece in READ_A + READ_B),
        (BOTH[0], Wanted("read", B)),
    ),
    Scenario(
        "the name in pieces",
        (
            Piece(0, None, "call_a", "re", 0),
            Piece(0, None, None, "ad", 0),
            Piece(0, A_TEXT, None, None, 0),
        ),
        BOTH[:1],
    ),
    Scenario(
        "arguments null, then whole",
        (Piece(0, None, "call_a", "read", 0), Piece(0, A_TEXT, None, None, 0)),
        BOTH[:1],
    ),
    Scenario("arguments whole in the head", (Piece(0, A_TEXT, "call_a", "read", 0),), BOTH[:1]),
    Scenario("arguments as an object", (Piece(0, A, "call_a", "read", 0),), BOTH[:1]),
    Scenario(
        "two objects glued into one call",
        (Piece(0, A_TEXT + B_TEXT, "call_a", "read", 0),),
        (BOTH[0], Wanted("read", B)),
        not_in=OBJECT_ARGUMENTS,
    ),
    Scenario(
        "no arguments",
        (Piece(0, "", "call_a", "list", 0), Piece(1, None, "call_b", "list", 1)),
        (Wanted("list", {}, "call_a"), Wanted("list", {}, "call_b")),
    ),
    Scenario(
        "arguments cut inside escapes and characters",
        tuple(
            Piece(0, part, "call_a" if not number else None, "say" if not number else None, 0)
            for number, part in enumerate(["", *ESCAPES])
        ),
        (Wanted("say", {"s": "café 😀 naïve 数据"}, "call_a"),),
    ),
    Scenario(
        "a line separator inside the arguments",
        (Piece(0, '{"s":"a\u2028b\u0085c"}', "call_a", "say", 0),),
        (Wanted("say", {"s": "a\u2028b\u0085c"}, "call_a"),),
    ),
    Scenario("the server says stop though it calls", READ_A, BOTH[:1], end="stop"),
    Scenario(
        "cut by the length limit",
        (*READ_A, Piece(1, '{"path":"b', "call_b", "read", 1)),
        (BOTH[0], Wanted("read", None, "call_b", "incomplete")),
        end="length",
    ),
    Scenario(
        "cut by the length limit before any argument",
        (Piece(0, "", "call_a", "read", 0),),
        (Wanted("read", {}, "call_a", "incomplete"),),
        end="length",
    ),
    Scenario(
        "the stream breaks inside the arguments",
        (Piece(0, "", "call_a", "read", 0), Piece(0, '{"pa', None, None, 0)),
        (Wanted("read", None, "call_a", "incomplete"),),
        end="broken",
    ),
    Scenario(
        "arguments that are no JSON",
        (Piece(0, '{"path": a}', "call_a", "read", 0),),
        (Wanted("read", None, "call_a", "invalid"),),
        not_in=OBJECT_ARGUMENTS,
    ),
    Scenario(
        "arguments that are a list",
        (Piece(0, "[1]", "call_a", "read", 0),),
        (Wanted("read", None, "call_a", "invalid"),),
        not_in=OBJECT_ARGUMENTS,
    ),
    Scenario(
        "a call sent twice, word for word",
        (Piece(0, A_TEXT, "call_a", "read", 0), Piece(0, A_TEXT, "call_a", "read", 0)),
        BOTH[:1],
        not_in=OBJECT_ARGUMENTS | {"anthropic-messages", "openai-responses"},
    ),
)
