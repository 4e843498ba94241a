# tokenize-durable.sh: before a file is renamed to its final name, the files that it relies on are
# flushed to disk. strace shows the system calls.

need_strace

for i in 1 2 3; do seq 100 > $i.txt; done
here=$(pwd -P)
# strace writes one file per thread (-ff), so lines are not interleaved. sgt-tokenize writes from a
# single thread.
run 0 strace -ff -y -o trace -e trace=mkdir,fsync,rename \
    sgt-tokenize --quiet --threads 1 --shard-tokens 200 1.txt 2.txt 3.txt new/out

# Print each call as: mkdir PATH, fsync PATH or rename FROM TO, with paths relative to this folder.
cat trace.* | sed -nE '
    s/^mkdir\("([^"]*)".* = 0$/mkdir \1/p
    s/^rename\("([^"]*)", "([^"]*)"\) += 0$/rename \1 \2/p
    s/^fsync\([0-9]+<([^>]*)>\) += 0$/fsync \1/p' | sed "s|$here\$|.|; s|$here/||" > calls
[ "$(grep -c '^rename' calls)" -gt 8 ] || fail "only $(grep -c '^rename' calls) renames"

# The parent of a new folder is flushed at once. Files are flushed before they are renamed. OUT is
# flushed before and after the manifest is renamed.
awk '
    $1 == "fsync" { flushed[$2] = NR; if (made == $2) made = "" }
    $1 != "fsync" && made != "" { print "not flushed before " $0 ": " made; exit 1 }
    $1 == "mkdir" { made = $2; if (!sub("/[^/]*$", "", made)) made = "." }
    $1 == "rename" && !flushed[$2] && !written[$2] { print "renamed before it was flushed: " $2; exit 1 }
    $1 == "rename" { written[$3] = 1 }
    $1 == "rename" && $3 != "new/out/manifest.json" && $3 ~ "^new/out/[^.]" { named = NR }
    $1 == "rename" && $3 == "new/out/manifest.json" {
        done = NR
        if (flushed["new/out"] < named) { print "manifest too early"; exit 1 }
    }
    END { if (!done || flushed["new/out"] < done) { print "the manifest is not flushed"; exit 1 } }
' calls > said || fail "$(cat said)"
