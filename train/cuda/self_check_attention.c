/* self_check_attention.c: checks every implementation of attention as training uses it. A backend
 * with one layer runs the forward and backward pass on inputs that were copied to its memory. The
 * results are compared with those of the reference implementation, kernels/ref. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"
#include "kernels/cuda/gemm.h"
#include "kernels/dropout.h"
#include "kernels/kernels.h"
#include "train/cuda/self_check.h"

/* Values of T (tokens per row) in the checks. All are multiples of 8, because matrix products
 * require rows of T elements to be aligned to 16 bytes.
 *   SHORT  used with two rows and two heads
 *   EVEN   a multiple of 128, which cuDNN up to 9.15.0 requires
 *   LONG   three tiles of 128 keys and a remainder, so that every loop over tiles runs several
 *          times and reuses its buffers
 * SHORT and LONG are not multiples of a tile's number of rows, so that an incomplete last tile is
 * tested. Checks with LONG and EVEN have only one row and one head, because the reference
 * implementation (kernels/ref) takes 11 times as long per head as with SHORT. */
enum { SHORT = 120, EVEN = 384, LONG = 392 };
static const float RATE = 0.1f; /* dropout rate */

/* What to check. */
typedef struct setting {
    const char *path;
    sgt_precision precision;
    size_t D, T;       /* D: channels per head; T: tokens per row */
    int deterministic; /* 1: as with --deterministic */
    /* 1: check with dropout and with several documents per row, for which the backend launches
     * different kernels; 0: check without them */
    int masked;
} setting;

/* Inputs and expected results of a check, on the host. All arrays are in one allocation, which
 * begins at qkv. Inputs and expected results do not depend on the precision or the attention
 * implementation, so successive settings that differ only in these use the same inputs and expected
 * results. */
typedef struct numbers {
    int masked; /* as in `setting` */
    /* for each position (B, T): index in its row of the first position of its document */
    int32_t *starts;
    size_t B, T, H, D; /* B: rows; T: tokens per row; H: heads; D: channels per head */
    size_t one;        /* elements of an array (B, T, H, D) */
    /* inputs: qkv (B, T, 3, H, D), and dout (B, T, H, D), the gradient of the output */
    float *qkv, *dout;
    float *out, *dqkv;    /* results of kernels/ref */
    float *lse, *scratch; /* used by kernels/ref */
    /* buffer for inputs and results in the device's number format, with room for (B, T, 3, H, D)
     * elements */
    float *packed;
} numbers;

/* Return the number of rows, which is also the number of heads, of a check with T tokens per
 * row. */
static uint32_t few(size_t T) { return T == SHORT ? 2 : 1; }

static int allocate(numbers *x, const setting *s, sgt_error *err)
{
    size_t T = s->T, D = s->D, B = few(T), scratch = sgt_kernels_ref()->attention_scratch(T, D);
    *x = (numbers){.masked = s->masked, .B = B, .T = T, .H = B, .D = D, .one = B * T * B * D};
    x->qkv = calloc(11 * x->one + T + scratch + B * T, sizeof(float));
    if (!x->qkv) return sgt_fail_memory(err, "self-check");
    x->dqkv = x->qkv + 3 * x->one;
    x->packed = x->dqkv + 3 * x->one;
    x->dout = x->packed + 3 * x->one;
    x->out = x->dout + x->one;
    /* scratch must begin at an even index of the float array, because the reference implementation
     * stores doubles in it */
    x->scratch = x->out + x->one;
    x->lse = x->scratch + scratch;
    x->starts = (int32_t *)(void *)(x->lse + T);
    for (size_t i = 0; i < B * T; i++) {
        /* Choose document lengths that are not multiples of a tile, so that documents begin inside
         * tiles. If T is LONG, the first document of a row has 300 positions, which is more than
         * two tiles of keys. Otherwise, documents have 50 positions in the first row, and 31 in the
         * second. */
        size_t length = T == LONG ? 300 : i < T ? 50 : 31;
        x->starts[i] = (int32_t)(i % T / length * length);
    }
    sgt_check_fill(x->qkv, 3 * x->one, 1);
    sgt_check_fill(x->dout, x->one, 2);
    return SGT_OK;
}

static void compute(numbers *x)
{
    size_t T = x->T, H = x->H, row = H * x->D;
    for (size_t b = 0; b < x->B; b++)
        for (size_t h = 0; h < H; h++) {
            size_t in = b * T * 3 * row + h * x->D, at = b * T * row + h * x->D;
            float scale = 1 / sqrtf((float)x->D), *q = x->qkv + in, *dq = x->dqkv + in;
            const sgt_dropout dropout = {.draw = sgt_dropout_draw(0, 0, SGT_DROP_ATTENTION),
                                         .first = sgt_dropout_attention_element(b, h, 0, 0, H, T),
                                         .rate = RATE};
            const sgt_dropout *drop = x->masked ? &dropout : NULL;
            const int32_t *start = x->masked ? x->starts + b * T : NULL;
            sgt_kernels_ref()->attention(x->out + at, row, x->lse, q, q + row, q + 2 * row, 3 * row,
                                         T, x->D, scale, drop, start, x->scratch);
            sgt_kernels_ref()->attention_backward(dq, dq + row, dq + 2 * row, 3 * row, x->dout + at,
                                                  x->out + at, row, x->lse, q, q + row, q + 2 * row,
                                                  3 * row, T, x->D, scale, drop, start, x->scratch);
        }
}

/* Compute the inputs and expected results for the setting *s, unless *x contains them already. */
static int prepare(numbers *x, const setting *s, sgt_error *err)
{
    if (x->qkv && x->T == s->T && x->D == s->D && x->masked == s->masked) return SGT_OK;
    free(x->qkv);
    int rc = allocate(x, s, err);
    if (rc == SGT_OK) compute(x);
    return rc;
}

/* Return the relative error of a result: the root mean square of the errors, divided by the root
 * mean square of the expected values `want`. A result may consist of `parts` interleaved arrays,
 * such as the gradients of q, k and v. In this case, compare only the array with index `part`. */
static double distance(const numbers *x, sgt_cuda_type type, const float *want, size_t part,
                       size_t parts)
{
    double off = 0, all = 0;
    size_t row = x->H * x->D;
    for (size_t i = 0; i < parts * x->one; i++) {
        if (i / row % parts != part) continue;
        double d = sgt_cuda_decode(x->packed, type, i) - (double)want[i];
        off += d * d;
        all += (double)want[i] * (double)want[i];
    }
    return sqrt(off / all);
}

/* Return the largest relative error (see `distance`) that counts as correct. Rounding errors have
 * random signs, so the relative error of a sum is not larger than that of its terms. Each term is
 * rounded at most six times, and once more with dropout. (Naive attention rounds the scores, the
 * probabilities, the outputs, the gradients of probabilities and of scores, and the result.) In
 * float32, partial sums of up to T or D terms are rounded as well; T roundings are allowed for
 * this. */
static double bound(const sgt_cuda_backend *c, const numbers *x)
{
    int roundings = 6 + x->masked;
    /* TF32 also rounds each operand of a matrix product to 11 significant bits */
    if (c->o.precision == SGT_PRECISION_TF32) return roundings * 0x1p-11;
    return (c->shape.type == SGT_F32 ? (double)x->T : roundings) * sgt_cuda_unit(c->shape.type);
}

static int compare(const sgt_cuda_backend *c, const numbers *x, const float *want, size_t parts,
                   sgt_error *err)
{
    static const char *const names[] = {"dq", "dk", "dv"};
    for (size_t part = 0; part < parts; part++) {
        double d = distance(x, c->shape.type, want, part, parts);
        if (!(d <= bound(c, x)))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s%s in %s has a relative error of %.2g, but at most %.2g is allowed",
                            parts == 1 ? "the output" : names[part],
                            x->masked ? " with dropout and documents" : "",
                            sgt_check_type(c->shape.type), d, bound(c, x));
    }
    return SGT_OK;
}

static int put(sgt_cuda_backend *c, numbers *x, void *to, const float *from, size_t n,
               sgt_error *err)
{
    sgt_check_encode(x->packed, c->shape.type, from, n);
    return sgt_cuda_stage(c, to, NULL, x->packed, n * c->shape.width / sizeof(float), err);
}

static int get(sgt_cuda_backend *c, numbers *x, void *from, size_t n, sgt_error *err)
{
    return sgt_cuda_stage(c, from, x->packed, NULL, n * c->shape.width / sizeof(float), err);
}

/* Set dropout's random numbers and the starts of documents, as a training step does. */
static int mask(sgt_cuda_backend *c, numbers *x, sgt_error *err)
{
    float *starts = (float *)(void *)c->buf.starts[0];
    sgt_cuda_begin_micro_step(c->queue.compute, c->buf.control, c->buf.place, 1, 0, 0, 0);
    int rc = sgt_cuda_stage(c, starts, NULL, (const float *)(void *)x->starts, x->B * x->T, err);
    if (rc == SGT_OK)
        sgt_cuda_place_documents(c->queue.compute, &c->buf.documents, c->buf.starts[0], x->B, x->T);
    return rc;
}

/* Run the forward and backward pass, and compare their results. First set the memory for results to
 * 0. Otherwise, if an implementation wrote nothing, the correct results of the previous one might
 * still be there. */
static int both_passes(sgt_cuda_backend *c, numbers *x, sgt_error *err)
{
    int rc = put(c, x, c->buf.blocks->qkv, x->qkv, 3 * x->one, err);
    if (rc == SGT_OK) rc = put(c, x, c->buf.dln, x->dout, x->one, err);
    if (rc == SGT_OK && x->masked) rc = mask(c, x, err);
    if (rc < 0) return rc;
    sgt_cuda_spoil_cudnn(c);
    sgt_cuda_zero(c->queue.compute, c->buf.blocks->att, x->one * c->shape.width);
    sgt_cuda_zero(c->queue.compute, c->buf.dwide, 3 * x->one * c->shape.width);
    sgt_cuda_attend(c, 0, 1);
    sgt_cuda_attend_backward(c, 0);
    if ((rc = get(c, x, c->buf.blocks->att, x->one, err)) == SGT_OK)
        rc = compare(c, x, x->out, 1, err);
    if (rc == SGT_OK) rc = get(c, x, c->buf.dwide, 3 * x->one, err);
    return rc == SGT_OK ? compare(c, x, x->dqkv, 3, err) : rc;
}

static int check(numbers *x, int device, const setting *s, sgt_error *err)
{
    sgt_backend *b;
    uint32_t T = (uint32_t)s->T;
    sgt_backend_options o = {.model = {.layers = 1,
                                       .channels = few(T) * (uint32_t)s->D,
                                       .heads = few(T),
                                       .vocab = 128,
                                       .positions = T,
                                       .eps = 1e-5f},
                             .batch = few(T),
                             .seq = T,
                             .threads = 1,
                             .precision = s->precision,
                             .attention =
                                 strcmp(s->path, SGT_CHECK_CUDNN) == 0   ? SGT_ATTENTION_CUDNN
                                 : strcmp(s->path, SGT_CHECK_NAIVE) == 0 ? SGT_ATTENTION_NAIVE
                                 : strcmp(s->path, SGT_CHECK_OWN) == 0   ? SGT_ATTENTION_MMA
                                                                         : SGT_ATTENTION_OWN,
                             .deterministic = s->deterministic,
                             .dropout = s->masked ? RATE : 0,
                             .documents = s->masked,
                             .card = (uint32_t)device,
                             .checking = 1};
    int rc = sgt_cuda_backend_open(&b, &o, err);
    if (rc < 0) return rc;
    rc = prepare(x, s, err);
    if (rc == SGT_OK) rc = both_passes((sgt_cuda_backend *)b, x, err);
    b->close(b);
    return rc;
}

/* Settings of the checks. cuDNN must support its first setting, which `auto` uses by default. It
 * may lack the others, because it may support no fp16, no wide heads, no deterministic sums, or
 * only multiples of 128 tokens. In these cases the verdict says nothing about what it lacks. */
static const setting settings[] = {{SGT_CHECK_OWN, SGT_PRECISION_BF16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_OWN, SGT_PRECISION_FP16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_OWN, SGT_PRECISION_FP32, 64, SHORT, 0, 0},
                                   {SGT_CHECK_OWN, SGT_PRECISION_TF32, 64, SHORT, 0, 0},
                                   {SGT_CHECK_OWN, SGT_PRECISION_BF16, 128, SHORT, 0, 0},
                                   {SGT_CHECK_OWN, SGT_PRECISION_BF16, 64, SHORT, 0, 1},
                                   {SGT_CHECK_OWN, SGT_PRECISION_FP32, 64, SHORT, 0, 1},
                                   {SGT_CHECK_OWN, SGT_PRECISION_BF16, 64, LONG, 0, 0},
                                   {SGT_CHECK_OWN, SGT_PRECISION_BF16, 64, LONG, 0, 1},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_FP16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 128, SHORT, 0, 0},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 64, SHORT, 0, 1},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 64, LONG, 0, 0},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 128, LONG, 0, 0},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 64, LONG, 0, 1},
                                   {SGT_CHECK_HOPPER, SGT_PRECISION_BF16, 128, LONG, 0, 1},
                                   {SGT_CHECK_CUDNN, SGT_PRECISION_BF16, 64, EVEN, 0, 0},
                                   {SGT_CHECK_CUDNN, SGT_PRECISION_FP16, 64, EVEN, 0, 0},
                                   {SGT_CHECK_CUDNN, SGT_PRECISION_BF16, 64, EVEN, 1, 0},
                                   {SGT_CHECK_CUDNN, SGT_PRECISION_BF16, 128, EVEN, 0, 0},
                                   {SGT_CHECK_CUDNN, SGT_PRECISION_BF16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_NAIVE, SGT_PRECISION_BF16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_NAIVE, SGT_PRECISION_FP16, 64, SHORT, 0, 0},
                                   {SGT_CHECK_NAIVE, SGT_PRECISION_FP32, 64, SHORT, 0, 0},
                                   {SGT_CHECK_NAIVE, SGT_PRECISION_BF16, 64, SHORT, 0, 1}};

int sgt_check_attention(const char *path, int device, sgt_error *err)
{
    int rc = SGT_OK, begun = 0;
    numbers x = {0};
    if (strcmp(path, SGT_CHECK_HOPPER) == 0 && !sgt_cuda_attention_hopper_serves(SGT_BF16, 64))
        return sgt_fail(err, SGT_EUNSUPPORTED, "this GPU is not sm_90");
    for (size_t i = 0; i < sizeof settings / sizeof *settings && rc == SGT_OK; i++) {
        const setting *s = settings + i;
        if (strcmp(s->path, path) != 0) continue;
        rc = check(&x, device, s, err);
        if (rc == SGT_EUNSUPPORTED && begun && strcmp(path, SGT_CHECK_CUDNN) == 0) rc = SGT_OK;
        begun = 1;
    }
    free(x.qkv);
    return rc;
}
