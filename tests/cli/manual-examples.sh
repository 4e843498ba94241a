# Every command in the manuals' examples works as written, on small files, with small models and few
# steps. Commands that need a GPU, a launcher, Python or an optional program are left out; other
# scripts run them.
# In make check-all only: it runs each program several times, 12 s of a core.
left_out='--device cuda|--peer|--cold|mpirun|torchrun|pdftotext|rows\.py'
command -v zstd > /dev/null || left_out="$left_out|zst"

mkdir corpus archives dumps crawl runs
texts corpus 200000
tar -czf archives/a.tar.gz corpus
cat corpus/* > story.txt
gzip -c story.txt > pages.gz
for i in 1 2 3; do
    printf '{"content": "It was %d.", "page": {"text": "It was %d."}}\nnot JSON\n' $i $i >> pages.jsonl
    echo '{"ctx": "It was the", "endings": ["best.", "worst."], "label": 0}' >> hellaswag_val.jsonl
    echo '{"text": "It was the best of times"}' >> lambada_test.jsonl
    echo '{"prompt": "It was", "completion": " the best of times."}' >> answers.jsonl
done
case $left_out in *zst) ;; *)
    zstd -q pages.jsonl && cp pages.jsonl.zst crawl && zstd -q story.txt -o dumps/a.zst
    ;;
esac
run 0 sgt-tokenize --quiet --split 5% corpus out
run 0 sgt-train --quiet --data out --run run --model 1x8x1 --seq-len 16 --batch-size 2 --steps 2
cp -r run runs/a
cp -r run runs/b
cp -r run/step-00000002 gpt2
cp -r out web
cp -r out books
cp -r out out2

# small COMMAND: print COMMAND with fewer steps and smaller models. A command that starts a run gets
# a run folder of its own.
small() {
    echo "$1" | sed -E 's/step-0000[12]000/step-00000002/; s/--steps 2000/--steps 2/; s/--steps 4000/--steps 4/
        s/4x256x4/1x16x2/; s/4,8,16,32/1,2/; s/--tokens 100/--tokens 10/
        s/^sgt-bench (step|ablation).*/& --steps 1 --warmup 0/; s/^sgt-bench ablation.*/& --rounds 1/
        s/^sgt-bench loader.*/& --seconds 0.1 --turns 1/
        /^sgt-train/!b
        /--resume/b
        s/--run run$|--run run /--run new /; /--run/!s/$/ --run new/; /--steps/!s/$/ --steps 1/; s/$/ --batch-size 2/
        /--init/!{ /--model/!s/$/ --model 1x8x1/; s/$/ --seq-len 16/; }'
}

for page in "$ROOT"/tools/sgt-*.1; do
    sed -n '/^\.EX/,/^\.EE/p' "$page" | sed 's/\\-/-/g; s/\\e/\\/g' | grep -E '(^|[|] )sgt-[a-z]+ ' | grep -vE -e "$left_out" > commands
    [ "$(wc -l < commands)" -ge 4 ] || fail "$page has few examples"
    case $page in *tokenize.1) rm -rf out ;; esac
    while read -r command; do
        case $command in *'--rank 1'* | *'--resume'*) ;; *) rm -rf new ;; esac
        case $command in *'--rank 1'* | sgt-[!t]*) ;; sgt-tokenize*' out/' | *'- out/') rm -rf out ;; esac
        case $command in *--train-vocab*) rm -rf vocab ;; esac
        run 0 sh -c "$(small "$command")" < story.txt
        echo "$command"
    done < commands
    case $page in *tokenize.1) rm -rf out && cp -r web out ;; esac
done
