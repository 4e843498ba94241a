/* rows.c: sources of rows: random tokens, a loader, and the loader's rows encoded from text. */
#include "tools/bench/rows.h"

#include <stdlib.h>
#include <string.h>

#include "loader/base/philox.h"
#include "train/data/feed.h"
#include "tokenize/sgt_tokenize.h"

/* ---- random tokens ---- */

enum { BATCHES = 8 }; /* number of different batches, which are given out in turn */

typedef struct random_rows {
    step_rows base;
    uint32_t vocab, batch, seq;
    const sgt_backend *backend;
    uint16_t *tokens; /* (BATCHES, batch, seq + 1) */
    uint64_t given;
} random_rows;

static int open_random(step_rows *rows, const sgt_backend *b, uint64_t count, sgt_error *err)
{
    random_rows *r = (random_rows *)rows;
    size_t n = (size_t)BATCHES * r->batch * ((size_t)r->seq + 1), bytes = n * sizeof *r->tokens;
    (void)count;
    r->given = 0;
    r->backend = b;
    r->tokens = b->pinned_alloc ? b->pinned_alloc(b->pinned_ctx, bytes) : malloc(bytes);
    if (!r->tokens) return sgt_fail(err, SGT_ENOMEM, "out of memory for %zu bytes of rows", bytes);
    for (size_t i = 0; i < n; i++) r->tokens[i] = (uint16_t)(sgt_philox(1, i, 0).x[0] % r->vocab);
    return SGT_OK;
}

static int next_random(step_rows *rows, const uint16_t **tokens, sgt_error *err)
{
    random_rows *r = (random_rows *)rows;
    (void)err;
    *tokens = r->tokens + r->given++ % BATCHES * r->batch * ((size_t)r->seq + 1);
    return SGT_OK;
}

static void close_random(step_rows *rows)
{
    random_rows *r = (random_rows *)rows;
    if (r->tokens && r->backend->pinned_alloc)
        r->backend->pinned_free(r->backend->pinned_ctx, r->tokens);
    else free(r->tokens);
    r->tokens = NULL;
}

static void free_plain(step_rows *rows) { free(rows); }

int bench_rows_random(step_rows **out, uint32_t vocab, uint32_t batch, uint32_t seq, sgt_error *err)
{
    random_rows *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, NULL);
    r->base = (step_rows){open_random, next_random, close_random, free_plain};
    r->vocab = vocab;
    r->batch = batch;
    r->seq = seq;
    *out = &r->base;
    return SGT_OK;
}

/* ---- a loader, as in training ---- */

typedef struct loader_rows {
    step_rows base;
    const sgt_loader *loader;
    int now;
    sgt_feed *feed;
} loader_rows;

static int open_loader(step_rows *rows, const sgt_backend *b, uint64_t count, sgt_error *err)
{
    loader_rows *r = (loader_rows *)rows;
    sgt_feed_options o = {.count = count,
                          .threads = 1,
                          .now = r->now,
                          .hold = b->hold,
                          .alloc = b->pinned_alloc,
                          .free = b->pinned_free,
                          .ctx = b->pinned_ctx};
    return sgt_feed_open(&r->feed, r->loader, &o, err);
}

static int next_loader(step_rows *rows, const uint16_t **tokens, sgt_error *err)
{
    sgt_batch next;
    int rc = sgt_feed_next(((loader_rows *)rows)->feed, &next, err);
    if (rc == SGT_OK) *tokens = next.tokens;
    return rc;
}

static void close_loader(step_rows *rows)
{
    loader_rows *r = (loader_rows *)rows;
    sgt_feed_close(r->feed);
    r->feed = NULL;
}

int bench_rows_loader(step_rows **out, const sgt_loader *l, int now, sgt_error *err)
{
    loader_rows *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, NULL);
    r->base = (step_rows){open_loader, next_loader, close_loader, free_plain};
    r->loader = l;
    r->now = now;
    *out = &r->base;
    return SGT_OK;
}

/* ---- the loader's rows, encoded from text ---- */

typedef struct text_rows {
    step_rows base;
    const sgt_loader *loader;
    size_t batch, row; /* rows per batch; tokens per row */
    sgt_vocab *vocab;
    sgt_encoder *encoder;
    char **texts; /* (count): text of each row */
    size_t *bytes;
    uint64_t count; /* number of texts: micro-steps x batch */
    uint64_t given; /* number of batches given out so far */
    unsigned hold;
    const sgt_backend *backend;
    /* memory for hold + 1 batches: the backend may still read the earlier ones */
    uint16_t *ring[SGT_FEED_HOLD + 1];
    uint16_t *ids; /* ids of one text, before they are cut */
} text_rows;

static int decode_batch(text_rows *r, sgt_cursor *c, uint64_t k, uint16_t *tokens, sgt_error *err)
{
    int rc = sgt_loader_batch(r->loader, c, k, tokens, err);
    for (size_t b = 0; b < r->batch && rc == SGT_OK; b++)
        rc = sgt_decode(r->vocab, tokens + b * r->row, r->row, &r->texts[k * r->batch + b],
                        &r->bytes[k * r->batch + b], err);
    return rc;
}

static int decode_all(text_rows *r, uint64_t batches, sgt_error *err)
{
    sgt_cursor *c = NULL;
    size_t longest = 0;
    uint16_t *tokens = malloc(r->batch * r->row * sizeof *tokens);
    r->count = batches * r->batch;
    r->texts = calloc(r->count, sizeof *r->texts);
    r->bytes = calloc(r->count, sizeof *r->bytes);
    int rc = tokens && r->texts && r->bytes
                 ? sgt_cursor_open(&c, r->loader, err)
                 : sgt_fail(err, SGT_ENOMEM, "out of memory for the text of the rows");
    for (uint64_t k = 0; k < batches && rc == SGT_OK; k++) rc = decode_batch(r, c, k, tokens, err);
    for (uint64_t i = 0; i < r->count && rc == SGT_OK; i++)
        if (r->bytes[i] > longest) longest = r->bytes[i];
    /* there are never more ids than bytes */
    if (rc == SGT_OK && !(r->ids = malloc((longest + 1) * sizeof *r->ids)))
        rc = sgt_fail(err, SGT_ENOMEM, "out of memory for the text of the rows");
    sgt_cursor_close(c);
    free(tokens);
    return rc;
}

static int open_text(step_rows *rows, const sgt_backend *b, uint64_t count, sgt_error *err)
{
    text_rows *r = (text_rows *)rows;
    size_t bytes = r->batch * r->row * sizeof(uint16_t);
    int rc = sgt_encoder_new(&r->encoder, r->vocab, err);
    if (rc == SGT_OK) rc = decode_all(r, count, err);
    r->backend = b;
    r->hold = b->hold;
    r->given = 0;
    for (unsigned i = 0; i <= r->hold && rc == SGT_OK; i++) {
        r->ring[i] = b->pinned_alloc ? b->pinned_alloc(b->pinned_ctx, bytes) : malloc(bytes);
        if (!r->ring[i])
            rc = sgt_fail(err, SGT_ENOMEM, "out of memory for %zu bytes of rows", bytes);
    }
    return rc;
}

/* Encode the text of one row after the other, cut its ids to the row's length or fill it up with
 * end-of-text ids, and copy them one by one. */
static int next_text(step_rows *rows, const uint16_t **tokens, sgt_error *err)
{
    text_rows *r = (text_rows *)rows;
    uint16_t *to = r->ring[r->given % (r->hold + 1)];
    (void)err;
    for (size_t b = 0; b < r->batch; b++) {
        uint64_t sample = r->given * r->batch + b;
        size_t n = sgt_encode(r->encoder, r->texts[sample], r->bytes[sample], r->ids);
        for (size_t t = 0; t < r->row; t++)
            to[b * r->row + t] = t < n ? r->ids[t] : (uint16_t)sgt_vocab_eot(r->vocab);
    }
    r->given++;
    *tokens = to;
    return SGT_OK;
}

static void close_text(step_rows *rows)
{
    text_rows *r = (text_rows *)rows;
    for (unsigned i = 0; i <= SGT_FEED_HOLD; i++) {
        if (r->ring[i] && r->backend->pinned_alloc)
            r->backend->pinned_free(r->backend->pinned_ctx, r->ring[i]);
        else free(r->ring[i]);
        r->ring[i] = NULL;
    }
    for (uint64_t i = 0; r->texts && i < r->count; i++) free(r->texts[i]);
    free(r->texts);
    free(r->bytes);
    free(r->ids);
    sgt_encoder_free(r->encoder);
    r->texts = NULL;
    r->bytes = NULL;
    r->ids = NULL;
    r->encoder = NULL;
}

static void free_text(step_rows *rows)
{
    text_rows *r = (text_rows *)rows;
    sgt_vocab_free(r->vocab);
    free(r);
}

int bench_rows_text(step_rows **out, const sgt_loader *l, sgt_error *err)
{
    sgt_loader_info info;
    sgt_loader_get_info(l, &info);
    text_rows *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, NULL);
    r->base = (step_rows){open_text, next_text, close_text, free_text};
    r->loader = l;
    r->batch = info.local_batch;
    r->row = (size_t)info.seq + 1;
    int rc = sgt_vocab_gpt2(&r->vocab, err);
    if (rc == SGT_OK && info.vocab != sgt_vocab_size(r->vocab))
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "the data has %u ids, and is not GPT-2's tokens",
                      info.vocab);
    if (rc < 0) {
        free_text(&r->base);
        return rc;
    }
    *out = &r->base;
    return SGT_OK;
}
