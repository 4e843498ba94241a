/* stream.c: prefetch threads make batches ahead of a consumer, which receives them in order. Batch
 * n of the stream is made by thread n mod threads and stored in slot n mod slots. Because this rule
 * is fixed, the threads need not agree on which of them makes a batch. The slots limit how far the
 * threads run ahead:
 *
 *     released <= delivered <= released + slots
 *
 * The consumer holds the slots of batches released ... delivered - 1. The threads fill the slots of
 * batches delivered ... released + slots - 1. Later batches wait until the consumer releases a slot
 * (perhaps with a different buffer).
 *
 * Two variables pass slots between the threads and the consumer. slot.filled states which batch the
 * slot holds; the thread that made the batch writes it. s->released states which slots may be
 * filled again; the consumer writes it. Both are written under the lock, so that no wake-up is
 * lost, and read without it. Making a batch takes only microseconds, and so does waking a thread.
 * So a thread without work polls for a while before it sleeps on a condition variable. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "loader/base/memory.h"
#include "loader/base/thread.h"
#include "loader/handle.h"

#define ALIGN 64 /* alignment of a buffer's targets in bytes: one cache line */
/* padding in bytes between variables that different threads write, against false sharing */
#define APART 64
/* number of polls before a thread sleeps; together they take about 50 microseconds */
#define LOOKS 1000
#define YIELD 16 /* after every YIELD-th poll, a thread yields its core to other threads */

typedef struct slot {
    /* n + 1, where n is the index of the batch that a thread last tried to make in this slot; 0 if
     * there was none. `rc` states whether the thread succeeded. The thread writes `filled`, and the
     * consumer reads it */
    uint64_t filled;
    /* The batch in this slot. `inputs` points to the beginning of the slot's buffer, and `targets`
     * into the same buffer. */
    sgt_loader_batch batch;
    /* 1: the consumer holds the batch; 0: it does not. Only the consumer uses this field */
    int held;
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
    sgt_stream_timer timer;
    uint32_t workers_made;
    worker *workers;
    slot *slots;
    pthread_mutex_t lock;
    /* filled: condition on which the consumer waits for a batch; freed: condition on which the
     * threads wait for a free slot */
    pthread_cond_t filled, freed;
    int closing;
    char apart[APART];
    /* number of batches that the consumer has released. The consumer writes it, the threads read
     * it */
    uint64_t released;
    char apart_too[APART];
    /* delivered: number of batches that were delivered to the consumer so far; woken: value of
     * `released` when the prefetch threads were last woken. Only the consumer's thread uses these
     * two */
    uint64_t delivered, woken;
};

/* ---- the threads ---- */

/* Pause briefly after poll i of a variable that another thread writes. Some polls yield the core,
 * because the writing thread may be waiting for this very core: schedulers often place a woken
 * thread on the core of the thread that woke it. */
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

/* Return whether the thread that makes batch n can stop waiting: its slot is free, or the stream is
 * being closed. */
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

/* Wait until is_ready(s, n) returns 1: poll for a while, then sleep on the condition `changed`. */
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
    /* close the cursor in this thread, because the cursor's reads were started here and must be
     * awaited here */
    sgt_cursor_close(w->cursor);
    return NULL;
}

/* ---- what callers see ---- */

/* Return the offset in bytes of the targets in a stream's buffer, whose inputs take `bytes` bytes.
 * Return 0 if the output has no targets. */
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
    /* if the consumer holds all slots, no further batch can be made, and waiting would never end */
    if (n - s->released == s->o.slots)
        return sgt_fail(err, SGT_EUSAGE,
                        "all %" PRIu32 " batches of the stream are held: release one first",
                        s->o.slots);
    if (!is_filled(s, n)) {
        /* The thread that makes this batch may be asleep although its slot is free, because
         * sgt_stream_release does not wake threads each time. */
        wake_threads(s);
        wait_until(s, is_filled, n, &s->filled);
    }
    if (from->rc < 0) { /* the error stays in the slot, so that the next call reports it again */
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
        /* Changing the slot's buffer is safe here: no thread fills the slot until `released`
         * includes this batch. */
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
    /* wake the threads only after half of the slots have been released: waking them after every
     * batch would cost a system call each time */
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
