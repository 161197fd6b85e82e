import re
from pathlib import Path

import pytest

from toolwire.embedded.catalogue import DEFAULT, LARGER, MODELS, SMALL, Weights
from toolwire.embedded.machine import Machine, Sizes, fitting, machine, sizes
from toolwire.errors import BadInput
from toolwire.providers.catalogue import find


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_memory_is_what_the_system_says_is_available(tmp_path: Path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  4000 kB\n")
    assert machine(tmp_path, tmp_path / "meminfo").free == 4000 * 1024


def test_a_container_has_no_more_than_its_share(tmp_path: Path):
    (tmp_path / "meminfo").write_text("MemAvailable: 4000000 kB\n")
    written(tmp_path, memory_max="3000000\n", memory_current="1000000\n", cpu_max="100000 100000\n")
    assert machine(tmp_path, tmp_path / "meminfo") == Machine(cores=1, free=2_000_000)


def test_a_container_without_limits_has_everything(tmp_path: Path):
    (tmp_path / "meminfo").write_text("MemAvailable: 4000 kB\n")
    written(tmp_path, memory_max="max\n", memory_current="5\n", cpu_max="max 100000\n")
    found = machine(tmp_path, tmp_path / "meminfo")
    assert found.free == 4_096_000
    assert found.cores >= 1


@pytest.mark.parametrize(
    ("cores", "threads"), [(1, 1), (2, 2), (4, 4), (6, 3), (8, 4), (16, 8), (64, 8)]
)
def test_threads_follow_the_cores(cores: int, threads: int):
    assert sizes(DEFAULT, Machine(cores=cores)) == Sizes(threads=threads, context=8192)


def test_the_context_shrinks_with_the_memory():
    free = DEFAULT.size + 400_000_000 + 3000 * DEFAULT.cache_per_token
    assert sizes(DEFAULT, Machine(cores=2, free=free)).context == 2816


def test_too_little_memory_is_reported_with_the_smaller_model():
    with pytest.raises(
        BadInput, match=r"needs 1.6 GB of memory, but only 1.0 GB is free; local/qwen"
    ):
        sizes(DEFAULT, Machine(cores=2, free=1_000_000_000))
    with pytest.raises(BadInput, match=r"needs 917 MB of memory, but only 500 MB is free$"):
        sizes(SMALL, Machine(cores=2, free=500_000_000))


def test_the_small_model_is_for_small_machines():
    assert fitting(Machine(cores=2, free=3_000_000_000)) is SMALL
    assert fitting(Machine(cores=2, free=8_000_000_000)) is DEFAULT
    assert fitting(Machine(cores=2)) is DEFAULT


GIGABYTE = 1_000_000_000


@pytest.mark.parametrize(
    ("cores", "free", "gpu", "model"),
    [
        (2, 64, 0, "qwen2.5-coder-1.5b"),
        (8, 6, 0, "qwen2.5-coder-1.5b"),
        (8, 9, 0, "qwen3-4b"),
        (16, 16, 0, "qwen2.5-coder-7b"),
        (4, 16, 6, "qwen2.5-coder-7b"),
        (4, 16, 4, "qwen3-4b"),
        (4, 32, 12, "qwen2.5-coder-14b"),
        (64, 3, 0, "qwen2.5-coder-0.5b"),
    ],
)
def test_a_larger_model_is_chosen_where_it_has_room_and_is_fast(
    cores: int, free: int, gpu: int, model: str
):
    here = Machine(cores=cores, free=free * GIGABYTE, gpu=gpu * GIGABYTE)
    assert fitting(here).model == model
    assert sizes(MODELS[model], here).context >= 2048


def test_a_suitable_model_that_is_stored_comes_before_a_download():
    here = Machine(cores=64, free=64 * GIGABYTE)
    assert fitting(here) is LARGER[0]
    assert fitting(here, stored=[DEFAULT.file]) is DEFAULT
    assert fitting(here, stored=[DEFAULT.file, LARGER[1].file]) is LARGER[1]
    assert fitting(here, stored=[SMALL.file]) is LARGER[0]
    assert fitting(Machine(cores=2, free=64 * GIGABYTE), stored=[LARGER[0].file]) is DEFAULT


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_model_is_pinned_free_and_complete(model: Weights):
    assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
    assert model.licence in ("Apache-2.0", "MIT")
    assert model.url.startswith("https://huggingface.co/")
    assert model.url.endswith(f"/{model.file}")
    assert find("local", model.model) is not None
