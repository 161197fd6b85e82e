"""Families of tasks: a generator for each, and the half of the evaluation it belongs to."""

import hashlib
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from evals.draw import Draw
from evals.task import Task

Kind: TypeAlias = Literal["one-step", "multi-step", "honesty"]
Half: TypeAlias = Literal["tuning", "held-out"]
KINDS: tuple[Kind, ...] = ("one-step", "multi-step", "honesty")
HALVES: tuple[Half, ...] = ("tuning", "held-out")

SPLIT_SEED = "1969"
"""Decides with a family's id which half it belongs to. Changing it would mix the halves.

It is the smallest number for which the held-out half has 60 families of one step, 20 of several
and 12 of honesty, and every module of families has some in each half."""
HELD_OUT_PERCENT = 60


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of one shape, made anew for every seed."""

    id: str
    kind: Kind
    make: Callable[[Draw], Task]
    tuned: bool = False
    """Whether prompts were once chosen by these tasks: never held out."""

    @property
    def half(self) -> Half:
        """A function of the id and the seed of the split alone."""
        if self.tuned:
            return "tuning"
        digest = hashlib.sha256(f"{SPLIT_SEED}/{self.id}".encode()).digest()
        share = int.from_bytes(digest[:4], "big") % 100
        return "held-out" if share < HELD_OUT_PERCENT else "tuning"

    def task(self, seed: int, variant: int = 0) -> Task:
        """The same task for the same seed and variant."""
        made = self.make(Draw(f"{seed}/{variant}/{self.id}"))
        name = self.id if variant == 0 else f"{self.id}.{variant}"
        return msgspec.structs.replace(made, id=name, kind=self.kind)


class Group:
    """The families that one module defines."""

    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind
        self.families: list[Family] = []

    def __call__(self, make: Callable[[Draw], Task]) -> Callable[[Draw], Task]:
        """Register a generator under its own name."""
        name = make.__name__.replace("_", "-")
        self.families.append(Family(id=name, kind=self.kind, make=make))
        return make
