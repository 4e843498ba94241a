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
    int changes = s->epilogue != SGT_EPILOGUE_NONE;
    if (s->accumulate || changes) *off += u * fabs(x);
    if (s->accumulate) x += onto;
    if (s->accumulate && changes) *off += u * fabs(x);
    if (s->epilogue == SGT_EPILOGUE_BIAS || s->epilogue == SGT_EPILOGUE_GELU) x += bias;
    if (s->epilogue == SGT_EPILOGUE_GELU) {
        /* D may come from the rounded aux */
        *off = 1.2 * *off + fabs(x) * (0x1p-11 + 1.2 * u);
        x = 0.5 * x * (1 + tanh(root * (x + cube * x * x * x)));
    } else if (s->epilogue == SGT_EPILOGUE_DGELU) {
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
    return rc;
}
