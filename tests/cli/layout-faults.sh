# sgt-tokenize --shards and sgt-inspect --export with each system call and allocation disturbed in
# turn (faults.inc). The same command then makes the files of an undisturbed run. A file gets its
# final name only when it is complete. --export keeps the set that it replaces until the new one is
# complete.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/faults.inc"

need_faults
work_in_memory

small_corpus
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus own
run 0 sgt-tokenize --quiet --shards nanogpt --split none corpus/1 old

kept() {
    for file in out/*; do
        [ -e "$file" ] || continue
        cmp -s "$file" "undisturbed/${file#out/}" || cmp -s "$file" "old/${file#out/}" || fail "$file is half done"
    done
    [ -e out/manifest.json ] || return 0 # a complete set, old or new
    is=undisturbed
    ! cmp -s out/manifest.json old/manifest.json || is=old
    for file in $is/*; do
        if [ $is = undisturbed ] || [ -e "out/${file#*/}" ]; then same "$file" "out/${file#*/}"; continue; fi
        # The files of the old set are removed once all new ones are complete, and before its
        # manifest, which names them.
        for new in undisturbed/*_document.*; do same "$new" "out/.work/${new#*/}.tmp"; done
    done
}
is_over() { [ -n "$over" ] && [ -e out/manifest.json ]; }
everything() {
    begin
    disturb_files
    disturb memory:fail
    disturb memory@libxxhash:fail
}
over=''
again='sgt-tokenize --quiet --threads 1 --split 40% --shards megatron corpus out'
everything
over=yes
again='sgt-inspect --quiet --export npy own out'
everything
again='sgt-inspect --quiet --export megatron own out --force'
prepare() { rm -rf out && cp -r old out; }
run 0 $again
over=''
begin
disturb $changes:kill
disturb $writes:ENOSPC
faults_sum 600
