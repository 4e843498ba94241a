/* pack.c: the sampling `packed`, which pack.h defines. The first part of this file computes rows
 * from a plan, and the second part makes the plan. */
#include "loader/sample/pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "loader/base/philox.h"
#include "loader/base/search.h"

/* Values of the argument `purpose` of draw (see sampler.h) for the random numbers of this file.
 * They differ from the values in sampler.c and mix.c, so that the random numbers of the three files
 * are independent */
enum { PATTERN = 9, SIZE = 10 };

/* Return element i of a random permutation of 0 ... n-1, which is cached in `memo`. If `size` is 0,
 * it is the permutation of the rows of the pattern in epoch `epoch`; otherwise, it is the
 * permutation of the documents of size `size` in that epoch. */
static uint64_t permuted(const sgt_pack *p, sgt_pack_memo *memo, uint64_t epoch, uint32_t size,
                         uint64_t n, uint64_t i)
{
    sgt_pack_memo mine = {0}, *kept = memo ? &memo[size % SGT_PACK_KEPT] : &mine;
    if (kept->of != p || kept->epoch != epoch || kept->size != size) {
        uint64_t purpose = (uint64_t)size << 8 | (size ? SIZE : PATTERN);
        sgt_permutation_init(&kept->order, sgt_philox_u64(p->seed, epoch, purpose), n);
        kept->of = p;
        kept->epoch = epoch;
        kept->size = size;
    }
    return sgt_permute(&kept->order, i);
}

/* Return the number that identifies a document (see sgt_pack_source): the j-th document of size
 * `size`, in the order of epoch `epoch`. */
static uint64_t place_of(const sgt_pack *p, sgt_pack_memo *memo, uint64_t epoch, uint32_t size,
                         uint64_t j)
{
    uint64_t n = p->first[size + 1] - p->first[size];
    return p->places[p->first[size] + (n > 1 ? permuted(p, memo, epoch, size, n, j) : 0)];
}

/* ---- rows ---- */

/* A row while documents are added to it. */
typedef struct packing {
    sgt_pack_memo *memo;
    sgt_pack_piece *pieces;
    /* room: number of elements that fit into `pieces`; count: number of elements of `pieces` in use
     * so far; free: number of tokens that are still missing in the row */
    uint32_t room, count, free;
} packing;

static void put(const sgt_pack *p, packing *r, uint64_t epoch, uint32_t size, uint64_t j)
{
    uint32_t tokens = size < r->free ? size : r->free;
    r->pieces[r->count++] = (sgt_pack_piece){place_of(p, r->memo, epoch, size, j), tokens};
    r->free -= tokens;
}

static void put_pattern(const sgt_pack *p, packing *r, uint64_t epoch, uint64_t at)
{
    size_t run = sgt_last_up_to(&p->runs->row, sizeof *p->runs / 8, p->run_count, at);
    const sgt_pack_item *item = p->items + p->runs[run].item;
    for (uint64_t k = at - p->runs[run].row; r->free && r->count < r->room; item++)
        for (uint32_t i = 0; i < item->count && r->count < r->room; i++)
            put(p, r, epoch, item->size, item->before + k * item->count + i);
}

/* Return the index of the first document of the remainder that begins at token `tokens` or later,
 * counted from the first token of the remainder. Return rest_count + 1 if there is no such
 * document. */
static uint64_t rest_behind(const sgt_pack *p, uint64_t tokens)
{
    return tokens ? sgt_last_up_to(p->rest_before, 1, p->rest_count + 1, tokens - 1) + 1 : 0;
}

static void put_rest(const sgt_pack *p, packing *r, uint64_t epoch, uint32_t open, uint64_t i)
{
    uint64_t at = rest_behind(p, open);
    for (; i; i--) at = rest_behind(p, p->rest_before[at] + p->width);
    for (; r->free && r->count < r->room; at++) {
        if (at == p->rest_count) {
            at = 0;
            epoch++;
        }
        put(p, r, epoch, (uint32_t)(p->rest_before[at + 1] - p->rest_before[at]), p->rest[at]);
    }
}

/* Return the epoch to which row *row of the run belongs, and set *row to the index of this row
 * within that epoch. Set *open to the number of tokens at the beginning of this epoch's remainder
 * that are already in the last row of the previous epoch. */
static uint64_t epoch_of(const sgt_pack *p, uint64_t *row, uint32_t *open)
{
    uint64_t before = p->epochs[p->again].rows, all = p->epochs[p->epoch_count].rows, rounds = 0;
    if (*row >= all) {
        rounds = (*row - before) / (all - before);
        *row = before + (*row - before) % (all - before);
    }
    uint64_t epoch = sgt_last_up_to(&p->epochs->rows, sizeof *p->epochs / 8, p->epoch_count, *row);
    *row -= p->epochs[epoch].rows;
    *open = p->epochs[epoch].open;
    return epoch + rounds * (p->epoch_count - p->again);
}

uint32_t sgt_pack_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t number,
                      sgt_pack_piece *pieces, uint32_t room)
{
    packing r = {.memo = memo, .pieces = pieces, .room = room, .free = p->width};
    uint32_t open;
    uint64_t i = number, epoch = epoch_of(p, &i, &open);
    if (i < p->rows) put_pattern(p, &r, epoch, permuted(p, memo, epoch, 0, p->rows, i));
    else put_rest(p, &r, epoch, open, i - p->rows);
    return r.count;
}

uint64_t sgt_pack_epoch_rows(const sgt_pack *p) { return p->epochs[1].rows; }

/* ---- making the plan ----
 *
 * The pattern depends only on the number of documents of each size. After a row is made, the next
 * row takes documents of the same sizes, as long as enough of these documents remain. Such equal
 * rows form a run and are made together. A run ends when too few documents of at least one of these
 * sizes remain for another equal row. Therefore, the number of runs depends mainly on the number of
 * sizes: it is at most a few times T, however many documents the set has. */

typedef struct planner {
    sgt_pack *p;
    /* array of most + 1 elements: left[s] is the number of documents of size s that no row has
     * taken yet */
    uint64_t *left;
    /* array of most + 1 elements for finding the largest size, at most s, of which documents
     * remain. If documents of size s remain, below[s] is s. Otherwise, below[s] is a smaller size
     * at which the search continues, because no documents of the sizes above below[s] and up to s
     * remain */
    uint32_t *below;
    /* lower bound of the smallest size of which documents remain: the search for that size begins
     * here */
    uint32_t least;
    size_t run_room, item_room;
} planner;

/* ---- sizes ---- */

static int fail_memory(const sgt_pack *p, const char *name, sgt_error *err)
{
    return sgt_fail(err, SGT_ENOMEM,
                    "%s: packing %" PRIu64 " documents into rows of %" PRIu32
                    " tokens: out of memory",
                    name, p->count, p->width);
}

static uint32_t size_of(const sgt_pack *p, uint64_t tokens)
{
    return tokens < p->width ? (uint32_t)tokens : p->width;
}

/* Store the numbers that identify the documents in p->places, sorted by the size of the documents,
 * and set p->tokens to the number of tokens in all documents. Set p->first[s] to the index in
 * p->places of the first document of size s. */
static int sort_documents(sgt_pack *p, const sgt_pack_source *from, const char *name,
                          sgt_error *err)
{
    uint64_t place, tokens, *first = calloc((size_t)p->width + 2, sizeof *first);
    p->first = first;
    p->places = reallocarray(NULL, p->count, sizeof *p->places);
    if (!first || !p->places) return fail_memory(p, name, err);
    for (uint64_t n = 0; n < p->count; n++) {
        from->at(from->ctx, from->first + n, &place, &tokens);
        p->tokens += tokens;
        first[size_of(p, tokens) + 1]++;
        if (size_of(p, tokens) > p->most) p->most = size_of(p, tokens);
    }
    /* If all documents together have at least as many tokens as a row, one row can be filled: a
     * document that is too long for the rest of the row is cropped. */
    if (p->tokens < p->width)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: its %" PRIu64 " documents have only %" PRIu64
                        " tokens, but a packed row needs %" PRIu32
                        " (use a shorter sequence length, or more text)",
                        name, p->count, p->tokens, p->width);
    for (uint64_t s = 0; s <= p->most; s++) first[s + 1] += first[s];
    for (uint64_t n = 0; n < p->count; n++) {
        from->at(from->ctx, from->first + n, &place, &tokens);
        p->places[first[size_of(p, tokens)]++] = place;
    }
    memmove(first + 1, first, ((size_t)p->most + 1) * sizeof *first);
    first[0] = 0;
    return SGT_OK;
}

/* Return the largest size, at most `size`, of which documents remain, or 0 if there is none. The
 * search follows the links in w->below and shortens them, as union-find does, to make later calls
 * faster. */
static uint32_t largest_left(planner *w, uint32_t size)
{
    uint32_t *below = w->below;
    if (size > w->p->most) size = w->p->most;
    while (below[size] != size) {
        below[size] = below[below[size]];
        size = below[size];
    }
    return size;
}

static uint32_t smallest_left(planner *w)
{
    while (w->least <= w->p->most && !w->left[w->least]) w->least++;
    return w->least <= w->p->most ? w->least : 0;
}

static void use(planner *w, uint32_t size, uint64_t documents)
{
    w->left[size] -= documents;
    if (!w->left[size]) w->below[size] = size - 1;
}

/* ---- the pattern ---- */

/* Append a document of size `size` to the row that is being made. The items of this row begin at
 * index `first` of p->items. Returns 1, or 0 if memory runs out. */
static int append_document(planner *w, uint64_t first, uint32_t size)
{
    sgt_pack *p = w->p;
    uint64_t last = p->item_count, before = p->first[size + 1] - p->first[size] - w->left[size];
    use(w, size, 1);
    if (last > first && p->items[last - 1].size == size) {
        p->items[last - 1].count++;
        return 1;
    }
    if (sgt_reserve(&p->items, &w->item_room, last + 1, sizeof *p->items, NULL, NULL) < 0) return 0;
    p->items[p->item_count++] = (sgt_pack_item){before, size, 1};
    return 1;
}

/* Fill one row, whose items begin at index `first` of p->items. Set *free_tokens to the number of
 * tokens that are missing because no documents remain; 0 if the row is full. Returns 1, or 0 if
 * memory runs out. */
static int fill_row(planner *w, uint64_t first, uint32_t *free_tokens)
{
    for (*free_tokens = w->p->width; *free_tokens;) {
        uint32_t size = largest_left(w, *free_tokens);
        if (!size) size = smallest_left(w);
        if (!size) break;
        if (!append_document(w, first, size)) return 0;
        *free_tokens -= size < *free_tokens ? size : *free_tokens;
    }
    return 1;
}

/* Repeat the row whose items begin at index `first` of p->items, as often as the remaining
 * documents allow. Return the number of such rows, including the first. Each item is compared
 * separately with the remaining documents of its size. This is correct even if two items of the row
 * have the same size: documents of a size between them must have run out, so the row cannot be
 * repeated anyway. */
static uint64_t repeat(planner *w, uint64_t first)
{
    const sgt_pack_item *items = w->p->items;
    uint64_t more = UINT64_MAX, end = w->p->item_count;
    for (uint64_t i = first; i < end; i++) {
        uint64_t times = w->left[items[i].size] / items[i].count;
        if (times < more) more = times;
    }
    for (uint64_t i = first; i < end && more; i++) use(w, items[i].size, more * items[i].count);
    return more + 1;
}

/* Make all rows of the pattern. After that, the element runs[run_count] marks the end of the full
 * rows: its `item` is the index of the first item of the unfinished row, or item_count if there is
 * no unfinished row. Returns 1, or 0 if memory runs out. */
static int make_pattern(planner *w)
{
    sgt_pack *p = w->p;
    for (;;) {
        uint64_t first = p->item_count;
        uint32_t lacking;
        if (sgt_reserve(&p->runs, &w->run_room, p->run_count + 1, sizeof *p->runs, NULL, NULL) < 0)
            return 0;
        p->runs[p->run_count] = (sgt_pack_run){p->rows, first};
        if (!fill_row(w, first, &lacking)) return 0;
        if (lacking) return 1;
        p->rows += repeat(w, first);
        p->run_count++;
    }
}

/* ---- the remainder ---- */

static void add_rest(sgt_pack *p, const sgt_pack_item *item, uint64_t before)
{
    for (uint32_t i = 0; i < item->count; i++) {
        p->rest[p->rest_count] = before + i;
        p->rest_before[p->rest_count + 1] = p->rest_before[p->rest_count] + item->size;
        p->rest_count++;
    }
}

/* If the last row is unfinished, move this row and the last full row to the remainder. Return 1, or
 * 0 if memory runs out. */
static int make_rest(sgt_pack *p)
{
    sgt_pack_run *last = &p->runs[p->run_count - 1], *end = last + 1;
    uint64_t documents = 0, times = end->row - last->row;
    /* 1: there is no unfinished row, and therefore no remainder */
    const int full = end->item == p->item_count;
    for (uint64_t i = last->item; i < p->item_count && !full; i++) documents += p->items[i].count;
    p->rest = calloc(documents + 1, sizeof *p->rest);
    p->rest_before = calloc(documents + 1, sizeof *p->rest_before);
    if (!p->rest || !p->rest_before) return 0;
    if (!documents) return 1;
    for (uint64_t i = last->item; i < p->item_count; i++) {
        const sgt_pack_item *item = &p->items[i];
        add_rest(p, item, item->before + (i < end->item ? (times - 1) * item->count : 0));
    }
    p->rows--;
    end->row--;
    if (times == 1) p->run_count--;
    return 1;
}

/* Return the number of rows that begin in the remainder of an epoch. At the call, *open is the
 * number of tokens at the beginning of this remainder that are already in the last row of the
 * previous epoch. Set *open to the same number for the next epoch. */
static uint64_t follow(const sgt_pack *p, uint32_t *open)
{
    uint64_t rows = 0, end = p->rest_before[p->rest_count], at = rest_behind(p, *open);
    *open = 0;
    for (; at < p->rest_count; rows++) {
        uint64_t until = p->rest_before[at] + p->width;
        if (until > end) *open = (uint32_t)(until - end);
        at = rest_behind(p, until);
    }
    return rows;
}

/* List epochs until an epoch has the same `open` as an earlier epoch. The number and document sizes
 * of an epoch's last rows depend only on its `open`, so the epochs repeat from there on. Return 1,
 * or 0 if memory runs out. */
static int list_epochs(sgt_pack *p)
{
    size_t room = 0;
    uint64_t rows = 0;
    uint32_t open = 0;
    /* seen[open]: 1 + the index of the first epoch whose member `open` has this value; 0: no such
     * epoch so far */
    uint64_t *seen = p->rest_count ? calloc(p->width, sizeof *seen) : calloc(1, sizeof *seen);
    int ok = seen != NULL;
    for (; ok; p->epoch_count++) {
        ok = sgt_reserve(&p->epochs, &room, p->epoch_count + 1, sizeof *p->epochs, NULL, NULL) == 0;
        if (!ok) break;
        p->epochs[p->epoch_count] = (sgt_pack_epoch){rows, open};
        if (seen[open]) break;
        seen[open] = p->epoch_count + 1;
        rows += p->rows + follow(p, &open);
    }
    if (ok) p->again = seen[open] - 1;
    free(seen);
    return ok;
}

/* ---- the plan ---- */

static int plan(sgt_pack *p)
{
    planner w = {.p = p, .least = 1};
    w.left = calloc((size_t)p->most + 1, sizeof *w.left);
    w.below = calloc((size_t)p->most + 1, sizeof *w.below);
    int ok = w.left && w.below;
    for (uint32_t s = 1; ok && s <= p->most; s++) {
        w.left[s] = p->first[s + 1] - p->first[s];
        w.below[s] = w.left[s] ? s : s - 1;
    }
    ok = ok && make_pattern(&w);
    free(w.left);
    free(w.below);
    return ok && make_rest(p) && list_epochs(p);
}

int sgt_pack_init(sgt_pack *p, uint32_t seq, const sgt_pack_source *from, const char *name,
                  sgt_error *err)
{
    *p = (sgt_pack){.width = seq + 1, .count = from->count};
    int rc = sort_documents(p, from, name, err);
    if (rc == SGT_OK && !plan(p)) rc = fail_memory(p, name, err);
    if (rc < 0) {
        sgt_pack_free(p);
        return rc;
    }
    /* The last row of epoch 0 may end with tokens of epoch 1, which do not count as kept tokens of
     * epoch 0. */
    p->kept = sgt_pack_epoch_rows(p) * p->width - p->epochs[1].open;
    return SGT_OK;
}

void sgt_pack_free(sgt_pack *p)
{
    free(p->first);
    free(p->places);
    free(p->runs);
    free(p->items);
    free(p->rest);
    free(p->rest_before);
    free(p->epochs);
    *p = (sgt_pack){0};
}
