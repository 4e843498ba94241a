# tokenize-space.sh: a disk that is too small for OUT is found out before anything is written, and one that is full, or a
# limit on the size of files (ulimit -f), in one line.
. "$ROOT/tests/cli/lib.sh"

# A file of zeros that takes no disk, and whose tokens would take terabytes.
echo text > small.txt
truncate -s 15T huge.txt 2> /dev/null || truncate -s 7T huge.txt 2> /dev/null || skip 'no file of 7 TiB can be made here'
free=$(($(stat -f -c '%a * %S' .)))
[ $free -lt 5000000000000 ] || skip 'this disk has room for terabytes'
too_small='out: needs about [0-9.]+ TiB, but only [0-9.]+ [KMGT]iB is free there \(make room, name an OUT elsewhere, or --force\)$'
run 1 sgt-tokenize huge.txt small.txt out
stderr_matches "^sgt-tokenize: $too_small"
stderr_lines 1
stdout_is ''
absent out
run 1 sgt-tokenize --quiet --json --shuffle 1 huge.txt out
stderr_matches "^sgt-tokenize: $too_small"
absent out
run 1 sgt-tokenize --dry-run huge.txt out
stderr_matches "^sgt-tokenize: $too_small"
stderr_lines 1
stdout_matches '^disk        [0-9.]+ TiB in [0-9,]+ shards, [0-9.]+ [KMGT]iB free there: too little$'
run 1 sgt-tokenize --dry-run --json huge.txt out
stdout_lines 1
[ "$(field disk_free .stdout)" -lt "$(field disk_bytes .stdout)" ] || fail 'it fits'
run 0 sgt-tokenize --dry-run --force huge.txt out
stderr_is ''
run 0 sgt-tokenize --dry-run huge.txt small.txt # without OUT nobody knows
run_interrupted sgt-tokenize --quiet --force huge.txt out
rm -rf out

# Where one rank says so, it is rank 0, or each that knows nothing of the others.
run 1 sgt-tokenize --rank 1 --ranks 2 huge.txt small.txt out
stderr_matches "^sgt-tokenize: $too_small"

# RLIMIT_FSIZE: the write fails, instead of a signal that ends the program.
head -c 300000 /dev/zero | tr '\000' 'a ' > text.txt
limited() { (ulimit -f 64 && exec "$@"); } # 64 blocks, of 512 or 1,024 bytes
run 1 limited sgt-tokenize --quiet text.txt limited
stderr_matches '^sgt-tokenize: limited/\.work/.*: File too large$'
stderr_lines 1
absent limited
