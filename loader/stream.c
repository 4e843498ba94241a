/* stream.c: batches made ahead by threads, handed out in order. Batch n of the stream is made by thread n mod threads,
 * which so knows what it will be asked for next, and lives in slot n mod slots. Two counters under one lock tell the
 * rest:
 *
 *     released <= delivered <= released + slots
 *
 * The slots of [released, delivered) are the consumer's, those of [delivered, released + slots) are filled or will be,
 * each by its thread, outside of the lock; later batches have to wait: that is the back-pressure. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

#define ALIGN 64 /* bytes: targets start on a cache line, as inputs do */

typedef struct slot {
    void *buffer;
    uint32_t *lengths; /* (local_batch), where rows are padded */
    int ready; /* filled, or failed: rc says which */
    int held;  /* with the consumer */
    int rc;
    sgt_error err;
} slot;

typedef struct worker {
    sgt_stream *s;
    sgt_cursor *cursor;
    pthread_t thread;
    pthread_cond_t freed; /* the slot of its next batch */
    uint64_t next;        /* its next batch; its own */
    uint32_t number;
    int running;
} worker;

struct sgt_stream {
    const sgt_loader *l;
    sgt_stream_options o;
    size_t rows; /* of a batch, here */
    int padded;
    size_t targets_at, buffer_bytes;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    uint64_t released, delivered; /* counted from the stream's first batch */
    int closing;
    uint32_t workers_made;
    worker *workers;
    slot *slots;
};

/* ---- buffers ---- */

static void *own_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    void *p;
    return posix_memalign(&p, 4096, bytes) ? NULL : p;
}

static void own_free(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

static int measure(sgt_stream *s, sgt_error *err)
{
    sgt_loader_info info;
    size_t ids, width;
    sgt_loader_get_info(s->l, &info);
    s->rows = info.local_batch;
    s->padded = info.padded;
    width = s->o.output == SGT_OUTPUT_U16 ? (size_t)info.seq + 1 : info.seq;
    int over = __builtin_mul_overflow(width, (size_t)info.local_batch, &ids) || ids > (SIZE_MAX >> 4);
    if (over)
        return sgt_fail(err, SGT_ENOMEM, "batches of %" PRIu32 " rows of %zu: more than memory can hold",
                        info.local_batch, width);
    s->targets_at = (ids * sizeof(int32_t) + ALIGN - 1) / ALIGN * ALIGN;
    s->buffer_bytes = s->o.output == SGT_OUTPUT_U16 ? ids * sizeof(uint16_t) : s->targets_at + ids * sizeof(int32_t);
    return SGT_OK;
}

static sgt_stream_batch batch_of(const sgt_stream *s, uint64_t n)
{
    uint32_t i = (uint32_t)(n % s->o.slots);
    char *buffer = s->slots[i].buffer;
    sgt_stream_batch b = {.index = s->o.first + n, .slot = i, .lengths = s->slots[i].lengths};
    if (s->o.output == SGT_OUTPUT_U16) {
        b.rows = (uint16_t *)(void *)buffer;
    } else {
        b.inputs = (int32_t *)(void *)buffer;
        b.targets = (int32_t *)(void *)(buffer + s->targets_at);
    }
    return b;
}

/* ---- the threads ---- */

static int may_make(const sgt_stream *s, uint64_t n)
{
    return (!s->o.count || n < s->o.count) && n < s->released + s->o.slots;
}

static void *work(void *arg)
{
    worker *w = arg;
    sgt_stream *s = w->s;
    pthread_mutex_lock(&s->lock);
    for (;; w->next += s->o.threads) {
        uint64_t n = w->next;
        while (!s->closing && !may_make(s, n)) pthread_cond_wait(&w->freed, &s->lock);
        if (s->closing) break;
        slot *to = &s->slots[n % s->o.slots];
        sgt_stream_batch b = batch_of(s, n);
        pthread_mutex_unlock(&s->lock);
        if (s->o.making) s->o.making(s->o.making_ctx, w->number, b.index, 0);
        int rc = b.rows ? sgt_loader_batch(s->l, w->cursor, b.index, b.rows, &to->err)
                        : sgt_loader_batch_i32(s->l, w->cursor, b.index, b.inputs, b.targets, &to->err);
        if (to->lengths) memcpy(to->lengths, sgt_cursor_lengths(w->cursor), s->rows * sizeof *to->lengths);
        if (s->o.making) s->o.making(s->o.making_ctx, w->number, b.index, 1);
        pthread_mutex_lock(&s->lock);
        to->rc = rc;
        to->ready = 1;
        if (n == s->delivered) pthread_cond_signal(&s->filled);
    }
    pthread_mutex_unlock(&s->lock);
    sgt_cursor_close(w->cursor); /* here: reads that it has in flight are waited for best by the thread that made them */
    w->cursor = NULL;
    return NULL;
}

/* Signals are the program's business: its threads, not these, are interrupted by them. */
static int start(worker *w, sgt_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return sgt_fail(err, SGT_EIO, "cannot start a prefetch thread (error %d)", error);
    w->running = 1;
    return SGT_OK;
}

/* ---- what callers see ---- */

static int open_slots(sgt_stream *s, sgt_error *err)
{
    s->slots = calloc(s->o.slots, sizeof *s->slots);
    s->workers = calloc(s->o.threads, sizeof *s->workers);
    if (!s->slots || !s->workers) return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " slots: out of memory", s->o.slots);
    for (uint32_t i = 0; i < s->o.slots; i++) {
        if (s->padded) s->slots[i].lengths = calloc(s->rows, sizeof *s->slots[i].lengths);
        if ((s->padded && !s->slots[i].lengths) || !(s->slots[i].buffer = s->o.alloc(s->o.ctx, s->buffer_bytes)))
            return sgt_fail(err, SGT_ENOMEM, "buffer %" PRIu32 " of %" PRIu32 ", %zu bytes: out of memory", i + 1,
                            s->o.slots, s->buffer_bytes);
    }
    return SGT_OK;
}

int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o, sgt_error *err)
{
    sgt_stream *s = calloc(1, sizeof *s);
    int rc;
    if (!s) return sgt_fail(err, SGT_ENOMEM, "a stream: out of memory");
    s->l = l;
    if (o) s->o = *o;
    if (!s->o.slots) s->o.slots = 4;
    if (!s->o.threads) s->o.threads = 1;
    if (!s->o.alloc) {
        s->o.alloc = own_alloc;
        s->o.free = own_free;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->filled, NULL);
    if ((rc = measure(s, err)) < 0 || (rc = open_slots(s, err)) < 0) goto fail;
    for (; s->workers_made < s->o.threads; s->workers_made++) {
        worker *w = &s->workers[s->workers_made];
        w->s = s;
        w->next = w->number = s->workers_made;
        if ((rc = sgt_cursor_open(&w->cursor, l, err)) < 0) goto fail;
        pthread_cond_init(&w->freed, NULL);
        sgt_cursor_set_course(w->cursor, s->o.threads, s->o.count ? s->o.first + s->o.count : 0);
    }
    for (uint32_t i = 0; i < s->workers_made; i++)
        if ((rc = start(&s->workers[i], err)) < 0) goto fail;
    *out = s;
    return SGT_OK;
fail:
    sgt_stream_close(s);
    return rc;
}

int sgt_stream_next(sgt_stream *s, sgt_stream_batch *b, sgt_error *err)
{
    int rc = SGT_OK;
    pthread_mutex_lock(&s->lock);
    slot *from = &s->slots[s->delivered % s->o.slots];
    if (s->o.count && s->delivered == s->o.count) {
        rc = 1;
    } else if (s->delivered - s->released == s->o.slots) { /* nothing could ever be filled: waiting would be for good */
        rc = sgt_fail(err, SGT_EUSAGE, "all %" PRIu32 " batches of the stream are held: release one first", s->o.slots);
    } else {
        while (!from->ready) pthread_cond_wait(&s->filled, &s->lock);
        if (from->rc < 0) { /* stays where it is: whoever asks again is told again */
            rc = from->rc;
            if (err) *err = from->err;
        } else {
            *b = batch_of(s, s->delivered++);
            from->held = 1;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void sgt_stream_release(sgt_stream *s, const sgt_stream_batch *b)
{
    pthread_mutex_lock(&s->lock);
    s->slots[b->slot].held = 0;
    while (s->released < s->delivered) {
        slot *first = &s->slots[s->released % s->o.slots];
        if (first->held) break;
        first->ready = 0;
        pthread_cond_signal(&s->workers[(s->released + s->o.slots) % s->o.threads].freed);
        s->released++;
    }
    pthread_mutex_unlock(&s->lock);
}

void sgt_stream_close(sgt_stream *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->closing = 1;
    for (uint32_t i = 0; i < s->workers_made; i++) pthread_cond_signal(&s->workers[i].freed);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->workers_made; i++) {
        if (s->workers[i].running) pthread_join(s->workers[i].thread, NULL);
        sgt_cursor_close(s->workers[i].cursor);
        pthread_cond_destroy(&s->workers[i].freed);
    }
    for (uint32_t i = 0; s->slots && i < s->o.slots; i++) {
        if (s->slots[i].buffer && s->o.free) s->o.free(s->o.ctx, s->slots[i].buffer);
        free(s->slots[i].lengths);
    }
    pthread_cond_destroy(&s->filled);
    pthread_mutex_destroy(&s->lock);
    free(s->slots);
    free(s->workers);
    free(s);
}
