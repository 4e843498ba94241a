# sgt-tokenize with each system call and allocation disturbed in turn (faults.inc): files that
# cannot be created, read, written, flushed or renamed; partial reads and writes; failed
# allocations; threads that cannot be started; clocks that jump; SIGKILL. The inputs are of many
# kinds; runs shuffle, deduplicate, use a filter, or are the rank that completes OUT.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/faults.inc"

need_faults
work_in_memory

small_corpus
rm corpus/2 corpus/4
cp corpus/1 corpus/7
head -c 180 "$ROOT/tokenize/vocab/gpt2.bpe" | gzip > corpus/2.gz
tail -n 60 "$ROOT/tokenize/vocab/gpt2.bpe" | sed 's/["\\]//g; s/.*/{"text":"&"}/' > corpus/4.jsonl
! command -v zstd > /dev/null || zstd -q --rm corpus/4.jsonl

everything() {
    begin
    disturb_files
    disturb clone,clone3,vfork:EAGAIN
    disturb memory:fail
    for library in libzstd libz. libpcre2 libxxhash; do disturb memory@$library:fail; done
    for jump in back forward wild; do disturb clock:$jump; done
}
again='sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% corpus out'
everything
again="$again --shuffle 3 --dedup"
everything
again='sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% --filter 1=cat corpus out'
everything
again='sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% --rank 0 --ranks 2 corpus out'
rm -rf out
run 0 sgt-tokenize --quiet --threads 1 --shard-tokens 400 --split 40% --rank 1 --ranks 2 corpus out
mv out begun
prepare() { rm -rf out && cp -rp begun out; }
everything
faults_sum 1000
