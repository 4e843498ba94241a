/* mix.c: compute the order of rows that mix.h defines. The names are those of the definition
 * there. */
#include "loader/sample/mix.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "loader/base/philox.h"

/* Values of the argument `purpose` of draw (see sampler.h) for the random numbers of this file.
 * They differ from the values in sampler.c, so that the random numbers of the two files are
 * independent */
enum { TURN = 7, SET = 8 };

/* 128-bit integer, for the product of a row index (below 2^64) and a sum of shares (below 2^63) */
__extension__ typedef unsigned __int128 wide;

/* ---- shares ---- */

int sgt_mix_weight(double weight)
{
    return weight >= SGT_MIX_LEAST && weight <= SGT_MIX_MOST; /* not a NaN */
}

/* Return the weight times 10^9, rounded to an integer. */
static uint64_t billionths(double weight)
{
    /* Adding 0.5 and truncating rounds correctly here. The product is at most 10^15, where
     * neighbouring doubles are 1/8 apart, so adding 0.5 is exact. */
    return (uint64_t)(weight * 1e9 + 0.5);
}

/* Return the greatest common divisor of a and b. If one of them is 0, return the other. */
static uint64_t divisor_of(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void compute_shares(sgt_mix *m, sgt_loader_set_info *sets)
{
    uint64_t divisor = 0, *before = m->shares_before;
    for (uint32_t i = 0; i < m->sets; i++) {
        int given = sets[i].weight != 0;
        assert(given == (sets[0].weight != 0) && (!given || sgt_mix_weight(sets[i].weight)));
        before[i + 1] = given ? billionths(sets[i].weight) : m->samplers[i].windows;
        divisor = divisor_of(before[i + 1], divisor);
    }
    for (uint32_t i = 0; i < m->sets; i++) before[i + 1] = before[i] + before[i + 1] / divisor;
    for (uint32_t i = 0; i < m->sets; i++)
        sets[i].share = (double)(before[i + 1] - before[i]) / (double)before[m->sets];
}

int sgt_mix_init(sgt_mix *m, const sgt_loader_options *o, sgt_loader_set_info *sets, uint32_t count,
                 const uint64_t *tokens, sgt_error *err)
{
    assert(count >= 1 && count <= SGT_MIX_SETS);
    int rc = SGT_OK;
    *m = (sgt_mix){.seed = o->seed};
    m->samplers = calloc(count, sizeof *m->samplers);
    m->shares_before = calloc((size_t)count + 1, sizeof *m->shares_before);
    if (!m->samplers || !m->shares_before)
        rc = sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", count);
    for (; rc == SGT_OK && m->sets < count; m->sets++) {
        sgt_loader_set_info *p = &sets[m->sets];
        sgt_sampler *s = &m->samplers[m->sets];
        uint64_t own = count == 1 ? o->seed : sgt_philox_u64(o->seed, m->sets, SET);
        rc = sgt_sampler_init(s, o->sampling, own, o->seq, tokens + p->first_shard, p->shards, err);
        if (rc < 0) break;
        s->first = p->first_shard;
        p->windows_per_epoch = s->windows;
        m->windows += s->windows; /* cannot overflow, because both terms are at most 2^63 */
        if (m->windows > (uint64_t)1 << 63)
            rc = sgt_fail(err, SGT_EUSAGE, "the data has more than 2^63 windows");
    }
    if (rc == SGT_OK) compute_shares(m, sets);
    else sgt_mix_free(m);
    return rc;
}

void sgt_mix_free(sgt_mix *m)
{
    for (uint32_t i = 0; i < m->sets; i++) sgt_sampler_free(&m->samplers[i]);
    free(m->samplers);
    free(m->shares_before);
    *m = (sgt_mix){0};
}

/* ---- turns ---- */

static uint32_t half(uint32_t first, uint32_t end) { return first + (end - first) / 2; }

/* Consider only the rows of the run that come from sets first ... end-1. Return how many of the
 * first `rows` such rows come from the first half of these sets: the share of the first half,
 * rounded down. */
static wide of_first_half(const sgt_mix *m, uint32_t first, uint32_t end, wide rows)
{
    const uint64_t *before = m->shares_before;
    return rows * (before[half(first, end)] - before[first]) / (before[end] - before[first]);
}

/* List the rows with indices `from` ... to-1 among those rows of the run that come from sets first
 * ... end-1; there are at most SGT_MIX_TURN of them. Store the set of each listed row in memo->set,
 * and the index of the row among the rows of its set in memo->row, both from element `at` on. The
 * list is ordered by set. The function divides the sets into two halves and calls itself for each
 * half. */
static void list_rows(const sgt_mix *m, sgt_mix_memo *memo, uint32_t at, uint32_t first,
                      uint32_t end, wide from, wide to)
{
    if (from == to) return;
    if (end - first == 1) {
        for (; from < to; from++, at++) {
            memo->set[at] = (uint16_t)first;
            memo->row[at] = (uint64_t)from;
        }
        return;
    }
    wide here = of_first_half(m, first, end, from), there = of_first_half(m, first, end, to);
    list_rows(m, memo, at, first, half(first, end), here, there);
    list_rows(m, memo, at + (uint32_t)(there - here), half(first, end), end, from - here,
              to - there);
}

/* Shuffle the rows of a turn, which list_rows has ordered by set. The shuffle only determines which
 * set comes at each position of the turn. The rows of each set stay in ascending order: the k-th
 * position with a set gets the k-th row of that set in this turn. */
static void shuffle_turn(const sgt_mix *m, sgt_mix_memo *memo, uint64_t turn)
{
    const sgt_mix_memo listed = *memo;
    /* first[j]: index in `listed` of the first row of the set that is at position j of the turn.
     * This number stands for the set, so shuffling `first` shuffles the sets. next[i]: for the set
     * whose rows begin at index i of `listed`, the number of its rows that have already been given
     * a position */
    uint8_t first[SGT_MIX_TURN] = {0}, next[SGT_MIX_TURN] = {0};
    sgt_philox4 words = {{0}};
    for (uint32_t j = 0; j < SGT_MIX_TURN; j++)
        first[j] = j && listed.set[j] == listed.set[j - 1] ? first[j - 1] : (uint8_t)j;
    for (uint32_t j = SGT_MIX_TURN - 1; j; j--) {
        if (j % 4 == 3) words = sgt_philox(m->seed, turn, (uint64_t)(j / 4) << 8 | TURN);
        uint32_t other = (uint32_t)((uint64_t)words.x[j % 4] * (j + 1) >> 32);
        uint8_t moved = first[j];
        first[j] = first[other];
        first[other] = moved;
    }
    for (uint32_t j = 0; j < SGT_MIX_TURN; j++) {
        memo->set[j] = listed.set[first[j]];
        memo->row[j] = listed.row[first[j]] + next[first[j]]++;
    }
}

static void ready_turn(const sgt_mix *m, sgt_mix_memo *memo, uint64_t turn)
{
    if (memo->turns == turn + 1) return;
    wide from = (wide)turn * SGT_MIX_TURN;
    list_rows(m, memo, 0, 0, m->sets, from, from + SGT_MIX_TURN);
    shuffle_turn(m, memo, turn);
    memo->turns = turn + 1;
}

/* ---- rows ---- */

uint32_t sgt_mix_row(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint64_t *own)
{
    /* not zeroed, except for the member `turns`: zeroing this large struct would take as long as
     * copying a row */
    sgt_mix_memo mine;
    *own = row;
    if (m->sets == 1) return 0;
    mine.turns = 0;
    if (!memo) memo = &mine;
    ready_turn(m, memo, row / SGT_MIX_TURN);
    *own = memo->row[row % SGT_MIX_TURN];
    return memo->set[row % SGT_MIX_TURN];
}

sgt_window sgt_mix_window(const sgt_mix *m, uint64_t row)
{
    uint64_t own;
    const sgt_sampler *s = &m->samplers[sgt_mix_row(m, NULL, row, &own)];
    sgt_window w = sgt_sampler_window(s, NULL, own);
    w.shard += s->first;
    return w;
}

enum { SOME = 64 };

/* Set windows[i] to the window of the row with index own[i] among the rows of set set[i], for i <
 * n, where n <= SOME. The rows of each set are drawn with a single call of sgt_sampler_windows,
 * which is faster than a call for each row. */
static void draw_sets(const sgt_mix *m, sgt_mix_memo *memo, const uint64_t *own,
                      const uint32_t *set, uint32_t n, sgt_window *windows)
{
    uint8_t drawn[SOME] = {0}, places[SOME];
    uint64_t rows[SOME];
    sgt_window of_set[SOME];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = 0;
        for (uint32_t k = i; k < n && !drawn[i]; k++) {
            if (set[k] != set[i]) continue;
            rows[count] = own[k];
            places[count++] = (uint8_t)k;
        }
        sgt_sampler_windows(&m->samplers[set[i]], &memo->samplers[set[i]], rows, count, of_set);
        for (uint32_t k = 0; k < count; k++) {
            windows[places[k]] = of_set[k];
            windows[places[k]].shard += m->samplers[set[i]].first;
            drawn[places[k]] = 1;
        }
    }
}

void sgt_mix_windows(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint64_t step, uint32_t n,
                     sgt_window *windows)
{
    uint64_t own[SOME];
    uint32_t set[SOME], some;
    for (; n; n -= some, windows += some) {
        some = n < SOME ? n : SOME;
        if (m->sets == 1) {
            for (uint32_t i = 0; i < some; i++, row += step) own[i] = row;
            sgt_sampler_windows(&m->samplers[0], &memo->samplers[0], own, some, windows);
        } else {
            for (uint32_t i = 0; i < some; i++, row += step)
                set[i] = sgt_mix_row(m, memo, row, &own[i]);
            draw_sets(m, memo, own, set, some, windows);
        }
    }
}

/* Consider only the rows of the run that come from sets first ... end-1. Return how many of the
 * first `rows` such rows come from set `set`. */
static wide count_rows(const sgt_mix *m, uint32_t set, uint32_t first, uint32_t end, wide rows)
{
    if (end - first == 1) return rows;
    const uint32_t middle = half(first, end);
    const wide here = of_first_half(m, first, end, rows);
    if (set < middle) return count_rows(m, set, first, middle, here);
    return count_rows(m, set, middle, end, rows - here);
}

uint64_t sgt_mix_drawn(const sgt_mix *m, uint32_t set, uint64_t rows)
{
    sgt_mix_memo memo = {0};
    if (m->sets == 1) return rows;
    wide count = count_rows(m, set, 0, m->sets, rows - rows % SGT_MIX_TURN);
    ready_turn(m, &memo, rows / SGT_MIX_TURN);
    for (uint32_t j = 0; j < rows % SGT_MIX_TURN; j++) count += memo.set[j] == set;
    return (uint64_t)count;
}
