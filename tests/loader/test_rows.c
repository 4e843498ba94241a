/* test_rows.c: rows at every CPU level equal those of plain C, for every size around the vectors'
 * width and every alignment. The memory after their end can be neither read nor written. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/base/cpu.h"
#include "loader/rows/rows.h"
#include "tests/loader/shards.h"

#define PAGE 4096
#define MOST 2200 /* tokens */

static const char unwritten[] = "\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5";

/* Allocate a block that ends where an inaccessible page begins. */
static char *guarded(size_t bytes)
{
    size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
    char *p = mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(p != MAP_FAILED && mprotect(p + room, PAGE, PROT_NONE) == 0);
    return p + room;
}

static const size_t sizes[] = {1,   2,   7,   8,   9,   15,   16,   17,   31,   32,  33,
                               47,  48,  49,  63,  64,  65,   95,   96,   97,   127, 128,
                               129, 511, 512, 513, 997, 1024, 1025, 2048, 2049, 2111};

/* Call `check` for each CPU level and each width of ids. */
static void each_level(void (*check)(const sgt_rows *))
{
    if (id_width == 2) {
        id_width = 4;
        each_level(check);
        id_width = 2;
    }
    int checked = 0;
    for (int level = 0; level < SGT_CPU_LEVELS; level++) {
        const sgt_rows *r = sgt_rows_level(level);
        if (!r) continue;
        cr_assert_str_eq(r->level, sgt_cpu_names[level]);
        check(r);
        checked++;
    }
    cr_assert_eq(checked, (int)sgt_cpu() + 1);
#if defined(__aarch64__)
    cr_assert_str_eq(sgt_rows_best()->level, "neon");
    check(sgt_rows_best());
#else
    cr_assert_eq(sgt_rows_best(), sgt_rows_level((int)sgt_cpu()));
#endif
    cr_assert_null(sgt_rows_level((int)sgt_cpu() + 1));
}

static uint32_t wanted_top(const void *src, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++)
        if (sgt_id_at(src, id_width, i) > top) top = sgt_id_at(src, id_width, i);
    return top;
}

static void put_id(void *ids, size_t i, uint32_t id)
{
    if (id_width == 2) ((uint16_t *)ids)[i] = (uint16_t)id;
    else ((uint32_t *)ids)[i] = id;
}

/* Return id number `at` of an array of output ids, which have `size` bytes. */
static int64_t id_at(const char *ids, size_t at, size_t size)
{
    return size == 8 ? ((const int64_t *)(const void *)ids)[at] : sgt_id_at(ids, size, at);
}

/* Write rows in output format `o`, with targets if the format has them. apart: shift targets
 * against inputs within their cache lines. */
static void check_write(const sgt_rows *r, sgt_output o, int apart)
{
    const size_t size = sgt_output_bytes(o), room = size * (MOST + 32),
                 pairs = (size_t)sgt_output_pairs(o);
    char *src_end = guarded(id_width * MOST + 64), *in_end = guarded(room), *to_end = guarded(room);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        /* shift: tokens between the end of the source and the inaccessible page; the inputs and
         * targets end at other distances */
        for (size_t shift = 0; shift < 33; shift++) {
            size_t n = sizes[k], out = 5 * shift % 32, gap = apart ? (32 - out) % 32 : out;
            char *src = src_end - (n + pairs + shift) * id_width;
            char *in = in_end - (n + out) * size, *to = to_end - (n + gap) * size;
            for (size_t i = 0; i < n + pairs; i++) put_id(src, i, token_at((uint32_t)shift, i));
            memset(in_end - room, 0xa5, room);
            memset(to_end - room, 0xa5, room);
            cr_assert_eq(r->write(id_width, o, in, pairs ? to : NULL, src, n),
                         wanted_top(src, n + pairs), "%s, %zu ids", r->level, n);
            cr_assert_eq(r->largest(id_width, src, n), wanted_top(src, n), "%s, %zu ids", r->level,
                         n);
            for (size_t i = 0; i < n; i++)
                cr_assert(id_at(in, i, size) == sgt_id_at(src, id_width, i) &&
                              (!pairs || id_at(to, i, size) == sgt_id_at(src, id_width, i + 1)),
                          "%s, %zu ids, shift %zu, at %zu", r->level, n, shift, i);
            cr_assert_arr_eq(in - size, unwritten, size);
            cr_assert_arr_eq(to - size, unwritten, size);
            if (out) cr_assert_arr_eq(in + n * size, unwritten, size);
            if (gap && pairs) cr_assert_arr_eq(to + n * size, unwritten, size);
        }
    }
}

static void check_outputs(const sgt_rows *r)
{
    for (int o = id_width == 4; o < SGT_OUTPUTS; o++)
        for (int apart = 0; apart <= sgt_output_pairs((sgt_output)o); apart++)
            check_write(r, (sgt_output)o, apart);
}

/* Check that a large id among small ones is found at every position. This includes the largest
 * possible id. */
static void check_top(const sgt_rows *r)
{
    uint32_t src[131] = {0};
    int32_t in[131], to[131];
    int64_t in64[131], to64[131];
    for (size_t n = 1; n <= 130; n++) {
        for (size_t i = 0; i <= n; i++) {
            uint32_t half = id_width == 2 ? 32768 : 2147483648,
                     top = i % 2 ? half - 1 + half : half;
            put_id(src, i, top);
            cr_assert_eq(r->write(id_width, SGT_OUTPUT_I32, in, to, src, n), top, "%s: %zu of %zu",
                         r->level, i, n);
            cr_assert_eq(r->write(id_width, SGT_OUTPUT_I64, in64, to64, src, n), top,
                         "%s: %zu of %zu", r->level, i, n);
            if (i < n)
                cr_assert(r->write(id_width, id_width == 2 ? SGT_OUTPUT_U16 : SGT_OUTPUT_I32_ROWS,
                                   in, NULL, src, n) == top &&
                              r->write(id_width, SGT_OUTPUT_I32_ROWS, in, NULL, src, n) == top &&
                              r->largest(id_width, src, n) == top,
                          "%s: %zu of %zu", r->level, i, n);
            put_id(src, i, 0);
        }
    }
    cr_assert_eq(r->largest(id_width, src, 0), 0);
    cr_assert_eq(r->write(id_width, SGT_OUTPUT_I32_ROWS, in, NULL, src, 0), 0);
}

Test(rows, outputs) { each_level(check_outputs); }

Test(rows, largest_id_is_found_anywhere) { each_level(check_top); }
