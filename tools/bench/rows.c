/* rows.c: sources of rows: random tokens, a loader, and the loader's rows encoded from text. */
#include "tools/bench/rows.h"

#include <stdlib.h>

#include "loader/base/philox.h"
#include "tokenize/sgt_tokenize.h"
#include "train/data/feed.h"

enum { RANDOM_BATCHES = 8 }; /* number of different batches, which are given out in turn */

struct step_rows {
    const sgt_loader *loader; /* NULL: random tokens */
    int now;                  /* of a loader: make each batch when it is asked for */
    uint32_t vocab_size;
    size_t batch, row; /* rows per batch; tokens per row */
    const sgt_backend *backend;
    sgt_feed *feed; /* a loader's batches */
    /* (slots, batch, row): memory for random and for encoded rows. The backend may still read the
     * batches before the last one. */
    uint16_t *tokens;
    size_t slots;
    uint64_t given; /* number of batches given out so far */
    /* of text: the vocabulary (NULL for other rows); the text of each row; its ids before they are
     * cut */
    sgt_vocab *vocab;
    sgt_encoder *encoder;
    char **texts; /* (count) */
    size_t *bytes;
    uint64_t count;
    uint16_t *ids;
};

static int open_tokens(step_rows *r, size_t slots, sgt_error *err)
{
    const sgt_backend *b = r->backend;
    size_t bytes = slots * r->batch * r->row * sizeof *r->tokens;
    r->slots = slots;
    r->given = 0;
    r->tokens = b->pinned_alloc ? b->pinned_alloc(b->pinned_ctx, bytes) : malloc(bytes);
    return r->tokens ? SGT_OK
                     : sgt_fail(err, SGT_ENOMEM, "out of memory for %zu bytes of rows", bytes);
}

static int open_random(step_rows *r, sgt_error *err)
{
    int rc = open_tokens(r, RANDOM_BATCHES, err);
    for (size_t i = 0; rc == SGT_OK && i < r->slots * r->batch * r->row; i++)
        r->tokens[i] = (uint16_t)(sgt_philox(1, i, 0).x[0] % r->vocab_size);
    return rc;
}

static int open_loader(step_rows *r, uint64_t count, sgt_error *err)
{
    const sgt_backend *b = r->backend;
    sgt_feed_options o = {.count = count,
                          .threads = 1,
                          .now = r->now,
                          .hold = b->hold,
                          .alloc = b->pinned_alloc,
                          .free = b->pinned_free,
                          .ctx = b->pinned_ctx};
    return sgt_feed_open(&r->feed, r->loader, &o, err);
}

/* ---- text ---- */

/* Decode batch k of the loader into the texts of its rows; `tokens` is memory for it. */
static int decode_batch(step_rows *r, sgt_cursor *c, uint64_t k, uint16_t *tokens, sgt_error *err)
{
    int rc = sgt_loader_batch(r->loader, c, k, tokens, err);
    for (size_t b = 0; b < r->batch && rc == SGT_OK; b++)
        rc = sgt_decode(r->vocab, tokens + b * r->row, r->row, &r->texts[k * r->batch + b],
                        &r->bytes[k * r->batch + b], err);
    return rc;
}

static int open_text(step_rows *r, uint64_t batches, sgt_error *err)
{
    sgt_cursor *c = NULL;
    size_t longest = 0;
    int rc = open_tokens(r, r->backend->hold + 1, err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&r->encoder, r->vocab, err);
    if (rc < 0) return rc;
    r->count = batches * r->batch;
    r->texts = calloc(r->count, sizeof *r->texts);
    r->bytes = calloc(r->count, sizeof *r->bytes);
    rc = r->texts && r->bytes ? sgt_cursor_open(&c, r->loader, err)
                              : sgt_fail(err, SGT_ENOMEM, "out of memory for the text of the rows");
    for (uint64_t k = 0; k < batches && rc == SGT_OK; k++)
        rc = decode_batch(r, c, k, r->tokens, err);
    for (uint64_t i = 0; i < r->count && rc == SGT_OK; i++)
        if (r->bytes[i] > longest) longest = r->bytes[i];
    /* there are never more ids than bytes */
    if (rc == SGT_OK && !(r->ids = malloc((longest + 1) * sizeof *r->ids)))
        rc = sgt_fail(err, SGT_ENOMEM, "out of memory for the text of the rows");
    sgt_cursor_close(c);
    return rc;
}

/* Encode the text of one row after the other, cut its ids to the row's length or fill it up with
 * end-of-text ids, and copy them one by one. */
static void encode_batch(const step_rows *r, uint16_t *to)
{
    for (size_t b = 0; b < r->batch; b++) {
        uint64_t sample = r->given * r->batch + b;
        size_t n = sgt_encode(r->encoder, r->texts[sample], r->bytes[sample], r->ids);
        for (size_t t = 0; t < r->row; t++)
            to[b * r->row + t] = t < n ? r->ids[t] : (uint16_t)sgt_vocab_eot(r->vocab);
    }
}

/* ---- all sources ---- */

int bench_rows_random(step_rows **out, uint32_t vocab, uint32_t batch, uint32_t seq, sgt_error *err)
{
    step_rows *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, NULL);
    *r = (step_rows){.vocab_size = vocab, .batch = batch, .row = (size_t)seq + 1};
    *out = r;
    return SGT_OK;
}

int bench_rows_loader(step_rows **out, const sgt_loader *l, int now, sgt_error *err)
{
    sgt_loader_info info;
    sgt_loader_get_info(l, &info);
    int rc = bench_rows_random(out, info.vocab, info.local_batch, info.seq, err);
    if (rc < 0) return rc;
    (*out)->loader = l;
    (*out)->now = now;
    return SGT_OK;
}

int bench_rows_text(step_rows **out, const sgt_loader *l, sgt_error *err)
{
    step_rows *r = NULL;
    int rc = bench_rows_loader(&r, l, 1, err);
    if (rc == SGT_OK) rc = sgt_vocab_gpt2(&r->vocab, err);
    if (rc == SGT_OK && r->vocab_size != sgt_vocab_size(r->vocab))
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "the data has %u ids, and is not GPT-2's tokens",
                      r->vocab_size);
    if (rc < 0) bench_rows_free(r);
    else *out = r;
    return rc;
}

int bench_rows_open(step_rows *r, const sgt_backend *b, uint64_t count, sgt_error *err)
{
    r->backend = b;
    if (r->vocab) return open_text(r, count, err);
    return r->loader ? open_loader(r, count, err) : open_random(r, err);
}

int bench_rows_next(step_rows *r, const uint16_t **tokens, sgt_error *err)
{
    sgt_batch next;
    if (r->feed) {
        int rc = sgt_feed_next(r->feed, &next, err);
        if (rc == SGT_OK) *tokens = next.tokens;
        return rc;
    }
    uint16_t *to = r->tokens + r->given % r->slots * r->batch * r->row;
    if (r->vocab) encode_batch(r, to);
    r->given++;
    *tokens = to;
    return SGT_OK;
}

void bench_rows_close(step_rows *r)
{
    sgt_feed_close(r->feed);
    if (r->tokens && r->backend->pinned_alloc)
        r->backend->pinned_free(r->backend->pinned_ctx, r->tokens);
    else free(r->tokens);
    for (uint64_t i = 0; r->texts && i < r->count; i++) free(r->texts[i]);
    free(r->texts);
    free(r->bytes);
    free(r->ids);
    sgt_encoder_free(r->encoder);
    r->feed = NULL;
    r->tokens = r->ids = NULL;
    r->texts = NULL;
    r->bytes = NULL;
    r->encoder = NULL;
}

void bench_rows_free(step_rows *r)
{
    if (!r) return;
    sgt_vocab_free(r->vocab);
    free(r);
}
