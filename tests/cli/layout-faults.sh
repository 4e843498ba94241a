# sgt-tokenize --shards and sgt-inspect --export with each system call and allocation disturbed in turn (faults.inc): the
# same command then makes the files of an undisturbed run; no file has its name before it is whole; a set that --export
# replaces stays until then.
# In make check-all only: it disturbs hundreds of calls.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/faults.inc"

need_faults
work_in_memory

mkdir corpus
for i in 1 2 3 4 5 6; do head -c 600 "$ROOT/tokenize/vocab/gpt2.bpe" | tail -c $((i * 90)) > corpus/$i; done
run 0 sgt-tokenize --quiet --shard-tokens 900 --split 40% corpus own
run 0 sgt-tokenize --quiet --shards nanogpt --split none corpus/1 old

whole() { # a file system may refuse to remove .work
    diff -r -x .work undisturbed out > .diff 2>&1 || { head -5 .diff; fail 'not the files of an undisturbed run'; }
}
kept() {
    for file in out/*; do
        [ -e "$file" ] || continue
        cmp -s "$file" "undisturbed/${file#out/}" || cmp -s "$file" "old/${file#out/}" || fail "$file is half done"
    done
    [ -e out/manifest.json ] || return 0 # a whole set: the old one or the new one
    is=undisturbed
    ! cmp -s out/manifest.json old/manifest.json || is=old
    for file in $is/*; do same "$file" "out/${file#*/}"; done
}
is_over() { [ -n "$over" ] && [ -e out/manifest.json ]; }
everything() {
    rm -rf undisturbed out
    run 0 $again
    mv out undisturbed
    disturb_files
    sees_memory || return 0
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
rm -rf undisturbed
over=''
prepare && run 0 $again && mv out undisturbed
disturb $changes:kill
disturb $writes:ENOSPC
faults_sum 600
