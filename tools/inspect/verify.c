/* verify.c: verifies a whole set: all tokens against the checksums and the vocabulary, the starts
 * of documents against the tokens, and the manifest's totals against sources.jsonl. Each thread
 * reads one shard at a time, in large reads that do not fill the page cache. Each damaged shard is
 * reported in a line. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "tokenize/input/corpus.h"
#include "tools/cli/progress.h"
#include "tools/inspect/inspect.h"

#define MAX_THREADS 1024

/* ---- one shard ---- */

static int check_rising(const inspect_starts *k, uint64_t tokens, sgt_error *err)
{
    for (uint64_t i = 0; i < k->count; i++)
        if (k->at[i] >= tokens || (i && k->at[i] <= k->at[i - 1]))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": document %" PRIu64 " starts at token %" PRIu64
                            ", expected after the one before and below %" PRIu64,
                            k->path, 8 * i, i, k->at[i], tokens);
    return SGT_OK;
}

int inspect_starts_read(inspect_starts *k, const inspect_set *s, const inspect_shard *d,
                        sgt_error *err)
{
    char *text = NULL;
    size_t n = 0;
    *k = (inspect_starts){0};
    /* Megatron-LM's index was read when the set was opened */
    if (s->manifest && s->manifest->foreign) return SGT_OK;
    k->path = inspect_index_path(d->path);
    if (!k->path) return d->indexed || s->manifest ? sgt_fail_memory(err, d->path) : SGT_OK;
    if (!d->indexed && s->manifest)
        return sgt_fail(err, SGT_EFORMAT, "%s: missing, or not a whole number of 8-byte offsets",
                        k->path);
    if (!d->indexed) return SGT_OK;
    int rc = sgt_file_get(&text, &n, k->path, (size_t)(8 * d->header.tokens), err);
    if (rc < 0) return rc;
    k->at = (uint64_t *)(void *)text; /* aligned, because it comes from malloc */
    k->count = n / 8;
    if (n % 8 || k->count != d->documents)
        return sgt_fail(err, SGT_EFORMAT, "%s: %zu documents, but the manifest says %" PRIu64,
                        k->path, n / 8, d->documents);
    return check_rising(k, d->header.tokens, err);
}

void inspect_starts_free(inspect_starts *k)
{
    free(k->path);
    free(k->at);
}

int inspect_starts_check(const inspect_starts *k, uint64_t i, const inspect_shard *d, uint16_t id,
                         sgt_error *err)
{
    if (!d->header.vocab || id == d->header.eot) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: at byte %" PRIu64 ": document %" PRIu64 " starts at token %" PRIu64
                    ", which is %u, expected the end-of-text id %" PRIu32,
                    k->path, 8 * i, i, k->at[i], id, d->header.eot);
}

/* The starts of a shard's documents, which are checked against the tokens as these are read. */
typedef struct passing {
    const inspect_shard *shard;
    inspect_starts starts;
    uint64_t next;      /* index of the first start whose token has not been read */
    uint64_t *bytes;    /* grows atomically by the number of bytes read */
    XXH3_state_t *hash; /* of the tokens, if only the manifest has a checksum; else NULL */
} passing;

static int see_tokens(void *ctx, const uint16_t *ids, size_t n, uint64_t first, sgt_error *err)
{
    passing *p = ctx;
    for (; p->next < p->starts.count && p->starts.at[p->next] < first + n; p->next++) {
        int rc = inspect_starts_check(&p->starts, p->next, p->shard,
                                      ids[p->starts.at[p->next] - first], err);
        if (rc < 0) return rc;
    }
    __atomic_fetch_add(p->bytes, 2 * n, __ATOMIC_RELAXED);
    if (p->hash) XXH3_64bits_update(p->hash, ids, 2 * n);
    return SGT_OK;
}

/* Compare the tokens of a file without a header, which have been read, with the manifest. */
static int compare_checksum(const passing *p, sgt_error *err)
{
    uint64_t got = XXH3_64bits_digest(p->hash);
    if (got == p->shard->header.xxh3) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: checksum %016" PRIx64 ", but the manifest says %016" PRIx64
                    ": its tokens have changed since it was written (make it again)",
                    p->shard->path, got, p->shard->header.xxh3);
}

int inspect_shard_verify(const inspect_set *s, const inspect_shard *d, const sgt_stop *stop,
                         uint64_t *bytes, sgt_error *err)
{
    passing p = {.shard = d, .bytes = bytes};
    sgt_shard_visitor v = {see_tokens, &p};
    int rc = inspect_starts_read(&p.starts, s, d, err);
    if (!rc && s->manifest && s->manifest->foreign && d->listed) {
        if (!(p.hash = XXH3_createState())) rc = sgt_fail_memory(err, d->path);
        else XXH3_64bits_reset(p.hash);
    }
    int raw = d->header.data ? 0 : SGT_SHARD_RAW16;
    if (!rc) rc = sgt_shard_verify(d->path, raw, inspect_ids(d), &v, stop, err);
    if (!rc && p.hash) rc = compare_checksum(&p, err);
    XXH3_freeState(p.hash);
    inspect_starts_free(&p.starts);
    return rc;
}

/* ---- all shards ---- */

typedef struct work {
    inspect_set *set;
    /* request for the threads to end, after a stop or an error that is not a shard's damage */
    sgt_stop stop;
    uint64_t bytes;
    pthread_mutex_t lock; /* protects the fields below and the shards' damage */
    pthread_cond_t ended;
    size_t next, running;
    int rc;
    sgt_error err;
} work;

/* Return a shard that no thread has taken yet; NULL if there is none. */
static inspect_shard *next_shard(work *w)
{
    inspect_shard *d = NULL;
    pthread_mutex_lock(&w->lock);
    while (!d && w->next < w->set->count && !sgt_stopped(&w->stop)) {
        d = &w->set->shards[w->next++];
        if (d->damage) d = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return d;
}

static void *verify_shards(void *arg)
{
    work *w = arg;
    sgt_error err;
    for (inspect_shard *d; (d = next_shard(w));) {
        int rc = inspect_shard_verify(w->set, d, &w->stop, &w->bytes, &err);
        pthread_mutex_lock(&w->lock);
        if (rc < 0 && (rc = inspect_note_damage(w->set, d, rc, &err)) < 0 && !w->rc) {
            w->rc = rc;
            w->err = err;
            sgt_stop_request(&w->stop);
        }
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_lock(&w->lock);
    w->running--;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Show the progress, and pass on a request to stop, until all threads have ended. */
static void watch(work *w, const inspect *o)
{
    uint64_t all = 2 * w->set->tokens, done = 0;
    sgt_progress *bar = sgt_progress_new("B", SGT_PROGRESS_BYTES, o->quiet);
    pthread_mutex_lock(&w->lock);
    while (w->running) {
        sgt_wait_briefly(&w->ended, &w->lock);
        if (sgt_stopped(o->stop)) sgt_stop_request(&w->stop);
        done = __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
        sgt_progress_update(bar, done, all, 0, NULL);
    }
    pthread_mutex_unlock(&w->lock);
    sgt_progress_end(bar);
}

static int read_shards(work *w, const inspect *o, sgt_error *err)
{
    size_t threads = o->threads ? (size_t)o->threads : (size_t)sgt_cpu_count(), started = 0;
    int failed = 0;
    if (threads > w->set->count) threads = w->set->count;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    pthread_t *ids = calloc(threads + 1, sizeof *ids);
    if (!ids) return sgt_fail_memory(err, o->path);
    pthread_mutex_lock(&w->lock);
    for (; started < threads; started++)
        if ((failed = pthread_create(&ids[started], NULL, verify_shards, w)) != 0) break;
    w->running = started;
    pthread_mutex_unlock(&w->lock);
    if (threads && !started) {
        errno = failed;
        free(ids);
        return sgt_fail_errno(err, "cannot start a thread");
    }
    watch(w, o);
    for (size_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
    free(ids);
    if (w->rc < 0 && err) *err = w->err;
    return w->rc;
}

/* ---- sources.jsonl ---- */

typedef struct sums {
    uint64_t lines, files, documents, tokens;
    uint64_t kept; /* documents whose fields stand before the next file's line (--keep-fields) */
} sums;

static int add_line(sums *t, const char *line, size_t n, const char *path, sgt_error *err)
{
    json_error_t why;
    json_t *o = json_loadb(line, n, JSON_ALLOW_NUL, &why);
    const json_t *documents = json_object_get(o, "documents"),
                 *tokens = json_object_get(o, "tokens");
    int good = json_is_integer(documents) && json_is_integer(tokens);
    const uint64_t count = (uint64_t)json_integer_value(documents), kept = t->kept;
    t->files++;
    t->documents += count;
    t->tokens += (uint64_t)json_integer_value(tokens);
    t->kept = 0;
    json_decref(o);
    if (!good)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: line %" PRIu64 ": expected a JSON object with documents and tokens",
                        path, t->lines);
    if (kept && kept != count)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: line %" PRIu64 ": %" PRIu64
                        " documents, but before it are the fields of %" PRIu64,
                        path, t->lines, count, kept);
    return SGT_OK;
}

static int compare_sums(const sums *t, const sgt_manifest *m, const char *path, sgt_error *err)
{
    const struct {
        const char *what;
        uint64_t got, want;
    } rows[] = {{"files", t->files, m->files},
                {"documents", t->documents, m->documents + m->duplicates},
                {"tokens", t->tokens, m->tokens}};
    /* with duplicates removed, skip the number of tokens: sources.jsonl counts all that were
     * read */
    for (size_t i = 0; i < (m->duplicates ? 2 : sizeof rows / sizeof *rows); i++)
        if (rows[i].got != rows[i].want)
            return sgt_fail(err, SGT_EFORMAT, "%s: %" PRIu64 " %s, but the manifest says %" PRIu64,
                            path, rows[i].got, rows[i].what, rows[i].want);
    return SGT_OK;
}

int inspect_sources_verify(const inspect_set *s, const inspect *o, sgt_error *err)
{
    char *path = sgt_join(s->path, "sources.jsonl"), line[SGT_CORPUS_LINE];
    size_t n;
    sums t = {0};
    int rc = SGT_OK;
    if (!path) return sgt_fail_memory(err, s->path);
    FILE *f = NULL;
    rc = sgt_file_lines(&f, path, err);
    while (!rc && (n = sgt_file_line(line, sizeof line, f)) > 0) {
        t.lines++;
        if (sgt_stopped(o->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "%s: stopped", path);
        else if (sgt_corpus_is_document(line)) t.kept++;
        else rc = add_line(&t, line, n, path, err);
    }
    if (!rc && ferror(f)) rc = sgt_fail_errno(err, "%s", path);
    if (!rc) rc = compare_sums(&t, s->manifest, path, err);
    if (f) fclose(f);
    free(path);
    return rc;
}

int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err)
{
    work w = {.set = s};
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.ended, NULL);
    int rc = read_shards(&w, o, err);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
    if (rc < 0 || s->damaged || !s->manifest || o->split) return rc;
    return inspect_sources_verify(s, o, err);
}
