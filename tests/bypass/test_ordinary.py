from collections import Counter

from tests.bypass.ordinary import ordinary_commands


def test_the_list_holds_enough_commands_and_none_twice():
    commands = ordinary_commands("/w")
    counts = Counter(one.label for one in commands)
    assert counts["read"] >= 500
    assert counts["other"] >= 200
    assert not [
        text for text, times in Counter(one.command for one in commands).items() if times > 1
    ]
