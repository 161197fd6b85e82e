"""What a driver and its host processes say to each other: lines of JSON."""

from typing import TypeAlias

import msgspec

from toolwire.batch.store import Claim


class Greet(msgspec.Struct, frozen=True, tag="greet"):
    """The first order: what a host is called, and what must not be on a command line."""

    name: str
    upstream: str = ""


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Run an attempt."""

    claim: Claim


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """End an attempt."""

    n: int


class StopAll(msgspec.Struct, frozen=True, tag="stop"):
    """End all attempts."""

    hard: bool = False


Order: TypeAlias = Greet | Start | Cancel | StopAll
orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)


class AttemptEnded(msgspec.Struct, frozen=True, tag="ended"):
    """An attempt has ended; 0 reports that the host is ready."""

    n: int


ends: msgspec.json.Decoder[AttemptEnded] = msgspec.json.Decoder(AttemptEnded)
