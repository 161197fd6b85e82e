# Two commands on a fresh machine: `make run` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -I -m pip --disable-pip-version-check
# The program alone, for `make run`; with what tests and checks need, for everything else.
PROGRAM := $(VENV)/.program
READY := $(VENV)/.ready
export PROMPT

.PHONY: newcomer picture screenshots run test sweep long attack test-fast check format bench eval docs dist setup clean

# With a key in the environment its provider is asked, or a model server that runs here. Without any, a
# small model runs in the process: its engine is installed and its weights are fetched the first time.
run: $(PROGRAM)
ifdef ARGS
	@$(BIN)/toolwire $(ARGS)
else
	@$(BIN)/python -P -m toolwire.cli.doctor || $(PIP) install --quiet --editable ".[local]"
	@if [ -n "$$PROMPT" ]; then $(BIN)/toolwire run --yes "$$PROMPT"; \
	elif [ -t 0 ]; then $(BIN)/toolwire chat; \
	else $(BIN)/toolwire --help; fi
endif

# With AGAIN=yes, as in CI: tests that failed run once more, alone. Two cores shared by real browsers, ptys and
# servers stretch every wait; a fault fails twice, and the first result stays in the output.
ifdef AGAIN
ONCE_MORE = || { test $$? = 1 && echo "== the failed tests once more, alone" && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; }
endif

# Thousands of child processes import the program: compiled once, they start in a third of the time.
test: $(READY)
	@$(BIN)/python -m compileall -q -j 0 src
	$(BIN)/python -m pytest -n auto -m "not sweep and not attack and not long" $(ONCE_MORE)

# Sessions killed a thousand times and resumed, floods, hostile commands and archives; CI runs it too.
sweep: $(READY)
	$(BIN)/python -m pytest -n auto -m sweep $(ONCE_MORE)

# Real clients before the gateway, the terminal app in tmux, ten thousand conversations, a soak.
long: $(READY)
	$(BIN)/python -m pytest -m long

# Every hostile command, escape and archive, and a long run of the fuzzer; EXPLORE=1 for all of it.
attack: $(READY)
	$(BIN)/python -m pytest -n auto -m attack

test-fast: $(READY)
	$(BIN)/python -m pytest -n auto -m "not slow and not sweep and not attack and not long"

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# `make bench gateway` measures one section; ARGS for options (ARGS="--quick").
bench: $(READY)
	$(BIN)/python -m bench $(filter-out bench,$(MAKECMDGOALS)) $(ARGS)

# Sections of the benchmark as goals of `make bench SECTION`; alone they say what they are.
SECTIONS := memory loopback growth arguments requests startup wire tools agent mcp gateway terminal batch
.PHONY: $(SECTIONS)
$(SECTIONS):
	@case " $(MAKECMDGOALS) " in *" bench "*) ;; *) echo "make: $@ is a section of the benchmark: make bench $@" >&2; exit 2;; esac

# The embedded model at the held-out tasks; MODEL=provider/model for any other, ARGS for other options
# (ARGS="--half tuning"). Takes half an hour.
MODEL ?= local/qwen2.5-coder-1.5b
eval: $(READY)
	@$(BIN)/python -c "import xllamacpp" 2>/dev/null || $(PIP) install --quiet --editable ".[local]"
	$(BIN)/python -m evals --model $(MODEL) --yes --out build/eval.json $(ARGS)

# A newcomer's first minutes from a bare clone: seconds, recording and picture in docs/newcomer.*
newcomer: $(READY)
	$(BIN)/python -m docs.newcomer $(ARGS)

# The terminal app, recorded: docs/terminal.cast and docs/terminal.svg
picture: $(READY)
	$(BIN)/python -m docs.terminal_session

# The console's pages in both themes and a newcomer's walk through it: docs/console/*.png
screenshots: $(READY)
	$(BIN)/python -m docs.console_pictures $(ARGS)

# The documentation site, in build/site: pages made from the program are made again, then all links checked.
docs: $(READY)
	$(BIN)/python -m toolwire.cli.document > docs/reference.md
	$(BIN)/python -m toolwire.cli.document man > docs/toolwire.1
	$(BIN)/python -m toolwire.cli.document completions > src/toolwire/cli/completions.json
	$(BIN)/python -m toolwire.config.document > docs/configuration.md
	$(BIN)/python -m toolwire.config.document schema > docs/settings.schema.json
	$(BIN)/python -m toolwire.gateway.console.openapi > docs/console.openapi.json
	$(BIN)/python -m toolwire.tools.document > docs/tools.md
	$(BIN)/python -m toolwire.providers.document > docs/providers.md
	$(BIN)/python -m toolwire.tui.document
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The wheel and the source archive in dist/, the wheel installed in an environment of its own and tried there.
dist: $(READY)
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip --disable-pip-version-check install --quiet dist/*.whl
	build/wheel/bin/python -I tests/wheel.py

setup: $(READY)

$(PROGRAM): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "toolwire needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --editable .
	@touch $(PROGRAM)

$(READY): $(PROGRAM)
	$(PIP) install --quiet --upgrade "pip>=25.1"
	$(PIP) install --quiet --editable . --group dev
	@touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
