/* ahead.c: a ring of slots in corpus order, one slot for each file that is packed or filtered. A
 * thread takes the next of these files whose slot is free and reads it to its end. The slot holds a
 * ring of the file's bytes, written by that thread and read by the caller. Files are taken in
 * order, so a thread is always at work on the file that the caller reads next. */
#include "tokenize/input/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/thread.h"
#include "tokenize/input/source.h"

#define CHUNK ((size_t)256 << 10) /* bytes unpacked at a time, before the caller can read them */

typedef struct slot {
    uint8_t *bytes;      /* (SGT_AHEAD_BYTES); byte i of the stream lies at i % SGT_AHEAD_BYTES */
    uint64_t made, used; /* bytes of the stream written and read */
    uint64_t raw;
    int ended; /* 1: its thread has finished. Then the stream is complete, or rc is the error */
    int rc;
    sgt_error err;
} slot;

struct sgt_ahead {
    sgt_ahead_options o;
    sgt_source *source; /* source of the caller's file, if it is neither packed nor filtered */
    slot *slot;         /* slot of the caller's file, if it is packed or filtered */
    uint64_t raw;       /* bytes of that file read from disk, when the slot was last checked */

    pthread_mutex_t lock; /* guards all fields below, and the numbers in slots */
    pthread_cond_t changed;
    sgt_stop closing;
    slot *slots;
    size_t slot_count;
    uint64_t next_file; /* first file that no thread has taken */
    /* number of files taken by threads and finished by the caller; file k has slots[k %
     * slot_count] */
    uint64_t taken, returned;
    pthread_t *threads;
    size_t running;
};

/* ---- the threads ---- */

/* Wait for room in the slot's ring. Return the length of the contiguous room at *at, or 0 when
 * reading is cancelled. */
static size_t wait_room(sgt_ahead *a, slot *s, uint8_t **at)
{
    pthread_mutex_lock(&a->lock);
    while (s->made - s->used == SGT_AHEAD_BYTES && !sgt_stopped(&a->closing))
        pthread_cond_wait(&a->changed, &a->lock);
    size_t room = SGT_AHEAD_BYTES - (size_t)(s->made - s->used),
           from = (size_t)(s->made % SGT_AHEAD_BYTES);
    if (sgt_stopped(&a->closing)) room = 0;
    pthread_mutex_unlock(&a->lock);
    *at = s->bytes + from;
    if (room > SGT_AHEAD_BYTES - from) room = SGT_AHEAD_BYTES - from;
    return room < CHUNK ? room : CHUNK;
}

static void tell(sgt_ahead *a, slot *s, size_t made, uint64_t raw, int ended, int rc)
{
    pthread_mutex_lock(&a->lock);
    s->made += made;
    s->raw = raw;
    s->ended = ended;
    s->rc = rc;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void read_file(sgt_ahead *a, const sgt_corpus_file *f, slot *s)
{
    sgt_source *source = NULL;
    uint64_t raw = 0;
    int end = 0, rc = SGT_OK;
    if (!s->bytes && !(s->bytes = malloc(SGT_AHEAD_BYTES))) rc = sgt_fail_memory(&s->err, f->path);
    if (!rc) rc = sgt_source_open(&source, f, a->o.stop, &a->closing, &s->err);
    while (!rc && !end) {
        uint8_t *at;
        size_t n = 0, room = wait_room(a, s, &at);
        if (!room) break;
        rc = sgt_source_read(source, at, &n, room, &end, &s->err);
        raw = sgt_source_raw(source);
        if (!rc && !end) tell(a, s, n, raw, 0, 0);
        else tell(a, s, n, raw, rc == 0, 0);
    }
    sgt_source_close(source);
    if (rc < 0) tell(a, s, 0, raw, 1, rc);
}

/* Take the next packed or filtered file and its slot. Return NULL if all are taken, or reading is
 * cancelled. */
static slot *take_file(sgt_ahead *a, const sgt_corpus_file **f)
{
    const sgt_corpus *c = a->o.corpus;
    slot *s = NULL;
    pthread_mutex_lock(&a->lock);
    while (a->taken - a->returned == a->slot_count && !sgt_stopped(&a->closing))
        pthread_cond_wait(&a->changed, &a->lock);
    while (a->next_file < c->count && !sgt_corpus_made(&c->files[a->next_file])) a->next_file++;
    if (a->next_file < c->count && !sgt_stopped(&a->closing)) {
        *f = &c->files[a->next_file++];
        s = &a->slots[a->taken++ % a->slot_count];
    }
    pthread_mutex_unlock(&a->lock);
    return s;
}

static void *read_files(void *arg)
{
    sgt_ahead *a = arg;
    const sgt_corpus_file *f;
    for (slot *s; (s = take_file(a, &f));) read_file(a, f, s);
    return NULL;
}

static int start_threads(sgt_ahead *a, uint64_t first, sgt_error *err)
{
    const sgt_corpus *c = a->o.corpus;
    size_t most = a->o.threads ? a->o.threads : 1, threads = 1; /* one thread for file `first` */
    int failed = 0;
    for (uint64_t i = first + 1; i < c->count && threads < most; i++)
        threads += sgt_corpus_made(&c->files[i]) != 0;
    a->next_file = first;
    a->slot_count = 2 * threads;
    a->slots = calloc(a->slot_count, sizeof *a->slots);
    a->threads = calloc(threads, sizeof *a->threads);
    if (!a->slots || !a->threads) return sgt_fail_memory(err, "reading inputs");
    while (a->running < threads &&
           !(failed = sgt_thread_start(&a->threads[a->running], read_files, a)))
        a->running++;
    if (a->running) return SGT_OK; /* the system may refuse threads: one is enough */
    errno = failed;
    return sgt_fail_errno(err, "cannot start a thread");
}

int sgt_ahead_new(sgt_ahead **out, const sgt_ahead_options *o, sgt_error *err)
{
    sgt_ahead *a = calloc(1, sizeof *a);
    if (!a) return sgt_fail_memory(err, "reading inputs");
    a->o = *o;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    *out = a;
    return SGT_OK;
}

void sgt_ahead_free(sgt_ahead *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    sgt_stop_request(&a->closing);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < a->running; i++) pthread_join(a->threads[i], NULL);
    for (size_t i = 0; a->slots && i < a->slot_count; i++) free(a->slots[i].bytes);
    free(a->slots);
    free(a->threads);
    sgt_source_close(a->source);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* ---- the caller ---- */

int sgt_ahead_begin(sgt_ahead *a, uint64_t file, sgt_error *err)
{
    const sgt_corpus_file *f = &a->o.corpus->files[file];
    if (!sgt_corpus_made(f)) return sgt_source_open(&a->source, f, a->o.stop, a->o.cancel, err);
    int rc = a->slots ? SGT_OK : start_threads(a, file, err);
    if (rc < 0) return rc;
    a->slot = &a->slots[a->returned % a->slot_count];
    return SGT_OK;
}

int sgt_ahead_seek(sgt_ahead *a, uint64_t at, sgt_error *err)
{
    return sgt_source_seek(a->source, at, err);
}

/* Wait until the slot has bytes that the caller has not read, or has ended. Set *made to the bytes
 * of the stream written so far. */
static int wait_bytes(sgt_ahead *a, slot *s, uint64_t *made, int *ended, sgt_error *err)
{
    int over = 0;
    pthread_mutex_lock(&a->lock);
    while (s->made == s->used && !s->ended && !over) {
        sgt_wait_briefly(&a->changed, &a->lock);
        over = sgt_stopped(a->o.stop) || sgt_stopped(a->o.cancel);
    }
    *made = s->made;
    *ended = s->ended;
    a->raw = s->raw;
    pthread_mutex_unlock(&a->lock);
    return over ? sgt_fail(err, SGT_ESTOPPED, "stopped") : SGT_OK;
}

static void give_room(sgt_ahead *a, slot *s, uint64_t used)
{
    pthread_mutex_lock(&a->lock);
    s->used = used;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

int sgt_ahead_read(sgt_ahead *a, uint8_t *p, size_t *n, size_t want, int *end, sgt_error *err)
{
    slot *s = a->slot;
    if (!s) return sgt_source_read(a->source, p, n, want, end, err);
    while (*n < want && !*end) {
        uint64_t made;
        int ended, rc = wait_bytes(a, s, &made, &ended, err);
        if (rc < 0) return rc;
        uint64_t used = s->used;
        while (used < made && *n < want) {
            size_t from = (size_t)(used % SGT_AHEAD_BYTES), k = SGT_AHEAD_BYTES - from;
            if (k > made - used) k = (size_t)(made - used);
            if (k > want - *n) k = want - *n;
            memcpy(p + *n, s->bytes + from, k);
            *n += k;
            used += k;
        }
        give_room(a, s, used);
        if (!ended || used < made) continue;
        if (s->rc < 0) {
            if (err) *err = s->err;
            return s->rc;
        }
        *end = 1;
    }
    return SGT_OK;
}

uint64_t sgt_ahead_raw(const sgt_ahead *a) { return a->slot ? a->raw : sgt_source_raw(a->source); }

void sgt_ahead_finish(sgt_ahead *a)
{
    sgt_source_close(a->source);
    a->source = NULL;
    if (!a->slot) return;
    pthread_mutex_lock(&a->lock);
    uint8_t *bytes = a->slot->bytes;
    *a->slot = (slot){.bytes = bytes};
    a->slot = NULL;
    a->returned++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}
