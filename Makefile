# make demo   set up and run a small continual study; its report opens in a browser
# make test   set up and run every gate and test
# make prove  slower proofs, each says what it proves
# make lock   pin the newest versions that pyproject.toml allows
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find src native -type f -not -name '*.pyc')

.PHONY: setup demo test prove lock clean

setup: .venv/installed

.venv/locked: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	touch $@

.venv/installed: .venv/locked $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
	touch $@

demo: setup
	$(BIN)/evergait study run demo --out runs/demo
	$(BIN)/evergait report runs/demo --open

test: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(shell find native tests/native -name "*.h" -o -name "*.cpp")
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadgroup -m "not prove"

prove: setup
	echo '{}' > docs/reliability.json
	$(BIN)/pytest -m prove -s
	$(BIN)/python benchmarks/reliability.py

lock: .venv/locked
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --all-extras --group dev --python-version 3.11 \
	  --no-emit-index-url --no-annotate --no-header --output-file requirements.lock

clean:
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache
