# sgt-sample --temperature 0 and transformers' generate() give the same ids, for sgt's checkpoints
# and for those of transformers.
# In make check-all only: it loads PyTorch and transformers.
find_python 'torch, transformers'
[ -n "$python" ] || skip 'no python3 with torch and transformers (PYTHON=... names one)'

compare() { # MODEL [OPTION]...
    run 0 sgt-sample "$@" --quiet --temperature 0 --tokens 60 --json -p 'The first' -p 'Grüße, 世界' -p ''
    cp .stdout said
    run 0 env HF_HUB_OFFLINE=1 "$python" "$ROOT/tests/train/check_greedy.py" said
}

texts corpus 100000
run 0 sgt-tokenize --quiet corpus out
run 0 sgt-train --quiet --data out --device cpu --model 2x32x2 --batch-size 8 --seq-len 32 --steps 12 --lr 3e-3
compare run/step-00000012
"$python" - <<'END' || fail 'transformers saved nothing'
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(3)
GPT2LMHeadModel(GPT2Config(n_embd=60, n_layer=3, n_head=5, n_positions=128, initializer_range=.2)).save_pretrained("hf")
END
compare hf
