"""Google's SDKs write inline data in the URL-safe alphabet; other vendors take the standard one."""

import base64
import json
import re
from typing import Any

import pytest

from toolwire.codec import translate
from toolwire.messages import Media, MediaKind

BYTES = bytes(range(240, 256)) * 3 + b"?>?"
SAFE = base64.urlsafe_b64encode(BYTES).decode()
TEXT = base64.urlsafe_b64encode("ÿþ??>>".encode()).decode()
OTHERS = ("openai-chat", "openai-responses", "anthropic-messages")


def _inline(mime: str, data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime, "data": data}}


def _request(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(parts)}]}


def _with_result(part: dict[str, Any]) -> dict[str, Any]:
    response = {"name": "look", "response": {"output": "seen"}, "parts": [part]}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "look"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]
    }


def _converted(request: dict[str, Any], source: str, target: str) -> str:
    body = {"model": "m", "request": request} if source == "code-assist" else request
    return translate(json.dumps(body).encode(), source, target, model="m").http.body.decode()


def _blobs(body: str) -> list[bytes]:
    """Every long base64 text of a body, decoded strictly."""
    found = re.findall(r"[A-Za-z0-9+/=_-]{40,}", body)
    return [base64.b64decode(text, validate=True) for text in found]


def test_the_sample_uses_both_characters_of_the_alphabet() -> None:
    assert {"-", "_"} <= set(SAFE)


@pytest.mark.parametrize("target", OTHERS)
@pytest.mark.parametrize("source", ["gemini", "code-assist"])
def test_an_image_reaches_other_vendors_in_the_standard_alphabet(source: str, target: str) -> None:
    assert _blobs(_converted(_request(_inline("image/png", SAFE)), source, target)) == [BYTES]


@pytest.mark.parametrize("target", OTHERS)
def test_a_file_reaches_other_vendors_in_the_standard_alphabet(target: str) -> None:
    assert _blobs(_converted(_request(_inline("application/pdf", SAFE)), "gemini", target)) == [
        BYTES
    ]


def test_sound_reaches_chat_in_the_standard_alphabet() -> None:
    request = _request(_inline("audio/wav", SAFE))
    assert _blobs(_converted(request, "gemini", "openai-chat")) == [BYTES]


@pytest.mark.parametrize("target", OTHERS)
def test_media_in_a_function_response_is_in_the_standard_alphabet(target: str) -> None:
    assert _blobs(_converted(_with_result(_inline("image/png", SAFE)), "gemini", target)) == [BYTES]


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages"])
def test_text_sent_inline_is_decoded_whole(target: str) -> None:
    request = _request(_inline("text/plain", TEXT))
    assert "ÿþ??>>" in _converted(request, "gemini", target)


def test_snake_case_and_missing_padding_are_read_too() -> None:
    data = SAFE.rstrip("=")
    request = _request({"inline_data": {"mime_type": "image/png", "data": data}})
    assert _blobs(_converted(request, "gemini", "anthropic-messages")) == [BYTES]


@pytest.mark.parametrize("target", ["gemini", "code-assist"])
@pytest.mark.parametrize("source", ["gemini", "code-assist"])
def test_google_receives_its_own_alphabet_unchanged(source: str, target: str) -> None:
    request = _request({"text": "what is this?"}, _inline("image/png", SAFE))
    assert SAFE in _converted(request, source, target)
    assert SAFE in _converted(_with_result(_inline("image/png", SAFE)), source, target)


def test_media_made_by_a_program_is_in_the_standard_alphabet() -> None:
    media = Media(kind=MediaKind.IMAGE, mime="image/png", base64=SAFE)
    assert media.base64 == base64.b64encode(BYTES).decode()
    assert media.data == BYTES
