# tokenize-space.sh: if the disk has too little room for OUT, that is reported before anything is
# written. With a limit on file sizes (ulimit -f), the run fails with one line.

repeated 60 "$ROOT/tokenize/vocab/gpt2.bpe" | head -c 12000000 > text.txt

if [ "${1:-}" != mounted ]; then # with RLIMIT_FSIZE the write fails, as SIGXFSZ is ignored
    limited() { (ulimit -f 2000 && exec "$@"); } # a block has 512 or 1,024 bytes
    run 1 limited sgt-tokenize --quiet text.txt out
    stderr_matches '^sgt-tokenize: out/\.work/train_000000\.bin\.tmp: .*File too large$'
    stderr_lines 1
    absent out
    texts few 30000
    run 0 sgt-tokenize --quiet few set
    limited() { (ulimit -f 8 && exec "$@"); }
    run_failure_like '^sgt-inspect: out/\.work/.*: File too large$' limited sgt-inspect --quiet --export npy set out
    stderr_lines 1
fi

# is_too_small INPUT: check that nothing is written, and that a large input is not read
is_too_small() {
    too_small='disk/out: needs about [0-9.]+ [MT]iB, but only [0-9.]+ [KMGT]iB is free there \(free some space, '\
'name an OUT elsewhere, or pass --force\)$'
    run_failure_like "^sgt-tokenize: $too_small" timeout 300 sgt-tokenize "$1" disk/out
    stderr_lines 1
    stdout_is ''
    absent disk/out
    run 1 timeout 300 sgt-tokenize --dry-run "$1" disk/out
    stderr_matches "^sgt-tokenize: $too_small"
    stderr_lines 1
    stdout_matches '^disk        about [0-9.]+ [MT]iB in [0-9,]+ shards?, [0-9.]+ [KMGT]iB free there \(too little\)$'
}

# A sparse file of zeros, whose tokens would take terabytes. Then a small disk, if one can be
# mounted.
mkdir -p disk
if [ "${1:-}" != mounted ]; then
    if truncate -s 15T zeros.txt 2> /dev/null || truncate -s 7T zeros.txt 2> /dev/null &&
        [ "$(stat -f -c %a .)" -lt $((3000000000000 / $(stat -f -c %S .))) ]; then
        is_too_small zeros.txt
        zeros=1
    fi
    unshare -rm sh -c 'mount -t tmpfs -o size=6m none disk' 2> .mount ||
        { [ -n "${zeros:-}" ] && exit 0 || skip 'no small disk, and no huge file on one with less than 3 TB free'; }
    unshare -rm sh -c 'mount -t tmpfs -o size=6m none disk && exec sh "$0" mounted' "$0"
    exit
fi
input=text.txt
is_too_small $input

run 1 sgt-tokenize --dry-run --json --quiet $input disk/out
[ "$(field disk_free .stdout)" -lt "$(field disk_bytes .stdout)" ] || fail 'it fits'
run_silent sgt-tokenize --dry-run --force $input disk/out
run 0 sgt-tokenize --dry-run $input text.txt # without OUT the disk is unknown
run 1 sgt-tokenize --quiet --rank 1 --ranks 2 text.txt text.txt disk/out # one of several ranks that a scheduler starts
stderr_matches "^sgt-tokenize: $too_small"
# With --force, the run goes on until the disk is full, and then reports that.
run_failure_like '^sgt-tokenize: disk/out/.*: No space left on device$' sgt-tokenize --quiet --force $input disk/out
absent disk/out

# A set that fits is made. Files that are already there are not counted again.
head -c 1000000 text.txt > part.txt
run 0 sgt-tokenize --quiet part.txt disk/out
run 0 sgt-tokenize --quiet part.txt disk/out # the set is complete already, although a second one would not fit
rm -rf disk/out
