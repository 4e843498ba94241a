/* feed.c: returns batches of rows. Either threads prepare batches ahead (a loader's stream), or the
 * caller's thread makes each batch when the caller requests it (a loader's cursor). */
#include "train/data/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/handle.h"

/* ---- examples: prompts with completions ---- */

int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err)
{
    uint64_t filled = 0, cut = 0, T = rows->seq;
    e->rows = *rows;
    for (uint64_t i = 0; i < e->count; i++) {
        filled += e->learnt[i] > T;
        cut += e->learnt[i] <= T && e->starts[i + 1] - e->starts[i] > T + 1;
    }
    if (filled == e->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "--seq-len %" PRIu64 ": every prompt of %s fills its row, so there is "
                        "nothing to learn (use a longer --seq-len)",
                        T, name);
    if (filled)
        sgt_say(notice,
                "%s: %" PRIu64 " of %" PRIu64 " prompts fill their row of %" PRIu64
                " tokens, so nothing is learnt from them (use a longer --seq-len)",
                name, filled, e->count, T);
    if (cut)
        sgt_say(notice,
                "%s: %" PRIu64 " of %" PRIu64 " completions are cut to fit a row of %" PRIu64
                " tokens (use a longer --seq-len)",
                name, cut, e->count, T);
    return sgt_sampler_init(&e->order, SGT_SAMPLING_DOCUMENTS, rows->seed, rows->seq, &e->count, 1,
                            err);
}

static void make_row(const sgt_examples *e, uint64_t i, int32_t *inputs, int32_t *targets)
{
    uint64_t T = e->rows.seq, n = e->starts[i + 1] - e->starts[i];
    const int32_t *from = e->tokens + e->starts[i];
    for (uint64_t t = 0; t < T; t++) {
        inputs[t] = t < n ? from[t] : (int32_t)e->rows.pad;
        targets[t] = t + 1 >= e->learnt[i] && t + 1 < n ? from[t + 1] : SGT_IGNORED;
    }
}

void sgt_examples_batch(const sgt_examples *e, uint64_t index, int32_t *inputs, int32_t *targets)
{
    const sgt_example_rows *r = &e->rows;
    sgt_sampler_memo memo = {0};
    uint64_t row = index * r->batch + r->rank;
    for (size_t i = 0; i < r->batch / r->ranks; i++, row += r->ranks)
        make_row(e, sgt_sampler_window(&e->order, &memo, row).offset, inputs + i * r->seq,
                 targets + i * r->seq);
}

void sgt_examples_free(sgt_examples *e)
{
    sgt_sampler_free(&e->order);
    free(e->tokens);
    free(e->starts);
    free(e->learnt);
    free(e->tokenizer);
    *e = (sgt_examples){0};
}

/* ---- the feed ---- */

/* Times of one thread that prepares batches. track: the thread's track in the trace; from: time at
 * which the thread began to prepare its current batch. */
typedef struct maker {
    int track;
    uint64_t from;
} maker;

struct sgt_feed {
    const sgt_loader *l;
    size_t rows, T;
    sgt_feed_options o;
    uint64_t given; /* number of batches returned so far */
    sgt_stream *stream;
    /* Batches, oldest first, that the caller may still be reading: those that sgt_feed_next
     * returned in its last o.hold + 1 calls. */
    const sgt_loader_batch *held[SGT_FEED_HOLD + 1];
    unsigned holding;
    /* array with one element per thread that prepares batches; NULL if there is no trace */
    maker *makers;
    sgt_cursor *cursor; /* used if there is no stream */
    /* buffers for batches, used in rotation; NULL: this buffer is not needed */
    void *ring[SGT_FEED_AHEAD + SGT_FEED_HOLD];
};

static void *get_memory(const sgt_feed *f, size_t bytes)
{
    return f->o.alloc ? f->o.alloc(f->o.ctx, bytes) : malloc(bytes);
}

static void free_memory(const sgt_feed *f, void *p)
{
    if (!f->o.free) free(p);
    else if (p) f->o.free(f->o.ctx, p);
}

static int open_ring(sgt_feed *f, unsigned n, sgt_error *err)
{
    size_t bytes =
        f->l ? sgt_stream_bytes(f->l, SGT_OUTPUT_I32) : 2 * f->rows * f->T * sizeof(int32_t);
    for (unsigned i = 0; i < n; i++)
        if (!(f->ring[i] = get_memory(f, bytes)))
            return sgt_fail(err, SGT_ENOMEM, "batch of %zu bytes: out of memory", bytes);
    return SGT_OK;
}

/* Open a feed that has no threads: sgt_feed_next makes each batch. */
static int open_now(sgt_feed *f, sgt_error *err)
{
    int rc = open_ring(f, f->o.hold + 1, err);
    return rc < 0 || f->o.examples ? rc : sgt_cursor_open(&f->cursor, f->l, err);
}

static void trace_making(void *ctx, uint32_t thread, uint64_t index, int done)
{
    const sgt_feed *f = ctx;
    maker *m = &f->makers[thread];
    if (!done) m->from = sgt_trace_begin(f->o.trace);
    else
        sgt_trace_end_event(f->o.trace, m->from,
                            (sgt_trace_event){.name = "make batch",
                                              .category = "data",
                                              .track = m->track,
                                              .key = "batch",
                                              .value = index});
}

static int open_makers(sgt_feed *f, sgt_error *err)
{
    char name[32];
    uint32_t threads = f->o.threads ? f->o.threads : 1;
    if (!(f->makers = calloc(threads, sizeof *f->makers))) return sgt_fail_memory(err, "feed");
    for (uint32_t i = 0; i < threads; i++) {
        snprintf(name, sizeof name, "loader %u", i);
        f->makers[i].track = sgt_trace_track(f->o.trace, SGT_TRACE_HOST, name);
    }
    return SGT_OK;
}

static int open_stream(sgt_feed *f, sgt_error *err)
{
    sgt_stream_options o = {.size = sizeof o,
                            .first = f->o.first,
                            .count = f->o.count,
                            .output = SGT_OUTPUT_I32,
                            .slots = SGT_FEED_AHEAD + f->o.hold,
                            .threads = f->o.threads,
                            .buffers = f->ring};
    const sgt_stream_timer timer = {.making = trace_making, .ctx = f};
    int rc = open_ring(f, o.slots, err);
    if (rc == SGT_OK && f->o.trace) rc = open_makers(f, err);
    if (rc < 0) return rc;
    return sgt_stream_open_timed(&f->stream, f->l, &o, f->o.trace ? &timer : NULL, err);
}

int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err)
{
    if (o->hold > SGT_FEED_HOLD)
        return sgt_fail(err, SGT_EUSAGE, "feed: it cannot hold %u batches", o->hold);
    sgt_feed *f = calloc(1, sizeof *f);
    if (!f) return sgt_fail_memory(err, "feed");
    f->l = l;
    f->o = *o;
    const sgt_examples *e = o->examples;
    f->rows = e ? e->rows.batch / e->rows.ranks : sgt_loader_get_info(l)->local_batch;
    f->T = e ? e->rows.seq : sgt_loader_get_info(l)->seq;
    int rc = o->now || o->cycle || e ? open_now(f, err) : open_stream(f, err);
    if (rc < 0) {
        sgt_feed_close(f);
        return rc;
    }
    *out = f;
    return SGT_OK;
}

void sgt_feed_close(sgt_feed *f)
{
    if (!f) return;
    sgt_stream_close(f->stream);
    free(f->makers);
    sgt_cursor_close(f->cursor);
    for (size_t i = 0; i < sizeof f->ring / sizeof *f->ring; i++) free_memory(f, f->ring[i]);
    free(f);
}

/* Release the oldest batch in `held` if `held` has more than o.hold batches, the number that must
 * stay valid. */
static void release_oldest(sgt_feed *f)
{
    if (f->holding <= f->o.hold) return;
    sgt_stream_release(f->stream, f->held[0], NULL);
    memmove(f->held, f->held + 1, --f->holding * sizeof *f->held);
}

/* Make the next batch in the memory at `to`, in the caller's thread. Return 0, 1 if there are no
 * more batches, or a negative SGT_E*. */
static int make_batch(sgt_feed *f, int32_t *to, sgt_error *err)
{
    const size_t ids = f->rows * f->T;
    uint64_t index = f->o.cycle ? f->given % f->o.cycle : f->o.first + f->given;
    int rc = SGT_OK;
    if (f->given == f->o.count) return 1;
    if (f->o.examples) sgt_examples_batch(f->o.examples, index, to, to + ids);
    else
        rc = sgt_loader_read(f->l, f->cursor, index, 1, SGT_OUTPUT_I32, to, 2 * ids * sizeof *to,
                             err);
    f->given += rc == SGT_OK;
    return rc;
}

int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err)
{
    const sgt_loader_batch *b = f->cursor ? sgt_cursor_batch(f->cursor) : NULL;
    int32_t *to = f->ring[f->given % (f->o.hold + 1)];
    if (f->stream) release_oldest(f);
    int rc = f->stream ? sgt_stream_next(f->stream, &b, err) : make_batch(f, to, err);
    if (rc != 0) return rc;
    if (f->stream) f->held[f->holding++] = b;
    *rows = (sgt_batch){.inputs = b ? b->inputs : to,
                        .targets = b ? b->targets : to + f->rows * f->T,
                        .starts = b ? b->begins : NULL};
    return SGT_OK;
}

void sgt_feed_again(sgt_feed *f) { f->given = 0; }
