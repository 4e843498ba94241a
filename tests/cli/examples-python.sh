# loader/examples/batches.py with numpy: its batches equal sgt-inspect's, and its structs match the header.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/python.inc"
python_with numpy
example=$ROOT/loader/examples/batches.py
mkdir text
texts text 20000
run 0 sgt-tokenize --quiet text out
run 0 sgt-inspect out --batch 0:3 --batch-size 4 --seq-len 32 --json
sed -nE 's/.*"index":([0-9]+),"inputs":\[\[([0-9]+),([0-9]+),([0-9]+),([0-9]+),.*/batch \1 numpy \2 \3 \4 \5/p' \
    .stdout > want
[ "$(wc -l < want)" -eq 3 ] || fail "sgt-inspect --batch gave $(cat .stdout)"
run 0 "$python" "$example" out 3
grep ' numpy ' .stdout > got
same want got
run 1 "$python" "$example" nowhere 1
stderr_has 'RuntimeError: nowhere: No such file or directory'

# ctypes cannot check a struct, so compare each field's offset with the compiler's, and check that
# none is missing.
cat > fields.py << 'END'
import ctypes
import sys

sys.path.insert(0, sys.argv[1])
import batches

structs = {"sgt_error": batches.Error, "sgt_notice": batches.Notice, "sgt_loader_set": batches.Set,
           "sgt_loader_options": batches.Options}
if sys.argv[2] == "c":
    print('#include <stddef.h>\n#include <stdio.h>\n#include "sgt_loader.h"\nint main(void)\n{')
for name, struct in structs.items():
    for field, *_ in struct._fields_:
        if sys.argv[2] == "c":
            print(f'    printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
        else:
            print(f"{name}.{field}", getattr(struct, field).offset)
    if sys.argv[2] == "c":
        print(f'    printf("{name} %zu\\n", sizeof({name}));')
    else:
        print(name, ctypes.sizeof(struct))
if sys.argv[2] == "c":
    print("    return 0;\n}")
END
run 0 "$python" fields.py "$ROOT/loader/examples" c
cp .stdout fields.c
run 0 cc "-I$ROOT/loader" -o fields fields.c
run 0 ./fields
cp .stdout want
run 0 "$python" fields.py "$ROOT/loader/examples" python
[ "$(wc -l < want)" -gt 20 ] || fail "only $(wc -l < want) fields"
check "batches.py and sgt_loader.h differ: $(diff want .stdout)" cmp -s want .stdout
