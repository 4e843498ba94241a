# The Python package sgtokens: its tests (tests/python), mypy --strict, ruff, and the code blocks of its README.
# The adapters are tested with the frameworks (torch, grain, ...) that the Python in PYTHON=PATH has.
. "$ROOT/tests/cli/python.inc"
python_venv numpy pytest mypy ruff tiktoken
tester=$python
"${PYTHON:-false}" -c 'import numpy, pytest' 2> /dev/null && tester=$PYTHON
"$tester" -m pytest -q -p no:cacheprovider "$ROOT/tests/python" > .stdout 2> .stderr || {
    cat .stdout
    fail 'pytest'
}
cd "$ROOT/tools/python" || exit 1
mypy=$("$python" -m mypy --no-incremental --cache-dir /dev/null sgtokens cuda/sgtokens_cuda 2>&1) || fail "mypy: $mypy"
ruff=$("$python" -m ruff check --no-cache . 2>&1 && "$python" -m ruff format --no-cache --check . 2>&1) ||
    fail "ruff: $ruff"
