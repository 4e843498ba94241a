# Test the vector code for aarch64 on any machine that has a compiler for it and qemu (gcc-aarch64-linux-gnu,
# qemu-user): the tests of the loader's rows and of the splitter, with a few macros in place of Criterion. Here the
# splitter's definition is plain C, which other tests compare with PCRE2. NEON must take at most two thirds of plain C's
# instructions, on English, code and many scripts.
# In make check-all only: it runs in emulation.
CC=aarch64-linux-gnu-gcc
command -v $CC > /dev/null && command -v qemu-aarch64 > /dev/null || skip "no $CC and qemu-aarch64"

mkdir criterion
cat > criterion/criterion.h << 'END'
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define cr_assert(c, ...) ((c) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c), exit(1)))
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b))
#define cr_assert_lt(a, b, ...) cr_assert((a) < (b))
#define cr_assert_null(a) cr_assert(!(a))
#define cr_assert_str_eq(a, b) cr_assert(!strcmp(a, b))
#define cr_assert_arr_eq(a, b, n) cr_assert(!memcmp(a, b, n))
#define cr_assert_fail(...) (fprintf(stderr, __VA_ARGS__), exit(1))
#define cr_skip_test(...) return
struct test { const char *name; void (*init)(void), (*run)(void); };
extern struct test tests[16];
extern int test_count;
struct of_suite { void (*init)(void); };
#define TestSuite(suite, ...) static struct of_suite of_##suite = {__VA_ARGS__}
#define Test(suite, name) \
    static struct of_suite of_##suite; \
    static void name(void); \
    __attribute__((constructor)) static void add_##name(void) \
    { \
        tests[test_count++] = (struct test){#suite "::" #name, of_##suite.init, name}; \
        of_##suite.init = NULL; \
    } \
    static void name(void)
END
cat > main.c << 'END'
#include "loader/base/cpu.h"
#include "loader/rows/rows.h"
#include "tests/loader/shards.h"
#include "tokenize/text/pattern.h"
#include "tokenize/text/split_blocks.h"
struct test tests[16];
int test_count;
size_t id_width = 2;
uint32_t token_at(uint32_t shard, uint64_t i) { return (uint32_t)((shard * 7919 + i * 1031 + (i >> 8)) % VOCAB); }
int sgt_pattern_new(sgt_pattern **out, const char *pattern, sgt_error *err) { return 0; }
void sgt_pattern_free(sgt_pattern *p) {}
sgt_splitter sgt_pattern_splitter(sgt_pattern *p, const void *text, size_t n, sgt_error *why)
{
    return (sgt_splitter){.text = text, .n = n, .split = sgt_split_plain};
}
static char text[20000], room[2][40000];
int main(int argc, char **argv)
{
    sgt_error err;
    uint32_t ends[320];
    for (int i = 0; i < test_count && argc < 2; i++) {
        if (tests[i].init) tests[i].init();
        tests[i].run();
        puts(tests[i].name);
    }
    if (argc < 2) return 0;
    size_t n = fread(text, 1, sizeof text, stdin);
    sgt_splitter s = sgt_splitter_by(NULL, text, sgt_cpu_limit(argv[2], &err) ? 0 : n);
    if (!strcmp(argv[1], "split")) while (sgt_split(&s, ends, 320)) continue;
    else sgt_rows_best()->write(2, SGT_OUTPUT_I32, room[0], room[1], text, n / 2 - 1);
    return 0;
}
END
ln -s "$ROOT/loader" "$ROOT/tokenize" "$ROOT/tests" "$ROOT/README.md" .
# The linker leaves out functions of common.c that need a vocabulary.
run 0 $CC -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wshadow -Wno-unused-value -Wno-unused-parameter \
    -Werror -static -ffunction-sections -Wl,--gc-sections -I. -Iloader -idirafter /usr/include \
    -o both main.c tests/loader/test_rows.c loader/rows/*.c loader/base/*.c \
    tests/tokenize/test_split_levels.c tests/tokenize/splits.c tests/tokenize/common.c \
    tokenize/text/split*.c tokenize/text/unicode_tables.c tokenize/text/utf8*.c
# 3 GiB of addresses are too few for the test of a piece of 4 GiB, which would take minutes.
run 0 qemu-aarch64 -R 3G ./both
stdout_lines 6
stdout_matches '^rows::outputs$'
stdout_matches '^split_levels::many_bits_at_every_place$'

one_step=-singlestep # QEMU 8.1 renamed the option
! qemu-aarch64 -h | grep -q one-insn-per-tb || one_step=-one-insn-per-tb

# instructions WHAT LEVEL TEXT: print how many instructions the program executes
instructions() {
    qemu-aarch64 $one_step -d exec,nochain -D /dev/stdout ./both "$1" "$2" < "$3" | grep -c '^Trace'
}
for what in split rows; do
    for text in README.md tokenize/text/split.c tests/data/tokenize/cases.txt tokenize/vocab/gpt2.bpe; do
        plain=$(instructions $what plain $text) neon=$(instructions $what auto $text)
        [ "$neon" -gt 20000 ] && [ $((3 * neon)) -le $((2 * plain)) ] ||
            fail "$what of $text: $neon instructions with NEON, $plain without"
    done
done
