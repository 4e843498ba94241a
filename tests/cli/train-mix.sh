# sgt-train on several sets. A run in two parts, where the second resumes the first, ends with the
# bits of an undisturbed run. A resume with other sets is refused, and the message names the
# difference.
. "$ROOT/tests/cli/train.inc"

# Three sets of different sizes. The second has no validation shard.
data web && validation web
mkdir books talk
head_of books/train_000000.bin 20000
head_of talk/train_000000.bin 9000
head_of talk/val_000000.bin 3000
options="--init $curve --batch-size 4 --seq-len 32 --lr 1e-3 --device cpu --threads 1 --eval-every 10 --save-every 5
    --keep 2 --schedule constant --warmup 3 --steps 60"
mix='--data web:0.5,books:0.25,talk:0.25'

# ---- output ----
run 0 sgt-train $mix $options --run whole --verbose
stderr_has 'sgt-train: data: web: 50 % of the rows; 153601 tokens, 4799 rows per epoch'
stderr_has 'sgt-train: data: books: 25 % of the rows; 20000 tokens, 624 rows per epoch'
stderr_has 'sgt-train: data: talk: 25 % of the rows; 9000 tokens, 280 rows per epoch'
stderr_has 'sgt-train: books has no validation shards: it is not used for evaluation'
for set in web books talk; do stdout_matches "^rows of $set: [0-9]+ \(0\.[0-9]+ epochs\)$"; done
run 0 sgt-train $mix $options --run whole --force --json --quiet
[ "$(jq -c '[.sets[].data]' .stdout)" = '["web","books","talk"]' ] || fail 'sets of the JSON'
# Rows are drawn in turns of 64, of which 32 are from web. 240 rows are three turns and 48 rows of a
# fourth, with 16 to 32 rows of web.
jq -e '[.sets[].rows] | add == 240 and .[0] >= 112 and .[0] <= 128' .stdout > .jq || fail "rows: $(cat .stdout)"
jq -e '.sets[1] | .epochs - .rows / 624 | fabs < 1e-8' .stdout > .jq || fail "epochs: $(cat .stdout)"

# ---- in two parts ----
run 0 sgt-train --quiet $mix $options --run cut --steps 30 # 120 rows: within a turn
run 0 sgt-train --quiet --run cut --resume --steps 60
same_facts whole/log.jsonl cut/log.jsonl
same_folders whole/step-00000060 cut/step-00000060

# ---- refused ----
refused() { # DATA
    run_failure "--data $1: the run was trained on web:0.5,books:0.25,talk:0.25, $end" \
        sgt-train --quiet --data "$1" $options --steps 70 --run whole --resume
}
end='in this order (leave out --data, or start a new --run)'
refused web:2,books:1,talk:1.5
refused web,books,talk
refused web:0.5,talk:0.25,books:0.25
refused web
head_of talk/train_000000.bin 8000
run 1 sgt-train --quiet --data web:0.5,books:0.25,talk:0.25 $options --steps 70 --run whole --resume
stderr_is 'sgt-train: --data talk: its tokens are not those that the run was trained on (restore them, or start a new --run)'
head_of talk/train_000000.bin 9000
run 0 sgt-train --quiet --data web $options --steps 1 --run alone
run_failure '--data web,books: the run was trained on one set (leave out --data, or start a new --run)' \
    sgt-train --quiet --data web,books $options --steps 2 --run alone --resume

# ---- accepted: the same proportions as other weights, the same data
# under another path, no --data ----
mv talk chat
run 0 sgt-train --quiet --data web:2,books:1,chat:1 $options --steps 61 --run whole --resume
run 0 sgt-train --quiet --steps 62 --run whole --resume

# ---- wrong --data texts ----
wrong() { # DATA MESSAGE
    run_usage "$2" sgt-train --data "$1" --run x --device cpu
}
wrong web:1,books:0 '--data: books:0: the weight must be a number from 1e-09 to 1e+06'
wrong web:1,books '--data: web has a weight, but books has none (give every set a weight, or none)'
wrong web:1,./web:1 './web: the same set as web (to draw more of it, give it a larger weight)'
run 1 sgt-train --data web:1,gone:1 --run x --device cpu --quiet
stderr_is 'sgt-train: gone: No such file or directory (make a folder of shards with sgt-tokenize)'

# A folder whose name looks like a mix is a folder.
mkdir 'web:1,books:1'
cp web/train_000000.bin 'web:1,books:1'
run 0 sgt-train --data web:1,books:1 $options --steps 1 --run odd
stderr_has '; web:1,books:1 has no validation shards: no evaluation'
stderr_has 'sgt-train: data: web:1,books:1, 153,601 tokens in 1 shard;'

# ---- 300 sets and 64 file descriptors: every reader leaves enough of them for
# evaluations and checkpoints ----
mkdir many few
data few
validation few
sets=
for i in $(seq 300); do
    mkdir many/$i
    cp few/val_000000.bin many/$i/train_000000.bin
    cp few/val_000000.bin many/$i
    sets=$sets,many/$i
done
for reader in mmap preload uring; do
    run 0 sh -c "ulimit -n 64; exec sgt-train --quiet $small --data ${sets#,} --loader $reader --steps 4 \
--save-every 2 --eval-every 2 --run many-$reader"
    same_facts many-mmap/log.jsonl many-$reader/log.jsonl
    exists many-$reader/step-00000004/state.json
done
