/* batch.c: make one batch: draw its windows, fetch their tokens, and write the caller's rows. A
 * cursor holds the memory for this. */
#include <inttypes.h>
#include <stdlib.h>

#include "loader/handle.h"

static uint32_t local_batch(const sgt_loader *l) { return l->o.batch / l->o.ranks; }

/* Allocate the additional arrays that sampling by documents needs, for n rows. Return 0 if out of
 * memory. */
static int open_rows(sgt_cursor *c, const sgt_loader *l, uint32_t n)
{
    if (!sgt_sampling_of_documents(l->o.sampling)) return 1;
    c->gathered = reallocarray(NULL, n, ((size_t)l->o.seq + 1) * sizeof *c->gathered);
    if (l->o.sampling == SGT_SAMPLING_PACKED) return c->gathered && sgt_cursor_open_packed(c, l, n);
    c->lengths = calloc(n, sizeof *c->lengths);
    c->left = calloc(n, sizeof *c->left);
    c->pieces = calloc(n, sizeof *c->pieces);
    return c->lengths && c->left && c->pieces && c->gathered;
}

int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err)
{
    uint32_t n = local_batch(l);
    int rc = SGT_ENOMEM;
    sgt_cursor *c = calloc(1, sizeof *c);
    if (c) {
        c->l = l;
        c->ahead = l->ops->expect ? (l->ops->ahead + n - 1) / n : 0;
        c->windows = c->drawn = calloc(((size_t)c->ahead + 1) * n, sizeof *c->drawn);
        c->tokens = calloc(n, sizeof *c->tokens);
    }
    if (!c || !c->drawn || !c->tokens || !open_rows(c, l, n) || !sgt_cursor_open_starts(c, l, n))
        sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " rows: out of memory", n);
    else if ((rc = sgt_mix_memo_open(&c->memo, &l->mix, err)) == SGT_OK)
        rc = l->ops->cursor_open(&c->reader_cursor, l->reader, err);
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
    if (c->reader_cursor) c->l->ops->cursor_close(c->reader_cursor);
    sgt_mix_memo_free(&c->memo);
    free(c->drawn);
    free(c->tokens);
    free(c->lengths);
    free(c->left);
    free(c->pieces);
    free(c->gathered);
    sgt_cursor_close_packed(c);
    sgt_cursor_close_starts(c);
    free(c);
}

const uint32_t *sgt_cursor_lengths(const sgt_cursor *c) { return c->lengths; }

/* ---- documents: rows put together from pieces ---- */

/* Return the next piece of a row: as many of the `left` tokens from w on as lie in the current
 * shard. */
static sgt_window next_piece(const sgt_loader *l, sgt_window w, uint32_t left)
{
    uint64_t here = l->set.shards[w.shard].head.tokens - w.offset;
    w.tokens = here < left ? (uint32_t)here : left;
    return w;
}

static int take_piece(const sgt_loader *l, sgt_cursor *c, uint32_t i, const sgt_window *w,
                      const uint16_t *from, sgt_error *err)
{
    size_t width = (size_t)l->o.seq + 1, t = 0;
    uint16_t *to = c->gathered + i * width + (c->lengths[i] - c->left[i]);
    if (l->rows->copy(to, from, w->tokens) >= l->set.vocab) {
        while (to[t] < l->set.vocab) t++;
        return sgt_set_bad_id(&l->set, w->shard, w->offset + t, to[t], err);
    }
    c->left[i] -= w->tokens;
    c->windows[i].shard++; /* shard of the row's next piece, if it has one */
    c->windows[i].offset = 0;
    return SGT_OK;
}

/* Check, after the tokens were copied from c->tokens, that they really were the files' tokens (see
 * `verify` in reader.h). */
static int verify(const sgt_loader *l, const sgt_cursor *c, const sgt_window *windows, uint32_t n,
                  sgt_error *err)
{
    return l->ops->verify ? l->ops->verify(c->reader_cursor, windows, n, c->tokens, err) : SGT_OK;
}

/* Fetch the first piece of every row in one call of the reader. Then fetch the pieces that continue
 * in the next shard in another call, and so on. */
static int gather(const sgt_loader *l, sgt_cursor *c, uint32_t n, sgt_error *err)
{
    for (uint32_t pieces = n; pieces;) {
        pieces = 0;
        for (uint32_t i = 0; i < n; i++)
            if (c->left[i]) c->pieces[pieces++] = next_piece(l, c->windows[i], c->left[i]);
        int rc =
            pieces ? l->ops->fetch(c->reader_cursor, c->pieces, pieces, c->tokens, err) : SGT_OK;
        for (uint32_t i = 0, k = 0; k < pieces && rc == SGT_OK; i++)
            if (c->left[i]) {
                sgt_cursor_ask_ahead(c, c->pieces, k, pieces);
                rc = take_piece(l, c, i, &c->pieces[k], c->tokens[k], err);
                k++;
            }
        if (rc < 0 || (rc = verify(l, c, c->pieces, pieces, err)) < 0) return rc;
    }
    return SGT_OK;
}

static int fetch_documents(const sgt_loader *l, sgt_cursor *c, sgt_error *err)
{
    uint32_t n = local_batch(l), width = l->o.seq + 1;
    for (uint32_t i = 0; i < n; i++) c->lengths[i] = c->left[i] = c->windows[i].tokens;
    int rc = gather(l, c, n, err);
    for (uint32_t i = 0; i < n; i++) {
        uint16_t *to = c->gathered + (size_t)i * width;
        for (uint32_t t = c->lengths[i]; t < width; t++) to[t] = (uint16_t)l->o.pad;
        c->tokens[i] = to;
    }
    return rc;
}

/* Set row i's targets beyond its real tokens to SGT_IGNORED. Outputs without targets (rows of T+1
 * ids) are left alone. */
static void ignore_padding(const sgt_loader *l, const sgt_cursor *c, uint32_t i,
                           const sgt_batch_arrays *to)
{
    if (!c->lengths || !to->second) return;
    size_t from = (size_t)i * l->o.seq + c->lengths[i] - 1, end = ((size_t)i + 1) * l->o.seq;
    int64_t *targets64 = to->second;
    int32_t *targets = to->second;
    for (; to->output == SGT_OUTPUT_I64 && from < end; from++) targets64[from] = SGT_IGNORED;
    for (; from < end; from++) targets[from] = SGT_IGNORED;
}

void sgt_cursor_set_past(sgt_cursor *c, int past) { c->past = past; }

/* ---- windows, those of coming batches too ---- */

/* Set c->windows to the windows of batch `index`: those announced to the reader, if it was
 * announced, else newly drawn ones. */
static void draw_asked(const sgt_loader *l, sgt_cursor *c, uint64_t index)
{
    sgt_cursor_steer(c, index);
    int announced = c->known && c->next == index;
    if (c->known && !announced) {
        l->ops->expect(c->reader_cursor, NULL, 0);
        c->known = 0;
    }
    c->windows = c->drawn + (size_t)c->at * local_batch(l);
    c->at = (c->at + 1) % (c->ahead + 1);
    if (announced) c->known--;
    else sgt_loader_draw_batch(l, &c->memo, index, c->windows);
    c->next = index + c->stride;
}

static int tell(const sgt_loader *l, sgt_cursor *c, const sgt_window *windows)
{
    uint32_t n = local_batch(l);
    const sgt_window *asked = windows;
    if (l->o.sampling == SGT_SAMPLING_DOCUMENTS) { /* the first pieces are fetched first */
        for (uint32_t i = 0; i < n; i++)
            c->pieces[i] = next_piece(l, windows[i], windows[i].tokens);
        asked = c->pieces;
    }
    return l->ops->expect(c->reader_cursor, asked, n);
}

/* Announce the next batches to the reader, before the rows of the fetched batch are made. */
static void look_ahead(const sgt_loader *l, sgt_cursor *c)
{
    uint64_t index;
    while (c->known < c->ahead && sgt_cursor_coming(l, c, c->next, c->known, &index)) {
        sgt_window *windows =
            c->drawn + (size_t)((c->at + c->known) % (c->ahead + 1)) * local_batch(l);
        sgt_loader_draw_batch(l, &c->memo, index, windows);
        if (!tell(l, c, windows)) return;
        c->known++;
    }
}

/* ---- batches ---- */

/* Fetch the windows of batch `index`: c->tokens[i] then points to the tokens of row i. */
static int fetch(const sgt_loader *l, sgt_cursor *c, uint64_t index, sgt_error *err)
{
    if (index > UINT64_MAX / l->o.batch - 1)
        return sgt_fail(err, SGT_EUSAGE,
                        "batch %" PRIu64 ": its rows, %" PRIu32
                        " a batch, are past the 64 bits that number them",
                        index, l->o.batch);
    if (c->packed) return sgt_cursor_fetch_packed(l, c, index, err);
    draw_asked(l, c, index);
    int rc = l->o.sampling == SGT_SAMPLING_DOCUMENTS
                 ? fetch_documents(l, c, err)
                 : l->ops->fetch(c->reader_cursor, c->windows, local_batch(l), c->tokens, err);
    if (rc == SGT_OK && c->starts && !l->documents.unlisted_count) sgt_cursor_find_starts(l, c);
    if (rc == SGT_OK) look_ahead(l, c);
    return rc;
}

/* Fail because row i holds an id outside the vocabulary. The message says which id, and where. */
static int fail_id(const sgt_loader *l, const sgt_cursor *c, uint32_t i, sgt_error *err)
{
    const uint16_t *p = c->tokens[i];
    uint32_t t = 0;
    while (t < l->o.seq && p[t] < l->set.vocab) t++;
    return sgt_set_bad_id(&l->set, c->windows[i].shard, c->windows[i].offset + t, p[t], err);
}

/* Called once the rows are written, while their tokens are in the caches. Gathered rows (documents)
 * were verified in `gather`, so only other rows are verified here. */
static int finish(const sgt_loader *l, sgt_cursor *c, sgt_error *err)
{
    /* search the ids for starts only now: in a shard without an .idx file, the tokens themselves
     * mark documents */
    if (c->starts && l->documents.unlisted_count && !c->packed) sgt_cursor_find_starts(l, c);
    return c->gathered ? SGT_OK : verify(l, c, c->windows, local_batch(l), err);
}

/* This is the simple method that benchmarks compare with, so keep the loop as it is. Checking every
 * id keeps the compiler from vectorizing it. */
static int copy_scalar(const sgt_loader *l, sgt_cursor *c, uint16_t *rows, sgt_error *err)
{
    size_t width = (size_t)l->o.seq + 1;
    for (uint32_t i = 0; i < local_batch(l); i++)
        for (size_t t = 0; t < width; t++) {
            uint16_t id = c->tokens[i][t];
            if (id >= l->set.vocab) return fail_id(l, c, i, err);
            rows[i * width + t] = id;
        }
    return finish(l, c, err);
}

/* Write row i into the caller's arrays, and return its largest id. */
static uint16_t write_row(const sgt_loader *l, const sgt_cursor *c, uint32_t i,
                          const sgt_batch_arrays *to)
{
    const sgt_rows *r = l->o.scalar ? &sgt_rows_plain : l->rows;
    const uint16_t *from = c->tokens[i];
    size_t T = l->o.seq, at = i * T, row = i * (T + 1);
    int64_t *in64 = to->first, *to64 = to->second;
    int32_t *in = to->first, *out = to->second;
    uint16_t *ids = to->first;
    switch (to->output) {
    case SGT_OUTPUT_I32: return (c->past ? r->widen_past : r->widen)(in + at, out + at, from, T);
    case SGT_OUTPUT_I64:
        return (c->past ? r->widen64_past : r->widen64)(in64 + at, to64 + at, from, T);
    case SGT_OUTPUT_I32_ROWS:
        return (c->past ? r->widen_row_past : r->widen_row)(in + row, from, T + 1);
    default: return (c->past ? r->copy_past : r->copy)(ids + row, from, T + 1);
    }
}

int sgt_loader_write(const sgt_loader *l, sgt_cursor *c, uint64_t index, const sgt_batch_arrays *to,
                     sgt_error *err)
{
    int scalar = l->o.scalar;
    if (scalar && to->output == SGT_OUTPUT_I32)
        return sgt_loader_batch_i32_scalar(l, c, index, to->first, to->second, err);
    int rc = fetch(l, c, index, err);
    if (rc < 0) return rc;
    if (scalar && to->output == SGT_OUTPUT_U16) return copy_scalar(l, c, to->first, err);
    for (uint32_t i = 0, n = local_batch(l); i < n; i++) {
        sgt_cursor_ask_ahead(c, c->windows, i, n);
        if (write_row(l, c, i, to) >= l->set.vocab) return fail_id(l, c, i, err);
        ignore_padding(l, c, i, to);
    }
    return finish(l, c, err);
}

/* Advance the pointers to the arrays of the next batch. */
static void advance(const sgt_loader *l, sgt_batch_arrays *to)
{
    size_t n = local_batch(l), pair = n * l->o.seq, row = n * ((size_t)l->o.seq + 1), bytes;
    if (to->output == SGT_OUTPUT_U16) bytes = row * sizeof(uint16_t);
    else if (to->output == SGT_OUTPUT_I32_ROWS) bytes = row * sizeof(int32_t);
    else bytes = pair * (to->output == SGT_OUTPUT_I64 ? sizeof(int64_t) : sizeof(int32_t));
    to->first = (char *)to->first + bytes;
    if (to->second) to->second = (char *)to->second + bytes;
}

static int write_batches(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                         sgt_batch_arrays to, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint64_t k = 0; k < count && rc == SGT_OK; k++) {
        rc = sgt_loader_write(l, c, first + k, &to, err);
        advance(l, &to);
    }
    return rc;
}

int sgt_loader_batch(const sgt_loader *l, sgt_cursor *c, uint64_t index, uint16_t *rows,
                     sgt_error *err)
{
    return write_batches(l, c, index, 1, (sgt_batch_arrays){SGT_OUTPUT_U16, rows, NULL}, err);
}

int sgt_loader_batch_i32(const sgt_loader *l, sgt_cursor *c, uint64_t index, int32_t *inputs,
                         int32_t *targets, sgt_error *err)
{
    return sgt_loader_batches_i32(l, c, index, 1, inputs, targets, err);
}

int sgt_loader_batches(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                       uint16_t *rows, sgt_error *err)
{
    return write_batches(l, c, first, count, (sgt_batch_arrays){SGT_OUTPUT_U16, rows, NULL}, err);
}

int sgt_loader_batches_i32(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                           int32_t *inputs, int32_t *targets, sgt_error *err)
{
    sgt_batch_arrays to = {SGT_OUTPUT_I32, inputs, targets};
    return write_batches(l, c, first, count, to, err);
}

int sgt_loader_batches_i64(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                           int64_t *inputs, int64_t *targets, sgt_error *err)
{
    sgt_batch_arrays to = {SGT_OUTPUT_I64, inputs, targets};
    return write_batches(l, c, first, count, to, err);
}

int sgt_loader_batches_i32_rows(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                                int32_t *rows, sgt_error *err)
{
    sgt_batch_arrays to = {SGT_OUTPUT_I32_ROWS, rows, NULL};
    return write_batches(l, c, first, count, to, err);
}

int sgt_loader_batch_i32_scalar(const sgt_loader *l, sgt_cursor *c, uint64_t index, int32_t *inputs,
                                int32_t *targets, sgt_error *err)
{
    size_t T = l->o.seq;
    sgt_batch_arrays to = {SGT_OUTPUT_I32, inputs, targets};
    int rc = fetch(l, c, index, err);
    if (rc < 0) return rc;
    for (uint32_t i = 0; i < local_batch(l); i++) {
        for (size_t t = 0; t <= T; t++) {
            uint16_t id = c->tokens[i][t];
            if (id >= l->set.vocab) return fail_id(l, c, i, err);
            if (t < T) inputs[i * T + t] = id;
            if (t > 0) targets[i * T + t - 1] = id;
        }
        ignore_padding(l, c, i, &to);
    }
    return finish(l, c, err);
}
