# The wheel for aarch64, in emulation. With NEON and without it, its programs write the same bytes as
# those for x86-64 when they tokenize by each kind of pattern, and, compared with the CPU level
# `plain`, when they train. Python's batches and ids are the same too.
# In make check-wheel only: it runs in emulation, with Debian's Python for arm64 and numpy from PyPI.
. "$ROOT/tests/cli/python.inc"
command -v qemu-aarch64 > /dev/null || skip 'no qemu-aarch64 (tools/deps.sh all)'
python_venv numpy
wheel=$(echo "$BIN"/../wheel/sgtokens-*_aarch64.whl)
[ -e "$wheel" ] || skip 'no wheel for aarch64: make wheel needs aarch64-linux-gnu-gcc (tools/deps.sh all)'
run 0 "$python" -m zipfile -e "$wheel" site
bin=$(echo site/sgtokens-*.data/scripts)
chmod +x "$bin"/*
version=$(apt-cache depends python3-minimal | sed -n 's/.*Depends: python\(3\.[0-9]*\)-minimal/\1/p')
{
    "$ROOT/tools/python/arm64.sh" root libc6 libstdc++6 libgcc-s1 libffi8 zlib1g libexpat1 \
        "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" &&
        "$python" -m pip download --quiet --no-deps --only-binary :all: --python-version "$version" \
            --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 numpy
} > .fetched 2>&1 || skip "Debian's Python for arm64 cannot be fetched: $(tail -1 .fetched)"
run 0 "$python" -m zipfile -e numpy-*.whl site
aarch64() { run 0 qemu-aarch64 -L root "$@"; }

texts corpus 100000
{
    printf "Ich weiß's nicht, 我也不知道。 كلمة ٣٤، ไม่รู้ ひらがな　한국어 🙂🙂 HTTPServer's\302\240 12345 it'll\r\n\n//x"
    printf 'broken \360\237\230 \300\200 \355\240\200 end\342\200\203 \303'
} > corpus/scripts
for pattern in llama3 o200k gpt2; do
    run 0 sgt-tokenize --quiet --pattern $pattern --force corpus out
    for level in plain auto; do
        aarch64 "$bin/sgt-tokenize" --quiet --cpu $level --pattern $pattern --force corpus aarch64-out
        same_folders out aarch64-out
    done
done

set -- --data out --model 2x32x2 --batch-size 1 --seq-len 16 --steps 10 --threads 1 --quiet
run 0 sgt-train "$@" --cpu plain --run run
aarch64 "$bin/sgt-train" "$@" --run aarch64-run
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
aarch64 -E PYTHONPATH="$PWD/site" "root/usr/bin/python$version" batches.py
stdout_is "$digest"

# The package's own tests, except one that starts a program.
run 0 "$python" -m pip install --quiet --target site pytest
cd "$ROOT/tests/python" || exit 1
here=$OLDPWD
PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$here/root" -E PYTHONPATH="$here/site" "$here/root/usr/bin/python$version" \
    -m pytest -q -p no:cacheprovider -k 'not options_are_the_programs' test_loader.py test_tokenizer.py test_readme.py \
    > "$here/.stdout" 2>&1 || fail "pytest: $(tail -20 "$here/.stdout")"
