/* pipeline.c: make one set in one process. Threads take units of text from the feed in turn, encode
 * them in parallel, and leave them in a ring. The calling thread takes them out in the order of the
 * text and writes them. So the output does not depend on the threads' speed, and the ring bounds
 * the memory. */
#include "tokenize/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/thread.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/out.h"
#include "tokenize/out/record.h"
#include "tokenize/vocab/vocab.h"

/* bytes of a unit's memory kept for reuse if there are Parquet inputs: enough for a usual page */
#define KEEP ((size_t)1 << 20)
#define SHARD_TOKENS 100000000u

typedef struct place {
    sgt_unit unit;
    /* 1: a thread uses this place for a unit that is not yet written; guarded by `lock`, like
     * `done` */
    int taken;
    int done; /* 1: its unit was encoded, or has failed, and is not yet written */
    int rc;   /* 0; 1: the feed has ended; < 0: an error */
    sgt_error err;
} place;

typedef struct pipeline {
    const sgt_tokenize_options *o;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    size_t piece;
    sgt_text_feed *feed;

    pthread_mutex_t feed_lock; /* guards the feed and the tickets that number its units */
    uint64_t ticket;
    int feed_ended;

    pthread_mutex_t lock; /* guards places[].taken and .done */
    pthread_cond_t changed;
    place *places; /* unit number t is in places[t % place_count] */
    size_t place_count;
    /* requests that the threads end; set under `lock`, because threads wait on `changed` */
    sgt_stop cancelled;

    pthread_t *threads;
    sgt_encoder **encoders;
    size_t thread_count, running;
} pipeline;

typedef struct worker {
    pipeline *p;
    sgt_encoder *encoder;
} worker;

/* ---- the threads that encode ---- */

/* Wait until the place of unit number t is free, and take it. Return NULL if the run is
 * cancelled. */
static place *take_place(pipeline *p, uint64_t t)
{
    place *at = &p->places[t % p->place_count];
    pthread_mutex_lock(&p->lock);
    while (at->taken && !sgt_stopped(&p->cancelled)) pthread_cond_wait(&p->changed, &p->lock);
    int over = sgt_stopped(&p->cancelled);
    at->taken = 1;
    pthread_mutex_unlock(&p->lock);
    return over ? NULL : at;
}

static void *encode_units(void *arg)
{
    worker *w = arg;
    pipeline *p = w->p;
    for (;;) {
        /* read the next unit of the feed into its place */
        pthread_mutex_lock(&p->feed_lock);
        place *at = p->feed_ended ? NULL : take_place(p, p->ticket);
        if (at) {
            at->rc = sgt_text_feed_next(p->feed, &at->unit, &at->err);
            p->feed_ended = at->rc != 0;
            p->ticket++;
        }
        pthread_mutex_unlock(&p->feed_lock);
        if (!at) break;
        if (!at->rc)
            at->rc = sgt_unit_encode(&at->unit, w->encoder, p->vocab, p->corpus, p->o, &at->err);
        pthread_mutex_lock(&p->lock);
        at->done = 1;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
    }
    free(w);
    return NULL;
}

static int start_threads(pipeline *p, size_t threads, sgt_error *err)
{
    int rc = SGT_OK, failed = 0;
    p->places = calloc(p->place_count, sizeof *p->places);
    p->threads = calloc(threads, sizeof *p->threads);
    p->encoders = calloc(threads, sizeof *p->encoders);
    if (!p->places || !p->threads || !p->encoders) return sgt_fail_memory(err, "threads");
    for (size_t i = 0; i < p->place_count && !rc; i++) rc = sgt_unit_new(&p->places[i].unit, err);
    for (; p->thread_count < threads && !rc; p->thread_count++)
        rc = sgt_encoder_new(&p->encoders[p->thread_count], p->vocab, err);
    for (; p->running < p->thread_count && !rc; p->running++) {
        worker *w = malloc(sizeof *w);
        if (!w) return sgt_fail_memory(err, "threads");
        *w = (worker){p, p->encoders[p->running]};
        if ((failed = sgt_thread_start(&p->threads[p->running], encode_units, w)) == 0) continue;
        free(w);
        break; /* the system allows no more threads: go on with those that run */
    }
    if (!rc && !p->running) {
        errno = failed;
        rc = sgt_fail_errno(err, "cannot start a thread");
    }
    return rc;
}

static void stop_threads(pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    sgt_stop_request(&p->cancelled);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->running; i++) pthread_join(p->threads[i], NULL);
    for (size_t i = 0; p->encoders && i < p->thread_count; i++) sgt_encoder_free(p->encoders[i]);
    for (size_t i = 0; p->places && i < p->place_count; i++) sgt_unit_free(&p->places[i].unit);
    free(p->threads);
    free(p->encoders);
    free(p->places);
}

/* ---- the thread that writes ---- */

/* Wait until unit number t is encoded. Return NULL if asked to stop. */
static place *encoded_unit(pipeline *p, uint64_t t)
{
    place *at = &p->places[t % p->place_count];
    pthread_mutex_lock(&p->lock);
    while (!at->done && !sgt_stopped(p->o->stop)) sgt_wait_briefly(&p->changed, &p->lock);
    int done = at->done;
    pthread_mutex_unlock(&p->lock);
    return done && !sgt_stopped(p->o->stop) ? at : NULL;
}

static void set_free(pipeline *p, place *at)
{
    sgt_unit_trim(&at->unit, p->corpus->row_files && p->piece < KEEP ? KEEP : p->piece);
    pthread_mutex_lock(&p->lock);
    at->taken = at->done = 0;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static int write_units(pipeline *p, sgt_record *r, sgt_error *err)
{
    const sgt_tokenize_options *o = p->o;
    for (uint64_t t = 0;; t++) {
        place *at = encoded_unit(p, t);
        if (!at) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        int rc = at->rc;
        if (rc == 1) return SGT_OK;
        if (rc < 0 && err) *err = at->err;
        if (!rc) rc = sgt_record_unit(r, &at->unit, err);
        if (rc < 0) return rc;
        set_free(p, at);
        if (o->progress)
            o->progress(o->progress_ctx, sgt_record_read(r),
                        p->corpus->stream ? 0 : p->corpus->bytes, sgt_record_tokens(r));
    }
}

/* Return the number of threads to start: those asked for, but no more than there are units. */
static size_t useful_threads(const pipeline *p)
{
    size_t want = p->o->threads ? (size_t)p->o->threads : (size_t)sgt_cpu_count();
    uint64_t units = p->corpus->bytes / p->piece + p->corpus->count / SGT_UNIT_PARTS + 1;
    return !p->corpus->unsized && units < want ? (size_t)units : want;
}

/* Tokenize from the record's position to the end of the corpus. */
static int run(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
               const sgt_checkpoint *from, sgt_record *r, sgt_error *err)
{
    pipeline p = {.o = o, .corpus = c, .vocab = v, .piece = sgt_text_feed_piece()};
    size_t threads = useful_threads(&p);
    sgt_text_feed_options f = {
        .corpus = c,
        .joins = sgt_vocab_joins(v),
        .piece = p.piece,
        .field = o->field,
        .literal = {v->eot_text, o->special_eot},
        .vocab = v,
        .replaced = o->invalid_utf8 == SGT_INVALID_REPLACE,
        .rule = sgt_vocab_known_rule(v),
        .whole = sgt_vocab_pattern(v) != NULL,
        .normalized = sgt_vocab_normalizes(v),
        .val_fraction = o->val_fraction,
        .stop = o->stop,
        .cancel = &p.cancelled,
        .threads = threads,
        .notice = o->notice,
        .from = {from->file, from->offset, from->hashed, from->hash, from->block, from->split}};
    int rc = sgt_text_feed_open(&p.feed, &f, err);
    if (rc < 0) return rc;
    /* one place for the unit being written, and two per thread: a unit being encoded and one
     * ready */
    p.place_count = 2 * threads + 1;
    pthread_cond_init(&p.changed, NULL);
    pthread_mutex_init(&p.lock, NULL);
    pthread_mutex_init(&p.feed_lock, NULL);
    if ((rc = start_threads(&p, threads, err)) == 0) rc = write_units(&p, r, err);
    stop_threads(&p);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.lock);
    pthread_mutex_destroy(&p.feed_lock);
    sgt_text_feed_close(p.feed);
    return rc;
}

/* ---- the set ---- */

uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o)
{
    return o->shard_tokens ? o->shard_tokens : SHARD_TOKENS;
}

void sgt_pipeline_result(sgt_tokenize_result *r, const sgt_manifest *m)
{
    r->tokens = m->tokens;
    r->documents = m->documents;
    r->bytes = m->bytes;
    r->files = m->files;
    r->invalid_utf8 = m->invalid_utf8;
    r->bad_lines = m->bad_lines;
    r->duplicates = m->duplicates;
    r->lone_surrogates = m->lone_surrogates;
    r->eot_literals = m->eot_literals;
    r->skipped = m->skipped;
    r->shards = m->count;
    for (size_t i = 0; i < m->count; i++)
        *(strcmp(m->shards[i].split, "val") ? &r->train_tokens : &r->val_tokens) +=
            m->shards[i].tokens;
}

int sgt_pipeline_check(const sgt_manifest *m, const sgt_corpus *c, const sgt_tokenize_options *o,
                       sgt_error *err)
{
    sgt_tokenize_result r = {0};
    if (m->bad_lines && !m->documents)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: nothing is left to tokenize: all %" PRIu64
                        " lines or rows are bad (without --skip-bad, the first one is named)",
                        c->files[0].path, m->bad_lines);
    sgt_pipeline_result(&r, m);
    if (r.train_tokens || !r.documents || o->val_fraction <= 0 || o->val_fraction >= 1)
        return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "--split %.15g%%: all documents (%" PRIu64
                    ") fall into the validation split, and none is left for training (try a "
                    "smaller part, with --force)",
                    100 * o->val_fraction, r.documents);
}

int sgt_pipeline_publish(sgt_out *out, sgt_manifest *m, const sgt_vocab *v, const char *options,
                         sgt_tokenize_result *result, sgt_error *err)
{
    m->options = (char *)options; /* only read; the caller frees it */
    snprintf(m->vocabulary, sizeof m->vocabulary, "%s", sgt_vocab_name(v));
    m->fingerprint = sgt_vocab_fingerprint(v);
    m->vocab = sgt_vocab_size(v);
    m->eot = sgt_vocab_eot(v);
    int rc = sgt_out_publish(out, m, v, err);
    *result = (sgt_tokenize_result){.bytes_read = result->bytes_read};
    sgt_pipeline_result(result, m);
    m->options = NULL;
    return rc;
}

/* Complete an OUT that has been claimed. */
static int fill_out(sgt_out *out, const sgt_tokenize_options *o, const sgt_corpus *c,
                    const sgt_vocab *v, const char *options, sgt_tokenize_result *result,
                    sgt_error *err)
{
    const sgt_checkpoint from = out->journal->now;
    sgt_manifest m = {0};
    sgt_record *r;
    int rc = sgt_record_open(&r, out, c, v, o, err);
    if (rc < 0) return rc;
    rc = run(o, c, v, &from, r, err);
    if (rc == SGT_ESTOPPED && sgt_record_save(r, err) < 0) rc = err ? err->code : SGT_EIO;
    result->bytes_read = sgt_record_bytes(r) - from.all_bytes;
    if (!rc) rc = sgt_record_finish(r, &m, err);
    if (!rc && sgt_ranks_size(o->ranks) < 2) rc = sgt_pipeline_check(&m, c, o, err);
    if (!rc) rc = sgt_pipeline_publish(out, &m, v, options, result, err);
    sgt_manifest_free(&m);
    sgt_record_close(r);
    return rc;
}

int sgt_pipeline_reread(sgt_tokenize_result *r, const char *out, sgt_error *err)
{
    sgt_manifest m;
    int rc = sgt_manifest_read(&m, out, err);
    if (rc < 0) return rc;
    *r = (sgt_tokenize_result){.bytes_read = r->bytes_read};
    sgt_pipeline_result(r, &m);
    sgt_manifest_free(&m);
    return SGT_OK;
}

int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                      const char *options, sgt_tokenize_result *result, sgt_error *err)
{
    sgt_out out;
    sgt_out_request r = {o->out, c, v, options, NULL, o->force, o->notice, o->stop, o->field};
    int rc = sgt_out_claim(&out, &r, err);
    if (rc == 1) {
        rc = sgt_pipeline_reread(result, o->out, err);
        result->already_done = rc == SGT_OK;
    } else if (rc == 0) {
        rc = fill_out(&out, o, c, v, options, result, err);
        /* Keep complete shards and the state of a clean stop. Remove anything less. */
        int keep = rc == 0 || !sgt_journal_empty(out.journal) || (rc == SGT_ESTOPPED && !c->stream);
        sgt_out_release(&out, keep);
    }
    return rc;
}
