"""`web_fetch`: pages named in a prompt, read and worked on by a model."""

import asyncio
import re
from typing import TYPE_CHECKING, Annotated

import msgspec

from toolwire.errors import ToolwireError
from toolwire.model import Model
from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words
from toolwire.tools.web.grounding import (
    Grounded,
    ask,
    cited,
    complaint,
    listed,
    objects,
    searches,
    sources,
)

if TYPE_CHECKING:
    from toolwire.tools.web.fetch import Fetched

MOST_URLS = 20
MOST_CHARACTERS = 100_000
"""Of all pages together, as the model beside the conversation is given them."""
_URL = re.compile(r"https?://\S+")
_NO_PROMPT = "The 'prompt' parameter cannot be empty and must contain URL(s) and instructions."
_NO_URL = "The 'prompt' must contain at least one valid URL (starting with http:// or https://)."
_RETRIEVED = "URL_RETRIEVAL_STATUS_SUCCESS"
_AT_ONCE = 5
_CLOSING = {")": "(", "]": "[", "}": "{"}


class WebFetch(msgspec.Struct, frozen=True):
    """Arguments of `web_fetch`."""

    prompt: Annotated[
        str,
        msgspec.Meta(
            description="A comprehensive prompt that includes the URL(s) (up to 20) to fetch and "
            'specific instructions on how to process their content (e.g., "Summarize '
            'https://example.com/article and extract key points from https://another.com/data"). '
            "Must contain as least one URL starting with http:// or https://."
        ),
    ]


def urls_in(prompt: str) -> list[str]:
    """The addresses in a prompt, each once, without the punctuation around them."""
    found = (_trimmed(url) for url in _URL.findall(prompt))
    return list(dict.fromkeys(url for url in found if len(url) > len("https://")))


def _trimmed(url: str) -> str:
    counts = {sign: url.count(sign) for sign in "()[]{}"}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in _CLOSING:
            if counts[_CLOSING[last]] >= counts[last]:
                break
            counts[last] -= 1
        elif last not in ".,;:!?\"'>`*":
            break
        end -= 1
    return url[:end]


def _check(arguments: JsonObject, context: ToolContext) -> str:
    del context
    prompt = str(arguments.get("prompt", ""))
    if not prompt.strip():
        return _NO_PROMPT
    urls = urls_in(prompt)
    if not urls:
        return _NO_URL
    if len(urls) > MOST_URLS:
        return (
            f"The 'prompt' contains {len(urls)} URLs; at most {MOST_URLS} can be fetched at once."
        )
    return ""


@tool("web_fetch", Effect.NETWORK, words("web_fetch"), title="WebFetch", check=_check)
async def web_fetch(args: WebFetch, context: ToolContext) -> ToolOutput:
    """Let the vendor fetch where it can; else fetch here, and ask the model about the text."""
    from toolwire.tools.web.fetch import is_public_name  # noqa: PLC0415 - start-up time

    urls = urls_in(args.prompt)
    model = context.model
    if model is not None and searches(context) and all(map(is_public_name, urls)):
        try:
            answer = await ask(model, args.prompt, "urlContext")
        except ToolwireError as error:
            start = args.prompt[:50]
            text = f'Error processing web content for prompt "{start}...": '
            raise ToolFailed(
                text + complaint(error, context), type="web_fetch_processing_error"
            ) from error
        if _answered(answer):
            lines = sources(answer.grounding, no_uri="Unknown URI")
            # The original counts in the units of its own strings here.
            body = cited(answer.text, answer.grounding, "utf-16-le") if lines else answer.text
            return ToolOutput(text=listed(body, lines), display="Content processed from prompt.")
    return await _here(args.prompt, urls, context, model)


def _answered(answer: Grounded) -> bool:
    """Whether the vendor read at least one page, and answered."""
    statuses = [
        page.get("urlRetrievalStatus") for page in objects(answer.retrieval.get("urlMetadata"))
    ]
    if statuses and _RETRIEVED not in statuses:
        return False
    return bool(answer.text.strip() or answer.grounding.get("groundingChunks"))


async def _here(
    prompt: str, urls: list[str], context: ToolContext, model: Model | None
) -> ToolOutput:
    pages = await _fetched(urls, context)
    if all(page.error for page in pages):
        message = "\n".join(
            f"Error during fallback fetch for {one.url}: {one.error}" for one in pages
        )
        raise ToolFailed(message, type="web_fetch_fallback_failed")
    text = _together(pages)
    shown = f"Content for {urls[0]} processed using fallback fetch."
    if model is None:
        return ToolOutput(text=text, display=shown)
    question = words("web_fetch.fallback").format(prompt=prompt, text=text)
    try:
        answer = await ask(model, question)
    except ToolwireError as error:
        message = f"Error during fallback fetch for {urls[0]}: {complaint(error, context)}"
        raise ToolFailed(message, type="web_fetch_fallback_failed") from error
    return ToolOutput(text=answer.text, display=shown)


async def _fetched(urls: list[str], context: ToolContext) -> "list[Fetched]":
    from toolwire.tools.web.fetch import Fetching, fetch  # noqa: PLC0415 - start-up time

    rules = Fetching(private=context.settings.allow_private_addresses)
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(url: str) -> "Fetched":
        async with places:
            return await fetch(url, rules)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(url)) for url in urls]
    return [task.result() for task in tasks]


def _together(pages: "list[Fetched]") -> str:
    """One page bare, several under their addresses, within the limit."""
    if len(pages) == 1:
        return pages[0].text[:MOST_CHARACTERS]
    share = MOST_CHARACTERS // len(pages)
    return "\n\n".join(
        f"--- {page.url} ---\n{page.text[:share] or f'(not fetched: {page.error})'}"
        for page in pages
    )


TOOL = web_fetch
