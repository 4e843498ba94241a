/* batch.c: make a batch: determine its pieces, fetch their tokens, and write the tokens to the rows
 * of the caller. A cursor holds the memory for these steps.
 *
 * A piece is a contiguous range of tokens in one shard. A row that is a window of tokens consists
 * of one piece; a row of documents consists of one or more. A reader fetches at most as many pieces
 * at once as the batch has rows. Therefore, a batch with more pieces is fetched in several groups,
 * called turns. Tokens are copied directly from the reader's memory to the caller's buffer. Before
 * the last turn of a batch is copied, the pieces of the next batches are announced to the reader,
 * so that it can read them ahead of time. */
#include <inttypes.h>
#include <stdlib.h>

#include "loader/base/memory.h"
#include "loader/handle.h"

static uint32_t local_batch(const sgt_loader *l) { return l->o.batch / l->o.ranks; }

/* Flags of a piece in a row of documents. They are stored in sgt_window.block. In a row that is a
 * window of tokens, that field holds instead the index of the window's block, which the sampler
 * sets, and there are no flags */
enum {
    BEGINS = 1,  /* a document begins at the first token of this piece */
    ENDS_ROW = 2 /* this is the last piece of its row; only padding may follow it */
};

/* ---- the memory of a batch ---- */

int sgt_batch_bytes(size_t *bytes, const sgt_loader *l, sgt_output o, sgt_error *err)
{
    if ((unsigned)o >= SGT_OUTPUTS) return sgt_fail(err, SGT_EUSAGE, "unknown output %d", (int)o);
    if (o == SGT_OUTPUT_U16 && l->set.width == 4)
        return sgt_fail(err, SGT_EUSAGE, "%s: 4-byte ids do not fit into u16 rows (use i32 or i64)",
                        l->sets[0].path);
    size_t n = local_batch(l), width = (size_t)l->o.seq + !sgt_output_pairs(o);
    if (n > SIZE_MAX / 32 / width)
        return sgt_fail(err, SGT_ENOMEM,
                        "batches of %zu rows of %zu tokens: more than memory can hold", n, width);
    *bytes = n * width * sgt_output_bytes(o);
    return SGT_OK;
}

int sgt_batch_open(sgt_loader_batch *b, const sgt_loader *l)
{
    size_t n = local_batch(l);
    int padded = l->o.sampling == SGT_SAMPLING_DOCUMENTS;
    b->size = sizeof *b;
    if (padded) b->lengths = calloc(n, sizeof *b->lengths);
    if (l->o.documents) {
        b->row_starts = calloc(n + 1, sizeof *b->row_starts);
        /* Allocate for the worst case, in which a document begins at every token. Pages that are
         * never written take no physical memory. */
        b->starts = reallocarray(NULL, n, ((size_t)l->o.seq + 1) * sizeof *b->starts);
        b->begins = reallocarray(NULL, n, 3 * (size_t)l->o.seq * sizeof *b->begins);
        if (!b->row_starts || !b->starts || !b->begins) return 0;
        /* The memory at b->begins has room for three consecutive arrays: begins, positions and ids.
         * If the option `documents` is 2, only the first of them is used. */
        b->positions = l->o.documents > 1 ? NULL : b->begins + n * l->o.seq;
        b->ids = b->positions ? b->positions + n * l->o.seq : NULL;
    }
    return !padded || b->lengths;
}

void sgt_batch_close(sgt_loader_batch *b)
{
    free(b->lengths);
    free(b->row_starts);
    free(b->starts);
    free(b->begins);
}

/* ---- cursors ---- */

/* If rows consist of documents, allocate the arrays of *c that hold the documents of n rows. Return
 * 1, or 0 if memory runs out. */
static int open_documents(sgt_cursor *c, const sgt_loader *l, uint32_t n)
{
    if (!sgt_sampling_of_documents(l->o.sampling)) return 1;
    c->rows = calloc(n, sizeof *c->rows);
    c->documents = calloc((size_t)l->o.seq + 1, sizeof *c->documents);
    c->packed = calloc(SGT_PACK_KEPT, sizeof *c->packed);
    return c->rows && c->documents && c->packed;
}

/* Allocate the ring of batches, with one element for the current batch and enough elements for the
 * batches that the reader can read ahead. n is the number of rows per batch. Return 1, or 0 if
 * memory runs out. */
static int open_ring(sgt_cursor *c, const sgt_loader *l, uint32_t n)
{
    c->size = (l->ops->expect ? (l->ops->ahead + n - 1) / n : 0) + 1;
    int ok = (c->ring = calloc(c->size, sizeof *c->ring)) != NULL;
    for (uint32_t i = 0; i < c->size && ok; i++) {
        sgt_pieces *b = &c->ring[i];
        ok = (b->pieces = calloc(b->room = n, sizeof *b->pieces)) != NULL;
    }
    return ok;
}

int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err)
{
    uint32_t n = local_batch(l);
    int rc = SGT_OK;
    sgt_cursor *c = calloc(1, sizeof *c);
    if (c) {
        c->l = l;
        c->tokens = calloc(n, sizeof *c->tokens);
        c->memo = calloc(1, sgt_mix_memo_bytes(&l->mix));
    }
    if (!c || !c->tokens || !c->memo || !open_ring(c, l, n) || !open_documents(c, l, n) ||
        !sgt_batch_open(&c->own, l))
        rc = sgt_fail(err, SGT_ENOMEM, "batch of %" PRIu32 " rows: out of memory", n);
    else if (!l->ops->cursor_open) c->reader_cursor = l->reader;
    else rc = l->ops->cursor_open(&c->reader_cursor, l->reader, err);
    if (rc < 0) {
        sgt_cursor_close(c);
        return rc;
    }
    *out = c;
    return SGT_OK;
}

void sgt_cursor_close(sgt_cursor *c)
{
    if (!c) return;
    if (c->reader_cursor && c->l->ops->cursor_close) c->l->ops->cursor_close(c->reader_cursor);
    free(c->memo);
    for (uint32_t i = 0; c->ring && i < c->size; i++) free(c->ring[i].pieces);
    free(c->ring);
    free(c->tokens);
    free(c->rows);
    free(c->documents);
    free(c->packed);
    sgt_batch_close(&c->own);
    free(c);
}

/* Return the element of the ring for the batch that comes `after` batches after the current batch;
 * 0 means the current batch. */
static sgt_pieces *batch_at(const sgt_cursor *c, uint32_t after)
{
    return &c->ring[(c->at + after) % c->size];
}

/* ---- the pieces of a batch ---- */

/* Append the pieces of a document to *b: one piece for each shard that contains tokens of the
 * document. Return 1, or 0 if memory runs out. */
static int append_document(const sgt_loader *l, sgt_pieces *b, sgt_window document)
{
    uint32_t left = document.tokens;
    document.block = BEGINS;
    while (left) {
        uint64_t here = l->set.shards[document.shard].head.tokens - document.offset;
        document.tokens = here < left ? (uint32_t)here : left;
        if (sgt_reserve(&b->pieces, &b->room, b->count + 1, sizeof *b->pieces, NULL, NULL) < 0)
            return 0;
        b->pieces[b->count++] = document;
        left -= document.tokens;
        document = (sgt_window){.shard = document.shard + 1};
    }
    return 1;
}

/* Append to *b the pieces of all documents of one row. *row is what the sampler returned for this
 * row; the meaning of row->offset depends on the sampling:
 * - documents: index of the row's document, among the documents that begin in shard row->shard
 * - packed: index of the row, among the packed rows of the set to which that shard belongs
 *
 * Return 1, or 0 if memory runs out. */
static int append_row(const sgt_loader *l, sgt_cursor *c, sgt_pieces *b, const sgt_window *row)
{
    if (!l->packs) {
        sgt_window document = sgt_documents_window(&l->documents, &l->set, row, l->o.seq + 1);
        if (!append_document(l, b, document)) return 0;
        b->pieces[b->count - 1].block |= ENDS_ROW;
        return 1;
    }
    uint32_t set = sgt_loader_set_of(l, row->shard);
    uint32_t n = sgt_pack_row(&l->packs[set], c->packed, row->offset, c->documents, l->o.seq + 1);
    for (uint32_t k = 0; k < n; k++)
        if (!append_document(l, b, sgt_loader_packed_window(&c->documents[k]))) return 0;
    return 1;
}

/* Determine the rows of batch `index`, and store the pieces of these rows in *b. Return 1, or 0 if
 * memory runs out. */
static int draw_pieces(const sgt_loader *l, sgt_cursor *c, sgt_pieces *b, uint64_t index)
{
    uint32_t n = local_batch(l);
    b->index = index;
    b->count = c->rows ? 0 : n;
    b->told = 0;
    sgt_mix_windows(&l->mix, c->memo, index * l->o.batch + l->o.rank, l->o.ranks, n,
                    c->rows ? c->rows : b->pieces);
    for (uint32_t i = 0; c->rows && i < n; i++)
        if (!append_row(l, c, b, &c->rows[i])) return 0;
    return 1;
}

/* ---- looking ahead ---- */

/* Predict which batch will be read `after` batches from now (`after` is at least 1). If there is a
 * prediction, set *index to the index of that batch and return 1; otherwise return 0. If batches
 * are read in descending order, only the next batch is predicted, because a negative stride is
 * stored modulo 2^64 and larger multiples of it overflow. */
static int is_coming(const sgt_cursor *c, uint32_t after, uint64_t *index)
{
    uint64_t further;
    return c->stride && !__builtin_mul_overflow(after - 1, c->stride, &further) &&
           !__builtin_add_overflow(c->last + c->stride, further, index) &&
           *index <= UINT64_MAX / c->l->o.batch - 1;
}

/* Return how many pieces of batch *b to fetch with the next call of the reader, from piece `from`
 * on: all remaining pieces, but at most as many as the batch has rows. */
static uint32_t turn_of(const sgt_loader *l, const sgt_pieces *b, uint32_t from)
{
    uint32_t n = local_batch(l);
    return b->count - from < n ? b->count - from : n;
}

/* Announce pieces to the reader, so that it can read them ahead of time: first those of the current
 * batch, and then those of the predicted batches, until the reader accepts no more. Pieces are
 * announced in order, so only the last batch in the ring can have pieces that have not been
 * announced. */
static void announce_pieces(const sgt_loader *l, sgt_cursor *c)
{
    uint64_t index;
    for (uint32_t i = c->drawn - 1; l->ops->expect && i < c->size; i++) {
        sgt_pieces *b = batch_at(c, i);
        if (i == c->drawn) {
            if (!is_coming(c, i, &index) || !draw_pieces(l, c, b, index)) return;
            c->drawn++;
        }
        for (uint32_t n; b->told < b->count; b->told += n) {
            n = turn_of(l, b, b->told);
            if (!l->ops->expect(c->reader_cursor, b->pieces + b->told, n)) return;
        }
    }
}

/* Remove all batches from the ring, and tell the reader that their announced pieces will not be
 * fetched. */
static void forget_pieces(const sgt_loader *l, sgt_cursor *c)
{
    if (c->drawn && l->ops->expect) l->ops->expect(c->reader_cursor, NULL, 0);
    c->drawn = 0;
}

/* ---- writing rows ---- */

/* Prefetch tokens into the CPU caches, in groups of `group` pieces. The caller calls this before it
 * copies piece i of n pieces. If i is the first piece of a group, the function prefetches the group
 * after it; if i is 0, it prefetches the first two groups. Otherwise it does nothing. */
static inline void prefetch_group(const void **tokens, const sgt_window *pieces, size_t width,
                                  uint32_t i, uint32_t n, uint32_t group)
{
    if (i % group) return;
    uint32_t from = i ? i + group : 0, to = n - i > 2 * group ? i + 2 * group : n;
    for (uint32_t k = from; k < to; k++) sgt_rows_expect(tokens[k], width * pieces[k].tokens);
}

/* Return the error for the piece *w, which contains an id outside the vocabulary. The message
 * states that id and its offset. */
static int fail_id(const sgt_loader *l, const sgt_window *w, const void *ids, sgt_error *err)
{
    const size_t width = l->set.width;
    uint32_t t = 0;
    const sgt_set_shard *h = &l->set.shards[w->shard];
    while (t + 1 < w->tokens && sgt_id_at(ids, width, t) < l->set.vocab) t++;
    return sgt_shard_bad_id(h->path, &h->head, w->offset + t, sgt_id_at(ids, width, t),
                            l->set.vocab, err);
}

/* Write the n tokens of a piece to the current row, and return the largest id. The target of a
 * token is the token after it. For the last token of a piece, that is the first token of the row's
 * next piece, so this target is set only when the next piece is written. */
static uint32_t put_piece(const sgt_loader *l, const sgt_cursor *c, const sgt_loader_batch *b,
                          const void *from, uint32_t n)
{
    const sgt_output o = b->output;
    size_t width = l->set.width, size = sgt_output_bytes(o), T = l->o.seq;
    if (!sgt_output_pairs(o))
        return l->rows->write(width, o, (char *)b->inputs + (c->row * (T + 1) + c->token) * size,
                              NULL, from, n);
    size_t at = c->row * T + c->token;
    if (c->token) sgt_output_put(b->targets, o, at - 1, (int32_t)sgt_id_at(from, width, 0));
    if (c->token + n <= T)
        sgt_output_put(b->inputs, o, at + n - 1, (int32_t)sgt_id_at(from, width, n - 1));
    return l->rows->write(width, o, (char *)b->inputs + at * size, (char *)b->targets + at * size,
                          from, n - 1);
}

/* Fill the current row with padding, from token c->token to the end of the row. */
static void pad_row(const sgt_loader *l, const sgt_cursor *c, const sgt_loader_batch *b)
{
    const sgt_output o = b->output;
    size_t width = (size_t)l->o.seq + !sgt_output_pairs(o), at = c->row * width;
    for (size_t t = c->token; t < width; t++)
        sgt_output_put(b->inputs, o, at + t, (int32_t)l->o.pad);
    for (size_t t = c->token - 1; sgt_output_pairs(o) && t < width; t++)
        sgt_output_put(b->targets, o, at + t, SGT_IGNORED);
}

/* Append the positions in the row at which documents of the piece *w begin to b->starts. If rows
 * are windows and a shard has no .idx file, the piece is searched for end-of-text ids. Therefore,
 * call this function right after the piece has been copied, while its tokens are still in the CPU
 * caches. */
static void find_starts(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b,
                        const sgt_window *w, const void *from)
{
    if (!c->rows)
        c->found += sgt_documents_within(&l->documents, w, from, l->set.width,
                                         l->set.shards[w->shard].eot, b->starts + c->found);
    else if (w->block & BEGINS) b->starts[c->found++] = c->token;
}

static int write_piece(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b, const sgt_window *w,
                       const void *from, sgt_error *err)
{
    if (put_piece(l, c, b, from, w->tokens) >= l->set.vocab) return fail_id(l, w, from, err);
    int begins = l->packs && c->token == 0;
    if (begins && sgt_loader_check_beginning(l, w, sgt_id_at(from, l->set.width, 0), err) < 0)
        return SGT_EFORMAT;
    if (b->starts) find_starts(l, c, b, w, from);
    c->token += w->tokens;
    if (c->token <= l->o.seq) {
        if (!(w->block & ENDS_ROW)) return SGT_OK; /* the row has more pieces */
        pad_row(l, c, b);
    }
    if (b->lengths) b->lengths[c->row] = c->token;
    c->token = 0;
    c->row++;
    if (b->starts) b->row_starts[c->row] = c->found;
    return SGT_OK;
}

/* Write n rows of a batch, each of which is a window of tokens. write_piece would give the same
 * result, but is slower, because it also handles rows of several pieces. */
static int write_windows(const sgt_loader *l, const sgt_cursor *c, const sgt_loader_batch *b,
                         const sgt_window *windows, uint32_t n, uint32_t group, sgt_error *err)
{
    const sgt_output o = b->output;
    const size_t ids = (size_t)l->o.seq + !sgt_output_pairs(o), bytes = ids * sgt_output_bytes(o),
                 width = l->set.width;
    char *first = b->inputs, *second = b->targets;
    for (uint32_t k = 0; k < n; k++, first += bytes) {
        if (group) prefetch_group(c->tokens, windows, width, k, n, group);
        if (l->rows->write(width, o, first, second, c->tokens[k], ids) >= l->set.vocab)
            return fail_id(l, &windows[k], c->tokens[k], err);
        if (sgt_output_pairs(o)) second += bytes;
    }
    return SGT_OK;
}

/* Write the n pieces that the reader fetched last to the rows of the batch. */
static int write_pieces(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b,
                        const sgt_window *pieces, uint32_t n, sgt_error *err)
{
    int rc = SGT_OK, torn = SGT_OK;
    uint32_t group =
        l->rows == &sgt_rows_plain ? 0 : sgt_rows_group(l->set.width * ((size_t)l->o.seq + 1));
    int windows = !c->rows && !b->starts;
    if (windows) rc = write_windows(l, c, b, pieces, n, group, err);
    for (uint32_t k = 0; k < n && rc == SGT_OK && !windows; k++) {
        if (group) prefetch_group(c->tokens, pieces, l->set.width, k, n, group);
        rc = write_piece(l, c, b, &pieces[k], c->tokens[k], err);
    }
    /* Call `verify` even if rc is already an error. If a mapped file was cut short, its missing
     * tokens can look like ids outside the vocabulary. In that case, the error of `verify` is more
     * useful, because it reports the damaged file. */
    if (l->ops->verify) torn = l->ops->verify(c->reader_cursor, pieces, n, c->tokens, err);
    return torn < 0 ? torn : rc;
}

/* ---- documents in rows ---- */

/* Set `begins`, `positions` and `ids` for the inputs `from` ... to-1 of a row, which all belong to
 * document `id` of the row, counted from 0. For padding, this is called for each input separately,
 * with `id` -1. `row` is the index of the first input of the row in these arrays. */
static void put_document(const sgt_loader_batch *b, size_t row, uint32_t from, uint32_t to,
                         int32_t id)
{
    for (uint32_t t = from; t < to; t++) b->begins[row + t] = (int32_t)from;
    for (uint32_t t = from; t < to && b->positions; t++) {
        b->positions[row + t] = (int32_t)(t - from);
        b->ids[row + t] = id;
    }
}

/* Set begins, positions and ids for every input of the batch. They are computed from b->starts, the
 * positions in each row at which documents begin. */
static void expand_starts(const sgt_loader *l, const sgt_loader_batch *b)
{
    const uint32_t T = l->o.seq;
    for (uint32_t r = 0; r < local_batch(l); r++) {
        const size_t row = (size_t)r * T;
        uint32_t own = b->lengths && b->lengths[r] < T ? b->lengths[r] : T, from = 0;
        int32_t id = 0;
        for (uint32_t k = b->row_starts[r]; k < b->row_starts[r + 1] && b->starts[k] < own; k++) {
            if (b->starts[k] == 0) continue;
            put_document(b, row, from, b->starts[k], id++);
            from = b->starts[k];
        }
        put_document(b, row, from, own, id);
        for (uint32_t t = own; t < T; t++) put_document(b, row, t, t + 1, -1);
    }
}

/* ---- making a batch ---- */

/* Make batch `index` the current batch. If it is the next batch in the ring, its pieces are already
 * there; otherwise they are determined now. */
static int turn_to(const sgt_loader *l, sgt_cursor *c, uint64_t index, sgt_error *err)
{
    if (index > UINT64_MAX / l->o.batch - 1)
        return sgt_fail(err, SGT_EUSAGE,
                        "batch %" PRIu64 ": too large: with %" PRIu32
                        " rows per batch, its row numbers need more than 64 bits",
                        index, l->o.batch);
    const uint64_t step = index - c->last;
    c->stride = step == 1 || step == c->step ? step : 0;
    c->last = index;
    c->step = step;
    if (c->drawn > 1 && batch_at(c, 1)->index == index) {
        c->at = (c->at + 1) % c->size;
        c->drawn--;
        return SGT_OK;
    }
    forget_pieces(l, c);
    if (!draw_pieces(l, c, batch_at(c, 0), index))
        return sgt_fail(err, SGT_ENOMEM, "batch of %" PRIu32 " rows: out of memory",
                        local_batch(l));
    c->drawn = 1;
    return SGT_OK;
}

int sgt_batch_make(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b, sgt_error *err)
{
    int rc = turn_to(l, c, b->index, err);
    sgt_pieces *from = batch_at(c, 0);
    c->row = c->token = c->found = 0;
    for (uint32_t done = 0, n; rc == SGT_OK && done < from->count; done += n) {
        n = turn_of(l, from, done);
        if (from->count > n) announce_pieces(l, c); /* announce the remaining turns of this batch */
        /* Mark the pieces of this turn as announced. If the reader had no room for some of them
         * earlier, announcing them would now be useless, because they are fetched next. */
        if (from->told < done + n) from->told = done + n;
        rc = l->ops->fetch(c->reader_cursor, from->pieces + done, n, c->tokens, err);
        if (rc == SGT_OK && done + n == from->count) announce_pieces(l, c);
        if (rc == SGT_OK) rc = write_pieces(l, c, b, from->pieces + done, n, err);
    }
    if (rc == SGT_OK && b->starts) expand_starts(l, b);
    if (rc < 0) forget_pieces(l, c);
    return rc;
}

int sgt_loader_read(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                    sgt_output output, void *out, size_t bytes, sgt_error *err)
{
    const size_t arrays = sgt_output_pairs(output) ? 2 : 1, room = out ? bytes : 0;
    size_t one;
    sgt_loader_batch *b = &c->own;
    int rc = sgt_batch_bytes(&one, l, output, err);
    if (rc == SGT_OK && count > room / one / arrays)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "%" PRIu64 " batches of %zu bytes do not fit into a buffer of %zu bytes",
                      count, one * arrays, room);
    for (uint64_t k = 0; rc == SGT_OK && k < count; k++) {
        b->output = output;
        b->index = first + k;
        b->inputs = (char *)out + k * one;
        b->targets = arrays == 2 ? (char *)out + (count + k) * one : NULL;
        rc = sgt_batch_make(l, c, b, err);
    }
    return rc;
}

const sgt_loader_batch *sgt_cursor_batch(const sgt_cursor *c) { return &c->own; }
