/* stream.c: prefetch threads make batches ahead of time for a consumer, which receives them in
 * order. Thread n mod `threads` makes batch n of the stream and stores it in slot n mod `slots`.
 * Because this rule is fixed, the threads need not agree on which of them makes a batch. The number
 * of slots limits how far ahead the threads work:
 *
 *     released <= delivered <= released + slots
 *
 * The consumer holds the slots of batches released ... delivered-1. The threads fill the slots of
 * batches delivered ... released+slots-1. To make a later batch, a thread waits until the consumer
 * releases a slot (perhaps with a different buffer).
 *
 * Two variables pass slots from one side to the other. The thread that made a batch writes
 * slot.filled, which tells the consumer which batch the slot holds. The consumer writes
 * s->released, which tells the threads which slots they may fill again. Both are written under the
 * lock, so that no wake-up is lost, but read without the lock. Making a batch takes only
 * microseconds, which is no longer than waking a thread takes. Therefore, a thread that must wait
 * polls for a while before it sleeps on a condition variable. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "loader/base/memory.h"
#include "loader/base/thread.h"
#include "loader/handle.h"

#define ALIGN 64 /* alignment in bytes of the targets in a buffer: one cache line */
/* padding in bytes between variables that different threads write, so that no two of them share a
 * cache line */
#define APART 64
/* number of polls before a waiting thread sleeps; all of them together take about 50
 * microseconds */
#define LOOKS 1000
#define YIELD 16 /* after every YIELD-th poll, a waiting thread yields its core to other threads */

typedef struct slot {
    /* 1 + the index in the stream of the last batch that a thread made in this slot, or failed to
     * make (see `rc`); 0: none yet. The thread writes this field, and the consumer reads it */
    uint64_t filled;
    /* The batch in this slot. `inputs` points to the beginning of the slot's buffer, and `targets`
     * to a later place in the same buffer. */
    sgt_loader_batch batch;
    /* 1: the consumer holds this batch; 0: it does not. Only the consumer uses this field */
    int held;
    int rc;
    sgt_error err;
    char apart[APART];
} slot;

typedef struct worker {
    sgt_stream *s;
    sgt_cursor *cursor;
    pthread_t thread;
    uint64_t next; /* index in the stream of the next batch that this thread makes */
    uint32_t number;
    char apart[APART];
} worker;

struct sgt_stream {
    const sgt_loader *l;
    sgt_stream_options o;
    sgt_stream_timer timer;
    uint32_t workers_made;
    worker *workers;
    slot *slots;
    pthread_mutex_t lock;
    /* filled: the consumer waits on it for a batch; freed: the threads wait on it for a free
     * slot */
    pthread_cond_t filled, freed;
    int closing;
    char apart[APART];
    /* number of batches that the consumer has released. The consumer writes this field, and the
     * threads read it */
    uint64_t released;
    char apart_too[APART];
    /* delivered: number of batches that the consumer has received so far; woken: value of
     * `released` when the consumer last woke the prefetch threads. Only the consumer uses these two
     * fields */
    uint64_t delivered, woken;
};

/* ---- the threads ---- */

/* Pause briefly after poll number i of a variable that another thread writes. After some of the
 * polls, yield the core: the writing thread may be waiting for this very core, because schedulers
 * often place a woken thread on the core of the thread that woke it. */
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

/* Return 1 if the thread that makes batch n can stop waiting, because the slot for this batch is
 * free or the stream is being closed. Otherwise return 0. */
static int is_free(const sgt_stream *s, uint64_t n)
{
    return __atomic_load_n(&s->closing, __ATOMIC_RELAXED) ||
           ((!s->o.count || n < s->o.count) &&
            n < __atomic_load_n(&s->released, __ATOMIC_ACQUIRE) + s->o.slots);
}

static int is_filled(const sgt_stream *s, uint64_t n)
{
    return __atomic_load_n(&s->slots[n % s->o.slots].filled, __ATOMIC_ACQUIRE) == n + 1;
}

/* Wait until is_ready(s, n) returns 1: poll for a while, then sleep on the condition variable
 * `changed`. */
static void wait_until(sgt_stream *s, int (*is_ready)(const sgt_stream *, uint64_t), uint64_t n,
                       pthread_cond_t *changed)
{
    for (int i = 0; i < LOOKS; i++) {
        if (is_ready(s, n)) return;
        pause_poll(i);
    }
    pthread_mutex_lock(&s->lock);
    while (!is_ready(s, n)) pthread_cond_wait(changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
    worker *w = arg;
    sgt_stream *s = w->s;
    for (;; w->next += s->o.threads) {
        wait_until(s, is_free, w->next, &s->freed);
        if (__atomic_load_n(&s->closing, __ATOMIC_RELAXED)) break;
        slot *to = &s->slots[w->next % s->o.slots];
        uint64_t index = to->batch.index = s->o.first + w->next;
        if (s->timer.making) s->timer.making(s->timer.ctx, w->number, index, 0);
        to->rc = sgt_batch_make(s->l, w->cursor, &to->batch, &to->err);
        if (s->timer.making) s->timer.making(s->timer.ctx, w->number, index, 1);
        pthread_mutex_lock(&s->lock);
        __atomic_store_n(&to->filled, w->next + 1, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&s->lock);
        pthread_cond_signal(&s->filled);
    }
    /* close the cursor in the thread that used it, because its outstanding reads must be awaited by
     * the thread that started them */
    sgt_cursor_close(w->cursor);
    return NULL;
}

/* ---- public functions ---- */

/* Return the offset in bytes of the targets in a buffer of a stream, or 0 if the output has no
 * targets. `bytes` is the size in bytes of the inputs, which come first. */
static size_t targets_at(sgt_output o, size_t bytes)
{
    return sgt_output_pairs(o) ? (bytes + ALIGN - 1) / ALIGN * ALIGN : 0;
}

size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output)
{
    size_t bytes;
    return sgt_batch_bytes(&bytes, l, output, NULL) < 0 ? 0 : targets_at(output, bytes) + bytes;
}

static int open_slots(sgt_stream *s, sgt_error *err)
{
    size_t bytes, all = sgt_stream_bytes(s->l, s->o.output);
    int rc = sgt_batch_bytes(&bytes, s->l, s->o.output, err);
    if (rc < 0) return rc;
    s->slots = calloc(s->o.slots, sizeof *s->slots);
    s->workers = calloc(s->o.threads, sizeof *s->workers);
    if (!s->slots || !s->workers)
        return sgt_fail(err, SGT_ENOMEM, "stream of %" PRIu32 " slots: out of memory", s->o.slots);
    for (uint32_t i = 0; i < s->o.slots; i++) {
        sgt_loader_batch *b = &s->slots[i].batch;
        b->slot = i;
        b->output = s->o.output;
        if (s->o.buffers) b->inputs = s->o.buffers[i];
        else if (posix_memalign(&b->inputs, 4096, all)) b->inputs = NULL;
        if (!b->inputs || !sgt_batch_open(b, s->l))
            return sgt_fail(err, SGT_ENOMEM,
                            "buffer %" PRIu32 " of %" PRIu32 ", %zu bytes: out of memory", i + 1,
                            s->o.slots, all);
        if (all > bytes) b->targets = (char *)b->inputs + targets_at(s->o.output, bytes);
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

int sgt_stream_open_timed(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                          const sgt_stream_timer *timer, sgt_error *err)
{
    sgt_stream_options given = {0};
    int rc = o ? sgt_struct_read(&given, sizeof given, o, "sgt_stream_options", err) : SGT_OK;
    if (rc < 0) return rc;
    sgt_stream *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, "a stream");
    s->l = l;
    s->o = given;
    if (timer) s->timer = *timer;
    if (!s->o.slots) s->o.slots = 4;
    if (!s->o.threads) s->o.threads = 1;
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

int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err)
{
    return sgt_stream_open_timed(out, l, o, NULL, err);
}

static void wake_threads(sgt_stream *s)
{
    s->woken = s->released;
    pthread_cond_broadcast(&s->freed);
}

int sgt_stream_next(sgt_stream *s, const sgt_loader_batch **b, sgt_error *err)
{
    uint64_t n = s->delivered;
    slot *from = &s->slots[n % s->o.slots];
    if (s->o.count && n == s->o.count) return 1;
    /* If the consumer holds all slots, no thread can make the next batch, so waiting for it would
     * never end */
    if (n - s->released == s->o.slots)
        return sgt_fail(err, SGT_EUSAGE,
                        "all %" PRIu32 " batches of the stream are held: release one first",
                        s->o.slots);
    if (!is_filled(s, n)) {
        /* The thread that makes this batch may be asleep although its slot is free, because
         * sgt_stream_release does not wake the threads every time. */
        wake_threads(s);
        wait_until(s, is_filled, n, &s->filled);
    }
    if (from->rc < 0) { /* the error stays in the slot, so the next call reports it again */
        if (err) *err = from->err;
        return from->rc;
    }
    *b = &from->batch;
    from->held = 1;
    s->delivered++;
    return SGT_OK;
}

void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b, void *buffer)
{
    uint64_t released = s->released;
    slot *from = &s->slots[b->slot];
    if (buffer &&
        /* It is safe to change the slot's buffer here, because no thread fills the slot until
         * `released` counts this batch. */
        s->o.buffers) {
        sgt_loader_batch *own = &from->batch;
        if (own->targets)
            own->targets = (char *)buffer + ((char *)own->targets - (char *)own->inputs);
        own->inputs = buffer;
    }
    from->held = 0;
    while (released < s->delivered && !s->slots[released % s->o.slots].held) released++;
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->released, released, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&s->lock);
    /* Wake the threads only if half of the slots have been released since they were last woken:
     * waking them after every batch would take a system call each time */
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
        if (!s->o.buffers) free(s->slots[i].batch.inputs);
        sgt_batch_close(&s->slots[i].batch);
    }
    pthread_cond_destroy(&s->filled);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    free(s->slots);
    free(s->workers);
    free(s);
}
