# Training through sgt.Loader is killed 20 times and resumed with 2, 1 and 4 processes: it gets the batches of an
# undisturbed run. PyTorch trains the model if PYTHON=PATH names a Python that has torch and pytest.
# In make check-all only: it takes a minute, and several with PyTorch.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
python_venv numpy pytest
"${PYTHON:-false}" -c 'import torch, pytest' 2> /dev/null && python=$PYTHON
KILLS=20
OPENINGS=100000
export KILLS OPENINGS
run 0 "$python" -m pytest -q -p no:cacheprovider "$ROOT/tests/python/test_kills.py" \
    "$ROOT/tests/python/test_hazards.py"
