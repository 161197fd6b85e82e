import pytest

from toolwire import providers
from toolwire.errors import BadInput, UnknownName
from toolwire.providers import ModelInfo, Prices, catalogue


def test_every_listed_model_is_of_a_known_provider_and_dated() -> None:
    found = catalogue.models()
    assert {info.provider for info in found} <= set(providers.names())
    assert all(info.dated for info in found)
    assert len({(info.provider, info.id) for info in found}) == len(found)


def test_figures_are_possible() -> None:
    for info in catalogue.models():
        if info.context and info.output:
            assert info.output <= info.context, info
        if info.prices is not None:
            prices = info.prices
            assert 0 <= prices.input <= prices.output <= 100, info
            assert prices.cache_read is None or prices.cache_read <= prices.input, info
            assert prices.cache_write is None or prices.cache_write >= prices.input, info


def test_images_in_results_are_claimed_only_where_the_format_carries_them() -> None:
    for info in catalogue.models():
        if info.images_in_results:
            entry = providers.get(info.provider).for_model(info.id)
            assert info.images
            assert entry.dialect != "openai-chat", info
            if entry.dialect in ("gemini", "code-assist"):
                assert entry.quirks_for(info.id).media_in_results, info


def test_a_name_splits_at_its_first_slash() -> None:
    provider, model = catalogue.split("openrouter/deepseek/deepseek-v4")
    assert (provider.name, model) == ("openrouter", "deepseek/deepseek-v4")


def test_a_split_gives_the_format_the_model_answers_in() -> None:
    assert catalogue.split("copilot/gpt-5.3-codex")[0].dialect == "openai-responses"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-4o", '"gpt-4o" is not a provider/model; write for example openai/gpt-4o'),
        ("openai/", "write for example openai/<model>"),
        ("", "write for example openai/<model>"),
    ],
)
def test_a_name_without_provider_or_model_says_how_to_write_it(name: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        catalogue.split(name)
    assert said in str(error.value)


def test_an_unknown_provider_in_a_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match='did you mean "openrouter"'):
        catalogue.split("openruoter/x")


def test_a_dated_name_is_known_by_its_name_without_date() -> None:
    short = catalogue.find("anthropic", "claude-haiku-4-5")
    assert short is not None
    assert catalogue.find("anthropic", "claude-haiku-4-5-20251001") == short
    assert catalogue.find("openai", "gpt-4o-2024-08-06") == catalogue.find("openai", "gpt-4o")
    assert catalogue.find("openai", "no-such-model") is None


def test_vertex_offers_googles_models_under_its_own_name() -> None:
    google = catalogue.find("google", "gemini-2.5-pro")
    vertex = catalogue.find("vertex", "gemini-2.5-pro")
    assert google is not None
    assert vertex is not None
    assert (vertex.provider, vertex.prices) == ("vertex", google.prices)


def test_what_a_user_says_of_a_model_wins_and_the_rest_stays() -> None:
    said = catalogue.described("openai/gpt-4o", {"context": 5, "prices": {"input": 1.0}})
    known = catalogue.find("openai", "gpt-4o")
    assert known is not None
    assert (said.context, said.output, said.images) == (5, known.output, True)
    assert said.prices == Prices(input=1.0)
    assert catalogue.find("openai", "gpt-4o", [said]) == said
    assert [info for info in catalogue.models("openai", [said]) if info.id == "gpt-4o"] == [said]


def test_a_user_may_describe_a_model_no_one_knows() -> None:
    said = catalogue.described("mine/large", {"context": 9, "thinking": True})
    assert said == ModelInfo(provider="mine", id="large", context=9, thinking=True)
    assert catalogue.models("mine", [said]) == (said,)


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("openai/x", {"contxt": 1}, 'models."openai/x" "contxt"; did you mean "context"'),
        ("openai/x", {"prices": {"inptu": 1}}, '.prices "inptu"; did you mean "input"'),
        ("openai/x", {"prices": 3}, ".prices must be a table"),
        ("openai/x", {"context": "big"}, "Expected `int`, got `str`"),
        ("x", {}, 'write [models."provider/model"]'),
    ],
)
def test_a_mistake_about_a_model_is_named(name: str, table: dict[str, object], said: str) -> None:
    with pytest.raises((BadInput, UnknownName)) as error:
        catalogue.described(name, table)
    assert said in str(error.value)
