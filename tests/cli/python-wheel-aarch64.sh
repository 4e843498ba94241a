# The wheel for aarch64, in emulation, in a root of Debian 12 without a compiler: pip installs it. With
# NEON and without it, its programs write the same bytes as those for x86-64 when they tokenize by
# each kind of pattern, and, compared with the CPU level `plain`, when they train. Python's batches
# and ids are the same too.
# In make check-wheel only: it runs in emulation, with Debian's packages for arm64 and numpy from PyPI.
. "$ROOT/tests/cli/python.inc"
for tool in qemu-aarch64 proot debootstrap; do
    command -v $tool > /dev/null || skip "no $tool (tools/deps.sh all)"
done
[ "$(id -u)" -eq 0 ] || skip 'only root may make a root of Debian'
python_venv numpy
wheel=$(echo "$BIN"/../wheel/sgtokens-*_aarch64.whl)
[ -e "$wheel" ] || skip 'no wheel for aarch64: make wheel needs aarch64-linux-gnu-gcc (tools/deps.sh all)'
mkdir wheels
{
    debootstrap --foreign --arch=arm64 --variant=minbase --include=python3,python3-venv bookworm root &&
        "$python" -m pip download --quiet --only-binary :all: --python-version 3.11 --dest wheels \
            --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 numpy pytest
} > .fetched 2>&1 || skip "Debian for arm64 cannot be fetched: $(tail -1 .fetched)"
for package in root/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" root; done
cp "$wheel" wheels
aarch64() {
    run 0 env -u LD_LIBRARY_PATH -u PYTHONPATH \
        proot -q qemu-aarch64 -r root -b /dev -b /proc -b "$PWD" -b "$ROOT" -w "$PWD" "$@"
}
aarch64 python3 -m venv /v
aarch64 /v/bin/pip install --quiet --no-index --find-links wheels sgtokens pytest
write_try
mkdir try
aarch64 sh -c '! command -v cc && cd try && sh ../try.sh /v'
stdout_is '(4, 16) ok'

texts corpus 100000
{
    printf "Ich weiß's nicht, 我也不知道。 كلمة ٣٤، ไม่รู้ ひらがな　한국어 🙂🙂 HTTPServer's\302\240 12345 it'll\r\n\n//x"
    printf 'broken \360\237\230 \300\200 \355\240\200 end\342\200\203 \303'
} > corpus/scripts
for pattern in llama3 o200k gpt2; do
    run 0 sgt-tokenize --quiet --pattern $pattern --force corpus out
    for level in plain auto; do
        aarch64 /v/bin/sgt-tokenize --quiet --cpu $level --pattern $pattern --force corpus aarch64-out
        same_folders out aarch64-out
    done
done

set -- --data out --model 2x32x2 --batch-size 1 --seq-len 16 --steps 10 --threads 1 --quiet
run 0 sgt-train "$@" --cpu plain --run run
aarch64 /v/bin/sgt-train "$@" --run aarch64-run
for file in run/step-00000010/*.safetensors; do same "$file" "aarch64-$file"; done

cat > batches.py << 'END2'
import hashlib, platform, sgtokens
digest = hashlib.sha256()
for options in {}, {"sampling": "packed"}, {"documents": True}, {"reader": "mmap", "rank": 1, "ranks": 2}:
    data = sgtokens.Loader("out", batch=8, seq=64, seed=3, arrays="numpy", **options)
    for k in range(20):
        for array in data[k][:2]:
            digest.update(array.tobytes())
tokenizer = sgtokens.Tokenizer("gpt2")
text = open("corpus/part-03", errors="replace").read()
assert tokenizer.decode(tokenizer.encode(text)) == text
digest.update(tokenizer.encode(text).tobytes())
print(digest.hexdigest())
END2
run 0 "$python" batches.py
digest=$(cat .stdout)
aarch64 /v/bin/python batches.py
stdout_is "$digest"

# The package's own tests. proot does not translate paths in every system call, so their folder has
# the same path in the root as outside.
tests=$ROOT/tests/python
aarch64 env PATH="/v/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 \
    python -m pytest -q -p no:cacheprovider --basetemp "$PWD/tests" \
    "$tests/test_loader.py" "$tests/test_tokenizer.py" "$tests/test_readme.py"
