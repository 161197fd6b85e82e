import pytest

from toolwire.errors import BadInput, UnknownName
from toolwire.providers.custom import read_upstream


def test_an_upstream_says_format_address_key_model_and_style():
    found = read_upstream("gemini=http://127.0.0.1:9,key=a=b,model=m/x,style=xml")
    assert found.provider.dialect == "gemini"
    assert found.provider.base_url == "http://127.0.0.1:9"
    assert (found.key, found.model, found.style) == ("a=b", "m/x", "xml")


def test_a_bare_address_is_enough():
    found = read_upstream("openai-chat=http://127.0.0.1:9/v1?a=1,2")
    assert found.provider.base_url == "http://127.0.0.1:9/v1?a=1,2"
    assert (found.key, found.model, found.style) == ("", "default", "")


def test_its_key_is_not_shown():
    assert "s3cret" not in repr(read_upstream("gemini=http://h,key=s3cret"))


@pytest.mark.parametrize("text", ["gemini", "gemini=", "gemini=127.0.0.1"])
def test_anything_else_is_answered_with_how_to_write_it(text: str):
    with pytest.raises(BadInput, match="DIALECT=URL"):
        read_upstream(text)


def test_an_unknown_format_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="openai-chat"):
        read_upstream("openai-chta=http://h")
