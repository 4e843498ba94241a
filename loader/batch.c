/* batch.c: make one batch: draw its pieces, fetch their tokens, and write the caller's rows. A
 * cursor holds the memory for this.
 *
 * A row is a list of pieces, each of which lies in one shard. A window is one piece, and its row is
 * written straight from the reader's memory. Rows of documents may have more pieces, which are
 * gathered into c->gathered first. The pieces of a batch are fetched in turns of as many as it has
 * rows, which is what readers have room for. Those of coming batches are announced to the reader
 * before the rows of the fetched batch are written. */
#include <inttypes.h>
#include <stdlib.h>

#include "loader/base/memory.h"
#include "loader/handle.h"

static uint32_t local_batch(const sgt_loader *l) { return l->o.batch / l->o.ranks; }

/* ---- cursors ---- */

/* Allocate the arrays of n rows that documents are gathered into. Return 0 if out of memory. */
static int open_gathered(sgt_cursor *c, const sgt_loader *l, uint32_t n)
{
    if (!sgt_sampling_of_documents(l->o.sampling)) return 1;
    c->gathered = reallocarray(NULL, n, ((size_t)l->o.seq + 1) * sizeof *c->gathered);
    c->rows = calloc(n, sizeof *c->rows);
    c->documents = calloc((size_t)l->o.seq + 1, sizeof *c->documents);
    c->packed = calloc(SGT_PACK_KEPT, sizeof *c->packed);
    return c->gathered && c->rows && c->documents && c->packed;
}

/* Allocate the current batch and those that are announced to the reader. Return 0 if out of
 * memory. */
static int open_ring(sgt_cursor *c, const sgt_loader *l, uint32_t n)
{
    c->size = (l->ops->expect ? (l->ops->ahead + n - 1) / n : 0) + 1;
    int ok = (c->ring = calloc(c->size, sizeof *c->ring)) != NULL;
    for (uint32_t i = 0; i < c->size && ok; i++) {
        sgt_pieces *b = &c->ring[i];
        b->pieces = calloc(b->room = n, sizeof *b->pieces);
        b->lengths = calloc(n, sizeof *b->lengths);
        ok = b->pieces && b->lengths;
    }
    return ok;
}

/* Allocate the places where documents begin in n rows. Return 0 if out of memory. */
static int open_starts(sgt_cursor *c, const sgt_loader *l, size_t n)
{
    if (!l->o.documents) return 1;
    c->starts_first = calloc(n + 1, sizeof *c->starts_first);
    /* Reserve room for a start at every token. Pages that are never written take no memory. */
    c->starts = reallocarray(NULL, n, ((size_t)l->o.seq + 1) * sizeof *c->starts);
    c->begun = (sgt_row_documents){c->starts_first, c->starts};
    return c->starts_first && c->starts;
}

int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err)
{
    uint32_t n = local_batch(l);
    int rc = SGT_ENOMEM;
    sgt_cursor *c = calloc(1, sizeof *c);
    if (c) {
        c->l = l;
        c->tokens = calloc(n, sizeof *c->tokens);
    }
    if (!c || !c->tokens || !open_ring(c, l, n) || !open_gathered(c, l, n) || !open_starts(c, l, n))
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
    for (uint32_t i = 0; c->ring && i < c->size; i++) {
        free(c->ring[i].pieces);
        free(c->ring[i].lengths);
    }
    free(c->ring);
    free(c->tokens);
    free(c->gathered);
    free(c->rows);
    free(c->documents);
    free(c->packed);
    free(c->starts_first);
    free(c->starts);
    free(c);
}

/* Return the current batch, or the one that was drawn `after` places after it. */
static sgt_pieces *batch_at(const sgt_cursor *c, uint32_t after)
{
    return &c->ring[(c->at + after) % c->size];
}

const uint32_t *sgt_cursor_lengths(const sgt_cursor *c)
{
    return c->l->o.sampling == SGT_SAMPLING_DOCUMENTS ? batch_at(c, 0)->lengths : NULL;
}

/* ---- the pieces of a batch ---- */

static int append_piece(sgt_pieces *b, sgt_window piece)
{
    if (sgt_reserve(&b->pieces, &b->room, b->count + 1, sizeof *b->pieces, NULL, NULL) < 0)
        return 0;
    b->pieces[b->count++] = piece;
    return 1;
}

/* Append a document's pieces: one, or more if it goes on in the next shard. */
static int append_document(const sgt_loader *l, sgt_pieces *b, sgt_window document)
{
    uint32_t left = document.tokens;
    document.block = 1;
    while (left) {
        uint64_t here = l->set.shards[document.shard].head.tokens - document.offset;
        document.tokens = here < left ? (uint32_t)here : left;
        if (!append_piece(b, document)) return 0;
        left -= document.tokens;
        document = (sgt_window){.shard = document.shard + 1};
    }
    return 1;
}

/* Append the documents of a row that the mix drew. Return its number of tokens, or 0 if out of
 * memory. */
static uint32_t append_row(const sgt_loader *l, sgt_cursor *c, sgt_pieces *b, const sgt_window *row)
{
    if (!l->packs) {
        sgt_window document = sgt_loader_find_document(l, *row);
        return append_document(l, b, document) ? document.tokens : 0;
    }
    uint32_t set = sgt_mix_set_of(&l->mix, row->shard);
    uint32_t n = sgt_pack_row(&l->packs[set], c->packed, row->offset, c->documents, l->o.seq + 1);
    for (uint32_t k = 0; k < n; k++)
        if (!append_document(l, b, sgt_loader_packed_window(&c->documents[k]))) return 0;
    return l->o.seq + 1;
}

/* Find the pieces of batch `index`. Return 0 if out of memory. */
static int draw_pieces(const sgt_loader *l, sgt_cursor *c, sgt_pieces *b, uint64_t index)
{
    uint32_t n = local_batch(l);
    b->index = index;
    b->count = c->gathered ? 0 : n;
    b->told = b->fetched = 0;
    sgt_mix_windows(&l->mix, &c->memo, index * l->o.batch + l->o.rank, l->o.ranks, n,
                    c->gathered ? c->rows : b->pieces);
    for (uint32_t i = 0; c->gathered && i < n; i++)
        if (!(b->lengths[i] = append_row(l, c, b, &c->rows[i]))) return 0;
    return 1;
}

/* ---- looking ahead ---- */

/* Guess, from the batches asked for until now, how far apart they are. */
static void guess_stride(sgt_cursor *c, uint64_t index)
{
    uint64_t step = index - c->last;
    c->stride = step == 1 || step == c->step ? step : 0;
    c->last = index;
    c->step = step;
}

/* Return whether there is a batch `after` strides after the current one, at least 1, and set *index
 * to it. The first may lie before the current one; further ones are not guessed then. */
static int is_coming(const sgt_cursor *c, uint32_t after, uint64_t *index)
{
    uint64_t further;
    return c->stride && !__builtin_mul_overflow(after - 1, c->stride, &further) &&
           !__builtin_add_overflow(c->last + c->stride, further, index) &&
           *index <= UINT64_MAX / c->l->o.batch - 1;
}

/* Return how many of the pieces from number `from` on are fetched together. */
static uint32_t turn_of(const sgt_loader *l, const sgt_pieces *b, uint32_t from)
{
    uint32_t n = local_batch(l);
    return b->count - from < n ? b->count - from : n;
}

/* Announce the pieces of this batch and of coming ones to the reader, as many as it takes. They are
 * announced in order, so of those drawn only the last can be incomplete. */
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

/* Forget all batches, and cancel what the reader still expects of them. */
static void forget_pieces(const sgt_loader *l, sgt_cursor *c)
{
    int expected = 0;
    for (uint32_t i = 0; i < c->drawn; i++)
        expected |= batch_at(c, i)->told > batch_at(c, i)->fetched;
    if (expected && l->ops->expect) l->ops->expect(c->reader_cursor, NULL, 0);
    c->drawn = 0;
}

/* ---- fetching ---- */

/* Called before row or piece i of n is copied, each of at most `width` tokens. At the first one of a
 * group, prefetch the tokens of the next group, so that they arrive while this group is copied. At
 * number 0, prefetch the first two groups. pieces NULL: all have `width` tokens. */
static inline void prefetch_group(const uint16_t **tokens, const sgt_window *pieces, uint32_t i,
                                  uint32_t n, size_t width)
{
    uint32_t group = sgt_rows_group(width);
    if (i % group) return;
    uint32_t from = i ? i + group : 0, to = n - i > 2 * group ? i + 2 * group : n;
    for (uint32_t k = from; k < to; k++)
        sgt_rows_expect(tokens[k], pieces ? pieces[k].tokens : width);
}

/* Check, after the tokens were copied from c->tokens, that they really were the files' tokens (see
 * `verify` in reader.h). */
static int verify_tokens(const sgt_loader *l, const sgt_cursor *c, const sgt_window *pieces,
                         uint32_t n, sgt_error *err)
{
    return l->ops->verify ? l->ops->verify(c->reader_cursor, pieces, n, c->tokens, err) : SGT_OK;
}

/* Fail because a piece's tokens have an id outside the vocabulary. The message says which id, and
 * where. */
static int fail_id(const sgt_loader *l, const sgt_window *w, const uint16_t *ids, sgt_error *err)
{
    uint32_t t = 0;
    while (t + 1 < w->tokens && ids[t] < l->set.vocab) t++;
    return sgt_set_bad_id(&l->set, w->shard, w->offset + t, ids[t], err);
}

/* Where the next piece goes: row, and token in it; and the document starts found so far. */
typedef struct filling {
    uint32_t row, token, starts;
} filling;

static int gather_piece(const sgt_loader *l, sgt_cursor *c, filling *f, const sgt_window *w,
                        const uint16_t *from, sgt_error *err)
{
    uint32_t width = l->o.seq + 1;
    uint16_t *row = c->gathered + (size_t)f->row * width, *to = row + f->token;
    if (l->rows->write[SGT_OUTPUT_U16](to, NULL, from, w->tokens) >= l->set.vocab)
        return fail_id(l, w, from, err);
    if (l->packs && f->token == 0 && row[0] != sgt_set_eot(&l->set, w->shard))
        return sgt_loader_fail_beginning(l, w->shard, w->offset, row[0], err);
    if (c->starts && f->token == 0) c->starts_first[f->row] = f->starts;
    if (c->starts && w->block) c->starts[f->starts++] = f->token;
    f->token += w->tokens;
    if (f->token == batch_at(c, 0)->lengths[f->row]) {
        for (uint32_t t = f->token; t < width; t++) row[t] = (uint16_t)l->o.pad;
        f->token = 0;
        f->row++;
    }
    return SGT_OK;
}

static int gather_pieces(const sgt_loader *l, sgt_cursor *c, filling *f, const sgt_window *pieces,
                         uint32_t n, sgt_error *err)
{
    int rc = SGT_OK, torn;
    for (uint32_t k = 0; k < n && rc == SGT_OK; k++) {
        prefetch_group(c->tokens, pieces, k, n, (size_t)l->o.seq + 1);
        rc = gather_piece(l, c, f, &pieces[k], c->tokens[k], err);
    }
    /* also after a failure: where a file was cut short, its tokens read as zeros */
    torn = verify_tokens(l, c, pieces, n, err);
    return torn < 0 ? torn : rc;
}

/* Fetch the pieces of the current batch, so that c->tokens[i] points to the tokens of row i. */
static int fetch_pieces(const sgt_loader *l, sgt_cursor *c, sgt_error *err)
{
    sgt_pieces *b = batch_at(c, 0);
    filling f = {0};
    int rc = SGT_OK;
    for (uint32_t done = 0, n; done < b->count && rc == SGT_OK; done += n) {
        n = turn_of(l, b, done);
        if (b->count > n) announce_pieces(l, c); /* the turns after this one */
        /* what the reader had no room to expect is not announced any more */
        if (b->told < done + n) b->told = done + n;
        rc = l->ops->fetch(c->reader_cursor, b->pieces + done, n, c->tokens, err);
        b->fetched += n;
        if (rc == SGT_OK && c->gathered) rc = gather_pieces(l, c, &f, b->pieces + done, n, err);
    }
    for (uint32_t i = 0; c->gathered && i < local_batch(l); i++)
        c->tokens[i] = c->gathered + i * ((size_t)l->o.seq + 1);
    if (c->gathered && c->starts) c->starts_first[f.row] = f.starts;
    return rc;
}

/* Fetch batch `index`, and announce the next ones to the reader. */
static int fetch_batch(const sgt_loader *l, sgt_cursor *c, uint64_t index, sgt_error *err)
{
    if (index > UINT64_MAX / l->o.batch - 1)
        return sgt_fail(err, SGT_EUSAGE,
                        "batch %" PRIu64 ": its rows, %" PRIu32
                        " a batch, are past the 64 bits that number them",
                        index, l->o.batch);
    guess_stride(c, index);
    if (c->drawn > 1 && batch_at(c, 1)->index == index) {
        c->at = (c->at + 1) % c->size;
        c->drawn--;
    } else {
        forget_pieces(l, c);
        if (!draw_pieces(l, c, batch_at(c, 0), index))
            return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " rows: out of memory", local_batch(l));
        c->drawn = 1;
    }
    int rc = fetch_pieces(l, c, err);
    if (rc < 0) forget_pieces(l, c);
    else announce_pieces(l, c);
    return rc;
}

/* ---- writing rows ---- */

/* Set row i's targets beyond its real tokens to SGT_IGNORED. */
static void ignore_padding(const sgt_loader *l, const sgt_cursor *c, uint32_t i,
                           const sgt_batch_arrays *to)
{
    if (!c->gathered) return;
    size_t from = (size_t)i * l->o.seq + batch_at(c, 0)->lengths[i] - 1,
           end = ((size_t)i + 1) * l->o.seq;
    int64_t *targets64 = to->second;
    int32_t *targets = to->second;
    for (; to->output == SGT_OUTPUT_I64 && from < end; from++) targets64[from] = SGT_IGNORED;
    for (; from < end; from++) targets[from] = SGT_IGNORED;
}

/* Find where documents begin in the windows of the current batch. */
static void find_starts(const sgt_loader *l, sgt_cursor *c)
{
    const sgt_window *windows = batch_at(c, 0)->pieces;
    uint32_t count = 0, n = local_batch(l);
    for (uint32_t i = 0; i < n; i++) {
        c->starts_first[i] = count;
        count += sgt_documents_within(&l->documents, &windows[i], c->tokens[i],
                                      sgt_set_eot(&l->set, windows[i].shard), c->starts + count);
    }
    c->starts_first[n] = count;
}

/* Called once the rows are written, while their tokens are in the caches: in a shard without an
 * .idx file, the tokens themselves mark documents. Gathered rows were verified, and have their
 * starts, when they were gathered. */
static int finish_windows(const sgt_loader *l, sgt_cursor *c, sgt_error *err)
{
    if (c->gathered) return SGT_OK;
    if (c->starts) find_starts(l, c);
    return verify_tokens(l, c, batch_at(c, 0)->pieces, local_batch(l), err);
}

/* Return the bytes of a row in one array of an output. */
static size_t row_bytes(const sgt_loader *l, sgt_output o)
{
    return ((size_t)l->o.seq + !sgt_output_pairs(o)) * sgt_output_bytes(o);
}

int sgt_loader_write(const sgt_loader *l, sgt_cursor *c, uint64_t index, const sgt_batch_arrays *to,
                     sgt_error *err)
{
    sgt_rows_write *write = l->rows->write[to->output];
    size_t bytes = row_bytes(l, to->output), ids = (size_t)l->o.seq + !to->second;
    char *first = to->first, *second = to->second;
    int rc = fetch_batch(l, c, index, err);
    if (rc < 0) return rc;
    for (uint32_t i = 0, n = local_batch(l); i < n; i++, first += bytes) {
        if (l->rows != &sgt_rows_plain) prefetch_group(c->tokens, NULL, i, n, (size_t)l->o.seq + 1);
        if (write(first, second, c->tokens[i], ids) >= l->set.vocab)
            return fail_id(l, &batch_at(c, 0)->pieces[i], c->tokens[i], err);
        if (second) {
            ignore_padding(l, c, i, to);
            second += bytes;
        }
    }
    return finish_windows(l, c, err);
}

/* Advance the pointers to the arrays of the next batch. */
static void advance(const sgt_loader *l, sgt_batch_arrays *to)
{
    size_t bytes = local_batch(l) * row_bytes(l, to->output);
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

/* ---- documents within rows ---- */

const sgt_row_documents *sgt_cursor_documents(const sgt_cursor *c)
{
    return c->starts ? &c->begun : NULL;
}

/* Fill in begins, positions and ids for the inputs from ... to - 1, which belong to one document; or
 * for one input of padding. */
static void expand(uint32_t from, uint32_t to, int32_t id, int32_t *begins, int32_t *positions,
                   int32_t *ids)
{
    for (uint32_t t = from; begins && t < to; t++) begins[t] = (int32_t)from;
    for (uint32_t t = from; positions && t < to; t++) positions[t] = (int32_t)(t - from);
    for (uint32_t t = from; ids && t < to; t++) ids[t] = id;
}

void sgt_row_documents_expand(const sgt_row_documents *d, const uint32_t *lengths, uint32_t rows,
                              uint32_t seq, int32_t *begins, int32_t *positions, int32_t *ids)
{
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t own = lengths && lengths[r] < seq ? lengths[r] : seq, from = 0;
        int32_t id = 0;
        for (uint32_t k = d->first[r]; k < d->first[r + 1] && d->starts[k] < own; k++) {
            if (d->starts[k] == 0) continue;
            expand(from, d->starts[k], id++, begins, positions, ids);
            from = d->starts[k];
        }
        expand(from, own, id, begins, positions, ids);
        for (uint32_t t = own; t < seq; t++) expand(t, t + 1, -1, begins, positions, ids);
        if (begins) begins += seq;
        if (positions) positions += seq;
        if (ids) ids += seq;
    }
}
