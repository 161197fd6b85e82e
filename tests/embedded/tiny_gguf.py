"""A language model of one layer and random weights: small enough for a test to make.

It knows single bytes and speaks noise, so what it says within a schema is the schema's doing.
The layout is GGUF version 3: header, metadata, descriptions of tensors, aligned tensors.
"""

import random
import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | Sequence[int] | Sequence[str]

CONTEXT = 4096
_VERSION = 3
_ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_F32 = 0
_WIDTH, _HEADS, _FORWARD = 32, 2, 64
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_NORMAL, _CONTROL = 1, 3

_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_gguf(seed: int = 1) -> bytes:
    """The whole file; the same seed gives the same bytes."""
    tokens = [*_byte_names(), *_SPECIAL, "in"]
    metadata = _metadata(tokens)
    shapes = _shapes(len(tokens))
    chance = random.Random(seed)
    described, tensors = bytearray(), bytearray()
    for name, shape in shapes.items():
        described += _string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        described += struct.pack("<IQ", _F32, len(tensors))
        tensors += _values(name, shape, chance)
        tensors += _padding(len(tensors))
    head = b"GGUF" + struct.pack("<IQQ", _VERSION, len(shapes), len(metadata))
    head += b"".join(_string(key) + _typed(value) for key, value in metadata.items()) + described
    return head + _padding(len(head)) + tensors


def _metadata(tokens: Sequence[str]) -> Mapping[str, Value]:
    ids = {token: number for number, token in enumerate(tokens)}
    return {
        "general.architecture": "qwen2",
        "general.name": "Tiny",
        "general.alignment": _ALIGNMENT,
        "qwen2.context_length": CONTEXT,
        "qwen2.embedding_length": _WIDTH,
        "qwen2.block_count": 1,
        "qwen2.feed_forward_length": _FORWARD,
        "qwen2.attention.head_count": _HEADS,
        "qwen2.attention.head_count_kv": _HEADS,
        "qwen2.attention.layer_norm_rms_epsilon": 1e-6,
        "qwen2.rope.freq_base": 10_000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [
            _CONTROL if token in _SPECIAL else _NORMAL for token in tokens
        ],
        "tokenizer.ggml.merges": ["i n"],
        "tokenizer.ggml.bos_token_id": ids["<|endoftext|>"],
        "tokenizer.ggml.eos_token_id": ids["<|im_end|>"],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": _TEMPLATE,
    }


def _shapes(vocabulary: int) -> Mapping[str, tuple[int, ...]]:
    """The tensors of a Qwen2 model, the fastest dimension first."""
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (_WIDTH,),
        "attn_q.weight": (_WIDTH, _WIDTH),
        "attn_q.bias": (_WIDTH,),
        "attn_k.weight": (_WIDTH, _WIDTH),
        "attn_k.bias": (_WIDTH,),
        "attn_v.weight": (_WIDTH, _WIDTH),
        "attn_v.bias": (_WIDTH,),
        "attn_output.weight": (_WIDTH, _WIDTH),
        "ffn_norm.weight": (_WIDTH,),
        "ffn_gate.weight": (_WIDTH, _FORWARD),
        "ffn_up.weight": (_WIDTH, _FORWARD),
        "ffn_down.weight": (_FORWARD, _WIDTH),
    }
    return {
        "token_embd.weight": (_WIDTH, vocabulary),
        **{f"blk.0.{name}": shape for name, shape in layer.items()},
        "output_norm.weight": (_WIDTH,),
        "output.weight": (_WIDTH, vocabulary),
    }


def _values(name: str, shape: Sequence[int], chance: random.Random) -> bytes:
    count = 1
    for length in shape:
        count *= length
    values = [1.0] * count if "norm" in name else [chance.uniform(-0.3, 0.3) for _ in range(count)]
    return struct.pack(f"<{count}f", *values)


def _byte_names() -> list[str]:
    """GPT-2's name for each byte: itself if it can be printed, else a letter from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters = iter(range(0x100, 0x200))
    return [chr(byte if byte in shown else next(letters)) for byte in range(0x100)]


def _typed(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case str():
            return struct.pack("<I", _STRING) + _string(value)
        case _:
            kind = _STRING if isinstance(value[0], str) else _INT32
            items = (_string(it) if isinstance(it, str) else struct.pack("<i", it) for it in value)
            return struct.pack("<IIQ", _ARRAY, kind, len(value)) + b"".join(items)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _padding(length: int) -> bytes:
    return bytes(-length % _ALIGNMENT)
