"""Describes a setting in the struct that uses it: its meaning, its values and who may set it."""

from typing import Annotated, TypeAlias

import msgspec

Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
ModelName: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[^/]+/.", extra={"expected": '"provider/model"'})
]
StoreUrl: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(postgres(ql)?://.+)?$", extra={"expected": 'empty, or "postgresql://…"'}
    ),
]


def setting(doc: str, **rules: object) -> msgspec.Meta:
    """Returns the annotation that makes a field a setting; fields without it are not settings.

    Rules: `project` (a project may set it), `joins` (lists of higher layers are added),
    `file` (a path, from the folder of the file that names it), `tables` (tables by name),
    `tighter` (the values, loosest first, if a project may only tighten it).
    """
    return msgspec.Meta(description=doc, extra=rules)
