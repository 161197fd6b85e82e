import subprocess
import sys
from pathlib import Path

import toolwire
from toolwire import app

HEAVY = ("aiohttp", "asyncio", "click", "jsonschema_rs", "pydantic", "openai")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_codecs_loads_nothing_heavy() -> None:
    statement = (
        "import toolwire.codec, toolwire.codec; from toolwire import dialects; "
        "[dialects.get(name) for name in dialects.NAMES]"
    )
    assert loaded_by(statement).isdisjoint(HEAVY)


def test_importing_the_app_loads_no_heavy_library() -> None:
    heavy = {
        "aiohttp",
        "textual",
        "mcp",
        "opentelemetry.sdk",
        "ray",
        "xllamacpp",
        "keyring",
        "tomlkit",
    }
    assert loaded_by("import toolwire.app").isdisjoint(heavy)
    for name in app.__all__:
        assert loaded_by(f"from toolwire.app import {name}").isdisjoint(heavy), name
    assert loaded_by("from toolwire import Agent").isdisjoint(heavy)
    assert "tomlkit" not in loaded_by("import toolwire.cli.config")


def test_the_models_and_the_toolbox_are_loaded_apart() -> None:
    assert "toolwire.app.toolbox" not in loaded_by("from toolwire.app import open_model")
    assert "toolwire.app.model_stack" not in loaded_by("from toolwire.app import open_toolbox")


def test_the_package_alone_loads_not_even_msgspec() -> None:
    assert "msgspec" not in loaded_by("import toolwire")


def test_the_early_prompt_is_drawn_before_any_library_is_loaded() -> None:
    found = loaded_by("import toolwire.cli, toolwire.tui.early_prompt")
    assert found.isdisjoint({*HEAVY, "msgspec", "pathlib", "prompt_toolkit", "rich"})


def test_every_exported_name_exists() -> None:
    for name in toolwire.__all__:
        assert getattr(toolwire, name) is not None


def test_no_exported_name_is_also_a_module() -> None:
    modules = {path.stem for path in Path(toolwire.__file__).parent.iterdir()}
    assert modules.isdisjoint(toolwire.__all__)
