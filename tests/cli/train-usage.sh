# sgt-train: wrong usage gives exit code 2, one line that names the option, and a hint.
. "$ROOT/tests/cli/train.inc"
data d

run_usage 'no training data: --data is not given, and ./out has no shards (make them with sgt-tokenize INPUT... out/)' sgt-train
run_usage '--model gpt2-small: not gpt2, gpt2-medium, gpt2-large, gpt2-xl or LAYERSxCHANNELSxHEADS such as 4x256x4; did you mean gpt2?' \
    sgt-train --data d --model gpt2-small
run_usage 'corpus: only options are accepted; did you mean --data corpus?' sgt-train corpus
run_usage '--no-such-option: no such option' sgt-train --no-such-option
run_usage '--lr fast: not a number (such as 0.1, 3e-4) or auto' sgt-train --data d --lr fast
run_usage '--pad-id: needs --sampling documents' sgt-train --data d --pad-id 3
run_usage 'pad-id 300: must be below 256, like all ids of d' sgt-train --data d --device cpu --sampling documents --pad-id 300
run_usage '--epochs 0: must be from 1e-06 to 1000000' sgt-train --data d --epochs 0
run_usage '--run: needs a value (DIR)' sgt-train --data d --run ''
run_usage '--profile: needs a value (FILE)' sgt-train $small --steps 1 --profile ''
run_usage '--epochs 1e+06: 4799500000 steps, more than 99999999 (use --steps instead)' \
    sgt-train --quiet --data d --device cpu --model 1x8x1 --seq-len 16 --batch-size 2 --epochs 1000000
run_usage '--memory: no such option; did you mean --memory-limit?' sgt-train --data d --memory 1G
# Option names of other programs, with dashes or underscores (tests/base/test_cli.c has each way in
# which a word can be like an option). If a value was given, the suggestion has it.
for meant in learning-rate:lr data-dir:data dtype:precision num_threads:threads max_iters:steps out_dir:run \
    gradient_accumulation_steps:grad-accum resume_from_checkpoint:resume optimizer.lr:lr use_cpu:'device cpu' \
    gpu:'device cuda' gradient_checkpointing:'recompute block' num-attention-heads:'model LxCxH' \
    validation:'data DIR, which holds the validation shards' bs:batch-size; do
    run_usage "--${meant%:*}: no such option; did you mean --${meant#*:}?" sgt-train --"${meant%:*}" 4
done
run_usage '--learning_rate: no such option; did you mean --lr=6e-4?' sgt-train --learning_rate=6e-4
run_usage '-n_layer: no such option; did you mean --model LxCxH?' sgt-train -n_layer=6
run_usage '-t3: no such option; did you mean -t 3?' sgt-train -t3
run_usage '-j: no such option; did you mean --threads?' sgt-train -j3
run_usage '-dout: no such option; did you mean -d out?' sgt-train -dout
run_usage '--bf16: no such option; did you mean --precision bf16?' sgt-train --bf16=true
run_usage '--log-interval: no such option' sgt-train --log-interval 10
run_usage '--gpu: no such option' sgt-tokenize --gpu text out
run_usage 'batch_size=4: only options are accepted; did you mean --batch-size=4?' sgt-train --data d batch_size=4
run_usage 'year=4: only options are accepted; did you mean --data year=4?' sgt-train year=4
# Every program suggests an option for a word NAME=VALUE, unless a file of that name exists.
named_value() { # WORD MEANT COMMAND
    run_usage "$1: no such file; did you mean $2?" $3 "$1"
}
named_value batch_size=4 --batch-size=4 'sgt-eval RUN'
named_value Output=x --output=x 'sgt-report RUN'
named_value temperature=1 --temperature=1 'sgt-sample RUN'
named_value batch=3 --batch=3 'sgt-inspect RUN'
named_value batch=3 --batch-size=3 'sgt-bench loader SET'
named_value json=1 --json 'sgt-bench tokenize text'
named_value shard_size=5 --shard-tokens=5 'sgt-tokenize text'
named_value output=x 'OUT/ as the last word' 'sgt-tokenize text'
echo text > shard-tokens=5
run 0 sgt-tokenize --quiet shard-tokens=5 shard-token=6
[ -f shard-token=6/manifest.json ] || fail 'a name with an error is no option'
for meant in 'device gpu:cuda' 'precision bfloat16:bf16' 'precision float32:fp32' 'precision float16:fp16' \
    'precision half:fp16'; do
    words=$(sgt-train --completion table | awk -F '\t' -v name="${meant% *}" '$2 == name { print $4 }')
    run_usage "--${meant%:*}: must be one of $words; did you mean ${meant#*:}?" sgt-train --data d --${meant%:*}
done

# Options that need another option (tests/train/test_settings.c has more, and every wrong value).
run_usage '--nesterov: needs a --momentum above 0' sgt-train --data d --optimizer sgd --momentum 0 --nesterov
readers=$(sgt-train --completion table | awk -F '\t' '$2 == "loader" { print $4 }')
run_usage '--verbose: takes no value' sgt-train --verbose=1
run_usage '--init: needs a value (DIR|FILE)' sgt-train --init
run_usage '--optimizer ADAMW: must be one of adamw|sgd|muon; did you mean adamw?' sgt-train --data d --optimizer ADAMW
run_usage '--dropout 0.999999999: must be at least 0 and below 1' sgt-train --data d --dropout 0.999999999
run_usage "--loader fast: must be one of $readers" sgt-train --data d --loader fast
run_usage '--scale-lr: needs --lr, the rate to scale (--lr auto already depends on the batch size)' sgt-train --data d --scale-lr
run_usage '--resume: not together with --force' sgt-train --data d --resume --force
run_usage '--seq-len 65: the model has only 64 positions (use a shorter --seq-len)' \
    sgt-train --quiet --data d --device cpu --init "$curve" --seq-len 65
run_usage '--cpu avx521: must be one of auto, plain, avx2, avx512, amx; did you mean avx512?' sgt-train --data d --cpu avx521
absent run

# A --config file follows the same rules; the command line overrides it.
echo '{"learning_rate": 1}' > c.json
run 1 sgt-train --data d --config c.json
stderr_is "sgt-train: c.json: unknown option 'learning_rate' (options are named as in --help, without the dashes); did you mean \
lr?"
echo '{"lr": ' > c.json
run_failure_about 'sgt-train: c.json: line 2: ' sgt-train --data d --config c.json
run_failure 'nowhere.json: No such file or directory' sgt-train --data d --config nowhere.json
# The message about a wrong value or a contradiction names the line of the file, unless an option on
# the command line caused it.
refuses() { # FILE MESSAGE [OPTION]...
    printf "$1" > c.json
    said=$2
    shift 2
    run_usage "$said" sgt-train --data d --config c.json "$@"
}
refuses '{"seed": 1,\n"optimizer": "lion"}' 'c.json: line 2: --optimizer lion: must be one of adamw|sgd|muon'
refuses '{"compute-budget": 1, "lr": 1,\n"epochs": 1}' 'c.json: line 1: --compute-budget: not together with --epochs'
refuses '{"init": "x",\n"model": "gpt2"}' 'c.json: line 2: --model gpt2: not together with --init, which decides the shape'
refuses '{"lr": -1}' 'c.json: line 1: --lr -1: must be at least 0' --seed 2
refuses '{"steps": 2}' '--epochs: not together with --steps' --epochs 2 --steps 2
echo '{"steps": 2, "seed": 9, "lr": "auto"}' > c.json
run 0 sgt-train --quiet $small --config c.json --seed 5
[ "$(wc -l < run/log.jsonl)" -eq 2 ] || fail 'steps of the file should count'
grep -q '"seed": 5' run/options.json || fail 'what is typed should come first'
grep -q '"lr": 0.001,' run/options.json || fail 'what is typed should come first'
for epochs in 0.0004 0.0006; do # of 4,800 steps
    echo "{\"epochs\": $epochs}" > c.json
    run 0 sgt-train --quiet $small --config c.json --run epochs --resume-or-start
done
[ "$(wc -l < epochs/log.jsonl)" -eq 3 ] || fail 'epochs of the file should count'
