/* stream.c: threads that make batches ahead, and hand them out in order. Batch n of the stream is
 * made by thread n mod threads, so each thread knows which batch it makes next. Batch n is stored
 * in slot n mod slots:
 *
 *     released <= delivered <= released + slots
 *
 * The consumer holds the slots of [released, delivered). The threads fill the slots of [delivered,
 * released + slots). Later batches wait until a slot is released.
 *
 * Two words pass batches back and forth. slot.filled says which batch the slot now holds; its thread
 * writes it. s->released says which slots may be filled again; the consumer writes it. Both are
 * written under the lock, so that no wake-up is lost, and read without it: a thread without work polls
 * for a while before it sleeps on a condition variable, because a batch takes microseconds, and so
 * does waking a thread. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "loader/base/thread.h"
#include "loader/handle.h"

#define ALIGN 64 /* bytes: targets start on a cache line, as inputs do */
/* bytes between words that different threads write, to avoid false sharing */
#define APART 64
#define LOOKS 1000 /* polls before a thread sleeps; they take about fifty microseconds */
#define YIELD 16   /* one poll in so many yields the core to other threads */

typedef struct slot {
    /* n + 1: batch n is complete, or rc holds its error. Written by its thread, read by the
     * consumer */
    uint64_t filled;
    sgt_loader_batch batch; /* its inputs are the buffer, and its targets within it */
    int held;               /* 1: the consumer holds the batch; only the consumer uses this */
    int rc;
    sgt_error err;
    char apart[APART];
} slot;

typedef struct worker {
    sgt_stream *s;
    sgt_cursor *cursor;
    pthread_t thread;
    uint64_t next; /* number of its next batch */
    uint32_t number;
    char apart[APART];
} worker;

struct sgt_stream {
    const sgt_loader *l;
    sgt_stream_options o;
    uint32_t workers_made;
    worker *workers;
    slot *slots;
    pthread_mutex_t lock;
    pthread_cond_t filled, freed; /* the consumer waits for the former, threads for the latter */
    int closing;
    char apart[APART];
    /* number of batches released so far. Written by the consumer, read by the threads */
    uint64_t released;
    char apart_too[APART];
    /* used only by the consumer: batches delivered so far, and released when threads were last woken */
    uint64_t delivered, woken;
};

/* ---- buffers ---- */

static void *alloc_plain(void *ctx, size_t bytes)
{
    (void)ctx;
    void *p;
    return posix_memalign(&p, 4096, bytes) ? NULL : p;
}

static void free_plain(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

/* ---- the threads ---- */

/* Wait between polls i and i + 1 of a word that another thread writes. That thread may run on the
 * same core: schedulers often place a thread on the core of the one that woke it. Polling would
 * then keep it from running, so some polls yield the core. */
static inline void pause_poll(int i)
{
    if (i % YIELD == YIELD - 1) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static int may_make(const sgt_stream *s, uint64_t n)
{
    return (!s->o.count || n < s->o.count) &&
           n < __atomic_load_n(&s->released, __ATOMIC_ACQUIRE) + s->o.slots;
}

static int is_closing(const sgt_stream *s)
{
    return __atomic_load_n(&s->closing, __ATOMIC_RELAXED);
}

/* Wait until the slot of w's next batch is free. Return 1, or 0 if the stream is closed. */
static int wait_for_slot(worker *w)
{
    sgt_stream *s = w->s;
    for (int i = 0; i < LOOKS && !is_closing(s); i++) {
        if (may_make(s, w->next)) return 1;
        pause_poll(i);
    }
    pthread_mutex_lock(&s->lock);
    while (!is_closing(s) && !may_make(s, w->next)) pthread_cond_wait(&s->freed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return !is_closing(s);
}

static void publish(sgt_stream *s, uint64_t n)
{
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->slots[n % s->o.slots].filled, n + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->lock);
    pthread_cond_signal(&s->filled);
}

static void *work(void *arg)
{
    worker *w = arg;
    sgt_stream *s = w->s;
    for (; wait_for_slot(w); w->next += s->o.threads) {
        slot *to = &s->slots[w->next % s->o.slots];
        uint64_t index = to->batch.index = s->o.first + w->next;
        if (s->o.making) s->o.making(s->o.making_ctx, w->number, index, 0);
        to->rc = sgt_batch_make(s->l, w->cursor, &to->batch, &to->err);
        if (s->o.making) s->o.making(s->o.making_ctx, w->number, index, 1);
        publish(s, w->next);
    }
    /* this thread started the cursor's reads, so this thread closes it and waits for them */
    sgt_cursor_close(w->cursor);
    return NULL;
}

/* ---- what callers see ---- */

static int open_slots(sgt_stream *s, sgt_error *err)
{
    size_t bytes, targets_at = 0;
    int rc = sgt_batch_bytes(&bytes, s->l, s->o.output, err);
    if (rc < 0) return rc;
    if (sgt_output_pairs(s->o.output)) targets_at = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    s->slots = calloc(s->o.slots, sizeof *s->slots);
    s->workers = calloc(s->o.threads, sizeof *s->workers);
    if (!s->slots || !s->workers)
        return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " slots: out of memory", s->o.slots);
    for (uint32_t i = 0; i < s->o.slots; i++) {
        sgt_loader_batch *b = &s->slots[i].batch;
        b->slot = i;
        b->output = s->o.output;
        b->inputs = s->o.alloc(s->o.ctx, targets_at + bytes);
        if (!b->inputs || !sgt_batch_open(b, s->l))
            return sgt_fail(err, SGT_ENOMEM,
                            "buffer %" PRIu32 " of %" PRIu32 ", %zu bytes: out of memory", i + 1,
                            s->o.slots, targets_at + bytes);
        if (targets_at) b->targets = (char *)b->inputs + targets_at;
    }
    return SGT_OK;
}

static int open_worker(sgt_stream *s, uint32_t number, sgt_error *err)
{
    worker *w = &s->workers[number];
    w->s = s;
    w->next = w->number = number;
    int rc = sgt_cursor_open(&w->cursor, s->l, err);
    if (rc < 0) return rc;
    int error = sgt_thread_start(&w->thread, work, w);
    if (!error) return SGT_OK;
    sgt_cursor_close(w->cursor);
    return sgt_fail(err, SGT_EIO, "cannot start a prefetch thread (error %d)", error);
}

int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err)
{
    sgt_stream *s = calloc(1, sizeof *s);
    int rc;
    if (!s) return sgt_fail_memory(err, "a stream");
    s->l = l;
    if (o) s->o = *o;
    if (!s->o.slots) s->o.slots = 4;
    if (!s->o.threads) s->o.threads = 1;
    if (!s->o.alloc) {
        s->o.alloc = alloc_plain;
        s->o.free = free_plain;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->filled, NULL);
    pthread_cond_init(&s->freed, NULL);
    if ((rc = open_slots(s, err)) < 0) goto fail;
    for (; s->workers_made < s->o.threads; s->workers_made++)
        if ((rc = open_worker(s, s->workers_made, err)) < 0) goto fail;
    *out = s;
    return SGT_OK;
fail:
    sgt_stream_close(s);
    return rc;
}

static int is_filled(const slot *from, uint64_t n)
{
    return __atomic_load_n(&from->filled, __ATOMIC_ACQUIRE) == n + 1;
}

static void wake_threads(sgt_stream *s)
{
    s->woken = s->released;
    pthread_cond_broadcast(&s->freed);
}

static void wait_for_batch(sgt_stream *s, const slot *from, uint64_t n)
{
    wake_threads(s); /* that of this batch may sleep although its slot is free */
    for (int i = 0; i < LOOKS; i++) {
        if (is_filled(from, n)) return;
        pause_poll(i);
    }
    pthread_mutex_lock(&s->lock);
    while (!is_filled(from, n)) pthread_cond_wait(&s->filled, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

int sgt_stream_next(sgt_stream *s, sgt_loader_batch *b, sgt_error *err)
{
    uint64_t n = s->delivered;
    slot *from = &s->slots[n % s->o.slots];
    if (s->o.count && n == s->o.count) return 1;
    /* the consumer holds all slots, so no batch could be made and the wait would not end */
    if (n - s->released == s->o.slots)
        return sgt_fail(err, SGT_EUSAGE,
                        "all %" PRIu32 " batches of the stream are held: release one first",
                        s->o.slots);
    if (!is_filled(from, n)) wait_for_batch(s, from, n);
    if (from->rc < 0) { /* keep the error, so that the next call reports it again */
        if (err) *err = from->err;
        return from->rc;
    }
    *b = from->batch;
    from->held = 1;
    s->delivered++;
    return SGT_OK;
}

void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b)
{
    uint64_t released = s->released;
    s->slots[b->slot].held = 0;
    while (released < s->delivered && !s->slots[released % s->o.slots].held) released++;
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->released, released, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->lock);
    /* to wake a thread for every batch would cost a system call per batch */
    if (2 * (released - s->woken) >= s->o.slots) wake_threads(s);
}

void sgt_stream_close(sgt_stream *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->closing, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&s->lock);
    pthread_cond_broadcast(&s->freed);
    for (uint32_t i = 0; i < s->workers_made; i++) pthread_join(s->workers[i].thread, NULL);
    for (uint32_t i = 0; s->slots && i < s->o.slots; i++) {
        void *buffer = s->slots[i].batch.inputs;
        if (buffer && s->o.free) s->o.free(s->o.ctx, buffer);
        sgt_batch_close(&s->slots[i].batch);
    }
    pthread_cond_destroy(&s->filled);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s->slots);
    free(s->workers);
    free(s);
}
