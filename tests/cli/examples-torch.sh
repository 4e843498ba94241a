# loader/examples/batches.py with torch: the tensors hold the loader's tokens.
# In make check-all only: it loads PyTorch.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
python_with torch 'PYTHON=... names one'
mkdir text
texts text 20000
run 0 sgt-tokenize --quiet text out
run 0 "$python" "$ROOT/loader/examples/batches.py" out 3
[ "$(grep -c ' numpy ' .stdout)" -eq 3 ] || fail 'three lines by numpy expected'
sed -n 's/ numpy \(.*\)/ torch \1 -> 4 32 8/p' .stdout > want
grep ' torch ' .stdout > got
same want got
[ "$(wc -l < got)" -eq 3 ] || fail 'three lines by torch expected'
