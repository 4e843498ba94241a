/* self_check_loss.c: checks the loss kernel with bulk copies (variant cross-entropy-bulk) against
 * kernels/ref. The logits come from sgt_check_fill, so every type represents them exactly. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"
#include "kernels/kernels.h"
#include "train/cuda/self_check.h"

/* Logits (n, ld), of which V columns are read. */
typedef struct shape {
    size_t n, V, ld;
} shape;

/* The first shape has more rows than 132 blocks with four stages hold at once, so stages are
 * reused. The second has rows as long as GPT-2's vocabulary, two of which fill the shared
 * memory. */
static const shape shapes[] = {{540, 205, 208}, {3, 50257, 50304}};
enum { MOST_ROWS = 540, MOST_LOGITS = 3 * 50304, SCALE = 1024 };

typedef struct rows {          /* the kernel's data, on the device */
    float logits[MOST_LOGITS]; /* 16-bit types use only half of the bytes */
    float loss[MOST_ROWS], scale;
    int32_t targets[MOST_ROWS];
} rows;

typedef struct numbers {
    sgt_check_space space; /* device memory and pinned memory for one `rows` each */
    float *want;           /* logits on the host, then their gradients */
    float loss[MOST_ROWS];
} numbers;

/* Bound of the relative error of a sum of exponentials, in units of u = 2^-24. exp(x - max) has a
 * relative error of at most 11 u, as logits differ by at most 2. The running maximum may change
 * V/4096 + 2 times, and each change multiplies the sum by such a factor. A thread adds V/512 + 8
 * terms, and a warp and a block add 21. Together that is at most 300 u. The loss adds two
 * logarithms of up to 12, each with an error of 2 u. */
static const double sums = 350 * 0x1p-24;

static int compare(const numbers *x, const shape *s, sgt_cuda_type type, sgt_error *err)
{
    const rows *got = x->space.pinned;
    for (size_t i = 0; i < s->n; i++) {
        double loss = (double)got->loss[i], want = (double)x->loss[i];
        if (!(fabs(loss - want) <= (want > 0 ? sums : 0)))
            return sgt_fail(err, SGT_EFORMAT, "logits in %s: loss %zu of %zu is %.7g, not %.7g",
                            sgt_check_type(type), i, s->n, loss, want);
    }
    for (size_t i = 0; i < s->n * s->ld; i++) {
        double slope = sgt_cuda_decode(got->logits, type, i), want = (double)x->want[i];
        if (!(fabs(slope - want) <= (sums + sgt_cuda_unit(type)) * fabs(want)))
            return sgt_fail(err, SGT_EFORMAT, "logits in %s: gradient (%zu, %zu) is %.6g, not %.6g",
                            sgt_check_type(type), i / s->ld, i % s->ld, slope, want);
    }
    return SGT_OK;
}

/* Fill in the kernel's inputs. Every seventh target is ignored. SCALE is so large that no gradient
 * is below fp16's normal numbers. */
static void fill(numbers *x, const shape *s, sgt_cuda_type type)
{
    rows *to = x->space.pinned;
    memset(to, 0xff, sizeof *to); /* NaN in every type */
    sgt_check_fill(x->want, s->n * s->ld, 1);
    sgt_check_encode(to->logits, type, x->want, s->n * s->ld);
    for (size_t i = 0; i < s->n; i++) to->targets[i] = i % 7 == 2 ? -1 : (int32_t)(i * 997 % s->V);
    to->scale = SCALE;
    sgt_kernels_ref()->cross_entropy(x->want, x->loss, to->targets, s->n, s->V, s->ld, SCALE);
}

static int check(numbers *x, const shape *s, sgt_cuda_type type, sgt_error *err)
{
    rows *d = x->space.device;
    if (!sgt_cuda_cross_entropy_bulk_serves(type, s->V, s->ld)) return SGT_OK;
    fill(x, s, type);
    sgt_cuda_copy(x->space.stream, d, x->space.pinned, sizeof *d);
    sgt_cuda_cross_entropy_bulk(x->space.stream, type, d->logits, d->loss, d->targets, s->n, s->V,
                                s->ld, &d->scale);
    sgt_cuda_copy(x->space.stream, x->space.pinned, d, sizeof *d);
    int rc = sgt_cuda_finish(x->space.stream, err);
    return rc == SGT_OK ? compare(x, s, type, err) : rc;
}

int sgt_check_bulk_loss(int device, sgt_error *err)
{
    static const sgt_cuda_type types[] = {SGT_BF16, SGT_F16, SGT_F32};
    (void)device;
    if (!sgt_cuda_cross_entropy_bulk_serves(SGT_BF16, 8, 8))
        return sgt_fail(err, SGT_EUNSUPPORTED, "no GPU of sm_90");
    numbers x = {.want = malloc(MOST_LOGITS * sizeof(float))};
    if (!x.want) return sgt_fail_memory(err, "self-check");
    int rc = sgt_check_space_open(&x.space, sizeof(rows), err);
    for (int i = 0; i < 6 && rc == SGT_OK; i++) rc = check(&x, &shapes[i % 2], types[i / 2], err);
    sgt_check_space_close(&x.space);
    free(x.want);
    return rc;
}
