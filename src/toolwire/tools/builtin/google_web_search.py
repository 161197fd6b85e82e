"""`google_web_search`: a search by a model that can, with its sources numbered."""

from typing import Annotated

import msgspec

from toolwire.errors import ToolwireError
from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words
from toolwire.tools.web.grounding import ask, cited, complaint, listed, searches, sources

_EMPTY = "The 'query' parameter cannot be empty."


class GoogleWebSearch(msgspec.Struct, frozen=True):
    """Arguments of `google_web_search`."""

    query: Annotated[
        str, msgspec.Meta(description="The search query to find information on the web.")
    ]


def _check(arguments: JsonObject, context: ToolContext) -> str:
    del context
    return "" if str(arguments.get("query", "")).strip() else _EMPTY


@tool(
    "google_web_search",
    Effect.NETWORK,
    words("google_web_search"),
    title="GoogleSearch",
    check=_check,
)
async def google_web_search(args: GoogleWebSearch, context: ToolContext) -> ToolOutput:
    """Ask with Google's search switched on."""
    if context.model is None or not searches(context):
        why = "no model is set up that can search; go on without it, or fetch a page you know"
        text = f'Error during web search for query "{args.query}": {why}'
        raise ToolFailed(text, type="web_search_failed")
    try:
        found = await ask(context.model, args.query, "googleSearch")
    except ToolwireError as error:
        text = f'Error during web search for query "{args.query}": {complaint(error, context)}'
        raise ToolFailed(
            text, display="Error performing web search.", type="web_search_failed"
        ) from error
    if not found.text.strip():
        text = f'No search results or information found for query: "{args.query}"'
        return ToolOutput(text=text, display="No information found.")
    lines = sources(found.grounding, no_uri="No URI")
    body = cited(found.text, found.grounding, "utf-8") if lines else found.text
    return ToolOutput(
        text=f'Web search results for "{args.query}":\n\n{listed(body, lines)}',
        display=f'Search results for "{args.query}" returned.',
    )


TOOL = google_web_search
