"""Finds the turns of a conversation in memory, and puts back what the client dropped of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice

import msgspec

from toolwire.gateway.memory import (
    Keys,
    Maker,
    StoredTurn,
    TurnContext,
    handle_of,
    seal_mark,
    seal_of,
)
from toolwire.gateway.parts import Recalled
from toolwire.gateway.reattach import Attachment, Piece
from toolwire.gateway.visible import PartRun, runs_of, visible_answer, visible_call, visible_text
from toolwire.messages import Part, Seal, Text, Thinking, ToolCall, ToolResult
from toolwire.request import ModelRequest

_MOST_PARTS = 32
"""Parts of a message that is searched for merged turns: the search is quadratic."""
_UNIQUE = 12
"""Letters and digits at the end of an id from which no server gives it twice."""


class Search:
    """The turns of one request: first by ids and handles, then by what is visible of them."""

    def __init__(self, keys: Keys, request: ModelRequest) -> None:
        self.request = request
        self.has_answers = any(one.role == "assistant" for one in request.messages)
        """Without any there is nothing to find or to put back."""
        self._runs: list[PartRun] | None = None
        self._keys = keys
        self._found: dict[bytes, StoredTurn] = {}
        self._matched: dict[int, StoredTurn] = {}
        self._used: set[str] = set()
        """Turns that have their run."""
        self._pieces: dict[int, tuple[Piece, ...]] = {}
        """What each run of answers becomes; a run that is part of an earlier one becomes none."""

    @property
    def runs(self) -> Sequence[PartRun]:
        """The conversation."""
        if self._runs is None:
            self._runs = runs_of(self.request.messages)
        return self._runs

    @cached_property
    def asked(self) -> TurnContext:
        """What its next turn answers."""
        return TurnContext.of(self.runs)

    def first_keys(self) -> list[bytes]:
        """By ids and handles; by what is visible for turns that have neither."""
        found: list[bytes] = []
        for run in self._answers():
            direct = [*self._part_keys(run)]
            found += direct or self._visible_keys(run)
        return found

    def add(self, found: Mapping[bytes, StoredTurn]) -> None:
        """Takes the turns that a store has for the requested keys."""
        self._found.update(found)

    def second_keys(self) -> list[bytes]:
        """Of the turns that the first keys left unknown or in doubt."""
        found: list[bytes] = []
        for number, run in enumerate(self.runs):
            if not run.answer:
                continue
            turn = self._certain(run)
            if turn is None:
                found += self._visible_keys(run)
                if run.last > run.first:
                    messages = self.request.messages[run.first : run.last + 1]
                    found += [self._keys.said(visible_answer(one.parts)) for one in messages]
                if len(run.parts) > 1:
                    texts = (part for part in run.parts if isinstance(part, Text))
                    found += [self._keys.said(visible_answer((part,))) for part in texts]
            else:
                self._matched[number] = turn
                self._used.add(turn.id)
        return [key for key in dict.fromkeys(found) if key not in self._found]

    def settle(self) -> None:
        """Decides which turn each run is; called once, after both lookups."""
        self._match(self._same_chain)
        self._match(self._near)
        roots = {turn.root for turn in self._matched.values()} | {self.asked.root}
        self._match(partial(self._linked, roots))
        if self._matched:
            # Also after the client cut its beginning off it is the same conversation.
            root = self._matched[min(self._matched)].root
            self.asked = msgspec.structs.replace(self.asked, root=root)
        for number, run in enumerate(self.runs):
            if not run.answer or number in self._pieces:
                continue
            turn = self._matched.get(number)
            if turn is not None:
                self._pieces[number] = (Piece(run.parts, turn, equal=True),)
            elif not self._join(number, roots):
                self._pieces[number] = self._split(run, roots)

    @property
    def newest(self) -> Maker | None:
        """Who made the newest seal of the conversation."""
        for number in sorted(self._pieces, reverse=True):
            for piece in reversed(self._pieces[number]):
                if piece.turn is not None and piece.turn.sealed:
                    return piece.turn.maker
        return None

    def outcome(self) -> tuple[int, int, int]:
        """How many answers of the conversation are known, unknown, and changed by the client."""
        pieces = [piece for found in self._pieces.values() for piece in found]
        known = sum(piece.equal for piece in pieces)
        changed = sum(piece.turn is not None and not piece.equal for piece in pieces)
        return known, len(pieces) - known - changed, changed

    def attach(self, target: Maker) -> Recalled:
        """The request for this reader."""
        if not self.has_answers:
            return Recalled(request=self.request)
        return Attachment(self, target).done()

    def pieces(self, number: int) -> tuple[Piece, ...]:
        """What a run of answers becomes."""
        return self._pieces[number]

    def maker_of(self, seal: Seal) -> tuple[Seal, Maker] | None:
        """A seal as it was received, and its maker; None if it is unknown."""
        mark = seal_mark(seal)
        turn = None if mark is None else self._found.get(self._keys.seal(mark))
        for part in turn.parts if turn is not None else ():
            own = seal_of(part)
            if turn is not None and own is not None and seal_mark(own) == mark:
                return own, turn.maker
        return None

    def _answers(self) -> Iterator[PartRun]:
        return (run for run in self.runs if run.answer)

    def _id_keys(self, run: PartRun) -> list[bytes]:
        return [self._keys.call(call.id) for call in run.calls if not call.made_id]

    def _seal_keys(self, run: PartRun) -> Iterator[bytes]:
        """By handles, and by seals that the client returned."""
        return (key for part in run.parts if (key := self._seal_key(part)))

    def _seal_key(self, part: Part) -> bytes | None:
        seal = seal_of(part)
        if seal is None:
            return None
        handle = handle_of(seal)
        if handle:
            return self._keys.handle(handle)
        mark = seal_mark(seal)
        return None if mark is None else self._keys.seal(mark)

    def _part_keys(self, run: PartRun) -> Iterator[bytes]:
        """By ids, handles and seals, in the order of the parts."""
        for part in run.parts:
            key = self._seal_key(part)
            if key is not None:
                yield key
            if isinstance(part, ToolCall) and not part.made_id:
                yield self._keys.call(part.id)

    def _visible_keys(self, run: PartRun) -> list[bytes]:
        keys = self._keys
        return [keys.chain(run.chain), keys.near(run.before, run.digest), keys.said(run.digest)]

    def _turns(self, keys: Iterable[bytes]) -> list[StoredTurn]:
        found = (self._found.get(key) for key in keys)
        return list({turn.id: turn for turn in found if turn is not None}.values())

    def _certain(self, run: PartRun) -> StoredTurn | None:
        """The turn by ids, handle or seal, unless another one could have the same ids."""
        for turn in self._turns(self._id_keys(run)):
            if (
                turn.visible == run.digest
                and _same_ids(turn, run.calls)
                and (turn.chain == run.chain or all(map(is_unique, turn.call_ids)))
            ):
                return turn
        for turn in self._turns(self._seal_keys(run)):
            if turn.visible == run.digest:
                return turn
        return None

    def _match(self, find: Callable[[PartRun], StoredTurn | None]) -> None:
        """Matches runs that no surer way has; each turn once, the newest with the last run."""
        for number in range(len(self.runs) - 1, -1, -1):
            if self.runs[number].answer and number not in self._matched:
                turn = find(self.runs[number])
                if turn is not None and turn.id not in self._used:
                    self._used.add(turn.id)
                    self._matched[number] = turn

    def _same_chain(self, run: PartRun) -> StoredTurn | None:
        """The turn by the whole conversation before it."""
        turn = self._found.get(self._keys.chain(run.chain))
        return turn if turn is not None and _fits(turn, run) else None

    def _near(self, run: PartRun) -> StoredTurn | None:
        """The turn by what it answered."""
        turn = self._found.get(self._keys.near(run.before, run.digest))
        return turn if turn is not None and _fits(turn, run) else None

    def _linked(self, roots: set[bytes], run: PartRun) -> StoredTurn | None:
        """The turn by itself, if it belongs to a conversation that this one was made from."""
        *_, said = self._visible_keys(run)
        for turn in self._turns([*self._id_keys(run), said]):
            if turn.root in roots and turn.visible == run.digest and _fits(turn, run):
                return turn
        return None

    def _named(self, run: PartRun, roots: set[bytes]) -> list[StoredTurn]:
        """The turns that ids and handles name, in the order of the run."""
        found = self._turns(self._part_keys(run))
        return [
            turn
            for turn in found
            if turn.root in roots or all(map(is_unique, filter(None, turn.call_ids)))
        ]

    def _join(self, number: int, roots: set[bytes]) -> bool:
        """Whether the run begins a turn that the client cut: calls apart, results between."""
        for turn in self._named(self.runs[number], roots):
            parts = list(self.runs[number].parts)
            absorbed: list[int] = []
            for later in range(number + 1, len(self.runs)):
                run = self.runs[later]
                if run.answer:
                    if not run.calls or any(call.id not in turn.call_ids for call in run.calls):
                        break
                    parts += run.parts
                    absorbed.append(later)
                elif not all(_answers(part, turn) for part in run.parts):
                    break
            ordered = _in_order(parts, turn)
            found = _window(ordered, turn) if absorbed else None
            if found is not None:
                start, end = found
                self._pieces[number] = (
                    *self._alone(_without_thinking(ordered[:start], turn), roots),
                    Piece(ordered[start:end], turn, equal=True),
                    *self._alone(ordered[end:], roots),
                )
                self._pieces.update((later, ()) for later in absorbed)
                return True
        return False

    def _split(self, run: PartRun, roots: set[bytes]) -> tuple[Piece, ...]:
        """The run cut where the turns end that the client merged; else as one changed turn."""
        turns = self._named(run, roots)
        if len(turns) > 1 and _is_sum(run, turns):
            calls = iter(run.calls)
            return tuple(
                Piece(tuple(islice(calls, len(turn.calls))), turn, equal=True) for turn in turns
            )
        if not turns:
            messages = self.request.messages[run.first : run.last + 1]
            alone = [piece for one in messages for piece in self._alone(one.parts, roots)]
            return tuple(alone) if any(one.turn for one in alone) else (Piece(run.parts),)
        pieces: list[Piece] = []
        rest = run.parts
        for turn in turns:
            found = _window(rest, turn)
            if found is None:
                end = _end_of(rest, turn)
                pieces.append(Piece(rest[:end], turn))
            else:
                start, end = found
                pieces += self._alone(_without_thinking(rest[:start], turn), roots)
                pieces.append(Piece(rest[start:end], turn, equal=True))
            rest = rest[end:]
        if pieces and not pieces[-1].equal:
            # What follows a changed turn may belong to it.
            changed = pieces.pop()
            return (*pieces, changed._replace(parts=changed.parts + rest))
        return (*pieces, *self._alone(rest, roots)) if rest else tuple(pieces)

    def _alone(self, parts: tuple[Part, ...], roots: set[bytes]) -> tuple[Piece, ...]:
        """Parts beside a known turn: a turn that nothing names, or words of the client."""
        if not parts:
            return ()
        known = self._turn_of(parts, roots)
        if known is not None or len(parts) == 1:
            return (Piece(parts, known, equal=known is not None),)
        pieces: list[Piece] = []
        for part in parts:
            turn = self._turn_of((part,), roots) if isinstance(part, Text) else None
            if turn is None and pieces and pieces[-1].turn is None:
                pieces[-1] = Piece((*pieces[-1].parts, part))
            else:
                pieces.append(Piece((part,), turn, equal=turn is not None))
        return tuple(pieces)

    def _turn_of(self, parts: tuple[Part, ...], roots: set[bytes]) -> StoredTurn | None:
        """The turn that these parts are all of, by its handle or by itself."""
        visible = visible_answer(parts)
        named = self._turns(key for part in parts if (key := self._seal_key(part)))
        said = self._turns((self._keys.said(visible),))
        for turn in (*named, *(one for one in said if one.root in roots)):
            if turn.visible == visible and turn.id not in self._used:
                self._used.add(turn.id)
                return turn
        return None


def is_unique(call_id: str) -> bool:
    """Whether an id is long enough to be given only once; servers also count from 0."""
    tail = call_id
    for separator in "_-:.":
        tail = tail.rpartition(separator)[2]
    return len(tail) >= _UNIQUE


def _is_sum(run: PartRun, turns: Sequence[StoredTurn]) -> bool:
    """Whether the run is all of these turns, in a format that puts all text before the calls."""
    texts = "".join(text for turn in turns for text in visible_text(turn.parts).split())
    calls = [call for turn in turns for call in map(visible_call, turn.calls)]
    return texts == "".join(visible_text(run.parts).split()) and calls == [
        *map(visible_call, run.calls)
    ]


def _same_ids(turn: StoredTurn, calls: Sequence[ToolCall]) -> bool:
    return turn.call_ids == tuple(call.id for call in calls)


def _fitting_ids(turn: StoredTurn, calls: Sequence[ToolCall]) -> bool:
    """Whether no call has another id than the one it was sent with."""
    return len(calls) == len(turn.call_ids) and all(
        call.made_id or not sent or call.id == sent
        for call, sent in zip(calls, turn.call_ids, strict=True)
    )


def _fits(turn: StoredTurn, run: PartRun) -> bool:
    """Whether nothing in the run names another turn."""
    handles = {handle_of(seal_of(part)) for part in run.parts}
    return handles <= {"", turn.id} and _fitting_ids(turn, run.calls)


def _answers(part: Part, turn: StoredTurn) -> bool:
    return isinstance(part, ToolResult) and part.call_id in turn.call_ids


def _in_order(parts: Sequence[Part], turn: StoredTurn) -> tuple[Part, ...]:
    """The parts with the calls in the order of the turn."""
    places = {call_id: place for place, call_id in enumerate(turn.call_ids)}

    def place(part: Part) -> int:
        return places.get(part.id, len(places)) if isinstance(part, ToolCall) else -1

    return tuple(sorted(parts, key=place))


def _end_of(parts: Sequence[Part], turn: StoredTurn) -> int:
    """Where the parts of a turn that the client changed end: after its last call or seal."""
    end = 0
    for number in _owned(parts, turn):
        end = number + 1
    return end or len(parts)


def _without_thinking(parts: tuple[Part, ...], turn: StoredTurn) -> tuple[Part, ...]:
    """The parts without the turn's own thinking, which is put back with the turn: the client put
    its words between the two.
    """
    own = {number for number in _owned(parts, turn) if isinstance(parts[number], Thinking)}
    return tuple(part for number, part in enumerate(parts) if number not in own)


def _owned(parts: Sequence[Part], turn: StoredTurn) -> Iterator[int]:
    """The parts that can only be of this turn: by an id, a handle or a seal."""
    marks = {seal_mark(seal) for seal in map(seal_of, turn.parts) if seal is not None}
    for number, part in enumerate(parts):
        seal = seal_of(part)
        own = isinstance(part, ToolCall) and part.id in turn.call_ids
        if own or (seal and (handle_of(seal) == turn.id or seal_mark(seal) in marks)):
            yield number


def _window(parts: Sequence[Part], turn: StoredTurn) -> tuple[int, int] | None:
    """The neighbouring parts that are all of the turn; None if the client changed it."""
    if len(parts) > _MOST_PARTS:
        return None
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            if visible_answer(parts[start:end]) == turn.visible:
                return start, end
    return None
