# Test the loader's vector code for aarch64 on any machine that has a compiler for it and qemu (gcc-aarch64-linux-gnu,
# qemu-user): the tests of rows, with a few macros in place of Criterion.
# In make check-all only: it runs in emulation.
CC=aarch64-linux-gnu-gcc
command -v $CC > /dev/null && command -v qemu-aarch64 > /dev/null || skip "no $CC and qemu-aarch64"

mkdir criterion
cat > criterion/criterion.h << 'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define cr_assert(c, ...) ((c) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c), exit(1)))
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b))
#define cr_assert_null(a) cr_assert(!(a))
#define cr_assert_str_eq(a, b) cr_assert(!strcmp(a, b))
#define cr_assert_arr_eq(a, b, n) cr_assert(!memcmp(a, b, n))
#define Test(suite, name) \
    static void name(void); \
    __attribute__((constructor)) static void run_##name(void) { name(); puts(#suite "::" #name); } \
    static void name(void)
END
cat > main.c << 'END'
#include "loader/base/memory.h"
#include "tests/loader/shards.h"
uint64_t sgt_group_cpus(const char *root) { return root ? 1 : UINT64_MAX; }
size_t id_width = 2;
uint32_t token_at(uint32_t shard, uint64_t i) { return (uint32_t)((shard * 7919 + i * 1031 + (i >> 8)) % VOCAB); }
int main(void) { return 0; }
END
run 0 $CC -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wshadow -Wno-unused-value -Wno-unused-parameter \
    -Werror -static -I. \
    "-I$ROOT/loader" "-I$ROOT" -o rows main.c "$ROOT/tests/loader/test_rows.c" "$ROOT"/loader/rows/*.c \
    "$ROOT/loader/base/cpu.c" "$ROOT/loader/base/error.c"
run 0 qemu-aarch64 ./rows
stdout_lines 3
stdout_matches '^rows::widen$'
