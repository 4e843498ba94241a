/* gemm.c: plans matrix products with cuBLASLt, chooses their algorithms, and runs the products. The
 * library expects column-major matrices, so it sees our D (m, n) as D^T (n, m). We therefore ask it
 * for D^T = op(B)^T op(A)^T, with our B as the first operand. The library's bias has one element
 * per row of its output, that is, per column of our D.
 *
 * Algorithms are tried on the GPU, at the real size. First, each candidate algorithm runs once, and
 * some elements of D are compared with values that the host computes in double. A candidate with a
 * wrong element is dropped. If algorithms are timed, the remaining candidates then run in rounds,
 * once per round, so that a drifting clock rate favours none of them.
 *
 * In these runs, operands are random, because a GPU multiplies zeros faster than the values of a
 * training step. Before each timed run, a buffer larger than the L2 cache of most GPUs is
 * overwritten. This evicts the operands, because in a training step they are not in a cache
 * either. */
#include "kernels/cuda/gemm.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/runtime.h"

#define ALIGNMENT 16 /* alignment in bytes of every matrix */
/* maximum number of algorithms that the library is asked to suggest for a shape */
#define CANDIDATES 16
#define KEY 320 /* size in bytes of the key (text form) of a shape, with the terminating 0 */
/* size in bytes of the random pattern; operands are filled with copies of the pattern */
#define PATTERN ((size_t)1 << 20)
/* default number of bytes that are overwritten before each timed run */
#define FLUSH_BYTES ((size_t)64 << 20)
#define ROUNDS 9 /* maximum number of timed runs per candidate */
/* minimum number of timed runs per candidate, even if they take more than ENOUGH_MS */
#define LEAST_ROUNDS 3
/* stop timing when the timed runs of all candidates have taken this many milliseconds in total */
#define ENOUGH_MS 60.0f
/* when the runs that check candidates have taken this many milliseconds in total, no further
 * candidate is tried */
#define LONG_MS 300.0f
/* a candidate is dropped if its best time is more than this many times the best time of the fastest
 * candidate */
#define TOO_SLOW 1.25f
/* Numbers of elements of D that are checked: COLUMNS elements in each of ROWS rows. Both the rows
 * and the columns are spread evenly over D and include D's first and last row and column. */
enum { ROWS = 8, COLUMNS = 16, CHECKED = ROWS * COLUMNS };

struct sgt_cuda_gemm {
    sgt_cuda_gemms *owner;
    sgt_cuda_gemm_shape shape;
    char key[KEY]; /* the shape as text; equal shapes have equal keys */
    sgt_lt_desc desc;
    sgt_lt_layout a, b, d; /* layouts of A, B and D, as the library sees them: transposed */
    sgt_lt_algo algo;
    float ms;
    sgt_cuda_gemm *next;
};

struct sgt_cuda_gemms {
    const sgt_cublaslt *lt;
    sgt_lt_handle handle;
    sgt_cuda_gemms_options o;
    /* library: name and version of cuBLASLt; machine: first line of the text that lists chosen
     * algorithms, which names the device and the library */
    char library[48], machine[336];
    void *workspace;
    sgt_cuda_gemm *first;
};

static const char *const type_names[] = {"f32", "bf16", "f16"};
static const char *const epilogue_names[] = {"none", "bias", "gelu", "dgelu"};
static const sgt_lt_type lt_types[] = {SGT_LT_R_32F, SGT_LT_R_16BF, SGT_LT_R_16F};
static const uint32_t lt_epilogues[] = {SGT_LT_EPILOGUE_DEFAULT, SGT_LT_EPILOGUE_BIAS,
                                        SGT_LT_EPILOGUE_GELU_AUX_BIAS, SGT_LT_EPILOGUE_DGELU};

/* ---- shapes ---- */

/* Return whether a shape's epilogue reads or writes `aux`. */
static int has_aux(const sgt_cuda_gemm_shape *s) { return s->epilogue >= SGT_EPILOGUE_GELU; }

/* Return a copy of the shape in which every field that has no effect is set to a fixed value. Two
 * shapes that describe the same computation then become equal, so that they share a plan. */
static sgt_cuda_gemm_shape plain(const sgt_cuda_gemm_shape *s)
{
    sgt_cuda_gemm_shape p = *s;
    p.trans_a = !!p.trans_a, p.trans_b = !!p.trans_b, p.accumulate = !!p.accumulate;
    p.tf32 = p.tf32 && p.type == SGT_F32;
    if (!p.batch) p.batch = 1;
    if (p.batch == 1) p.stride_a = p.stride_b = p.stride_d = 0;
    /* A batch must have no epilogue: the library would need the batch strides of bias and aux, but
     * a shape does not contain these strides. */
    assert(p.batch == 1 || p.epilogue == SGT_EPILOGUE_NONE);
    return p;
}

static void name_shape(char key[KEY], const sgt_cuda_gemm_shape *s)
{
    int n = snprintf(key, KEY, "%zux%zux%zu,%c%c,%zu,%zu,%zu,%s,%s,%s%s%s", s->m, s->n, s->k,
                     s->trans_a ? 't' : 'n', s->trans_b ? 't' : 'n', s->lda, s->ldb, s->ldd,
                     type_names[s->type], type_names[s->out], epilogue_names[s->epilogue],
                     s->tf32 ? ",tf32" : "", s->accumulate ? ",add" : "");
    if (s->multiprocessors) n += snprintf(key + n, KEY - (size_t)n, ",sm%d", s->multiprocessors);
    if (s->batch > 1)
        snprintf(key + n, KEY - (size_t)n, ",%zu,%zu,%zu,%zu", s->batch, s->stride_a, s->stride_b,
                 s->stride_d);
}

double sgt_cuda_gemm_flops(const sgt_cuda_gemm *p)
{
    const sgt_cuda_gemm_shape *s = &p->shape;
    return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
}

/* ---- describing a matrix product to the library ---- */

static int refused(const sgt_cuda_gemms *g, const char *what, sgt_lt_status status, sgt_error *err)
{
    int code = status == SGT_LT_ALLOC_FAILED ? SGT_ENOMEM : SGT_EUNSUPPORTED;
    return sgt_fail(err, code, "%s: %s: %s", g->library, what, g->lt->status_name(status));
}

/* If the epilogue uses bias or aux, store their addresses in the descriptor. The addresses can
 * differ from call to call. The algorithm that was chosen for the first addresses is valid for all
 * others, because the heuristics depend only on the alignment of the addresses. */
static sgt_lt_status set_pointers(const sgt_cuda_gemm *p, const void *bias, const void *aux)
{
    const sgt_cublaslt *lt = p->owner->lt;
    sgt_cuda_epilogue e = p->shape.epilogue;
    sgt_lt_status rc = SGT_LT_SUCCESS;
    if (e == SGT_EPILOGUE_BIAS || e == SGT_EPILOGUE_GELU)
        rc = lt->desc_set(p->desc, SGT_LT_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (!rc && has_aux(&p->shape))
        rc = lt->desc_set(p->desc, SGT_LT_DESC_AUX_POINTER, &aux, sizeof aux);
    return rc;
}

static sgt_lt_status describe_product(sgt_cuda_gemm *p)
{
    const sgt_cublaslt *lt = p->owner->lt;
    const sgt_cuda_gemm_shape *s = &p->shape;
    int32_t first = s->trans_b ? SGT_LT_OP_T : SGT_LT_OP_N,
            second = s->trans_a ? SGT_LT_OP_T : SGT_LT_OP_N;
    int64_t aux_ld = (int64_t)s->ldd;
    uint32_t epilogue = lt_epilogues[s->epilogue];
    const char *aligned = (const char *)p->owner->workspace + ALIGNMENT;
    sgt_lt_status rc;
    if ((rc = lt->desc_create(&p->desc, s->tf32 ? SGT_LT_COMPUTE_32F_FAST_TF32 : SGT_LT_COMPUTE_32F,
                              SGT_LT_R_32F)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_TRANSA, &first, sizeof first)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_TRANSB, &second, sizeof second)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue)) ||
        (rc = lt->desc_set(p->desc, SGT_LT_DESC_SM_COUNT_TARGET, &s->multiprocessors,
                           sizeof s->multiprocessors)))
        return rc;
    if (has_aux(s) && (rc = lt->desc_set(p->desc, SGT_LT_DESC_AUX_LD, &aux_ld, sizeof aux_ld)))
        return rc;
    return set_pointers(p, aligned, aligned);
}

/* Describe to the library a row-major matrix of `rows` rows and `columns` columns or, if `trans` is
 * set, the transpose of such a matrix. The library expects column-major matrices, so it sees the
 * stored matrix as its transpose. */
static sgt_lt_status describe_matrix(sgt_lt_layout *out, const sgt_cuda_gemm *p, sgt_cuda_type type,
                                     size_t rows, size_t columns, int trans, size_t ld,
                                     size_t stride)
{
    const sgt_cublaslt *lt = p->owner->lt;
    int32_t batch = (int32_t)p->shape.batch;
    int64_t offset = (int64_t)stride;
    sgt_lt_status rc = lt->layout_create(out, lt_types[type], trans ? rows : columns,
                                         trans ? columns : rows, (int64_t)ld);
    if (rc || batch == 1) return rc;
    if ((rc = lt->layout_set(*out, SGT_LT_LAYOUT_BATCH_COUNT, &batch, sizeof batch))) return rc;
    return lt->layout_set(*out, SGT_LT_LAYOUT_BATCH_STRIDE, &offset, sizeof offset);
}

static int describe(sgt_cuda_gemm *p, sgt_error *err)
{
    const sgt_cuda_gemm_shape *s = &p->shape;
    sgt_lt_status rc;
    if ((rc = describe_product(p)) ||
        (rc = describe_matrix(&p->a, p, s->type, s->m, s->k, s->trans_a, s->lda, s->stride_a)) ||
        (rc = describe_matrix(&p->b, p, s->type, s->k, s->n, s->trans_b, s->ldb, s->stride_b)) ||
        (rc = describe_matrix(&p->d, p, s->out, s->m, s->n, 0, s->ldd, s->stride_d)))
        return refused(p->owner, p->key, rc, err);
    return SGT_OK;
}

/* ---- running a matrix product ---- */

/* Operands of one call, which computes D = f * op(A) op(B) + h * onto and then applies the
 * epilogue. `onto` may be the same array as D. */
typedef struct operands {
    void *d;
    const void *a, *b, *onto;
    void *bias, *aux;
    float f, h;
} operands;

/* Return the operands of a call without the factors f and h. The call adds to the old D if the
 * shape has `accumulate` set. */
static operands unscaled(const sgt_cuda_gemm *p, void *d, const void *a, const void *b, void *bias,
                         void *aux)
{
    return (operands){d, a, b, d, bias, aux, 1, p->shape.accumulate ? 1 : 0};
}

/* Enqueue one matrix product on a stream, with the given algorithm. Return the library's status. */
static sgt_lt_status enqueue(const sgt_cuda_gemm *p, const sgt_lt_algo *algo, sgt_cuda_stream s,
                             const operands *x)
{
    const sgt_cuda_gemms *g = p->owner;
    sgt_lt_status rc = set_pointers(p, x->bias, x->aux);
    if (rc) return rc;
    rc = g->lt->matmul(g->handle, p->desc, &x->f, x->b, p->b, x->a, p->a, &x->h, x->onto, p->d,
                       x->d, p->d, algo, g->workspace, SGT_CUDA_GEMM_WORKSPACE, s);
    if (!rc) sgt_cuda_launched(s, "%s: %s", g->library, p->key);
    return rc;
}

/* Enqueue a matrix product on a stream and count the launch. If the library rejects it, keep the
 * reason, which the next sgt_cuda_check reports. */
static void put(const sgt_cuda_gemm *p, sgt_cuda_stream s, const operands *x)
{
    sgt_error why;
    sgt_lt_status rc = enqueue(p, &p->algo, s, x);
    if (!rc) {
        sgt_cuda_count_launch();
    } else {
        refused(p->owner, p->key, rc, &why);
        sgt_cuda_note_failure(why.text, rc);
    }
}

void sgt_cuda_gemm_run_mixed(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, float f,
                             const void *a, const void *b, float h, const void *onto)
{
    put(p, s, &(operands){.d = d, .a = a, .b = b, .onto = onto, .f = f, .h = h});
}

void sgt_cuda_gemm_run(const sgt_cuda_gemm *p, sgt_cuda_stream s, void *d, const void *a,
                       const void *b, void *bias, void *aux)
{
    const operands x = unscaled(p, d, a, b, bias, aux);
    put(p, s, &x);
}

/* ---- trying algorithms ---- */

typedef struct runner {
    const sgt_lt_algo *algo; /* NULL: the candidate was dropped */
    float ms[ROUNDS];        /* the candidate's times in milliseconds, in ascending order */
} runner;

/* Indexes of the arrays of a trial. The arrays before FLUSH are operands. The array FLUSH is
 * overwritten before each timed run, to evict the operands from caches. */
enum { IN_A, IN_B, OUT_D, AUX, BIAS, FLUSH, ARRAYS };

/* State of the trials of candidate algorithms for one matrix product. `memory` holds the arrays.
 * Before a run, byte x of `memory` is pattern[x % PATTERN], so that the host can compute every
 * element of the operands without copying it from the device. */
typedef struct tuner {
    const sgt_cuda_gemm *p;
    sgt_cuda_stream stream;
    sgt_cuda_event from, to;
    char *memory;
    size_t at[ARRAYS + 1]; /* offset of each array in `memory`; at[ARRAYS]: the size of `memory` */
    /* pinned memory: first the pattern, which has PATTERN bytes, then the checked elements, copied
     * from D */
    char *pattern;
    struct {
        size_t i, j, at;  /* row, column, offset in `memory` */
        double want, off; /* expected value, maximum error */
    } checked[CHECKED];
    runner runners[CANDIDATES];
    int count;
    int failure; /* error code of the last candidate that failed */
} tuner;

static size_t type_bytes(sgt_cuda_type type) { return type == SGT_F32 ? 4 : 2; }

static void lay_out(tuner *t)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    const sgt_cuda_gemms_options *o = &t->p->owner->o;
    size_t size = type_bytes(s->type), out = type_bytes(s->out), more = s->batch - 1;
    const size_t bytes[ARRAYS] = {
        [IN_A] = (more * s->stride_a + (s->trans_a ? s->k : s->m) * s->lda) * size,
        [IN_B] = (more * s->stride_b + (s->trans_b ? s->n : s->k) * s->ldb) * size,
        [OUT_D] = (more * s->stride_d + s->m * s->ldd) * out,
        [AUX] = has_aux(s) ? s->m * s->ldd * out : 0,
        [BIAS] = s->n * out,
        [FLUSH] = !o->timing ? 0
                  : o->flush ? o->flush
                             : FLUSH_BYTES};
    for (int i = 0; i < ARRAYS; i++) t->at[i + 1] = t->at[i] + (bytes[i] + 255) / 256 * 256;
}

static void zero(const tuner *t, int array)
{
    sgt_cuda_zero(t->stream, t->memory + t->at[array], t->at[array + 1] - t->at[array]);
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
    size_t bytes = t->at[FLUSH], done = bytes < PATTERN ? bytes : PATTERN;
    fill_pattern(t->pattern, t->p->shape.type);
    sgt_cuda_copy(t->stream, t->memory, t->pattern, done);
    for (size_t n; done < bytes; done += n) { /* double the part that is filled */
        n = bytes - done < done ? bytes - done : done;
        sgt_cuda_copy(t->stream, t->memory + done, t->memory, n);
    }
}

/* Return element `i` of an operand, as a double. The element is computed from the pattern, so no
 * device memory is read. */
static double input(const tuner *t, int array, sgt_cuda_type type, size_t i)
{
    return sgt_cuda_decode(t->pattern + (t->at[array] + i * type_bytes(type)) % PATTERN, type, 0);
}

/* Return element (i, j) of op(A) op(B) for matrix product z of the batch. Set *sizes to the sum of
 * the absolute values of the element's k terms, from which `expect` estimates the element's
 * error. */
static double product(const tuner *t, size_t z, size_t i, size_t j, double *sizes)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double sum = 0;
    *sizes = 0;
    for (size_t l = 0; l < s->k; l++) {
        double a = input(t, IN_A, s->type,
                         z * s->stride_a + (s->trans_a ? l * s->lda + i : i * s->lda + l));
        double b = input(t, IN_B, s->type,
                         z * s->stride_b + (s->trans_b ? j * s->ldb + l : l * s->ldb + j));
        sum += a * b;
        *sizes += fabs(a * b);
    }
    return sum;
}

/* Choose the elements of D that are checked, spread over D's rows and columns. For each element,
 * compute the expected value and the largest error that is accepted.
 *
 * Errors come from rounding a float32 sum after each of its k terms and, with TF32, from rounding
 * each operand. The signs of these errors are random, so the expected total grows only with the
 * square root of their number. Eight times the expected total is accepted, because a correct result
 * practically never exceeds it. */
static void expect(tuner *t)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double k = (double)s->k, unit = 0x1p-24 * sqrt(k) + (s->tf32 ? 0x1p-10 / sqrt(k) : 0), sizes;
    for (size_t c = 0; c < CHECKED; c++) {
        size_t row = c / COLUMNS, z = row * (s->batch - 1) / (ROWS - 1),
               i = row * (s->m - 1) / (ROWS - 1), j = c % COLUMNS * (s->n - 1) / (COLUMNS - 1),
               at = z * s->stride_d + i * s->ldd + j;
        double x = product(t, z, i, j, &sizes), off = 8 * sizes * unit;
        x = sgt_cuda_gemm_expected(s, x, input(t, OUT_D, s->out, at), input(t, BIAS, s->out, j),
                                   input(t, AUX, s->out, at), &off);
        t->checked[c].i = i, t->checked[c].j = j;
        t->checked[c].at = t->at[OUT_D] + at * type_bytes(s->out);
        t->checked[c].want = x, t->checked[c].off = off;
    }
}

/* Allocate the memory that the trials need. Return SGT_ENOMEM if there is not enough memory. */
static int prepare(tuner *t, sgt_error *err)
{
    void *memory = NULL, *pattern = NULL;
    int rc = sgt_cuda_malloc(&memory, t->at[ARRAYS], err);
    if (rc == SGT_OK) rc = sgt_cuda_host_alloc(&pattern, PATTERN + CHECKED * sizeof(float), err);
    t->memory = memory;
    t->pattern = pattern;
    if (rc < 0 || (rc = sgt_cuda_stream_new(&t->stream, err)) < 0 ||
        (rc = sgt_cuda_event_new(&t->from, 1, err)) < 0 ||
        (rc = sgt_cuda_event_new(&t->to, 1, err)) < 0)
        return rc;
    fill(t);
    if (!t->p->owner->o.unverified) expect(t);
    return sgt_cuda_finish(t->stream, err);
}

static void release(tuner *t)
{
    sgt_cuda_event_free(t->to);
    sgt_cuda_event_free(t->from);
    sgt_cuda_stream_free(t->stream);
    sgt_cuda_host_free(t->pattern);
    sgt_cuda_free(t->memory);
}

/* Copy the checked elements of D to or from the pinned memory t->pattern:
 *   back = 0  Set each element to its value in the pattern, so that an accumulating matrix product
 *             adds to known values.
 *   back = 1  Copy the results to the memory after the pattern, where the host compares them. */
static void copy_checked(const tuner *t, int back)
{
    size_t size = type_bytes(t->p->shape.out);
    for (size_t c = 0; c < CHECKED; c++) {
        size_t at = t->checked[c].at;
        if (back) sgt_cuda_copy(t->stream, t->pattern + PATTERN + c * size, t->memory + at, size);
        else sgt_cuda_copy(t->stream, t->memory + at, t->pattern + at % PATTERN, size);
    }
}

/* Run a matrix product with an algorithm, wait for it, and set *ms to its time in milliseconds. The
 * host enqueues the events and the matrix product while the GPU is still busy overwriting the flush
 * buffer, so the time between the two events contains no launch overhead. */
static int run_once(tuner *t, const sgt_lt_algo *algo, float *ms, sgt_error *err)
{
    char *m = t->memory;
    const operands x = unscaled(t->p, m + t->at[OUT_D], m + t->at[IN_A], m + t->at[IN_B],
                                m + t->at[BIAS], m + t->at[AUX]);
    zero(t, FLUSH);
    sgt_cuda_record(t->from, t->stream);
    sgt_lt_status status = enqueue(t->p, algo, t->stream, &x);
    sgt_cuda_record(t->to, t->stream);
    int rc = sgt_cuda_event_finish(t->to, err);
    if (rc == SGT_OK) rc = sgt_cuda_check(err);
    if (rc == SGT_OK && status) rc = refused(t->p->owner, t->p->key, status, err);
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

/* Run a candidate for the first time, which loads its code, and check its results. First set D to
 * 0, because it still holds the results of an earlier candidate: with these, a candidate that does
 * not write D would be accepted. If the matrix product accumulates, also set the checked elements
 * of D from the pattern. */
static int try_once(tuner *t, const sgt_lt_algo *algo, float *ms, sgt_error *err)
{
    const sgt_cuda_gemms_options *o = &t->p->owner->o;
    sgt_error why;
    zero(t, OUT_D);
    if (!o->unverified && t->p->shape.accumulate) copy_checked(t, 0);
    int rc = run_once(t, algo, ms, err);
    if (rc < 0 || o->unverified || (rc = compare(t, &why)) == SGT_OK) return rc;
    sgt_say(&o->notice, "%s: this algorithm is not used", why.text);
    return sgt_fail(err, rc, "%s (--no-self-check uses it anyway)", why.text);
}

/* Run each candidate once, in the order of the heuristics, and keep the candidates whose results
 * are correct in t->runners. Stop when the runs have taken LONG_MS in total or, if algorithms are
 * not timed, at the first correct candidate. */
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
        t->runners[t->count++] = (runner){.algo = &candidates[i].algo};
    }
}

/* Time each remaining candidate once, and drop those that are slower than TOO_SLOW allows. The
 * first round drops candidates only if it took more than ENOUGH_MS in total, because a single time
 * of each candidate is not reliable. */
static void run_round(tuner *t, int round, float *spent, sgt_error *err)
{
    float fastest = INFINITY, ms = 0;
    runner *const end = t->runners + t->count;
    for (runner *r = t->runners; r < end; r++) {
        int rc = r->algo ? run_once(t, r->algo, &ms, err) : SGT_OK, i = round;
        if (rc < 0) t->failure = rc, r->algo = NULL;
        if (!r->algo) continue;
        *spent += ms;
        for (; i && r->ms[i - 1] > ms; i--) r->ms[i] = r->ms[i - 1];
        r->ms[i] = ms;
        if (r->ms[0] < fastest) fastest = r->ms[0];
    }
    for (runner *r = t->runners; r < end && (round || *spent > ENOUGH_MS); r++)
        if (r->ms[0] > TOO_SLOW * fastest) r->algo = NULL;
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
    for (const runner *r = t->runners; r < t->runners + t->count; r++)
        if (r->algo && (!found || r->ms[rounds / 2] < *ms)) {
            found = r;
            *ms = r->ms[rounds / 2];
        }
    return found;
}

/* Run the candidate algorithms and set p->algo to a candidate with correct results. If algorithms
 * are timed, choose the fastest of these candidates, and set p->ms to its median time. Otherwise,
 * choose the first. If there is no memory for the operands, choose the first candidate without
 * checking it. If no candidate gives correct results, return the error of the last candidate that
 * failed, for example SGT_EFORMAT for wrong results. */
static int try_candidates(sgt_cuda_gemm *p, const sgt_lt_result *candidates, int count,
                          sgt_error *err)
{
    const sgt_cuda_gemms_options *o = &p->owner->o;
    tuner t = {.p = p};
    const runner *best = NULL;
    sgt_error why;
    lay_out(&t);
    int rc = prepare(&t, &why);
    if (rc == SGT_OK) {
        try_all(&t, candidates, count, err);
        best = o->timing ? race(&t, &p->ms, err) : t.count ? t.runners : NULL;
        rc = best ? SGT_OK : t.failure; /* *err describes the last failure */
    } else if (rc == SGT_ENOMEM) {
        if (!o->unverified)
            sgt_say(&o->notice, "%s: %s: the algorithm is not checked: %s", p->owner->library,
                    p->key, why.text);
        rc = SGT_OK;
    } else rc = sgt_fail(err, rc, "%s", why.text);
    if (best) p->algo = *best->algo;
    release(&t);
    return rc;
}

/* ---- chosen algorithms as text ----
 *
 * The first line names the device and the library's version, and the text is valid only for this
 * device and version. Each further line has the algorithm for one shape: the shape's key and the
 * library's 64 opaque bytes as eight integers. */

/* Find the algorithm for p's shape in the caller's choices, and set p->algo. Return 1 if the
 * choices contain an algorithm for this shape and the library accepts it on this device, else 0. */
static int recall(sgt_cuda_gemm *p)
{
    const sgt_cuda_gemms *g = p->owner;
    sgt_lt_result result = {.state = SGT_LT_SUCCESS};
    char line[KEY + 2];
    if (!g->o.choices || strncmp(g->o.choices, g->machine, strlen(g->machine)) != 0) return 0;
    snprintf(line, sizeof line, "\n%s ", p->key);
    char *at = strstr(g->o.choices, line);
    if (!at) return 0;
    at += strlen(line);
    for (int i = 0; i < 8; i++) p->algo.data[i] = strtoull(at, &at, 16);
    return *at == '\n' &&
           !g->lt->algo_check(g->handle, p->desc, p->b, p->a, p->d, p->d, &p->algo, &result) &&
           !result.state && result.workspace <= SGT_CUDA_GEMM_WORKSPACE;
}

char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    fputs(g->machine, f);
    for (const sgt_cuda_gemm *p = g->first; p; p = p->next) {
        fputs(p->key, f);
        for (int i = 0; i < 8; i++) fprintf(f, " %" PRIx64, p->algo.data[i]);
        fputc('\n', f);
    }
    if (!fclose(f)) return text;
    free(text);
    return NULL;
}

/* ---- choosing an algorithm ---- */

/* Return the methods that the library is allowed to use for adding up partial sums if it splits the
 * sum over k among blocks. One method is always allowed: to store partial sums as floats and add
 * them in a separate step (COMPUTE_TYPE). The other methods, which use D's type, are not allowed in
 * two cases:
 *   - D is in a 16-bit type, so that each partial sum would be rounded.
 *   - Results must have the same bits each time. Blocks that add to D in place would add in the
 *     order in which they finish, which varies. */
static uint32_t allowed_reductions(const sgt_cuda_gemm *p)
{
    if (p->owner->o.deterministic || p->shape.out != SGT_F32) return SGT_LT_REDUCTION_COMPUTE_TYPE;
    return SGT_LT_REDUCTION_INPLACE | SGT_LT_REDUCTION_COMPUTE_TYPE | SGT_LT_REDUCTION_OUTPUT_TYPE;
}

/* Get the algorithms that the library's heuristics suggest for p's shape, best first. Return
 * SGT_EUNSUPPORTED if they suggest none. */
static int find_candidates(sgt_lt_result results[CANDIDATES], int *count, const sgt_cuda_gemm *p,
                           sgt_error *err)
{
    const sgt_cuda_gemms *g = p->owner;
    const sgt_cublaslt *lt = g->lt;
    const uint32_t alignment = ALIGNMENT, reductions = allowed_reductions(p);
    const uint64_t workspace = SGT_CUDA_GEMM_WORKSPACE;
    sgt_lt_preference preference;
    int found = 0;
    sgt_lt_status rc = lt->preference_create(&preference);
    if (rc) return refused(g, p->key, rc, err);
    if (!(rc = lt->preference_set(preference, SGT_LT_PREFERENCE_MAX_WORKSPACE, &workspace,
                                  sizeof workspace)))
        rc = lt->preference_set(preference, SGT_LT_PREFERENCE_REDUCTION_MASK, &reductions,
                                sizeof reductions);
    for (int which = SGT_LT_PREFERENCE_ALIGNMENT_A; which <= SGT_LT_PREFERENCE_ALIGNMENT_D && !rc;
         which++)
        rc = lt->preference_set(preference, which, &alignment, sizeof alignment);
    if (!rc)
        rc = lt->heuristics(g->handle, p->desc, p->b, p->a, p->d, p->d, preference, CANDIDATES,
                            results, &found);
    lt->preference_destroy(preference);
    if (rc) return refused(g, p->key, rc, err);
    *count = 0;
    for (int i = 0; i < found; i++)
        if (!results[i].state && results[i].workspace <= SGT_CUDA_GEMM_WORKSPACE)
            results[(*count)++] = results[i];
    if (*count) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s: it has no algorithm for this matrix product",
                    g->library, p->key);
}

static int choose(sgt_cuda_gemm *p, sgt_error *err)
{
    const sgt_cuda_gemms_options *o = &p->owner->o;
    sgt_lt_result candidates[CANDIDATES];
    int count;
    if (recall(p)) return SGT_OK;
    int rc = find_candidates(candidates, &count, p, err);
    if (rc < 0) return rc;
    p->algo = candidates[0].algo;
    if (!o->timing && (!o->deterministic || o->unverified)) return SGT_OK;
    return try_candidates(p, candidates, count, err);
}

/* ---- the functions of gemm.h ---- */

static void free_plan(sgt_cuda_gemm *p)
{
    const sgt_cublaslt *lt = p->owner->lt;
    if (p->d) lt->layout_destroy(p->d);
    if (p->b) lt->layout_destroy(p->b);
    if (p->a) lt->layout_destroy(p->a);
    if (p->desc) lt->desc_destroy(p->desc);
    free(p);
}

int sgt_cuda_gemm_plan(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                       sgt_error *err)
{
    sgt_cuda_gemm *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "a matrix product");
    p->owner = g;
    p->shape = plain(s);
    name_shape(p->key, &p->shape);
    const sgt_cuda_gemm *same = g->first;
    while (same && strcmp(same->key, p->key)) same = same->next;
    int rc = same ? SGT_OK : describe(p, err);
    if (!same && rc == SGT_OK) rc = choose(p, err);
    if (same || rc < 0) {
        free_plan(p);
        *out = same;
        return rc;
    }
    p->next = g->first;
    g->first = p;
    *out = p;
    return SGT_OK;
}

float sgt_cuda_gemm_ms(const sgt_cuda_gemm *p) { return p->ms; }

int sgt_cuda_gemms_open(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err)
{
    const sgt_cublaslt *lt = sgt_cublaslt_load(err);
    if (!lt) return SGT_EUNSUPPORTED;
    sgt_cuda_gemms *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "matrix products");
    size_t v = lt->version();
    g->lt = lt;
    g->o = *o;
    g->o.timing = o->timing && !o->deterministic;
    snprintf(g->library, sizeof g->library, "cuBLASLt %zu.%zu.%zu", v / 10000, v / 100 % 100,
             v % 100);
    snprintf(g->machine, sizeof g->machine, "%s, %s\n", o->device, g->library);
    sgt_lt_status status = lt->create(&g->handle);
    int rc = status ? refused(g, "cublasLtCreate", status, err)
                    : sgt_cuda_malloc(&g->workspace, SGT_CUDA_GEMM_WORKSPACE, err);
    if (rc == SGT_OK) *out = g;
    else sgt_cuda_gemms_close(g);
    return rc;
}

void sgt_cuda_gemms_close(sgt_cuda_gemms *g)
{
    if (!g) return;
    for (sgt_cuda_gemm *p = g->first, *next; p; p = next) {
        next = p->next;
        free_plan(p);
    }
    sgt_cuda_free(g->workspace);
    if (g->handle) g->lt->destroy(g->handle);
    free(g);
}

const char *sgt_cuda_gemms_library(const sgt_cuda_gemms *g) { return g->library; }
