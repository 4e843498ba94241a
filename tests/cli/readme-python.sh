# The Python block of README as written. Training is killed 20 times and started again with 2, 1 or
# 4 processes; it gets the global batches of an undisturbed run.
. "$ROOT/tests/cli/python.inc"
python_with numpy
texts corpus 200000
run 0 sgt-tokenize --quiet corpus/ out/
awk '$0 == "```python" { on = 1; next } $0 == "```" { on = 0 } on' "$ROOT/README.md" > block.py
mkdir seen
# A rank writes down its rows and waits for the other ranks, as training does. It ends itself in a random step.
cat > train.py << 'END2'
import os, random, signal, sys, time
import numpy as np

sys.modules["torch"] = None  # as if it were not installed: to import it takes seconds
life, rank, ranks = (int(os.environ[name]) for name in ("LIFE", "RANK", "WORLD_SIZE"))
left = random.randrange(int(os.environ["MOST_STEPS"]))

def train(x, y):
    global left
    k = data.position - 1
    np.stack([x, y]).astype(np.uint16).tofile(f"part-{rank}")
    os.replace(f"part-{rank}", f"seen/{life}-{rank}-{k}")
    while not all(os.path.exists(f"seen/{life}-{r}-{k}") for r in range(ranks)):
        time.sleep(0.001)
    if k == 99:
        raise SystemExit
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

END2
cat block.py >> train.py
cat > lives.py << 'END2'
import json, os, subprocess, sys, time
import numpy as np
import sgtokens

kills = 20
want = sgtokens.Loader("out/", batch=32, epochs=None, arrays="numpy")

def saved_step():
    return json.load(open("state.json"))["rows"] // 32 if os.path.exists("state.json") else 0

for n in range(kills + 1):
    ranks, begin = (2, 1, 4)[n % 3], saved_step()
    assert begin % 10 == 0, begin
    most = 300 // (kills + 1) if n < kills else 10**9
    given = {"LIFE": str(n), "WORLD_SIZE": str(ranks), "MOST_STEPS": str(most)}
    envs = [{**os.environ, **given, "RANK": str(r)} for r in range(ranks)]
    lives = [subprocess.Popen([sys.executable, "train.py"], env=env) for env in envs]
    while None in {life.poll() for life in lives}:
        if -9 in {life.poll() for life in lives}:
            for life in lives:
                life.kill()  # the others wait for the one that is gone
        time.sleep(0.001)
    codes = {life.poll() for life in lives}
    assert -9 in codes <= {0, -9} if n < kills else codes == {0}, codes
    # Each rank had its rows of the steps from the saved one on, at least up to where the next life begins.
    for r in range(ranks):
        ks = sorted(int(name.split("-")[2]) for name in os.listdir("seen") if name.startswith(f"{n}-{r}-"))
        assert ks == list(range(begin, begin + len(ks))) and begin + len(ks) >= saved_step(), (begin, ks)
        for k in ks:
            rows = np.fromfile(f"seen/{n}-{r}-{k}", np.uint16)
            assert (rows == np.stack([a[r::ranks] for a in want[k]]).reshape(-1)).all(), (n, r, k)
assert ks[-1] == 99
print("the undisturbed sequence")
END2
run_says 'the undisturbed sequence' "$python" lives.py
