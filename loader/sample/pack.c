/* pack.c: rows from a plan, by the definition in pack.h. pack_plan.c makes the plan. */
#include "loader/sample/pack.h"

#include <stdlib.h>

#include "loader/base/philox.h"

enum { PATTERN = 9, SIZE = 10 }; /* purposes of draws, after those of mix.c */

static uint64_t draw(const sgt_pack *p, unsigned purpose, uint64_t a, uint64_t b)
{
    return sgt_philox_u64(p->seed, a, b << 8 | purpose);
}

/* ---- permutations ---- */

typedef struct kept_permutation {
    uint64_t epoch;
    uint32_t size; /* 0: none */
    sgt_permutation p;
} kept_permutation;

struct sgt_pack_memo {
    kept_permutation pattern;
    uint32_t room;
    kept_permutation sizes[]; /* (room) */
};

sgt_pack_memo *sgt_pack_memo_new(uint32_t sizes)
{
    sgt_pack_memo *memo = calloc(1, sizeof *memo + sizes * sizeof *memo->sizes);
    if (memo) memo->room = sizes;
    return memo;
}

void sgt_pack_memo_free(sgt_pack_memo *memo) { free(memo); }

/* Return the permutation of n numbers that belongs to an epoch and a purpose; for the pattern, size
 * is 1. It stays in `kept` for the next call. */
static const sgt_permutation *permutation(const sgt_pack *p, kept_permutation *kept,
                                          unsigned purpose, uint64_t epoch, uint32_t size,
                                          uint64_t n)
{
    if (kept->size != size || kept->epoch != epoch) {
        sgt_permutation_init(&kept->p, draw(p, purpose, epoch, purpose == SIZE ? size : 0), n);
        kept->size = size;
        kept->epoch = epoch;
    }
    return &kept->p;
}

static uint64_t pattern_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t epoch, uint64_t i)
{
    kept_permutation mine = {0}, *kept = memo ? &memo->pattern : &mine;
    return sgt_permute(permutation(p, kept, PATTERN, epoch, 1, p->rows), i);
}

/* Return the place of the j-th document of a size. */
static uint64_t place_of(const sgt_pack *p, sgt_pack_memo *memo, uint64_t epoch, uint32_t size,
                         uint64_t j)
{
    uint64_t n = p->first[size + 1] - p->first[size];
    kept_permutation mine = {0}, *kept = memo ? &memo->sizes[size % memo->room] : &mine;
    if (n > 1) j = sgt_permute(permutation(p, kept, SIZE, epoch, size, n), j);
    return p->places[p->first[size] + j];
}

/* ---- rows ---- */

/* A row that is being put together. */
typedef struct packing {
    sgt_pack_piece *pieces;
    uint32_t room, count, free; /* room for pieces; pieces set; tokens that are still free */
} packing;

static void put(const sgt_pack *p, sgt_pack_memo *memo, packing *r, uint64_t epoch, uint32_t size,
                uint64_t j)
{
    uint32_t tokens = size < r->free ? size : r->free;
    r->pieces[r->count++] = (sgt_pack_piece){place_of(p, memo, epoch, size, j), tokens};
    r->free -= tokens;
}

static void put_pattern(const sgt_pack *p, sgt_pack_memo *memo, packing *r, uint64_t epoch,
                        uint64_t at)
{
    uint64_t run = 0;
    for (uint64_t n = p->run_count; n > 1;) {
        uint64_t half = n / 2;
        run = p->runs[run + half].row <= at ? run + half : run;
        n -= half;
    }
    const sgt_pack_item *item = p->items + p->runs[run].item;
    for (uint64_t k = at - p->runs[run].row; r->free && r->count < r->room; item++)
        for (uint32_t i = 0; i < item->count && r->count < r->room; i++)
            put(p, memo, r, epoch, item->size, item->before + k * item->count + i);
}

uint64_t sgt_pack_rest_behind(const sgt_pack *p, uint64_t tokens)
{
    uint64_t first = 0, n = p->rest_count + 1;
    while (n) {
        uint64_t half = n / 2;
        if (p->rest_before[first + half] < tokens) {
            first += half + 1;
            n -= half + 1;
        } else n = half;
    }
    return first;
}

static void put_rest(const sgt_pack *p, sgt_pack_memo *memo, packing *r, uint64_t epoch,
                     uint32_t open, uint64_t i)
{
    uint64_t at = sgt_pack_rest_behind(p, open);
    for (; i; i--) at = sgt_pack_rest_behind(p, p->rest_before[at] + p->width);
    for (; r->free && r->count < r->room; at++) {
        if (at == p->rest_count) {
            at = 0;
            epoch++;
        }
        put(p, memo, r, epoch, p->rest[at].size, p->rest[at].j);
    }
}

/* Return the epoch of a row, and reduce *row to its number in that epoch. */
static uint64_t epoch_of(const sgt_pack *p, uint64_t *row, uint32_t *open)
{
    uint64_t before = p->epochs[p->again].rows, all = p->epochs[p->epoch_count].rows, rounds = 0;
    if (*row >= all) {
        rounds = (*row - before) / (all - before);
        *row = before + (*row - before) % (all - before);
    }
    uint64_t epoch = 0;
    for (uint64_t n = p->epoch_count; n > 1;) {
        uint64_t half = n / 2;
        epoch = p->epochs[epoch + half].rows <= *row ? epoch + half : epoch;
        n -= half;
    }
    *row -= p->epochs[epoch].rows;
    *open = p->epochs[epoch].open;
    return epoch + rounds * (p->epoch_count - p->again);
}

uint32_t sgt_pack_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t number,
                      sgt_pack_piece *pieces, uint32_t room)
{
    packing r = {.pieces = pieces, .room = room, .free = p->width};
    uint32_t open;
    uint64_t i = number, epoch = epoch_of(p, &i, &open);
    if (i < p->rows) put_pattern(p, memo, &r, epoch, pattern_row(p, memo, epoch, i));
    else put_rest(p, memo, &r, epoch, open, i - p->rows);
    return r.count;
}

uint64_t sgt_pack_epoch_rows(const sgt_pack *p) { return p->epochs[1].rows; }

/* ---- what the rows look like ---- */

static void widen(uint32_t documents, uint32_t *fewest, uint32_t *most)
{
    if (documents < *fewest) *fewest = documents;
    if (documents > *most) *most = documents;
}

void sgt_pack_extremes(const sgt_pack *p, uint32_t *fewest, uint32_t *most)
{
    *fewest = UINT32_MAX;
    *most = 0;
    for (uint64_t k = 0; k < p->run_count; k++) {
        uint32_t documents = 0;
        for (uint64_t i = p->runs[k].item; i < p->runs[k + 1].item; i++)
            documents += p->items[i].count;
        widen(documents, fewest, most);
    }
    /* the remainder's rows, of which the last may take more documents from the next epoch */
    for (uint64_t at = 0, next; at < p->rest_count; at = next) {
        uint32_t more = 0;
        next = sgt_pack_rest_behind(p, p->rest_before[at] + p->width);
        if (next > p->rest_count) {
            next = p->rest_count;
            uint64_t left = p->width - (p->rest_before[next] - p->rest_before[at]);
            more = (uint32_t)sgt_pack_rest_behind(p, left);
        }
        widen((uint32_t)(next - at) + more, fewest, most);
    }
}
