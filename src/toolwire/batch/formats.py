"""Other formats: SWE-bench instances and Harbor folders in, predictions and logs out."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from toolwire.batch.report import report
from toolwire.batch.results import Result, State
from toolwire.batch.spec import read_spec
from toolwire.batch.store import BatchStore
from toolwire.batch.stores import open_batch
from toolwire.errors import BadInput
from toolwire.wire.json_access import dump, obj, parse, parse_object, seq, text

PREDICTIONS = "predictions.jsonl"
_TEST_PATCH = ".toolwire-tests.patch"
_MEGABYTES = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}


def imported(form: str, source: Path, repositories: str) -> Iterator[str]:
    """The task lines of a source in another format."""
    if form == "swebench":
        for number, instance in enumerate(_instances(source), 1):
            yield dump(swebench_task(instance, repositories, f"{source.name}: instance {number}"))
    else:
        for folder in _task_folders(source):
            yield dump(harbor_task(folder))


def _instances(source: Path) -> Iterator[Mapping[str, Any]]:
    if source.suffix == ".parquet":
        yield from _parquet(source)
        return
    try:
        body = source.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {source}: {error.strerror}") from error
    if body.lstrip()[:1] == b"[":
        for value in seq(parse(body, source.name), source.name):
            yield obj(value, source.name)
        return
    for number, line in enumerate(body.splitlines(), 1):
        if line.strip():
            yield parse_object(line, f"{source.name}:{number}")


def _parquet(source: Path) -> Iterable[Mapping[str, Any]]:
    try:
        from pyarrow import parquet  # pyright: ignore  # noqa: PLC0415 - optional
    except ImportError as error:
        raise BadInput(
            f"{source.name} is a Parquet file, which needs pyarrow: pip install pyarrow, or export "
            "it as JSONL"
        ) from error
    return parquet.read_table(source).to_pylist()  # pyright: ignore


def swebench_task(instance: Mapping[str, Any], repositories: str, where: str) -> dict[str, Any]:
    """A task for an instance; its gold patch is left out, its tests are part of the check."""
    for name in ("instance_id", "repo", "base_commit", "problem_statement"):
        if not isinstance(instance.get(name), str) or not instance[name]:
            raise BadInput(f'{where}: no "{name}"; is this a SWE-bench instance?')
    id, repo = instance["instance_id"], instance["repo"]
    tests = [*_names(instance, "FAIL_TO_PASS", where), *_names(instance, "PASS_TO_PASS", where)]
    task: dict[str, Any] = {
        "id": id,
        "prompt": instance["problem_statement"],
        "workspace": {
            "git": f"{repositories.rstrip('/')}/{repo}",
            "commit": instance["base_commit"],
        },
        "tags": [repo],
        "meta": {
            "swebench": {
                "instance_id": id,
                "version": str(instance.get("version") or ""),
                "image": swebench_image(id),
            }
        },
    }
    patch = instance.get("test_patch")
    if patch and tests and all("::" in name for name in tests):
        run = shlex.join(["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests])
        command = f"git apply --whitespace=nowarn {_TEST_PATCH} && {run}"
        task["check"] = {"command": command, "timeout": 1800, "files": {_TEST_PATCH: patch}}
    return task


def swebench_image(id: str) -> str:
    """The name of the official image of an instance."""
    return f"swebench/sweb.eval.x86_64.{id.lower().replace('__', '_1776_')}:latest"


def _names(instance: Mapping[str, Any], member: str, where: str) -> list[str]:
    value = instance.get(member)
    if isinstance(value, str):
        value = parse(value or "[]", f"{where}: {member}")
    return [text(name, f"{where}: {member}") for name in seq(value, f"{where}: {member}")]


def predictions(out: Path, results: Iterable[Result]) -> Iterator[bytes]:
    """The lines that the official harness of SWE-bench takes, for tasks imported from it."""
    for result in results:
        meta: Any = result.meta
        known: Any = meta.get("swebench") if isinstance(meta, dict) else None  # pyright: ignore
        if not isinstance(known, dict) or result.state is State.ERROR:
            continue
        patch = ""
        if result.patch is not None:
            patch = (out / result.patch.path).read_bytes().decode("utf-8", "replace")
        line = {
            "instance_id": str(known.get("instance_id", result.id)),  # pyright: ignore
            "model_name_or_path": result.model or "toolwire",
            "model_patch": patch,
        }
        yield msgspec.json.encode(line)


def _task_folders(source: Path) -> list[Path]:
    if not source.is_dir():
        raise BadInput(f"{source} is not a folder; name a task's folder, or one that contains them")
    names = ("task.toml", "task.yaml")
    if any((source / name).exists() for name in names):
        return [source.resolve()]
    found = {path.parent.resolve() for name in names for path in source.rglob(name)}
    if not found:
        raise BadInput(f"no task.toml or task.yaml below {source}")
    return sorted(found)


def harbor_task(folder: Path) -> dict[str, Any]:
    """A task for a folder of Harbor or Terminal-Bench; its solution is left out."""
    if (folder / "task.toml").exists():
        return _harbor(folder)
    return _terminal_bench(folder)


def _harbor(folder: Path) -> dict[str, Any]:
    about = _toml(folder / "task.toml")
    metadata, verifier, agent, environment = (
        obj(about.get(name) or {}, f"task.toml: {name}")
        for name in ("metadata", "verifier", "agent", "environment")
    )
    prompt = _read(folder / "instruction.md")
    limits = {"seconds": float(agent["timeout_sec"])} if agent.get("timeout_sec") else {}
    tags = [str(tag) for tag in seq(metadata.get("tags"), "task.toml: tags")]
    tags += [str(metadata[name]) for name in ("category", "difficulty") if metadata.get(name)]
    return {
        "id": folder.name,
        "prompt": prompt,
        "workspace": _environment(folder / "environment", environment),
        "limits": limits,
        "check": _verifier(folder, float(verifier.get("timeout_sec") or 900.0), "test.sh"),
        "tags": tags,
        "meta": {"harbor": {"folder": str(folder)}},
    }


def _environment(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    image = about.get("docker_image")
    if not image and not (folder / "Dockerfile").exists():
        return {"folder": str(folder)} if folder.is_dir() else {}
    space: dict[str, Any] = {"image": str(image)} if image else {"build": str(folder)}
    if about.get("cpus"):
        space["cpus"] = float(about["cpus"])
    memory = about.get("memory_mb") or about.get("memory")
    if memory:
        space["memory"] = megabytes(str(memory))
    if about.get("allow_internet", True):
        space["network"] = True
    return space


def megabytes(size: str) -> int:
    """`2G`, `512M` or a number of megabytes."""
    found = re.fullmatch(r"([0-9.]+)\s*([KMGT]?)i?B?", size.strip(), re.IGNORECASE)
    if found is None:
        raise BadInput(f'"{size}" is not a size such as 2G')
    return round(float(found[1]) * _MEGABYTES[found[2].upper()])


def _verifier(folder: Path, seconds: float, script: str) -> dict[str, Any]:
    """The check: scripts find their folders in variables, and in a container at their own paths."""
    tests = folder / "tests"
    if not tests.is_dir():
        raise BadInput(f"{folder} has no tests")
    command = (
        'mkdir -p logs/verifier; if [ -f /.dockerenv ]; then ln -sfn "$PWD/tests" /tests; '
        'mkdir -p /logs; ln -sfn "$PWD/logs/verifier" /logs/verifier; fi; '
        'TESTS_DIR="$PWD/tests" TEST_DIR="$PWD/tests" LOGS_DIR="$PWD/logs/verifier" '
        f"bash tests/{script}; code=$?; cd logs/verifier; "
        "[ -f reward.txt ] || [ ! -f reward.json ] || "
        "sed -n 's/.*\"reward\"[^0-9]*\\([0-9.]*\\).*/\\1/p' reward.json > reward.txt; "
        "[ -f reward.txt ] || { [ $code = 0 ] && echo 1 || echo 0; } > reward.txt"
    )
    return {
        "command": command,
        "timeout": seconds,
        "copy": {"tests": str(tests)},
        "reward": "logs/verifier/reward.txt",
    }


def _terminal_bench(folder: Path) -> dict[str, Any]:
    about = _yaml(folder / "task.yaml")
    check = _verifier(folder, float(about.get("max_test_timeout_sec") or 900.0), "run-tests.sh")
    check["copy"]["tests/run-tests.sh"] = str(folder / "run-tests.sh")
    seconds = about.get("max_agent_timeout_sec")
    tags = [str(tag) for tag in seq(about.get("tags"), "task.yaml: tags")]
    tags += [str(about[name]) for name in ("category", "difficulty") if about.get(name)]
    build = folder / "Dockerfile"
    return {
        "id": folder.name,
        "prompt": text(about.get("instruction"), f"{folder.name}: instruction"),
        "workspace": {"build": str(folder), "network": True} if build.exists() else {},
        "limits": {"seconds": float(seconds)} if seconds else {},
        "check": check,
        "tags": tags,
        "meta": {"terminal_bench": {"folder": str(folder)}},
    }


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}") from error


def _yaml(path: Path) -> dict[str, Any]:
    try:
        import yaml  # noqa: PLC0415 - an optional library
    except ImportError as error:
        raise BadInput(f"{path} is YAML, which needs pyyaml: pip install pyyaml") from error
    try:
        return obj(yaml.safe_load(_read(path)), path.name)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: {error}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error


def inspect_log(out: Path) -> str:
    """The batch as a log of inspect_ai, for its viewer."""
    spec, store = read_spec(out), open_batch(out)
    try:
        results = list(store.results())
        samples = [_sample(result, store) for result in results]
    finally:
        store.close()
    found = report(results)
    created = datetime.fromtimestamp((out / "batch.json").stat().st_mtime, UTC).isoformat()
    accuracy = found.passed.share if found.passed is not None else 0.0
    log: dict[str, Any] = {
        "version": 2,
        "status": "success",
        "eval": {
            "created": created,
            "task": Path(spec.tasks).stem,
            "task_id": spec.id,
            "run_id": spec.id,
            "eval_id": spec.id,
            "dataset": {"name": Path(spec.tasks).name, "samples": len(results)},
            "model": ", ".join(filter(None, spec.models)) or "unknown",
            "config": {"epochs": spec.attempts},
        },
        "results": {
            "total_samples": len(results),
            "completed_samples": len(results) - found.states.get("error", 0),
            "scores": [
                {
                    "name": "check",
                    "scorer": "check",
                    "metrics": {"accuracy": {"name": "accuracy", "value": accuracy}},
                }
            ],
        },
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": samples,
    }
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _sample(result: Result, store: BatchStore) -> dict[str, Any]:
    task = store.task(result.id)
    sample: dict[str, Any] = {
        "id": result.id,
        "epoch": result.attempt,
        "input": task.prompt,
        "target": "",
        "messages": [
            {"role": "user", "content": task.prompt},
            {"role": "assistant", "content": result.response},
        ],
        "output": {
            "model": result.model,
            "choices": [
                {
                    "message": {"role": "assistant", "content": result.response},
                    "stop_reason": "stop",
                }
            ],
        },
        "metadata": {"state": str(result.state), "session": result.session},
        "total_time": result.seconds.total,
    }
    if result.score is not None:
        sample["scores"] = {"check": {"value": result.score, "answer": result.response}}
    if result.error is not None:
        sample["error"] = {"message": result.error.message, "traceback": "", "traceback_ansi": ""}
    return sample
