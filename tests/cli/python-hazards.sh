# sgtokens.Loader under difficult conditions (tests/python/test_hazards.py), where a loader is
# opened 100,000 times.
# In make check-all only: it takes a minute.
. "$ROOT/tests/cli/python.inc"
python_venv numpy pytest
"${PYTHON:-false}" -c 'import torch, pytest' 2> /dev/null && python=$PYTHON
run 0 env OPENINGS=100000 "$python" -m pytest -q -p no:cacheprovider "$ROOT/tests/python/test_hazards.py"
