# make demo   set up and run a small continual study, which a page follows; its report opens in a browser
# make test   set up and run every gate and test
# make gates  format, lint, types only
# make prove  commit every fault often, and write what came of it into docs/reliability.md
# make agree  agreement with MuJoCo and Gymnasium at length, and speed: some hours
# make docs   the documentation as a site, in build/site
# make wheel  a wheel for this machine, and an sdist, in dist
# make lock   pin the newest versions that pyproject.toml allows
PYTHON ?= python3
BIN := .venv/bin
UPGRADE ?= --upgrade
JOBS ?= 4
# Not wandb: it brings a beta package. `pip install evergait[wandb]` does, for those who want it.
LOCKED := --extra frame --extra hub --extra ray --extra tensorboard --extra tune --extra video --group dev --group docs
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find src native -type f -not -name '*.pyc')

.PHONY: setup demo gates test prove agree docs wheel lock clean FORCE

setup: .venv/installed

.venv/locked: FORCE # asked every time: another PYTHON or another lock makes it again, otherwise nothing happens
	@"$(PYTHON)" scripts/setup.py

.venv/installed: .venv/locked $(SOURCES)
	$(BIN)/python scripts/wasm.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --force-reinstall .
	touch $@

demo: setup
	mkdir -p runs/demo
	$(BIN)/evergait watch runs/demo & watch=$$!; $(BIN)/evergait study run demo --out runs/demo; code=$$?; kill $$watch; exit $$code
	$(BIN)/evergait report runs/demo --open

gates: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(shell find native tests/native -name "*.h" -o -name "*.cpp")
	$(BIN)/mypy

# What tests write goes with them, also after Ctrl-C.
ASIDE := TMPDIR=$$($(BIN)/python scripts/temporary.py) && export TMPDIR && trap 'rm -rf "$$TMPDIR"' EXIT && trap 'exit 130' INT TERM

test: gates
	@$(ASIDE); $(BIN)/pytest -n 2 --dist worksteal

# Most proofs wait for signals and processes, so more of them run at once than there are processors.
prove: setup
	echo '{}' > docs/reliability.json
	@$(ASIDE); \
	$(BIN)/pytest -m prove -n $(JOBS) --dist worksteal --durations 20 $$(grep -rl --include="*.py" "mark\.prove" tests); code=$$?; \
	$(BIN)/python scripts/reliability.py; exit $$code

agree: setup
	$(BIN)/pytest -m agree -s; code=$$?; $(BIN)/python benchmarks/vector.py --page; exit $$code

docs: setup
	COLUMNS=100 $(BIN)/python scripts/site.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python scripts/site.py --from-disk

wheel: setup
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

lock: .venv/locked
	$(BIN)/uv pip compile --quiet $(UPGRADE) pyproject.toml $(LOCKED) --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header --output-file requirements.lock

clean:
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache
