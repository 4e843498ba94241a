/* test_pack.c: plans of packed rows. Over random sets, they are compared with a slow plan that
 * writes out every list as pack.h defines it. Also recorded values, so that no run's rows ever
 * change by accident. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/philox.h"
#include "loader/sample/pack.h"
#include "tests/loader/shards.h"

enum { DOCUMENTS = 160, ROOM = 80, ROWS = 4000, EPOCHS = 40 };

/* ---- sets ---- */

static uint64_t lengths[DOCUMENTS], count;

static void at(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens)
{
    (void)ctx;
    *place = 1000 + n;
    *tokens = lengths[n];
}

static const sgt_pack_source *source(void)
{
    static sgt_pack_source from;
    from = (sgt_pack_source){count, at, NULL, 0};
    return &from;
}

static uint64_t below(uint64_t which, uint64_t i, uint64_t n)
{
    return sgt_philox_u64(4711, which, i) % n;
}

/* Draw document lengths of set number `which`: all equal, nearly equal, short and very long, and so
 * on. */
static void make_set(uint64_t which)
{
    count = 1 + below(which, 1 << 20, which % 3 ? 12 : DOCUMENTS);
    uint64_t widest = 1 + below(which, 1 << 21, 70), kind = which % 6;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t n = 1 + below(which, i, widest);
        lengths[i] = kind == 0 ? n : kind == 1 ? widest : kind == 2 ? 1 : kind == 3 ? 3 + n % 2 : n;
        if (kind == 5 && n % 4 == 0) lengths[i] += 200;
    }
}

/* ---- the slow plan ---- */

typedef struct model {
    uint32_t C;
    /* documents in the order of the pattern's rows, then those of its remainder: size in tokens,
     * and number among the documents of this size */
    uint32_t size[DOCUMENTS], j[DOCUMENTS];
    uint64_t row[DOCUMENTS + 2]; /* where each row begins */
    uint64_t rows, rest, end;    /* full rows; where the remainder begins and ends */
} model;

static uint32_t clip(const model *m, uint64_t n) { return n < m->C ? (uint32_t)n : m->C; }

/* Return the largest document that is not yet taken and fits in `free` tokens; if none fits, the
 * smallest. */
static uint64_t best(const model *m, const int *taken, uint32_t free)
{
    uint64_t fits = count, least = count;
    for (uint64_t d = 0; d < count; d++) {
        uint32_t size = clip(m, lengths[d]);
        if (taken[d]) continue;
        if (size <= free && (fits == count || size > clip(m, lengths[fits]))) fits = d;
        if (least == count || size < clip(m, lengths[least])) least = d;
    }
    return fits < count ? fits : least;
}

static void make_model(model *m, uint32_t T)
{
    int taken[DOCUMENTS] = {0};
    uint64_t used[ROOM + 1] = {0}, n = 0;
    uint32_t free = 0;
    *m = (model){.C = T + 1};
    while (n < count) {
        m->row[m->rows] = n;
        for (free = m->C; free && n < count; n++) {
            uint64_t d = best(m, taken, free);
            taken[d] = 1;
            m->size[n] = clip(m, lengths[d]);
            m->j[n] = (uint32_t)used[m->size[n]]++;
            free -= m->size[n] < free ? m->size[n] : free;
        }
        m->rows += !free;
    }
    m->end = m->rest = n;
    m->row[m->rows + (free != 0)] = n;
    if (free) m->rest = m->row[--m->rows];
}

static uint64_t draw(uint64_t seed, unsigned purpose, uint64_t a, uint64_t b)
{
    return sgt_philox_u64(seed, a, b * 256 + purpose);
}

/* Return the j-th document of this size in an epoch's order. */
static uint64_t document(const model *m, uint64_t seed, uint64_t epoch, uint32_t size, uint32_t j)
{
    uint64_t list[DOCUMENTS], n = 0;
    sgt_permutation p;
    for (uint64_t d = 0; d < count; d++)
        if (clip(m, lengths[d]) == size) list[n++] = d;
    sgt_permutation_init(&p, draw(seed, 10, epoch, size), n);
    return list[sgt_permute(&p, j)];
}

typedef struct slow_row {
    uint64_t documents[ROOM];
    uint32_t tokens[ROOM], n, free;
} slow_row;

static void put(slow_row *r, uint64_t document, uint32_t size)
{
    r->documents[r->n] = document;
    r->tokens[r->n] = size < r->free ? size : r->free;
    r->free -= r->tokens[r->n++];
}

/* Write the rows of EPOCHS epochs, except a row that the last epoch's remainder does not fill.
 * Store the first row of epoch e in epoch_rows[e]. Return the number of rows. */
static uint64_t slow_rows(const model *m, uint64_t seed, slow_row *rows, uint64_t *epoch_rows)
{
    uint64_t n = 0;
    slow_row open = {.free = m->C};
    uint64_t open_at = UINT64_MAX; /* index of the row that the next epoch's remainder completes */
    for (uint64_t e = 0; e < EPOCHS; e++) {
        epoch_rows[e] = n;
        sgt_permutation p;
        if (m->rows) sgt_permutation_init(&p, draw(seed, 9, e, 0), m->rows);
        for (uint64_t i = 0; i < m->rows; i++) {
            uint64_t r = sgt_permute(&p, i);
            rows[n] = (slow_row){.free = m->C};
            for (uint64_t k = m->row[r]; k < m->row[r + 1]; k++)
                put(&rows[n], document(m, seed, e, m->size[k], m->j[k]), m->size[k]);
            n++;
        }
        for (uint64_t k = m->rest; k < m->end; k++) {
            if (open.n == 0) open_at = n++;
            put(&open, document(m, seed, e, m->size[k], m->j[k]), m->size[k]);
            if (open.free) continue;
            rows[open_at] = open;
            open = (slow_row){.free = m->C};
        }
    }
    epoch_rows[EPOCHS] = n;
    return open.n ? open_at : n;
}

/* ---- comparison ---- */

static void expect_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t row, const slow_row *want)
{
    sgt_pack_piece got[ROOM + 1];
    uint32_t n = sgt_pack_row(p, memo, row, got, p->width);
    cr_assert_eq(n, want->n, "row %lu: %u documents, expected %u", row, n, want->n);
    for (uint32_t k = 0; k < n; k++) {
        cr_assert_eq(got[k].place, 1000 + want->documents[k], "row %lu, document %u", row, k);
        cr_assert_eq(got[k].tokens, want->tokens[k], "row %lu, document %u", row, k);
    }
}

static int fills_a_row(uint32_t T)
{
    uint64_t sum = 0;
    for (uint64_t d = 0; d < count; d++) sum += lengths[d];
    return sum > T;
}

static void check_set(uint64_t which, uint32_t T)
{
    static slow_row rows[ROWS];
    uint64_t begins[EPOCHS + 1];
    model m;
    scoped(sgt_pack) p;
    must(sgt_pack_init(&p, T, source(), "d", why));
    p.seed = which;
    make_model(&m, T);
    if ((m.rows + 3) * EPOCHS > ROWS) return; /* too many rows, because each holds few tokens */
    uint64_t n = slow_rows(&m, which, rows, begins);
    cr_assert_eq(sgt_pack_epoch_rows(&p), begins[1]);
    static sgt_pack_memo memo[SGT_PACK_KEPT];
    memset(memo, 0, sizeof memo);
    for (uint64_t row = 0; row < n; row++) expect_row(&p, memo, row, &rows[row]);
    for (uint64_t i = 0; i < 60; i++) {
        uint64_t row = below(which, 1000 + i, n);
        expect_row(&p, i % 2 ? memo : NULL, row, &rows[row]);
    }
}

Test(pack, equals_the_slow_plan)
{
    for (uint64_t which = 0; which < 900; which++) {
        make_set(which);
        uint32_t T = 1 + (uint32_t)below(which, 1 << 22, ROOM - 1);
        if (fills_a_row(T)) check_set(which, T);
    }
}

static void some(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens)
{
    (void)ctx;
    *place = n;
    *tokens = 1 + sgt_philox_u64(3, n, 0) % 300;
}

/* Values recorded when the definition was made. They must not change, because resumed runs depend
 * on them. */
Test(pack, frozen)
{
    static const struct {
        uint64_t row;
        uint32_t n;
        sgt_pack_piece pieces[3];
    } want[] = {{0, 1, {{561, 256}}},
                {1, 1, {{995, 256}}},
                {544, 3, {{4, 113}, {813, 113}, {902, 30}}},
                {545, 3, {{617, 112}, {473, 111}, {115, 33}}},
                {1000, 2, {{56, 195}, {574, 61}}},
                {1000000007, 2, {{464, 173}, {991, 83}}},
                {UINT64_MAX, 1, {{720, 256}}}};
    scoped(sgt_pack) p;
    sgt_pack_source from = {1000, some, NULL, 0};
    cr_assert_eq(sgt_pack_init(&p, 255, &from, "d", NULL), 0);
    p.seed = 1337;
    cr_assert(sgt_pack_epoch_rows(&p) == 546 && p.rows == 544 && p.epoch_count == 3);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        sgt_pack_piece got[256];
        cr_assert_eq(sgt_pack_row(&p, NULL, want[i].row, got, 256), want[i].n);
        for (uint32_t k = 0; k < want[i].n; k++)
            cr_assert(got[k].place == want[i].pieces[k].place &&
                          got[k].tokens == want[i].pieces[k].tokens,
                      "row %lu: {%lu, %u}", want[i].row, got[k].place, got[k].tokens);
    }
}
