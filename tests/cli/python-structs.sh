# The ctypes structs of the Python package (tools/python/sgtokens/_native.py) match the headers: no
# field is missing, and each has the offset that the compiler gives it.
. "$ROOT/tests/cli/python.inc"
python_with numpy
cat > fields.py << 'END2'
import ctypes
import sys

from sgtokens import _native as n

structs = {
    "sgt_error": n.ErrorText, "sgt_notice": n.Notice, "sgt_loader_set": n.LoaderSet, "sgt_loader_info": n.LoaderInfo,
    "sgt_loader_options": n.LoaderOptions, "sgt_loader_state": n.LoaderState,
    "sgt_loader_batch": n.LoaderBatch, "sgt_stream_options": n.StreamOptions,
    "sgt_tokenize_options": n.TokenizeOptions, "sgt_tokenize_result": n.TokenizeResult,
}  # fmt: skip
left = {s for s in n.Structure.__subclasses__() if s.__module__ == n.__name__} - {*structs.values()}
assert not left, left
in_c = sys.argv[1] == "c"
if in_c:
    print('#include <stdio.h>\n#include "sgt_loader.h"\n#include "sgt_tokenize.h"\nint main(void)\n{')
for name, struct in structs.items():
    fields = [field for field, *_ in struct._fields_]
    if name.startswith("sgt_tokenize"):  # no padding, where a later version would have a field
        assert sum(getattr(struct, field).size for field in fields) == ctypes.sizeof(struct), name
    for field in fields:
        where = getattr(struct, field)
        if in_c:
            size = f"sizeof((({name} *)0)->{field})"
            print(f'    printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), {size});')
        else:
            print(f"{name}.{field}", where.offset, where.size)
    print(f'    printf("{name} %zu\\n", sizeof({name}));' if in_c else f"{name} {ctypes.sizeof(struct)}")
if in_c:
    print("    return 0;\n}")
END2
run 0 "$python" fields.py c
cp .stdout fields.c
run 0 cc "-I$ROOT" "-I$ROOT/loader" "-I$ROOT/tokenize" -o fields fields.c
run 0 ./fields
cp .stdout want
run 0 "$python" fields.py python
[ "$(wc -l < want)" -gt 100 ] || fail "only $(wc -l < want) fields"
check "the package and the headers differ: $(diff want .stdout)" cmp -s want .stdout
