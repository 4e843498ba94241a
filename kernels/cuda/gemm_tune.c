/* gemm_tune.c: tries the library's algorithms for a matrix product on the GPU, at the real size.
 * First, each candidate algorithm runs once, and some elements of D are compared with values that
 * the host computes in double. A candidate with a wrong element is dropped. If algorithms are
 * timed, the remaining candidates then run in rounds, once per round, so that a drifting clock rate
 * favours none of them. Operands are random, because a GPU multiplies zeros faster than the values
 * of a training step. Before each timed run, a buffer larger than the L2 cache of most GPUs is
 * overwritten to evict the operands, because in a training step they are not in a cache either. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm_parts.h"
#include "kernels/cuda/runtime.h"

/* size in bytes of the random pattern; operands consist of copies of it */
#define PATTERN ((size_t)1 << 20)
#define FLUSH ((size_t)64 << 20) /* default number of bytes overwritten before a timed run */
#define ROUNDS 9                 /* maximum number of timed runs per candidate */
#define LEAST_ROUNDS 3 /* minimum number of timed runs per candidate, even beyond ENOUGH_MS */
/* stop timing when the timed runs of all candidates have taken this many milliseconds in total */
#define ENOUGH_MS 60.0f
/* limit for the first, checking runs: when those of the candidates so far have taken this many
 * milliseconds in total, try no further candidate */
#define LONG_MS 300.0f
/* a candidate is dropped if its best time is more than this many times that of the fastest
 * candidate */
#define TOO_SLOW 1.25f
/* The elements of D that are checked: COLUMNS elements in each of ROWS rows. Both the rows and the
 * columns are spread evenly over D and include the first and the last. */
enum { ROWS = 8, COLUMNS = 16, CHECKED = ROWS * COLUMNS };

typedef struct runner {
    const sgt_lt_algo *algo;
    float ms[ROUNDS];
    float best; /* shortest time so far in ms; 0: the candidate was dropped */
} runner;

/* State of the trials of candidate algorithms for one matrix product. `memory` holds the operands.
 * Before a run, its byte x is pattern[x % PATTERN], so the host can compute every element. */
typedef struct tuner {
    const sgt_cuda_gemm *p;
    sgt_cuda_stream stream;
    sgt_cuda_event from, to;
    char *memory, *a, *b, *d, *bias, *aux, *flush;
    /* sizes in bytes. bytes: all operands together; all: the operands and the flush buffer;
     * d_bytes: the operand D */
    size_t bytes, all, d_bytes;
    /* pinned memory: first the pattern of PATTERN bytes, then the checked elements after they were
     * copied from D */
    char *pattern;
    struct {
        size_t z, i, j;   /* index in the batch, row, column */
        double want, off; /* expected value, maximum error */
    } checked[CHECKED];
    runner runners[GEMM_CANDIDATES];
    int count;
    int failure; /* error code of the last candidate that failed */
} tuner;

/* ---- operands ---- */

static size_t type_bytes(sgt_cuda_type type) { return type == SGT_F32 ? 4 : 2; }

/* Return the number of bytes that are overwritten before each timed run. */
static size_t flush_bytes(const tuner *t)
{
    const sgt_cuda_gemms_options *o = &t->p->owner->o;
    return !o->timing ? 0 : o->flush ? o->flush : FLUSH;
}

static char *place(tuner *t, size_t *at, size_t bytes)
{
    char *p = t->memory ? t->memory + *at : NULL;
    *at += (bytes + 255) / 256 * 256;
    return p;
}

/* Compute the sizes of the arrays and their addresses in t->memory. This is called twice: first
 * with t->memory NULL, for the sizes only, then after t->memory is allocated. */
static void lay_out(tuner *t)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    size_t size = type_bytes(s->type), out = type_bytes(s->out), at = 0, more = s->batch - 1;
    t->d_bytes = (more * s->stride_d + s->m * s->ldd) * out;
    t->a = place(t, &at, (more * s->stride_a + (s->trans_a ? s->k : s->m) * s->lda) * size);
    t->b = place(t, &at, (more * s->stride_b + (s->trans_b ? s->n : s->k) * s->ldb) * size);
    t->d = place(t, &at, t->d_bytes);
    t->aux = place(t, &at, gemm_has_aux(s) ? t->d_bytes : 0);
    t->bias = place(t, &at, s->n * out);
    t->bytes = at;
    t->flush = place(t, &at, flush_bytes(t));
    t->all = at;
}

/* Fill the pattern with random elements of the operands' type. Sign and mantissa are random, and
 * the exponent is that of 0.5, so absolute values are from 0.5 to 1. */
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
    for (size_t n; done < t->bytes; done += n) { /* double the part that is filled */
        n = t->bytes - done < done ? t->bytes - done : done;
        sgt_cuda_copy(t->stream, t->memory + done, t->memory, n);
    }
}

/* ---- expected results ---- */

double sgt_cuda_decode(const void *x, sgt_cuda_type type, size_t i)
{
    float value;
    if (type == SGT_F32) return (double)((const float *)x)[i];
    uint16_t half = ((const uint16_t *)x)[i];
    uint32_t bits = (uint32_t)half << 16;
    /* fp16 to float: move the bits to their places in a float. The value is then too small by a
     * factor of 2^112, because the exponent bias of a float is 127, and that of fp16 is 15.
     * Multiplying by 2^112 is right even for subnormal numbers. */
    if (type == SGT_F16) {
        bits = (bits & 0x80000000u) | (bits & 0x7fff0000u) >> 3;
        memcpy(&value, &bits, sizeof value);
        return (half & 0x7c00) == 0x7c00 ? NAN : (double)value * 0x1p112;
    }
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

double sgt_cuda_unit(sgt_cuda_type type)
{
    return type == SGT_F32 ? 0x1p-24 : type == SGT_F16 ? 0x1p-11 : 0x1p-8;
}

static const double root = 0.79788456080286535588, cube = 0.044715; /* sqrt(2/pi) */

static double slope(double x)
{
    double t = tanh(root * (x + cube * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * cube * x * x);
}

double sgt_cuda_gemm_expected(const sgt_cuda_gemm_shape *s, double x, double onto, double bias,
                              double aux, double *off)
{
    double u = sgt_cuda_unit(s->out);
    int changes = s->epilogue != SGT_EPILOGUE_NONE;
    if (s->accumulate || changes) *off += u * fabs(x);
    if (s->accumulate) x += onto;
    if (s->accumulate && changes) *off += u * fabs(x);
    if (s->epilogue == SGT_EPILOGUE_BIAS || s->epilogue == SGT_EPILOGUE_GELU) x += bias;
    if (s->epilogue == SGT_EPILOGUE_GELU) {
        /* The library may round aux to D's type first, and apply GELU to the rounded value. */
        *off = 1.2 * *off + fabs(x) * (0x1p-11 + 1.2 * u);
        x = 0.5 * x * (1 + tanh(root * (x + cube * x * x * x)));
    } else if (s->epilogue == SGT_EPILOGUE_DGELU) {
        *off = 1.2 * *off + fabs(x) * 1.5 * 0x1p-11;
        x *= slope(aux);
    }
    *off += u * fabs(x);
    return x;
}

/* Return the value of the element with index `at` of an operand, as a double. It is computed from
 * the pattern, so no device memory is read. */
static double input(const tuner *t, const char *array, sgt_cuda_type type, size_t at)
{
    size_t byte = (size_t)(array - t->memory) + at * type_bytes(type);
    return sgt_cuda_decode(t->pattern + byte % PATTERN, type, 0);
}

/* Return element (i, j) of op(A) op(B) for matrix product z of the batch. Set *sizes to the sum of
 * the absolute values of its k terms, from which `expect` estimates the error. */
static double product(const tuner *t, size_t z, size_t i, size_t j, double *sizes)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double sum = 0;
    *sizes = 0;
    for (size_t l = 0; l < s->k; l++) {
        double a = input(t, t->a, s->type,
                         z * s->stride_a + (s->trans_a ? l * s->lda + i : i * s->lda + l));
        double b = input(t, t->b, s->type,
                         z * s->stride_b + (s->trans_b ? j * s->ldb + l : l * s->ldb + j));
        sum += a * b;
        *sizes += fabs(a * b);
    }
    return sum;
}

/* Choose the elements of D that are checked, spread over its rows and columns. For each, compute
 * its expected value and the largest error that counts as correct. Errors come from rounding a
 * float32 sum after each of its k terms and, with TF32, from rounding each operand. The signs of
 * these errors are random, so the expected total grows only with the square root of their number.
 * The largest allowed error is eight times the expected total, which a correct result does not
 * exceed by chance. */
static void expect(tuner *t)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double k = (double)s->k, unit = 0x1p-24 * sqrt(k) + (s->tf32 ? 0x1p-10 / sqrt(k) : 0), sizes;
    for (size_t c = 0; c < CHECKED; c++) {
        size_t row = c / COLUMNS, z = row * (s->batch - 1) / (ROWS - 1),
               i = row * (s->m - 1) / (ROWS - 1), j = c % COLUMNS * (s->n - 1) / (COLUMNS - 1),
               at = i * s->ldd + j;
        double x = product(t, z, i, j, &sizes), off = 8 * sizes * unit;
        x = sgt_cuda_gemm_expected(s, x, input(t, t->d, s->out, z * s->stride_d + at),
                                   input(t, t->bias, s->out, j), input(t, t->aux, s->out, at),
                                   &off);
        t->checked[c].z = z, t->checked[c].i = i, t->checked[c].j = j;
        t->checked[c].want = x, t->checked[c].off = off;
    }
}

static int prepare(tuner *t, sgt_error *err)
{
    void *memory, *pattern;
    int rc;
    lay_out(t);
    if ((rc = sgt_cuda_malloc(&memory, t->all, err)) < 0) return rc;
    t->memory = memory;
    lay_out(t);
    if ((rc = sgt_cuda_host_alloc(&pattern, PATTERN + CHECKED * sizeof(float), err)) < 0) return rc;
    t->pattern = pattern;
    if ((rc = sgt_cuda_stream_new(&t->stream, err)) < 0 ||
        (rc = sgt_cuda_event_new(&t->from, 1, err)) < 0 ||
        (rc = sgt_cuda_event_new(&t->to, 1, err)) < 0)
        return rc;
    fill(t);
    if (!t->p->owner->o.unverified) expect(t);
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

/* ---- one run ---- */

/* Return the device address of the element of D that checked[c] describes. */
static char *place_of(const tuner *t, size_t c)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    return t->d + (t->checked[c].z * s->stride_d + t->checked[c].i * s->ldd + t->checked[c].j) *
                      type_bytes(s->out);
}

/* Copy the checked elements of D to or from the pinned memory t->pattern. If `back` is 0, set each
 * of them in D to its value in the pattern, so that an accumulating matrix product adds to known
 * values. Otherwise, copy the results from D to the memory after the pattern, where the host
 * compares them. */
static void copy_checked(const tuner *t, int back)
{
    size_t size = type_bytes(t->p->shape.out);
    for (size_t c = 0; c < CHECKED; c++) {
        char *at = place_of(t, c);
        if (back) sgt_cuda_copy(t->stream, t->pattern + PATTERN + c * size, at, size);
        else sgt_cuda_copy(t->stream, at, t->pattern + (size_t)(at - t->memory) % PATTERN, size);
    }
}

/* Run a matrix product with an algorithm, wait for it, and set *ms to its time in milliseconds. The
 * host enqueues the events and the matrix product while the GPU is still busy overwriting the flush
 * buffer, so the time between the two events contains no launch overhead. */
static int run_once(tuner *t, const sgt_lt_algo *algo, float *ms, sgt_error *err)
{
    const gemm_operands x = {.d = t->d,
                             .a = t->a,
                             .b = t->b,
                             .onto = t->d,
                             .bias = t->bias,
                             .aux = t->aux,
                             .f = 1,
                             .h = t->p->shape.accumulate ? 1 : 0};
    sgt_cuda_zero(t->stream, t->flush, flush_bytes(t));
    sgt_cuda_record(t->from, t->stream);
    sgt_lt_status status = gemm_put(t->p, algo, t->stream, &x);
    sgt_cuda_record(t->to, t->stream);
    int rc = sgt_cuda_event_finish(t->to, err);
    if (rc == SGT_OK) rc = sgt_cuda_check(err);
    if (rc == SGT_OK && status)
        rc = sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s: %s", t->p->owner->library, t->p->key,
                      t->p->owner->lt->status_name(status));
    return rc < 0 ? rc : sgt_cuda_elapsed_ms(ms, t->from, t->to, err);
}

static int compare(tuner *t, sgt_error *err)
{
    copy_checked(t, 1);
    int rc = sgt_cuda_finish(t->stream, err);
    for (size_t c = 0; c < CHECKED && rc == SGT_OK; c++) {
        double want = t->checked[c].want,
               got = sgt_cuda_decode(t->pattern + PATTERN, t->p->shape.out, c);
        if (fabs(got - want) <= t->checked[c].off) continue;
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: %s: an algorithm computes %.6g at (%zu, %zu) instead of %.6g",
                      t->p->owner->library, t->p->key, got, t->checked[c].i, t->checked[c].j, want);
    }
    return rc;
}

/* Run a candidate for the first time, which loads its code, and check its results. D still has the
 * results of an earlier candidate, which are probably correct. Zero D, so that a candidate that
 * fails to write D is not accepted. If the matrix product accumulates, also set the checked
 * elements of D from the pattern. */
static int try_once(tuner *t, const sgt_lt_algo *algo, float *ms, sgt_error *err)
{
    const sgt_cuda_gemms_options *o = &t->p->owner->o;
    sgt_error why;
    sgt_cuda_zero(t->stream, t->d, t->d_bytes);
    if (!o->unverified && t->p->shape.accumulate) copy_checked(t, 0);
    int rc = run_once(t, algo, ms, err);
    if (rc < 0 || o->unverified || (rc = compare(t, &why)) == SGT_OK) return rc;
    sgt_say(&o->notice, "%s: this algorithm is not used", why.text);
    return sgt_fail(err, rc, "%s (--no-self-check uses it anyway)", why.text);
}

/* Run each candidate once, in the order of the heuristics, and keep those with correct results in
 * t->runners. Stop when the runs took LONG_MS in total. If algorithms are not timed, stop at the
 * first correct candidate. */
static void try_all(tuner *t, const sgt_lt_result *candidates, int count, sgt_error *err)
{
    float spent = 0, ms;
    for (int i = 0; i < count && spent < LONG_MS && (t->p->owner->o.timing || !t->count); i++) {
        int rc = try_once(t, &candidates[i].algo, &ms, err);
        if (rc < 0) {
            t->failure = rc;
            continue;
        }
        spent += ms;
        t->runners[t->count++] = (runner){.algo = &candidates[i].algo, .best = 1e30f};
    }
}

/* ---- the race ---- */

/* Time each remaining candidate once. Then drop those that are slower than TOO_SLOW allows. A
 * single time is not reliable, so the first round drops no candidate, unless the round took more
 * than ENOUGH_MS. */
static void run_round(tuner *t, int round, float *spent, sgt_error *err)
{
    float fastest = 1e30f;
    for (runner *r = t->runners; r < t->runners + t->count; r++) {
        if (!r->best) continue;
        int rc = run_once(t, r->algo, &r->ms[round], err);
        if (rc < 0) {
            t->failure = rc;
            r->best = 0;
            continue;
        }
        *spent += r->ms[round];
        if (r->ms[round] < r->best) r->best = r->ms[round];
        if (r->best < fastest) fastest = r->best;
    }
    for (runner *r = t->runners; r < t->runners + t->count && (round || *spent > ENOUGH_MS); r++)
        if (r->best > TOO_SLOW * fastest) r->best = 0;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Return the candidate with the shortest median time, and set *ms to that time in milliseconds. If
 * no candidate is left, return NULL. */
static const runner *race(tuner *t, float *ms, sgt_error *err)
{
    float spent = 0;
    int rounds = 0;
    const runner *found = NULL;
    for (; rounds < ROUNDS && (rounds < LEAST_ROUNDS || spent < ENOUGH_MS); rounds++)
        run_round(t, rounds, &spent, err);
    for (runner *r = t->runners; r < t->runners + t->count; r++) {
        qsort(r->ms, (size_t)rounds, sizeof *r->ms, by_value);
        if (!r->best || (found && r->ms[rounds / 2] >= *ms)) continue;
        found = r;
        *ms = r->ms[rounds / 2];
    }
    return found;
}

int gemm_tune(sgt_cuda_gemm *p, const sgt_lt_result *candidates, int count, sgt_error *err)
{
    tuner t = {.p = p};
    const runner *best = NULL;
    int rc = prepare(&t, err);
    if (rc == SGT_OK) {
        try_all(&t, candidates, count, err);
        best = p->owner->o.timing ? race(&t, &p->ms, err) : t.count ? t.runners : NULL;
        rc = t.failure; /* *err describes the last failure */
    }
    if (best) p->algo = *best->algo;
    release(&t);
    return best ? SGT_OK : rc;
}
