# The contents of a bundle of gpu-bundle.sh, with the programs for the host in place of those that
# nvcc builds.
# In make check-all only: it needs the programs of the host run.
cuda_on_the_host
B=$BIN/..
[ -e "$B/tests/check-cuda" ] || skip 'check-cuda is not built'
mkdir -p b/lib b/tests
ln -s "$B/bin" b/bin
ln -s "$B/host/lib/libsgt-cuda.so" b/lib
ln -s "$B/tests/check-cuda" b/tests/check-cuda-device

run_prints_like '/b/gpu-bundle: [0-9.]+ MiB; run tools/gpu-check.sh in it$' "$ROOT/tools/gpu-bundle.sh" "$PWD/b"
for file in bin/sgt-train bin/sgt-bench bin/check-cuda-device lib/libsgt-cuda.so tools/gpu-check.sh \
    tools/gpu/parts.sh data/shards/manifest.json commit README; do exists "b/gpu-bundle/$file"; done
absent b/gpu-bundle/tests
run 1 env LIMIT=1 "$ROOT/tools/gpu-bundle.sh" "$PWD/b"
stderr_matches 'gpu-bundle.sh: .*/b/gpu-bundle: [0-9.]+ MiB, more than 1 MiB$'
run 0 env ALONE=1 "$ROOT/tools/gpu-bundle.sh" "$PWD/b"
for file in data/fixtures/curve/f64.tsv peers/torch_step.py gpu-results/README.md; do exists "b/gpu-bundle/tests/$file"; done
