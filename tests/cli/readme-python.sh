# README's Python block as written: training that is killed 20 times and started again with 2, 1 or 4 processes gets
# the global batches of an undisturbed run.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
python_with numpy
PYTHONPATH=$ROOT/tools/python
export PYTHONPATH
mkdir corpus
texts corpus 200000
run 0 sgt-tokenize --quiet corpus/ out/
awk '$0 == "```python" { on = 1; next } $0 == "```" { on = 0 } on' "$ROOT/README.md" > block.py
mkdir seen
# A rank writes down its rows, and ends itself in a random step.
cat > train.py << 'END2'
import os, random, signal, sys
import numpy as np

sys.modules["torch"] = None  # as if it were not installed: to import it takes seconds
rank, ranks = os.environ["RANK"], os.environ["WORLD_SIZE"]
left = random.randrange(int(os.environ["MOST_STEPS"]))

def train(x, y):
    global left
    k = data.position - 1
    with open(f"seen/{k}-{rank}-{ranks}", "wb") as file:
        file.write(np.stack([x, y]).astype(np.uint16).tobytes())
    if k == 99:
        raise SystemExit
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

END2
cat block.py >> train.py
cat > lives.py << 'END2'
import os, pathlib, subprocess, sys
import numpy as np
import sgt

kills = 20
for n in range(kills + 1):
    ranks = (2, 1, 4)[n % 3]
    most = 300 // (kills + 1) if n < kills else 10**9
    given = {"WORLD_SIZE": str(ranks), "MOST_STEPS": str(most)}
    lives = [subprocess.Popen([sys.executable, "train.py"], env={**os.environ, **given, "RANK": str(r)}) for r in range(ranks)]
    codes = {life.wait() for life in lives}
    assert codes <= {0, -9}, codes
assert codes == {0}
want = sgt.Loader("out/", batch=32, epochs=None, arrays="numpy")
ks = set()
for path in pathlib.Path("seen").iterdir():
    k, rank, ranks = map(int, path.name.split("-"))
    rows = np.fromfile(path, np.uint16)
    assert (rows == np.stack([a[rank::ranks] for a in want[k]]).reshape(-1)).all(), path
    ks.add(k)
assert ks == set(range(100))
print("the undisturbed sequence")
END2
run 0 "$python" lives.py
stdout_is 'the undisturbed sequence'
