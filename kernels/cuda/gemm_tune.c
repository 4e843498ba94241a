/* gemm_tune.c: finds the fastest algorithm for a product by timing the candidates, or the first one
 * whose results are correct, if timing must not decide. The candidates take turns, so that a
 * drifting clock favours none of them. Between two runs, a buffer larger than most second-level
 * caches is overwritten, because in a step too, operands come from memory. Operands are random,
 * because a GPU multiplies zeros faster than the numbers of a step. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm_parts.h"
#include "kernels/cuda/runtime.h"

#define PATTERN ((size_t)1 << 20) /* bytes of random numbers that the operands repeat */
#define SEEN 64                   /* bytes of results that are copied to the host */
#define ROUNDS 9                  /* most runs of a candidate in a race */
#define LEAST_ROUNDS 3            /* fewest runs of a candidate in a race, however long they take */
#define ENOUGH_MS 60.0f           /* a race ends once its runs took this long in total */
/* once the first runs took this long in total, no further candidate is tried */
#define LONG_MS 300.0f
#define TOO_SLOW 1.25f /* a candidate this many times slower than the fastest is dropped */

typedef struct tuner {
    const sgt_cuda_gemm *p;
    sgt_cuda_stream stream;
    sgt_cuda_event from, to;
    char *memory, *a, *b, *d, *bias, *aux, *flush;
    size_t bytes, all; /* of the operands; with what follows them */
    void *pattern;     /* pinned host memory: PATTERN bytes, then SEEN bytes for results */
    int failure;       /* error code of the last candidate that failed */
} tuner;

typedef struct runner {
    float ms[ROUNDS];
    float best; /* shortest time, later the median; 0: dropped from this race */
    /* 1: it runs, and its results are not known to be wrong, so it may enter another race */
    int runs;
} runner;

static char *place(tuner *t, size_t *at, size_t bytes)
{
    char *p = t->memory ? t->memory + *at : NULL;
    *at += (bytes + 255) / 256 * 256;
    return p;
}

/* Set the addresses of the arrays in t->memory. The first call, when that is NULL, only counts the
 * bytes. `flush` is the size of the array that is overwritten between runs. */
static void lay_out(tuner *t, size_t flush)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    gemm_spans spans = gemm_spans_of(s);
    size_t size = gemm_type_bytes(s->type), out_size = gemm_type_bytes(s->out), at = 0;
    t->a = place(t, &at, spans.a * size);
    t->b = place(t, &at, spans.b * size);
    t->d = place(t, &at, spans.d * out_size);
    t->aux = place(t, &at, s->epilogue >= SGT_EPILOGUE_GELU ? spans.d * out_size : 0);
    t->bias = place(t, &at, s->n * out_size);
    t->bytes = at;
    t->flush = place(t, &at, flush);
    t->all = at;
}

/* Fill the pattern with numbers of the operands' type with absolute values from 0.5 to 1: the sign
 * and the mantissa are random, the exponent is that of 0.5. */
static void fill_pattern(void *pattern, sgt_cuda_type type)
{
    uint64_t x = 1;
    uint32_t *words = pattern;
    for (size_t i = 0; i < PATTERN / 4; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(x >> 32);
        if (type == SGT_F32) words[i] = (r & 0x807fffffu) | 0x3f000000u;
        else if (type == SGT_BF16) words[i] = (r & 0x807f807fu) | 0x3f003f00u;
        else words[i] = (r & 0x83ff83ffu) | 0x38003800u;
    }
}

static void fill(tuner *t)
{
    size_t done = t->bytes < PATTERN ? t->bytes : PATTERN;
    fill_pattern(t->pattern, t->p->shape.type);
    sgt_cuda_copy(t->stream, t->memory, t->pattern, done);
    for (size_t n; done < t->bytes; done += n) { /* double what is filled */
        n = t->bytes - done < done ? t->bytes - done : done;
        sgt_cuda_copy(t->stream, t->memory + done, t->memory, n);
    }
}

static int prepare(tuner *t, size_t flush, sgt_error *err)
{
    void *memory;
    int rc;
    lay_out(t, flush);
    if ((rc = sgt_cuda_malloc(&memory, t->all, err)) < 0) return rc;
    t->memory = memory;
    lay_out(t, flush);
    if ((rc = sgt_cuda_host_alloc(&t->pattern, PATTERN + SEEN, err)) < 0 ||
        (rc = sgt_cuda_stream_new(&t->stream, err)) < 0 ||
        (rc = sgt_cuda_event_new(&t->from, 1, err)) < 0 ||
        (rc = sgt_cuda_event_new(&t->to, 1, err)) < 0)
        return rc;
    fill(t);
    return sgt_cuda_finish(t->stream, err);
}

static void release(tuner *t)
{
    if (t->to) sgt_cuda_event_free(t->to);
    if (t->from) sgt_cuda_event_free(t->from);
    if (t->stream) sgt_cuda_stream_free(t->stream);
    if (t->pattern) sgt_cuda_host_free(t->pattern);
    if (t->memory) sgt_cuda_free(t->memory);
}

/* Wait for the products that were started since t->from, and set *ms to the time that they took.
 * `status` is the library's status for the last one. */
static int finish(tuner *t, sgt_lt_status status, float *ms, sgt_error *err)
{
    sgt_cuda_record(t->to, t->stream);
    int rc = sgt_cuda_event_finish(t->to, err);
    if (rc == SGT_OK) rc = sgt_cuda_check(err);
    if (rc == SGT_OK && status)
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s: %s", t->p->owner->library, t->p->key,
                      t->p->owner->lt->status_name(status));
    return rc < 0 ? rc : sgt_cuda_elapsed_ms(ms, t->from, t->to, err);
}

/* Time one product. It is queued long before the overwriting of the caches ends, so that the time
 * between the events is that of the product alone. */
static int run_once(tuner *t, const sgt_lt_algo *algo, float *ms, sgt_error *err)
{
    sgt_cuda_zero(t->stream, t->flush, t->p->owner->flush);
    sgt_cuda_record(t->from, t->stream);
    return finish(t, gemm_put(t->p, algo, t->stream, t->d, t->a, t->b, t->bias, t->aux), ms, err);
}

/* Run every candidate once, which loads its code. A candidate that fails is dropped. Once the runs
 * took LONG_MS in total, the remaining candidates, which the heuristics rank lower, are dropped
 * too. Return how many are left. */
static int warm_up(tuner *t, runner *runners, const sgt_lt_result *candidates, int count,
                   float *spent, sgt_error *err)
{
    int left = 0;
    float ms;
    for (int i = 0; i < count && *spent < LONG_MS; i++) {
        int rc = run_once(t, &candidates[i].algo, &ms, err);
        if (rc < 0) {
            t->failure = rc;
            continue;
        }
        *spent += ms;
        runners[i].runs = 1;
        left++;
    }
    return left;
}

/* Run each candidate that is still in the race once. Then drop those that are too slow; after the
 * first round, only if the runs took more than ENOUGH_MS. */
static void run_round(tuner *t, runner *runners, const sgt_lt_result *candidates, int count,
                      int round, float *spent, sgt_error *err)
{
    float fastest = 1e30f;
    for (int i = 0; i < count; i++) {
        runner *r = &runners[i];
        if (!r->best) continue;
        int rc = run_once(t, &candidates[i].algo, &r->ms[round], err);
        if (rc < 0) {
            t->failure = rc;
            r->best = 0;
            continue;
        }
        *spent += r->ms[round];
        if (r->ms[round] < r->best) r->best = r->ms[round];
        if (r->best < fastest) fastest = r->best;
    }
    for (int i = 0; i < count && (round || *spent > ENOUGH_MS); i++)
        if (runners[i].best > TOO_SLOW * fastest) runners[i].best = 0;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float median(float *ms, int n)
{
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    return ms[n / 2];
}

/* Return the index of the candidate in the race whose `best` is least, or -1 if none is left. */
static int fastest(const runner *runners, int count)
{
    int found = -1;
    for (int i = 0; i < count; i++)
        if (runners[i].best && (found < 0 || runners[i].best < runners[found].best)) found = i;
    return found;
}

/* Return the index of the fastest candidate and set *ms to its median, or return -1 if none runs.
 * */
static int race(tuner *t, runner *runners, const sgt_lt_result *candidates, int count, float *ms,
                sgt_error *err)
{
    float spent = 0;
    int rounds = 0;
    for (int i = 0; i < count; i++) runners[i].best = runners[i].runs ? 1e30f : 0;
    for (; rounds < ROUNDS && (rounds < LEAST_ROUNDS || spent < ENOUGH_MS); rounds++)
        run_round(t, runners, candidates, count, rounds, &spent, err);
    for (int i = 0; i < count; i++)
        if (runners[i].best) runners[i].best = median(runners[i].ms, rounds);
    int best = fastest(runners, count);
    if (best >= 0) *ms = runners[best].best;
    return best;
}

/* Return whether the results of a candidate are wrong. If so, exclude it from further races. */
static int is_wrong(tuner *t, runner *r, const sgt_lt_algo *algo, sgt_error *err)
{
    sgt_error why;
    const gemm_trial trial = {.p = t->p,
                              .stream = t->stream,
                              .memory = t->memory,
                              .a = t->a,
                              .b = t->b,
                              .d = t->d,
                              .bias = t->bias,
                              .aux = t->aux,
                              .pattern = t->pattern,
                              .period = PATTERN,
                              .seen = (char *)t->pattern + PATTERN};
    int rc = t->p->owner->unverified ? SGT_OK : gemm_verify(&trial, algo, &why);
    if (rc == SGT_OK) return 0;
    sgt_say(&t->p->owner->notice, "%s: it is left out", why.text);
    sgt_fail(err, rc, "%s (--no-self-check takes it all the same)", why.text);
    t->failure = rc;
    r->runs = 0;
    return 1;
}

int gemm_tune(int *best, float *ms, const sgt_cuda_gemm *p, const sgt_lt_result *candidates,
              int count, sgt_error *err)
{
    tuner t = {.p = p};
    runner runners[GEMM_CANDIDATES] = {0};
    float first = 0;
    int rc = prepare(&t, p->owner->flush, err);
    *best = -1;
    if (rc == SGT_OK && warm_up(&t, runners, candidates, count, &first, err)) do
            *best = race(&t, runners, candidates, count, ms, err);
        while (*best >= 0 && is_wrong(&t, &runners[*best], &candidates[*best].algo, err));
    release(&t);
    return rc == SGT_OK && *best < 0 ? t.failure : rc; /* *err describes the last failure */
}

int gemm_first_correct(int *best, const sgt_cuda_gemm *p, const sgt_lt_result *candidates,
                       int count, sgt_error *err)
{
    tuner t = {.p = p};
    runner unused = {0};
    int rc = prepare(&t, 0, err);
    *best = -1;
    for (int i = 0; i < count && rc == SGT_OK && *best < 0; i++)
        if (!is_wrong(&t, &unused, &candidates[i].algo, err)) *best = i;
    release(&t);
    return rc == SGT_OK && *best < 0 ? t.failure : rc;
}
