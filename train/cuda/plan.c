/* plan.c: plans the matrix products of a step. It also chooses whether matrix products compute GELU
 * in their epilogue, or separate kernels do, and for how many positions the head computes logits at
 * a time. */
#include <math.h>

#include "train/cuda/cuda_backend.h"
#include "train/cuda/self_check.h"

const sgt_cuda_layer sgt_cuda_layers[SGT_CUDA_HEAD] = {
    [SGT_CUDA_QKV] = {1, 3, SGT_QKV_W, "qkv forward", "qkv dX", "qkv dW"},
    [SGT_CUDA_PROJ] = {1, 1, SGT_PROJ_W, "proj forward", "proj dX", "proj dW"},
    [SGT_CUDA_FC] = {1, 4, SGT_FC_W, "fc forward", "fc dX", "fc dW"},
    [SGT_CUDA_FCPROJ] = {4, 1, SGT_FCPROJ_W, "fcproj forward", "fcproj dX", "fcproj dW"}};

sgt_cuda_gemm_shape sgt_cuda_product_shape(const sgt_cuda_backend *c, size_t m, size_t n, size_t k)
{
    return (sgt_cuda_gemm_shape){.m = m,
                                 .n = n,
                                 .k = k,
                                 .lda = k,
                                 .ldb = n,
                                 .ldd = n,
                                 .type = c->shape.type,
                                 .out = c->shape.type,
                                 .tf32 = c->o.precision == SGT_PRECISION_TF32};
}

static int plan(sgt_cuda_planned *p, sgt_cuda_backend *c, const char *name,
                const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    p->name = name;
    return sgt_cuda_gemm_plan(&p->gemm, c->plan.gemms, s, err);
}

/* Shapes of the matrix products of a linear layer. forward_shape: y (N, out) = x (N, in) W (in,
 * out) + b. dx_shape and dw_shape: the two products of the backward pass, for the gradients of x
 * and W. */
static sgt_cuda_gemm_shape forward_shape(const sgt_cuda_backend *c, size_t in, size_t out)
{
    sgt_cuda_gemm_shape s = sgt_cuda_product_shape(c, c->shape.N, out, in);
    if (!c->plan.bias_apart) s.epilogue = SGT_EPILOGUE_BIAS;
    return s;
}

static sgt_cuda_gemm_shape dx_shape(const sgt_cuda_backend *c, size_t in, size_t out)
{
    sgt_cuda_gemm_shape s = sgt_cuda_product_shape(c, c->shape.N, in, out);
    s.trans_b = 1;
    s.ldb = out;
    return s;
}

static sgt_cuda_gemm_shape dw_shape(const sgt_cuda_backend *c, size_t in, size_t out)
{
    sgt_cuda_gemm_shape s = sgt_cuda_product_shape(c, in, out, c->shape.N);
    s.trans_a = 1;
    s.accumulate = !c->plan.written;
    s.lda = in;
    s.out = SGT_F32;
    return s;
}

/* Plan the matrix products for one of a block's weights. The bias gradients of qkv and fc are
 * computed on another stream than the product dw. Normally dw occupies all multiprocessors, so the
 * two do not overlap. With the variant bias-room, dw uses only ten of eleven multiprocessors. The
 * rest (12 of an H100's 132) are free for the bias gradient. */
static int plan_linear(sgt_cuda_backend *c, int which, sgt_error *err)
{
    const sgt_cuda_layer *l = sgt_cuda_layers + which;
    size_t in = l->rows * c->shape.C, out = l->columns * c->shape.C;
    sgt_cuda_linear *g = &c->plan.linear[which];
    sgt_cuda_gemm_shape f = forward_shape(c, in, out), dx = dx_shape(c, in, out),
                        dw = dw_shape(c, in, out);
    if (sgt_cuda_norm_bias(c, which)) f.epilogue = SGT_EPILOGUE_NONE;
    if (c->plan.variants & SGT_VARIANT_BIAS_ROOM && (which == SGT_CUDA_QKV || which == SGT_CUDA_FC))
        dw.multiprocessors = c->device.multiprocessors - c->device.multiprocessors / 11;
    int rc = plan(&g->forward, c, l->forward, &f, err);
    if (rc == SGT_OK) rc = plan(&g->dx, c, l->dx, &dx, err);
    return rc == SGT_OK ? plan(&g->dw, c, l->dw, &dw, err) : rc;
}

/* Plan the matrix product for the logits of `rows` positions: logits (rows, V) = x (rows, C) W^T
 * (C, V), where W (V, C) is the head's weight. Set plan.head_rows to `rows`. */
static int plan_logits(sgt_cuda_backend *c, size_t rows, sgt_error *err)
{
    sgt_cuda_gemm_shape f = sgt_cuda_product_shape(c, rows, c->shape.rows_v, c->shape.C);
    f.trans_b = 1;
    f.ldb = c->shape.C;
    f.ldd = c->shape.ldv;
    c->plan.head_rows = rows;
    return plan(&c->plan.linear[SGT_CUDA_HEAD].forward, c, "head forward", &f, err);
}

/* Chunk sizes, in positions, that the variant head-chunks tries. Even 128 positions keep a GPU
 * busy: their logits have 50,304 columns, that is, 393 tiles of 128 columns, which is nearly three
 * tiles for each of an H100's 132 multiprocessors. */
static const size_t chunks[] = {128, 256, SGT_CUDA_CHUNK};
enum { CHUNKS = sizeof chunks / sizeof *chunks };

/* Return candidate i for the number of positions for which the head computes logits at a time.
 * Candidates are in ascending order, and the last one is N. Without the variant head-chunks, N is
 * the only candidate. */
static size_t head_choice(const sgt_cuda_backend *c, size_t i)
{
    int may = c->plan.variants & SGT_VARIANT_HEAD_CHUNKS && i < CHUNKS;
    return may && chunks[i] < c->shape.N ? chunks[i] : c->shape.N;
}

/* Plan the matrix products of the head. Plan the product for the logits with every candidate that
 * head_choice returns, to check that the library supports all of them. The last plan, for N
 * positions, stays in use unless sgt_cuda_choose_head replaces it. */
static int plan_head(sgt_cuda_backend *c, sgt_error *err)
{
    size_t V = c->shape.rows_v, C = c->shape.C, N = c->shape.N;
    sgt_cuda_linear *g = &c->plan.linear[SGT_CUDA_HEAD];
    sgt_cuda_gemm_shape dx = sgt_cuda_product_shape(c, N, C, V),
                        dw = sgt_cuda_product_shape(c, V, C, N);
    int rc = SGT_OK;
    dx.lda = dw.lda = c->shape.ldv;
    dw.trans_a = 1;
    dw.accumulate = !c->plan.written;
    dw.out = SGT_F32;
    for (size_t i = 0, rows = 0; rows < N && rc == SGT_OK; i++)
        rc = plan_logits(c, rows = head_choice(c, i), err);
    if (rc == SGT_OK) rc = plan(&g->dx, c, "head dX", &dx, err);
    return rc == SGT_OK ? plan(&g->dw, c, "head dW", &dw, err) : rc;
}

/* ---- GELU as an epilogue ---- */

/* Plan a matrix product with an epilogue. If the library does not support it, set p->gemm to
 * NULL. */
static void plan_fused(sgt_cuda_planned *p, sgt_cuda_backend *c, const char *name,
                       sgt_cuda_gemm_shape s, sgt_cuda_epilogue epilogue)
{
    sgt_error why;
    s.epilogue = epilogue;
    if (plan(p, c, name, &s, &why) < 0) p->gemm = NULL;
}

/* Plan the matrix products that have GELU as an epilogue, which the library supports only for
 * GELU's tanh form. Do not plan fc_gelu if a layer may recompute GELU. The recomputation uses sgt's
 * separate kernel, which rounds differently from the epilogue, but recomputation must not change
 * any bit of the results.
 *
 * An epilogue is used only if its verdict is "ok". sgt_cuda_gemm_plan checks the shapes of this run
 * as well, but compares only elements of D, not the input of GELU that the epilogue stores. */
static void plan_gelu(sgt_cuda_backend *c)
{
    const sgt_cuda_layer *fc = &sgt_cuda_layers[SGT_CUDA_FC],
                         *fcproj = &sgt_cuda_layers[SGT_CUDA_FCPROJ];
    c->plan.fc_gelu.gemm = c->plan.dgelu.gemm = NULL;
    if (c->o.no_fuse || c->model.gelu != SGT_GELU_TANH) return;
    if (!c->o.recompute_at && c->o.recompute != SGT_RECOMPUTE_GELU &&
        !sgt_verdict_not_ok(c->o.verdicts, SGT_CHECK_GELU))
        plan_fused(&c->plan.fc_gelu, c, fc->forward, forward_shape(c, c->shape.C, 4 * c->shape.C),
                   SGT_EPILOGUE_GELU);
    if (!sgt_verdict_not_ok(c->o.verdicts, SGT_CHECK_SLOPE))
        plan_fused(&c->plan.dgelu, c, fcproj->dx, dx_shape(c, 4 * c->shape.C, c->shape.C),
                   SGT_EPILOGUE_DGELU);
}

/* Run the separate GELU kernel on an (N, 4C) array, to time it. The array's values are arbitrary,
 * because they do not influence the time. */
static void gelu(sgt_cuda_backend *c)
{
    sgt_cuda_gelu(c->queue.compute, c->shape.type, c->buf.blocks->gelu, c->buf.blocks->fc,
                  c->shape.N * 4 * c->shape.C, c->model.gelu);
}

static void gelu_backward(sgt_cuda_backend *c)
{
    sgt_cuda_gelu_backward(c->queue.compute, c->shape.type, c->buf.dwide, c->buf.dwide,
                           c->buf.blocks->fc, c->shape.N * 4 * c->shape.C, c->model.gelu);
}

int sgt_cuda_time(sgt_cuda_backend *c, void (*work)(sgt_cuda_backend *), float *ms, sgt_error *err)
{
    enum { ROUNDS = 10 };
    sgt_cuda_event from = NULL, to = NULL;
    *ms = 0;
    int rc = sgt_cuda_event_new(&from, 1, err);
    if (rc == SGT_OK) rc = sgt_cuda_event_new(&to, 1, err);
    for (int i = -1; i < ROUNDS && rc == SGT_OK; i++) {
        if (i == 0) sgt_cuda_record(from, c->queue.compute);
        work(c);
    }
    if (rc == SGT_OK) {
        sgt_cuda_record(to, c->queue.compute);
        rc = sgt_cuda_finish(c->queue.compute, err);
    }
    if (rc == SGT_OK) rc = sgt_cuda_elapsed_ms(ms, from, to, err);
    *ms /= ROUNDS;
    sgt_cuda_event_free(from);
    sgt_cuda_event_free(to);
    return rc;
}

static float ms_of(const sgt_cuda_planned *p) { return p->gemm ? sgt_cuda_gemm_ms(p->gemm) : 0; }

/* Choose how to compute GELU in the forward pass, and its derivative in the backward pass: in a
 * matrix product's epilogue, or in a separate kernel. If products are timed, choose the alternative
 * that is faster on rank 0. Otherwise use the epilogues. */
int sgt_cuda_choose_gelu(sgt_cuda_backend *c, sgt_error *err)
{
    float forward, slope;
    const sgt_cuda_linear *fc = &c->plan.linear[SGT_CUDA_FC],
                          *fcproj = &c->plan.linear[SGT_CUDA_FCPROJ];
    int rc = SGT_OK, apart[2] = {!c->plan.fc_gelu.gemm, !c->plan.dgelu.gemm};
    if (ms_of(&fc->forward) > 0) {
        rc = sgt_cuda_time(c, gelu, &forward, err);
        if (rc == SGT_OK) rc = sgt_cuda_time(c, gelu_backward, &slope, err);
        if (rc < 0) return rc;
        apart[0] |= ms_of(&c->plan.fc_gelu) >= ms_of(&fc->forward) + forward;
        apart[1] |= ms_of(&c->plan.dgelu) >= ms_of(&fcproj->dx) + slope;
    }
    rc = sgt_cuda_ranks_follow(c, apart, sizeof apart, err);
    if (apart[0]) c->plan.fc_gelu.gemm = NULL;
    if (apart[1]) c->plan.dgelu.gemm = NULL;
    return rc;
}

static void head(sgt_cuda_backend *c) { sgt_cuda_head(c, 1); }

/* With the variant head-chunks, choose for how many positions the head computes logits at a time.
 * Rank 0 chooses the candidate with the lowest measured time or, if nothing is timed, the smallest
 * candidate. All ranks use its choice. */
int sgt_cuda_choose_head(sgt_cuda_backend *c, sgt_error *err)
{
    const int timed = ms_of(&c->plan.linear[SGT_CUDA_HEAD].forward) > 0;
    size_t best = head_choice(c, 0), rows = 0;
    float ms = 0, least = INFINITY;
    int rc;
    if (best == c->shape.N) return SGT_OK;
    /* use valid targets (0), and set activations to 0, because arbitrary bits may slow down the
     * operations that are timed */
    sgt_cuda_zero(c->queue.compute, c->buf.targets, c->shape.N * sizeof *c->buf.targets);
    sgt_cuda_zero(c->queue.compute, c->buf.lnf, c->shape.N * c->shape.C * c->shape.width);
    for (size_t i = 0; timed && rows < c->shape.N; i++) {
        rc = plan_logits(c, rows = head_choice(c, i), err);
        if (rc == SGT_OK) rc = sgt_cuda_time(c, head, &ms, err);
        if (rc < 0) return rc;
        sgt_say(&c->o.detail, "head: %zu rows of logits at a time take %.3f ms", rows, (double)ms);
        if (ms >= least) continue;
        least = ms;
        best = rows;
    }
    rc = sgt_cuda_ranks_follow(c, &best, sizeof best, err);
    return rc == SGT_OK ? plan_logits(c, best, err) : rc;
}

/* ---- naive attention ---- */

/* Plan a matrix product that is batched over the B*H heads, for example q k^T, which is (T, T). The
 * matrices of successive heads are adjacent in memory. */
static int plan_heads(sgt_cuda_planned *p, sgt_cuda_backend *c, size_t m, size_t n, size_t k,
                      int trans_a, int trans_b, sgt_error *err)
{
    sgt_cuda_gemm_shape s = sgt_cuda_product_shape(c, m, n, k);
    s.trans_a = trans_a;
    s.trans_b = trans_b;
    s.lda = trans_a ? m : k;
    s.ldb = trans_b ? k : n;
    s.batch = c->shape.B * c->shape.H;
    s.stride_a = m * k;
    s.stride_b = k * n;
    s.stride_d = m * n;
    return plan(p, c, "attention products", &s, err);
}

static int plan_naive(sgt_cuda_backend *c, sgt_error *err)
{
    size_t T = c->shape.T, D = c->shape.D;
    sgt_cuda_naive *n = &c->plan.naive;
    int rc = plan_heads(&n->outer, c, T, T, D, 0, 1, err);              /* q k^T and dout v^T */
    if (rc == SGT_OK) rc = plan_heads(&n->rows, c, T, D, T, 0, 0, err); /* probs v and dscores k */
    /* probs^T dout and dscores^T q */
    if (rc == SGT_OK) rc = plan_heads(&n->columns, c, T, D, T, 1, 0, err);
    return rc;
}

int sgt_cuda_plan_products(sgt_cuda_backend *c, sgt_error *err)
{
    int rc =
        sgt_check_refuse(sgt_verdict_out(c->o.verdicts, SGT_CHECK_PRODUCTS), "cuBLASLt: ", err);
    c->plan.bias_apart = c->o.no_fuse || sgt_verdict_not_ok(c->o.verdicts, SGT_CHECK_BIAS);
    for (int i = 0; i < SGT_CUDA_HEAD && rc == SGT_OK; i++) rc = plan_linear(c, i, err);
    if (rc == SGT_OK) rc = plan_head(c, err);
    if (rc == SGT_OK && c->plan.path == SGT_PATH_NAIVE) rc = plan_naive(c, err);
    if (rc == SGT_OK) rc = sgt_cuda_muon_plan(c, err);
    if (rc == SGT_OK) plan_gelu(c);
    return rc;
}
