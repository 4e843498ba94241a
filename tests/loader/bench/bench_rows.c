/* bench_rows.c: the time that a batch of 32 rows of 1,024 takes before and after its tokens
 * arrive: drawing its windows (the table of sample/draws.h) and making its rows (that of
 * rows/rows.h). In microseconds per batch, medians of alternating turns; all lines of a table
 * come from one run.
 *
 *     make bench-rows [ARGS=MIB]        random windows of MIB MiB (default 1024, more than
 * caches hold) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/arena.h"
#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/philox.h"
#include "loader/rows/rows.h"
#include "loader/sample/draws.h"

enum { TURNS = 11, DRAWN = 1 << 18 };

typedef struct way {
    const char *name;
    void (*batch)(uint64_t k); /* number of the batch */
    uint64_t batches;          /* batches per turn */
    double us[TURNS];
} way;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* In one turn no two functions get the same windows, because the first would load them into the
 * cache for the second. */
static void compare(way *ways, int count)
{
    static uint64_t done;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < count; i++) {
            double began = sgt_now();
            for (uint64_t k = 0; k < ways[i].batches; k++) ways[i].batch(done++);
            ways[i].us[turn] = 1e6 * (sgt_now() - began) / (double)ways[i].batches;
        }
    for (int i = 0; i < count; i++) {
        qsort(ways[i].us, TURNS, sizeof *ways[i].us, by_size);
        printf("  %-34s %7.2f\n", ways[i].name, ways[i].us[TURNS / 2]);
    }
}

static int below(sgt_cpu_level level)
{
    return sgt_cpu_limit(sgt_cpu_level_name(level), NULL) == 0;
}

/* ---- drawing ---- */

static sgt_sampler sampler;
static sgt_sampler_memo memo;
static sgt_window windows[64];

static void draw_one_by_one(uint64_t k)
{
    for (uint32_t r = 0; r < 32; r++) windows[r] = sgt_sampler_window(&sampler, &memo, 32 * k + r);
}

static void draw_at_once(uint64_t k)
{
    sgt_sampler_windows(&sampler, &memo, 32 * k, 1, 32, windows);
}

static void draws(void)
{
    uint64_t tokens[20];
    for (int i = 0; i < 20; i++) tokens[i] = 100000000;
    for (int s = 0; s <= SGT_SAMPLING_BLOCK; s++) {
        printf("draw 32 rows of 1,024 from 20 shards, %s\n", sgt_sampling_name((sgt_sampling)s));
        if (sgt_sampler_init(&sampler, (sgt_sampling)s, 1, 1024, tokens, 20, NULL) < 0) exit(1);
        memo = (sgt_sampler_memo){0};
        compare(&(way){"one by one", draw_one_by_one, 4000, {0}}, 1);
        for (int level = 0; level < SGT_CPU_LEVELS; level++)
            if (below((sgt_cpu_level)level))
                compare(&(way){sgt_cpu_level_name((sgt_cpu_level)level), draw_at_once, 4000, {0}},
                        1);
        sgt_sampler_free(&sampler);
    }
}

/* ---- making rows ---- */

static const uint16_t **starts; /* (DRAWN) random windows */
static const sgt_rows *rows;
static uint32_t B, T, ring; /* rows per batch, tokens per row; buffers */
static int32_t *inputs;     /* (ring, 2, B, T); also rows of uint16 */
static uint16_t largest;

static const uint16_t **batch_at(uint64_t k) { return starts + k * B % DRAWN; }
static int32_t *buffer(uint64_t k) { return inputs + k % ring * 2 * B * T; }

static void ask(const uint16_t **from, uint32_t i)
{
    uint32_t group = sgt_rows_group((size_t)T + 1), to = B - i > 2 * group ? i + 2 * group : B;
    if (i % group) return;
    for (uint32_t k = i ? i + group : 0; k < to; k++) sgt_rows_expect(from[k], (size_t)T + 1);
}

static void by_memcpy(uint64_t k)
{
    uint16_t *to = (uint16_t *)(void *)buffer(k);
    for (uint32_t i = 0; i < B; i++)
        memcpy(to + i * ((size_t)T + 1), batch_at(k)[i], 2 * ((size_t)T + 1));
}

static void by_token(uint64_t k)
{
    int32_t *in = buffer(k), *out = in + (size_t)B * T;
    for (uint32_t i = 0; i < B; i++)
        for (uint32_t t = 0; t <= T; t++) {
            uint16_t id = batch_at(k)[i][t];
            /* checking each id keeps the compiler from vectorizing the loop, as in the loader */
            if (id > largest) return;
            if (t < T) in[(size_t)i * T + t] = id;
            if (t) out[(size_t)i * T + t - 1] = id;
        }
}

static void copy_by(uint64_t k, sgt_rows_copy *copy, int ahead)
{
    uint16_t *to = (uint16_t *)(void *)buffer(k);
    for (uint32_t i = 0; i < B; i++) {
        if (ahead) ask(batch_at(k), i);
        copy(to + i * ((size_t)T + 1), batch_at(k)[i], (size_t)T + 1);
    }
}

static void widen_by(uint64_t k, sgt_rows_widen *widen, int ahead)
{
    int32_t *in = buffer(k), *out = in + (size_t)B * T;
    for (uint32_t i = 0; i < B; i++) {
        if (ahead) ask(batch_at(k), i);
        widen(in + (size_t)i * T, out + (size_t)i * T, batch_at(k)[i], T);
    }
}

static void copy_ahead(uint64_t k) { copy_by(k, rows->copy, 1); }
static void copy_alone(uint64_t k) { copy_by(k, rows->copy, 0); }
static void widen_ahead(uint64_t k) { widen_by(k, rows->widen, 1); }
static void widen_alone(uint64_t k) { widen_by(k, rows->widen, 0); }
static void widen_past(uint64_t k) { widen_by(k, rows->widen_past, 1); }

static void shape(uint32_t b, uint32_t t)
{
    B = b, T = t, ring = 1;
    printf("%u rows of %u at random\n", B, T);
    way ways[] = {{"u16, memcpy", by_memcpy, 100, {0}},
                  {"u16, nothing asked for ahead", copy_alone, 100, {0}},
                  {"u16", copy_ahead, 100, {0}},
                  {"i32, a token at a time", by_token, 100, {0}},
                  {"i32, nothing asked for ahead", widen_alone, 100, {0}},
                  {"i32", widen_ahead, 100, {0}}};
    compare(ways, sizeof ways / sizeof *ways);
}

static void past(size_t most)
{
    B = 32, T = 1024;
    for (size_t mib = 4; mib <= most >> 20; mib *= 2) {
        ring = (uint32_t)((mib << 20) / (8 * B * T));
        printf("32 rows of 1,024, i32, into a ring of %zu MiB\n", mib);
        way ways[] = {{"through the caches", widen_ahead, 800, {0}},
                      {"past them", widen_past, 800, {0}}};
        compare(ways, 2);
    }
}

int main(int argc, char **argv)
{
    size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1024) << 20, out = (size_t)64 << 20;
    sgt_arena from = {0}, to = {0};
    draws();
    starts = calloc(DRAWN + 64, sizeof *starts);
    if (!starts || sgt_arena_map(&from, bytes, 1, NULL) < 0 || sgt_arena_map(&to, out, 1, NULL) < 0)
        return 1;
    inputs = (int32_t *)(void *)to.base;
    largest = 65535;
    for (uint64_t i = 0; i < DRAWN + 64; i++)
        starts[i] =
            (const uint16_t *)(void *)from.base + sgt_philox_u64(1, i, 0) % (bytes / 2 - 4096);
    for (int level = SGT_CPU_AVX2; level < SGT_CPU_LEVELS; level++) {
        if (!below((sgt_cpu_level)level)) continue;
        rows = sgt_rows_best();
        printf("== %s\n", rows->level);
        shape(32, 1024);
        shape(64, 512);
        past(out);
    }
    sgt_arena_unmap(&from);
    sgt_arena_unmap(&to);
    free(starts);
    return 0;
}
