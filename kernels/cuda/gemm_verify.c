/* gemm_verify.c: checks that an algorithm chosen by timing computes correct numbers for its product
 * at its real size. The operands repeat the pattern that gemm_tune.c wrote. The host has it too,
 * and computes a few numbers of D in double. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/gemm_parts.h"
#include "kernels/cuda/runtime.h"

/* numbers checked in each direction: the first, the last, and some between */
enum { ROWS = 8, COLUMNS = 16 };

double sgt_cuda_decode(const void *x, sgt_cuda_type type, size_t i)
{
    float value;
    if (type == SGT_F32) return (double)((const float *)x)[i];
    uint16_t half = ((const uint16_t *)x)[i];
    uint32_t bits = (uint32_t)half << 16;
    /* Move the bits to the positions of a float. Multiplying by 2^112 then corrects the exponent,
     * for subnormals too. */
    if (type == SGT_F16) {
        bits = (bits & 0x80000000u) | (bits & 0x7fff0000u) >> 3;
        memcpy(&value, &bits, sizeof value);
        return (half & 0x7c00) == 0x7c00 ? NAN : (double)value * 0x1p112;
    }
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Return number `at` of an array, computed from the pattern. */
static double input(const gemm_trial *t, const char *array, sgt_cuda_type type, size_t at)
{
    size_t size = gemm_type_bytes(type);
    return sgt_cuda_decode(t->pattern + ((size_t)(array - t->memory) + at * size) % t->period, type,
                           0);
}

/* Return element (i, j) of op(A) op(B) of the batch's product z. *sizes becomes the sum of its
 * terms' absolute values. */
static double product(const gemm_trial *t, size_t z, size_t i, size_t j, double *sizes)
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
    int changes = s->epilogue != SGT_EPILOGUE_NONE && s->epilogue != SGT_EPILOGUE_BGRAD;
    if (s->accumulate || changes) *off += u * fabs(x);
    if (s->accumulate) x += onto;
    if (s->accumulate && changes) *off += u * fabs(x);
    if (s->epilogue == SGT_EPILOGUE_BIAS || s->epilogue == SGT_EPILOGUE_GELU) x += bias;
    if (s->epilogue == SGT_EPILOGUE_GELU) {
        /* D may come from the rounded aux */
        *off = 1.2 * *off + fabs(x) * (0x1p-11 + 1.2 * u);
        x = 0.5 * x * (1 + tanh(root * (x + cube * x * x * x)));
    } else if (s->epilogue >= SGT_EPILOGUE_DGELU) {
        *off = 1.2 * *off + fabs(x) * 1.5 * 0x1p-11;
        x *= slope(aux);
    }
    *off += u * fabs(x);
    return x;
}

/* Return the expected D at (i, j), and set *off to the allowed error. A float32 sum rounds at each
 * of its k terms, and TF32 rounds each factor. Such errors have random signs, so their sum grows
 * with the square root of their number; it does not exceed eight times that by chance. */
static double wanted(const gemm_trial *t, size_t z, size_t i, size_t j, double *off)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double sizes, x = product(t, z, i, j, &sizes), k = (double)s->k;
    size_t at = i * s->ldd + j;
    *off = 8 * sizes * (0x1p-24 * sqrt(k) + (s->tf32 ? 0x1p-10 / sqrt(k) : 0));
    return sgt_cuda_gemm_expected(s, x, input(t, t->d, s->out, z * s->stride_d + at),
                                  input(t, t->bias, s->out, j), input(t, t->aux, s->out, at), off);
}

static size_t spread(size_t index, size_t count, size_t size)
{
    return index * (size - 1) / (count - 1);
}

/* Copy COLUMNS of the n numbers at `from`, spread over them, from the device to t->seen. */
static int look(const gemm_trial *t, const char *from, sgt_cuda_type type, sgt_error *err)
{
    size_t size = gemm_type_bytes(type);
    for (size_t c = 0; c < COLUMNS; c++)
        sgt_cuda_copy(t->stream, t->seen + c * size,
                      from + spread(c, COLUMNS, t->p->shape.n) * size, size);
    return sgt_cuda_finish(t->stream, err);
}

/* Check some numbers of row i of the batch's product z. */
static int row(const gemm_trial *t, size_t z, size_t i, sgt_error *err)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    size_t size = gemm_type_bytes(s->out);
    int rc = look(t, t->d + (z * s->stride_d + i * s->ldd) * size, s->out, err);
    for (size_t c = 0; c < COLUMNS && rc == SGT_OK; c++) {
        size_t j = spread(c, COLUMNS, s->n);
        double off, want = wanted(t, z, i, j, &off), got = sgt_cuda_decode(t->seen, s->out, c);
        if (!(fabs(got - want) <= off))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: %s: an algorithm gives %.6g at (%zu, %zu), not %.6g",
                          t->p->owner->library, t->p->key, got, i, j, want);
    }
    return rc;
}

/* ---- the sums of columns that an epilogue writes to `bias` ---- */

typedef struct column_sum {
    double want, off; /* expected sum, allowed error */
} column_sum;

/* Return the sum of column j of op(B), which BGRAD writes. The allowed error is computed as in
 * `wanted` for a float32 sum of k terms. */
static column_sum operand_sum(const gemm_trial *t, size_t j)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double sum = 0, sizes = 0;
    for (size_t l = 0; l < s->k; l++) {
        double x = input(t, t->b, s->type, s->trans_b ? j * s->ldb + l : l * s->ldb + j);
        sum += x;
        sizes += fabs(x);
    }
    return (column_sum){sum, 8 * sizes * 0x1p-24 * sqrt((double)s->k)};
}

/* Return after how many rows D repeats, because the rows of A and aux repeat with the pattern. */
static size_t rows_that_differ(const gemm_trial *t)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    size_t strides =
        (s->trans_a ? 1 : s->lda) * gemm_type_bytes(s->type) | s->ldd * gemm_type_bytes(s->out);
    size_t common = strides & -strides; /* largest power of 2 that divides both strides */
    size_t rows = common < t->period ? t->period / common : 1;
    return rows < s->m ? rows : s->m;
}

static size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

size_t gemm_sums_bytes(const sgt_cuda_gemm_shape *s)
{
    if (s->epilogue != SGT_EPILOGUE_DGELU_BGRAD) return 0;
    return aligned(s->ldd * sizeof(float)) + sgt_cuda_bias_backward_scratch(s->m, s->ldd);
}

/* Compute the sums of D's columns, which DGELU_BGRAD writes. The host does not have all of D, so
 * our own kernel adds up the D that the product wrote. The library may add numbers before they are
 * rounded to D's type. A number's root mean square is at most 1.13 (GELU's steepest slope) times
 * that of the product, sqrt(k) 7/12. Errors of rounding add up like random numbers, except in rows
 * that repeat. */
static int result_sums(const gemm_trial *t, column_sum sums[COLUMNS], sgt_error *err)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    double m = (double)s->m, size = 1.13 * 7 / 12 * sqrt((double)s->k),
           rounded = sgt_cuda_unit(s->out) * m / sqrt((double)rows_that_differ(t)),
           added = 0x1p-24 * m * sqrt(m);
    sgt_cuda_zero(t->stream, t->sums, s->ldd * sizeof(float));
    sgt_cuda_bias_backward(t->stream, s->out, (void *)t->sums, t->d, s->m, s->ldd,
                           t->sums + aligned(s->ldd * sizeof(float)));
    int rc = look(t, t->sums, SGT_F32, err);
    for (size_t c = 0; c < COLUMNS && rc == SGT_OK; c++)
        sums[c] = (column_sum){sgt_cuda_decode(t->seen, SGT_F32, c), 8 * size * (rounded + added)};
    return rc;
}

/* Check some of the sums. A sum that fp16 cannot hold may be infinite. */
static int column_sums(const gemm_trial *t, sgt_error *err)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    const double most = s->out == SGT_F16 ? 65504 : HUGE_VAL;
    column_sum sums[COLUMNS];
    int rc = SGT_OK;
    if (s->epilogue == SGT_EPILOGUE_DGELU_BGRAD) rc = result_sums(t, sums, err);
    else
        for (size_t c = 0; c < COLUMNS; c++) sums[c] = operand_sum(t, spread(c, COLUMNS, s->n));
    if (rc == SGT_OK) rc = look(t, t->bias, s->out, err);
    for (size_t c = 0; c < COLUMNS && rc == SGT_OK; c++) {
        double want = sums[c].want, off = sums[c].off + sgt_cuda_unit(s->out) * fabs(want),
               got = sgt_cuda_decode(t->seen, s->out, c);
        if (!(fabs(got - want) <= off) && fabs(want) + off < most)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: %s: an algorithm gives %.6g as the sum of column %zu, not %.6g",
                          t->p->owner->library, t->p->key, got, spread(c, COLUMNS, s->n), want);
    }
    return rc;
}

/* Set row i of the batch's product z to the pattern, to which a product that accumulates adds. */
static void fill_row(const gemm_trial *t, size_t z, size_t i)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    size_t size = gemm_type_bytes(s->out), left = s->n * size, n;
    char *to = t->d + (z * s->stride_d + i * s->ldd) * size;
    for (; left; left -= n, to += n) {
        size_t from = (size_t)(to - t->memory) % t->period;
        n = t->period - from < left ? t->period - from : left;
        sgt_cuda_copy(t->stream, to, t->pattern + from, n);
    }
}

int gemm_verify(const gemm_trial *t, const sgt_lt_algo *algo, sgt_error *err)
{
    const sgt_cuda_gemm_shape *s = &t->p->shape;
    int sums = s->epilogue == SGT_EPILOGUE_BGRAD || s->epilogue == SGT_EPILOGUE_DGELU_BGRAD;
    /* D has an earlier product: an accumulating one adds to zeros, and to numbers where we look */
    sgt_cuda_zero(t->stream, t->d, gemm_spans_of(s).d * gemm_type_bytes(s->out));
    for (size_t r = 0; r < ROWS && s->accumulate; r++)
        fill_row(t, spread(r, ROWS, s->batch), spread(r, ROWS, s->m));
    sgt_lt_status status = gemm_put(t->p, algo, t->stream, t->d, t->a, t->b, t->bias, t->aux);
    int rc = status ? sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s: %s", t->p->owner->library, t->p->key,
                               t->p->owner->lt->status_name(status))
                    : SGT_OK;
    for (size_t r = 0; r < ROWS && rc == SGT_OK; r++)
        rc = row(t, spread(r, ROWS, s->batch), spread(r, ROWS, s->m), err);
    return rc == SGT_OK && sums ? column_sums(t, err) : rc;
}
