# sgt-inspect --merge: the merged set has the bytes of tokenizing all inputs at once, and is never left half done.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/shards.inc"

mkdir one two three
texts one 50000
texts two 30000
printf 'bad \377 text' > two/bad.txt
printf 'and \376 more' > three/bad.txt
: > three/none # its hash puts it in val: each set has a document in val that the whole set has too
options='--quiet --split 30%'
run 0 sgt-tokenize $options --shard-tokens 5k one a
run 0 sgt-tokenize $options --shard-tokens 5k two b
run 0 sgt-tokenize $options --shard-tokens 3k three c
for tokens in 5k 1 777 1M; do
    [ $tokens != 1 ] || continue
    rm -rf whole m
    run 0 sgt-tokenize $options --shard-tokens $tokens one two three whole
    run 0 sgt-inspect --merge --shard-tokens $tokens a b c m
    stdout_matches '^m: [0-9,]+ tokens, [0-9]+ documents, [0-9]+ shards, of 3 sets, in [0-9.]+ m?s, '
    same_folders m whole
    run 0 sgt-inspect --verify --quiet m
done
rm -rf m
run 0 sgt-inspect --merge --json a b c m # shards have the size of the first set's
stdout_has '"sets": 3'
stdout_has '"out": "m"'
rm -rf whole
run 0 sgt-tokenize $options --shard-tokens 5k one two three whole
same_folders m whole
run 0 sgt-tokenize $options --shard-tokens 5k one two three m # sgt-tokenize accepts it as its own
same_folders m whole

# A whole set may have no document, and no shard.
: > nothing.jsonl
run 0 sgt-tokenize $options --shard-tokens 5k nothing.jsonl zero
run 0 sgt-inspect --verify zero
stdout_has '0 tokens in 0 shards, 0 documents'
run 0 sgt-tokenize $options --shard-tokens 5k nothing.jsonl one nothing.jsonl around
run 0 sgt-inspect --merge --quiet zero a zero m0
same_folders m0 around
run 0 sgt-inspect --compare m0 around
run 1 sgt-inspect --compare zero a
stdout_has 'ends after 0 tokens'
run 0 sgt-inspect --export npy --quiet zero zero-npy
run 0 sgt-tokenize $options --shards npy nothing.jsonl zero-same
grep -v shard_tokens zero-npy/manifest.json > got
same got zero-same/manifest.json

# One set is merged to shards of another size, and back.
run 0 sgt-inspect --merge --quiet --shard-tokens 999 whole small
stdout_is ''
run 0 sgt-inspect --compare whole small
run 0 sgt-inspect --merge --quiet --shard-tokens 5k small big
same_folders big whole

# The manifest has all values of options that differ between the sets.
run 0 sgt-tokenize --quiet --shard-tokens 5k two plain
run 0 sgt-inspect --merge --quiet a plain mixed
run 0 sgt-inspect mixed --json
stdout_has '"merged": 2'
tr -d ' \n' < .stdout > flat
grep -qF '"split":["30%","none"]' flat || fail 'the options do not say both'

# Sets of JSONL with skipped lines and lone surrogates, and sets of another vocabulary, can be
# merged.
printf '{"text": "one \\ud800"}\n{"no": 1}\n{"text": "two"}\n' > j1.jsonl
printf '{"text": "three \\udc00"}\n{"text": 4}\n{"text": 5}\n' > j2.jsonl
run 0 sgt-tokenize --quiet --skip-bad j1.jsonl ja
run 0 sgt-tokenize --quiet --skip-bad j2.jsonl jb
run 0 sgt-tokenize --quiet --skip-bad j1.jsonl j2.jsonl jboth
run 0 sgt-inspect --merge --quiet ja jb jmerged
same_folders jmerged jboth
grep -q '"bad_lines": 3' jmerged/manifest.json || fail 'bad lines are not added up'
# What the manifest of a shuffled or deduplicated set claims would not be true of sets together.
run 0 sgt-tokenize --quiet --dedup one da
run 0 sgt-tokenize --quiet --shuffle 0 one sa
for claim in 'da dedup' 'sa shuffle'; do
    run 1 sgt-inspect --merge a ${claim% *} m3
    stderr_is "sgt-inspect: ${claim% *}: made with --${claim#* }, which would not hold for the merged set (give "\
"sgt-tokenize all inputs together)"
    absent m3
done
vocab="--vocab $ROOT/tests/data/vocab/trained"
run 0 sgt-tokenize --quiet $vocab --shard-tokens 2k one va
run 0 sgt-tokenize --quiet $vocab --shard-tokens 2k two vb
run 0 sgt-tokenize --quiet $vocab --shard-tokens 2k one two vboth
run 0 sgt-inspect --merge --quiet va vb vmerged
same_folders vmerged vboth
run 0 sgt-inspect --decode 0:40 vmerged
[ "$(head -1 .stdout)" = '<|endoftext|>#version: 0.2' ] || fail 'the text of another vocabulary is not there'
run 1 sgt-inspect --merge a va new
stderr_matches '^sgt-inspect: va: made with another vocabulary: fingerprint [0-9a-f]{16}, that of a is [0-9a-f]{16} '\
'\(tokenize its text again with --vocab a\)$'
run 1 sgt-inspect --compare a va
stdout_matches '^a and va are of different vocabularies: fingerprints [0-9a-f]{16} and [0-9a-f]{16}$'
run 0 sgt-inspect --compare vmerged vboth

# An existing OUT is refused, or replaced with --force.
run 1 sgt-inspect --merge a b m
stdout_is ''
stderr_is 'sgt-inspect: m: OUT is there already (name a new folder, or --force replaces the set in it)'
same_folders m whole
mkdir kept && echo mine > kept/notes.txt
run 1 sgt-inspect --merge a b kept
cp -r whole/. kept
run 0 sgt-inspect --merge --quiet --force --shard-tokens 1M a kept
[ "$(cat kept/notes.txt)" = mine ] || fail 'a file that is not ours is gone'
rm kept/notes.txt
rm -rf fresh
run 0 sgt-inspect --merge --quiet --shard-tokens 1M a fresh
same_folders kept fresh
mkdir empty
run 0 sgt-inspect --merge --quiet --shard-tokens 1M a empty
same_folders empty fresh
echo x > file
run 1 sgt-inspect --merge a b file
stderr_is 'sgt-inspect: file: OUT is a file, not a folder (name another OUT)'
run 2 sgt-inspect --merge --force a b b
stderr_has 'sgt-inspect: b: is one of the sets, and cannot be OUT (name a new folder)'

# Sets that do not match or are incomplete: nothing is made, and an existing set stays.
cp -r b hurt
patch hurt/train_000000.bin 1500 7
run 1 sgt-inspect --merge a hurt new
stdout_is ''
stderr_matches '^sgt-inspect: hurt/train_000000.bin: checksum [0-9a-f]{16}, expected [0-9a-f]{16}: '
absent new
run 1 sgt-inspect --merge --force a hurt m
same_folders m whole
rm -r hurt && cp -r a hurt # a shard that is copied as a file is verified too
patch hurt/train_000000.bin 1500 7
run 1 sgt-inspect --merge hurt b new
stderr_matches '^sgt-inspect: hurt/train_000000.bin: checksum [0-9a-f]{16}, expected [0-9a-f]{16}: '
absent new
rm -r hurt && cp -r b hurt && patch hurt/train_000000.idx 0 3
run 1 sgt-inspect --merge a hurt new
stderr_has 'hurt/train_000000.idx: at byte 0: document 0 starts at token 3, which is '
absent new
rm -r hurt && cp -r b hurt && sed 1d b/sources.jsonl > hurt/sources.jsonl
run 1 sgt-inspect --merge a hurt new
stderr_matches '^sgt-inspect: hurt/sources.jsonl: [0-9]+ files, but the manifest says [0-9]+$'
rm -r hurt && cp -r b hurt
for shard in hurt/*.bin; do patch $shard 24 1; done
sed 's/"fingerprint": "\(.*\)[0-9a-f][0-9a-f]"/"fingerprint": "\101"/' b/manifest.json > hurt/manifest.json
run 1 sgt-inspect --merge a hurt new
stderr_matches '^sgt-inspect: hurt: made with another vocabulary: fingerprint [0-9a-f]{14}01, that of a is [0-9a-f]{16} '\
'\(tokenize its text again with --vocab a\)$'
rm hurt/manifest.json
run 1 sgt-inspect --merge a hurt new
stderr_is 'sgt-inspect: hurt: has no manifest.json: only sets that sgt-tokenize made whole are merged'
run 1 sgt-inspect --merge a nowhere new
stderr_is 'sgt-inspect: nowhere: No such file or directory'
absent new

# Two programs with the same OUT: the second is refused.
mkdir busy busy/.work
run 1 flock busy/.work/lock sgt-inspect --merge --force a b busy
stderr_is 'sgt-inspect: busy: another program is at work here (wait for it)'

run_usage '--merge: expected sets and OUT, got 1 (sgt-inspect --merge A B OUT)' sgt-inspect --merge a
run_usage '--merge takes whole sets: no --split, no --raw' sgt-inspect --merge --split val a b new
run_usage '--shard-tokens, --force: need --merge' sgt-inspect --force a
run_usage '--shard-tokens 0: must be from 1 to 2147483647' sgt-inspect --merge --shard-tokens 0 a new
run_usage '--merge: not together with --verify, --decode or --batch' sgt-inspect --merge --verify a new
