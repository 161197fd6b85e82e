import pytest

from tests.client.scripted import REQUEST, listen, run
from tests.client.speaking import DONE, Scripted
from toolwire.client.reask import falling_back
from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import Notice, TextDelta
from toolwire.model import reading

SAID = [TextDelta("hi"), DONE]


@pytest.mark.parametrize(
    "error",
    [
        ProviderError(ErrorKind.QUOTA, "no credit"),
        ProviderError(ErrorKind.OVERLOADED, "busy"),
        ProviderError(ErrorKind.SERVER, "oops"),
        ProviderError(ErrorKind.TIMEOUT, "late"),
        ConnectionFailed("cannot reach it"),
        IncompleteStream("cut"),
    ],
)
def test_the_next_model_is_asked_and_the_reason_told(error: ToolwireError) -> None:
    async def work() -> None:
        first, second = Scripted([Notice("retry", "again"), error]), Scripted(SAID)
        model = falling_back([("a/one", first), ("b/two", second)])
        told = Notice("fallback", f"a/one does not answer: {error}; asking b/two")
        assert await listen(model) == ([Notice("retry", "again"), told, *SAID], None)
        assert second.asked == [REQUEST]

    run(work)


def test_a_model_that_answers_is_the_only_one_asked() -> None:
    async def work() -> None:
        second = Scripted()
        assert await listen(falling_back([("a", Scripted(SAID)), ("b", second)])) == (SAID, None)
        assert second.asked == []

    run(work)


def test_a_model_that_has_begun_is_not_left() -> None:
    async def work() -> None:
        error = ProviderError(ErrorKind.OVERLOADED, "busy")
        model = falling_back([("a", Scripted([TextDelta("h"), error])), ("b", Scripted(SAID))])
        assert await listen(model) == ([TextDelta("h")], error)

    run(work)


@pytest.mark.parametrize("kind", [ErrorKind.BAD_REQUEST, ErrorKind.CONTEXT_TOO_LONG])
def test_a_mistake_of_ours_is_not_taken_elsewhere(kind: ErrorKind) -> None:
    async def work() -> None:
        error = ProviderError(kind, "no")
        model = falling_back([("a", Scripted([error])), ("b", Scripted(SAID))], on_auth=True)
        assert await listen(model) == ([], error)

    run(work)


def test_refused_credentials_are_passed_over_only_when_asked() -> None:
    async def work() -> None:
        error = ProviderError(ErrorKind.AUTH, "bad key")
        for on_auth, said in ((False, []), (True, SAID)):
            models = [("a", Scripted([error])), ("b", Scripted(SAID))]
            events, failure = await listen(falling_back(models, on_auth=on_auth))
            assert [event for event in events if not isinstance(event, Notice)] == said
            assert failure is (None if on_auth else error)

    run(work)


def test_the_last_model_s_error_is_raised() -> None:
    async def work() -> None:
        errors = [ProviderError(ErrorKind.SERVER, word) for word in "abc"]
        model = falling_back([(str(error), Scripted([error])) for error in errors])
        events, error = await listen(model)
        assert len(events) == 2
        assert error is errors[-1]

    run(work)


def test_a_reader_that_stops_closes_the_model() -> None:
    async def work() -> None:
        script = Scripted(SAID)
        async with reading(falling_back([("a", script)])(REQUEST)) as events:
            assert await anext(events) == SAID[0]
        assert script.closed == 1

    run(work)


def test_no_models_are_refused() -> None:
    with pytest.raises(BadInput):
        falling_back([])
