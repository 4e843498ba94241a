"""check_tensorboard.py RUN FILES: does TensorBoard read from RUN/tb, which must have FILES files,
the scalars of log.jsonl, and each step once, even if a resumed run repeated it?"""
import glob
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run, files = sys.argv[1], int(sys.argv[2])
log = [json.loads(line) for line in open(f"{run}/log.jsonl")]
names = glob.glob(f"{run}/tb/*")
assert len(names) == files, names
board = EventAccumulator(f"{run}/tb", size_guidance={"scalars": 0})
board.Reload()
tags = {name for line in log for name in line} - {"step"}
assert set(board.Tags()["scalars"]) == tags, (board.Tags()["scalars"], tags)
for tag in sorted(tags):
    want = [(line["step"], line[tag]) for line in log if tag in line]
    got = [(e.step, e.value) for e in board.Scalars(tag)]
    assert [s for s, _ in got] == [s for s, _ in want], (tag, got)
    for (step, x), (_, y) in zip(got, want):
        assert (math.isnan(x) if y is None else abs(x - y) <= 1.1e-3 * abs(y)), (tag, step, x, y)
print(f"{len(tags)} scalars of {len(log)} steps")
