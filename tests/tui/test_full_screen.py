"""Full screen as a choice: the transcript with the composer under it."""

from tests.fakes.simulated import Place, Simulated
from tests.tui.apps import Apps, answered, says

LONG = "\n\n".join(f"line {number} of it" for number in range(40))
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def test_full_screen_scrolls_and_leaves_the_transcript_behind(apps: Apps, place: Place):
    with Simulated([says("before"), says(LONG), says("after")]) as sim:
        app = apps.start(sim)
        app.press("one\r")
        answered(app, "before")
        assert ENTER not in app.raw
        app.press("/screen full\r")
        app.wait("screen: full", "before")
        assert app.raw.count(ENTER) == 1
        app.press("two\r")
        answered(app, "line 39 of it")
        assert app.see()[-1].startswith("default · native")
        app.press("\x1b[5~\x1b[5~")
        rows = app.wait("line 15 of it")
        assert not any("line 39" in row for row in rows)
        app.press("\x1b[6~\x1b[6~\x1b[6~")
        app.wait("line 39 of it")
        app.press("/transcript\r")
        app.wait("q close")
        app.press("q")
        app.wait("default · native")
        app.press("/screen inline\r")
        app.wait("screen: inline")
        raw = app.raw.rpartition(LEAVE)[2].decode()
        assert raw.count("line 20 of it") == 1
        assert 'screen = "inline"' in next(place.home.rglob("config.toml")).read_text()


def test_a_session_in_full_screen_is_printed_when_it_ends(apps: Apps, place: Place):
    place.home.joinpath("config.toml").write_text('[ui]\nscreen = "full"\n')
    with Simulated([says(LONG)]) as sim:
        app = apps.start(sim)
        app.press("one\r")
        answered(app, "line 39 of it")
        app.press("/new\r")
        app.wait("upstream/default · ask")
        app.press("\x04")
        assert app.end() == 0
        raw = app.raw.rpartition(LEAVE)[2].decode()
        assert raw.index("upstream/default") < raw.index("line 0 of it")
        assert raw.count("line 20 of it") == 1
        assert raw.count("line 0 of it") == 1
