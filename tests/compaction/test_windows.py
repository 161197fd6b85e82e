import pytest

from toolwire.compaction.tokens import RefusedSize, read_refusal
from toolwire.dialects.failures import kind_of
from toolwire.errors import ErrorKind

REFUSALS = [
    ("prompt is too long: 208310 tokens > 200000 maximum", RefusedSize(200_000, 208_310)),
    (
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, "
        "decrease input length or `max_tokens` and try again",
        RefusedSize(200_000, 178_959),
    ),
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "204308 tokens. Please reduce the length of the messages.",
        RefusedSize(128_000, 204_308),
    ),
    (
        "This model's maximum context length is 131072 tokens. However, you requested 131134 "
        "tokens (122942 in the messages, 8192 in the completion).",
        RefusedSize(131_072, 122_942),
    ),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 1 output "
        "tokens and your prompt contains at least 4097 input tokens, for a total of at least 4098",
        RefusedSize(4_096, 4_097),
    ),
    (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "140000 tokens",
        RefusedSize(131_072, 140_000),
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        RefusedSize(1_048_576, 1_200_000),
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        RefusedSize(131_072, 537_812),
    ),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        RefusedSize(32_768, 40_000),
    ),
    ("Requested tokens (2285) exceed context window of 2048", RefusedSize(2_048, 2_285)),
    ("Prompt tokens (9000) exceeds context size (8192)", RefusedSize(8_192, 9_000)),
    (
        '{"error":{"code":400,"message":"the request exceeds the available context size. try '
        'increasing the context size","type":"exceed_context_size_error","n_prompt_tokens":14429,'
        '"n_ctx":8192}}',
        RefusedSize(8_192, 14_429),
    ),
    ("Your input exceeds the context window of this model.", RefusedSize()),
    ("Request Entity Too Large", RefusedSize()),
]


@pytest.mark.parametrize(("words", "told"), REFUSALS)
def test_the_figures_in_a_refusal_are_read(words: str, told: RefusedSize):
    assert read_refusal(words) == told


@pytest.mark.parametrize("words", [words for words, _ in REFUSALS[:-1]])
def test_a_refusal_for_length_is_known_as_one(words: str):
    assert kind_of(400, "invalid_request_error", words) is ErrorKind.CONTEXT_TOO_LONG
