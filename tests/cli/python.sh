# The Python package sgt: its tests (tests/python), mypy --strict, ruff, and the code blocks of its walk-through.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
python_venv numpy pytest mypy ruff tiktoken
KILLS=3
export KILLS
"$python" -m pytest -q -p no:cacheprovider "$ROOT/tests/python" > .stdout 2> .stderr || {
    cat .stdout
    fail 'pytest'
}
cd "$ROOT/tools/python" || exit 1
mypy=$("$python" -m mypy --no-incremental --cache-dir /dev/null sgt cuda/sgt_cuda 2>&1) || fail "mypy: $mypy"
ruff=$("$python" -m ruff check --no-cache . 2>&1 && "$python" -m ruff format --no-cache --check . 2>&1) ||
    fail "ruff: $ruff"
