/* attention.c: chooses the implementation of attention for a run, and launches its kernels. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"
#include "kernels/cuda/gemm.h"
#include "kernels/dropout.h"
#include "train/cuda/self_check.h"

/* ---- choosing the implementation ---- */

static int refuse(const char *what, const char *why, sgt_error *err)
{
    return sgt_fail(err, SGT_EUNSUPPORTED, "--attention %s: %s", what, why);
}

static int open_cudnn(sgt_cuda_backend *c, sgt_error *err)
{
    const sgt_checked *v = sgt_verdict_of(c->o.verdicts, SGT_CHECK_CUDNN);
    sgt_cudnn_attention_options o = {.type = c->shape.type,
                                     .B = c->shape.B,
                                     .T = c->shape.T,
                                     .H = c->shape.H,
                                     .D = c->shape.D,
                                     .scale = c->shape.scale,
                                     .deterministic = c->o.deterministic};
    /* Set cuDNN's accumulated sums of dQ to 0 before each backward pass, unless the self-check has
     * shown that cuDNN does so itself, and look_at_sums finds the same for the shape of this run.
     * The self-check's own runs must leave this to cuDNN. With --deterministic, cuDNN accumulates
     * no such sums. */
    c->plan.clear_dq =
        !c->o.deterministic && !c->o.checking && (!v || strcmp(v->verdict, "ok") != 0);
    return sgt_cudnn_attention_open(&c->plan.cudnn, &o, err);
}

/* If the self-check has a verdict on `path` (a kernel or a library) and the verdict is not "ok",
 * return the reason why training must not use `path`. Otherwise return NULL. */
static const char *left_out(const sgt_cuda_backend *c, const char *path, sgt_error *why)
{
    const sgt_checked *v = sgt_verdict_not_ok(c->o.verdicts, path);
    if (!v) return NULL;
    sgt_check_refuse(v, "", why);
    return why->text;
}

/* Choose between sgt's two fused attention implementations. Return the one for sm_90 (H100 and
 * H200), unless --attention mma was given, it does not support the head size, or it has failed the
 * self-check. In these cases, return the one for all GPUs. */
static sgt_cuda_path our_path(const sgt_cuda_backend *c)
{
    sgt_error why;
    return c->o.attention != SGT_ATTENTION_MMA &&
                   sgt_cuda_attention_hopper_serves(c->shape.type, c->shape.D) &&
                   !left_out(c, SGT_CHECK_HOPPER, &why)
               ? SGT_PATH_HOPPER
               : SGT_PATH_OWN;
}

static const char *own_lacks(const sgt_cuda_backend *c, sgt_error *why)
{
    if (sgt_cuda_attention_serves(c->shape.D)) return left_out(c, SGT_CHECK_OWN, why);
    sgt_fail(why, SGT_EUNSUPPORTED,
             "the head size is %zu, but it must be a multiple of 8, up to 128", c->shape.D);
    return why->text;
}

static const char *cudnn_lacks(sgt_cuda_backend *c, sgt_error *why)
{
    if (c->o.dropout > 0) return "--dropout is not supported with cuDNN";
    if (c->o.documents) return "--document-mask is not supported with cuDNN";
    if (sgt_verdict_out(c->o.verdicts, SGT_CHECK_CUDNN)) return left_out(c, SGT_CHECK_CUDNN, why);
    if (open_cudnn(c, why) == SGT_OK) {
        /* cuDNN supports the shapes of this run, but perhaps none of the shapes that the self-check
         * uses. The verdict is then "absent". In that case, do not use cuDNN, because its results
         * have never been checked on this machine. */
        if (!left_out(c, SGT_CHECK_CUDNN, why)) return NULL;
        sgt_cudnn_attention_close(c->plan.cudnn);
    }
    c->plan.cudnn = NULL;
    return why->text;
}

/* Choose naive attention, which supports any head size. Give a notice with the reason why sgt's
 * fused attention is not used, unless the reason is a failed self-check, which has already been
 * reported. */
static int choose_naive(sgt_cuda_backend *c, const char *own, sgt_error *err)
{
    sgt_error why;
    c->plan.path = SGT_PATH_NAIVE;
    if (left_out(c, SGT_CHECK_NAIVE, &why)) return refuse("auto", why.text, err);
    if (!sgt_verdict_out(c->o.verdicts, SGT_CHECK_OWN))
        sgt_say(&c->o.notice,
                "attention: naive, which stores T x T scores (flash attention cannot be used: %s)",
                own);
    return SGT_OK;
}

static int choose_named_path(sgt_cuda_backend *c, sgt_error *err)
{
    sgt_error space;
    const char *why;
    c->plan.path = c->o.attention == SGT_ATTENTION_NAIVE   ? SGT_PATH_NAIVE
                   : c->o.attention == SGT_ATTENTION_CUDNN ? SGT_PATH_CUDNN
                                                           : our_path(c);
    if (c->plan.path == SGT_PATH_NAIVE) why = left_out(c, SGT_CHECK_NAIVE, &space);
    else why = c->plan.path == SGT_PATH_CUDNN ? cudnn_lacks(c, &space) : own_lacks(c, &space);
    return why ? refuse(sgt_attention_words[c->o.attention], why, err) : SGT_OK;
}

/* Choose the attention implementation for --attention. If both sgt's and cuDNN's kernels can be
 * used, sgt_cuda_time_attention later chooses the faster of the two. Because timings vary, two runs
 * may use different kernels.
 *
 * With --deterministic, nothing is timed, and cuDNN's kernels are used only if the user has named
 * them, or if sgt's kernels have failed the self-check. */
int sgt_cuda_choose_attention(sgt_cuda_backend *c, sgt_error *err)
{
    sgt_error own_space, cudnn_space;
    c->shape.scale = 1 / sqrtf((float)c->shape.D);
    if (c->o.attention != SGT_ATTENTION_AUTO) return choose_named_path(c, err);
    const char *own = own_lacks(c, &own_space), *cudnn;
    c->plan.path = our_path(c);
    if (!sgt_cuda_attention_serves(c->shape.D)) return choose_naive(c, own, err);
    int ours = c->shape.type == SGT_F32 || c->o.deterministic || c->o.dropout > 0 || c->o.documents;
    if (!own && ours) return SGT_OK;
    cudnn = cudnn_lacks(c, &cudnn_space);
    if (!own && cudnn && !sgt_verdict_out(c->o.verdicts, SGT_CHECK_CUDNN))
        sgt_say(&c->o.notice, "attention: own (cuDNN's cannot be used: %s)", cudnn);
    if (!own) return SGT_OK;
    c->plan.path = SGT_PATH_CUDNN;
    return cudnn ? choose_naive(c, own, err) : SGT_OK;
}

static void one_layer(sgt_cuda_backend *c)
{
    sgt_cuda_attend(c, 0, 0);
    sgt_cuda_attend_backward(c, 0);
}

/* Set the inputs of one_layer to 0, because uninitialized memory may contain denormal or NaN
 * values, which could change times and results. */
static void zero_inputs(sgt_cuda_backend *c)
{
    sgt_cuda_zero(c->queue.compute, c->buf.blocks->qkv,
                  c->shape.N * 3 * c->shape.C * c->shape.width);
    sgt_cuda_zero(c->queue.compute, c->buf.dln, c->shape.N * c->shape.C * c->shape.width);
}

void sgt_cuda_spoil_cudnn(sgt_cuda_backend *c)
{
    size_t bytes = c->plan.cudnn ? sgt_cudnn_attention_workspace(c->plan.cudnn) : 0;
    memset(c->queue.staging, 0xff, c->queue.staging_bytes);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < c->queue.staging_bytes ? bytes - at : c->queue.staging_bytes;
        sgt_cuda_copy(c->queue.compute, (char *)c->buf.cudnn_space + at, c->queue.staging, n);
    }
}

/* cuDNN may choose another engine for the shape of this run than for the shapes of the self-check.
 * Run one layer with NaN in cuDNN's workspace and inputs of 0. If the gradient of the last
 * position's q is not 0, this engine does not clear the sums of dQ itself. */
static int look_at_sums(sgt_cuda_backend *c, sgt_error *err)
{
    const sgt_cuda_path chosen = c->plan.path;
    const size_t row = c->shape.C * c->shape.width;
    if (!c->plan.cudnn || c->plan.clear_dq || c->o.deterministic || c->o.checking) return SGT_OK;
    zero_inputs(c);
    sgt_cuda_spoil_cudnn(c);
    c->plan.path = SGT_PATH_CUDNN;
    one_layer(c);
    c->plan.path = chosen;
    sgt_cuda_copy(c->queue.compute, c->queue.staging,
                  (char *)c->buf.dwide + (c->shape.N - 1) * 3 * row, row);
    int rc = sgt_cuda_finish(c->queue.compute, err);
    for (size_t i = 0; i < c->shape.C && rc == SGT_OK; i++)
        if (!(sgt_cuda_decode(c->queue.staging, c->shape.type, i) == 0)) c->plan.clear_dq = 1;
    return rc;
}

/* Time the forward and backward pass of one layer, first with sgt's attention kernels and then with
 * cuDNN's. Return 1 if both ran without an error, otherwise 0. Set *faster to 1 if cuDNN's kernels
 * are faster, otherwise to 0. */
static int time_both(sgt_cuda_backend *c, int *faster)
{
    float own = 0, cudnn = 0;
    const sgt_cuda_path ours = c->plan.path;
    sgt_error why;
    zero_inputs(c);
    int rc = sgt_cuda_time(c, one_layer, &own, &why);
    c->plan.path = SGT_PATH_CUDNN;
    if (rc == SGT_OK) rc = sgt_cuda_time(c, one_layer, &cudnn, &why);
    c->plan.path = ours;
    if (rc < 0) {
        sgt_say(&c->o.detail, "attention: own (%s)", why.text);
        return 0;
    }
    *faster = cudnn < own;
    sgt_say(&c->o.detail,
            "attention: %s (forward and backward of a layer: own %.3f ms, cuDNN's %.3f ms)",
            *faster ? "cuDNN's" : "own", (double)own, (double)cudnn);
    return 1;
}

int sgt_cuda_time_attention(sgt_cuda_backend *c, sgt_error *err)
{
    int faster = 0, rc = look_at_sums(c, err);
    if (rc < 0 || c->o.attention != SGT_ATTENTION_AUTO) return rc;
    int runs = c->plan.cudnn && time_both(c, &faster);
    rc = sgt_cuda_ranks_follow(c, &faster, sizeof faster, err);
    if (runs && faster) c->plan.path = SGT_PATH_CUDNN;
    return rc;
}

/* ---- the implementations ---- */

/* Report to CUPTI the floating-point operations of `products` matrix products, each of which
 * computes or reads a (T, T) matrix of scores per head. Count only half of each matrix, because the
 * causal mask excludes the other half. */
static void count_work(const sgt_cuda_backend *c, int products)
{
    sgt_cupti_work(products * (double)c->shape.N * (double)c->shape.T * (double)c->shape.C, 0);
}

static void forward_own(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    count_work(c, 2);
    sgt_cuda_attention(c->queue.compute, a, l->att, l->lse, l->qkv);
}

static void backward_own(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    sgt_cuda_attention_backward(c->queue.compute, a, c->buf.dwide, c->buf.delta, c->buf.dln, l->att,
                                l->lse, l->qkv);
}

static void forward_hopper(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    count_work(c, 2);
    sgt_cuda_attention_hopper(c->queue.compute, a, l->att, l->lse, l->qkv);
}

static void backward_hopper(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    sgt_cuda_attention_hopper_backward(c->queue.compute, a, c->buf.dwide, c->buf.delta, c->buf.dln,
                                       l->att, l->lse, l->qkv);
}

static void forward_cudnn(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    (void)a; /* the plan has these values */
    sgt_cupti_push_label("cuDNN attention forward");
    count_work(c, 2);
    sgt_cudnn_attention_forward(c->plan.cudnn, c->queue.compute, l->att, l->lse, l->qkv,
                                c->buf.cudnn_space);
    sgt_cupti_pop();
}

static void backward_cudnn(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    (void)a;
    if (c->plan.clear_dq)
        sgt_cudnn_attention_clear(c->plan.cudnn, c->queue.compute, c->buf.cudnn_space);
    sgt_cupti_push_label("cuDNN attention backward");
    count_work(c, 5);
    sgt_cudnn_attention_backward(c->plan.cudnn, c->queue.compute, c->buf.dwide, c->buf.dln, l->att,
                                 l->lse, l->qkv, c->buf.cudnn_space);
    sgt_cupti_pop();
}

/* ---- naive attention ---- */

/* Return the attention probabilities that multiply the values v. Without dropout, these are
 * l->probs. With dropout, they are written to a separate buffer, because the backward pass also
 * needs the probabilities before dropout. */
static const void *dropped(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    if (!a->drop) return l->probs;
    sgt_cuda_drop_probs(c->queue.compute, a, c->plan.naive.dscores, l->probs);
    return c->plan.naive.dscores;
}

static void forward_naive(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    sgt_cuda_naive *n = &c->plan.naive;
    sgt_cuda_split_heads(c->queue.compute, a, n->q, n->k, n->v, l->qkv);
    sgt_cuda_product(c, &n->outer, l->probs, n->q, n->k, NULL, NULL);
    sgt_cuda_causal_softmax(c->queue.compute, a, l->probs);
    sgt_cuda_product(c, &n->rows, n->o, dropped(c, l, a), n->v, NULL, NULL);
    sgt_cuda_join_heads(c->queue.compute, a, l->att, n->o, NULL, NULL);
}

static void backward_naive(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a)
{
    sgt_cuda_naive *n = &c->plan.naive;
    sgt_cuda_split_heads(c->queue.compute, a, n->q, n->k, n->v, l->qkv);
    sgt_cuda_split_heads(c->queue.compute, a, n->o, NULL, NULL, c->buf.dln);
    sgt_cuda_product(c, &n->columns, n->dv, dropped(c, l, a), n->o, NULL, NULL);
    sgt_cuda_product(c, &n->outer, n->dscores, n->o, n->v, NULL, NULL);
    sgt_cuda_causal_softmax_backward(c->queue.compute, a, n->dscores, l->probs);
    sgt_cuda_product(c, &n->rows, n->dq, n->dscores, n->k, NULL, NULL);
    sgt_cuda_product(c, &n->columns, n->dk, n->dscores, n->q, NULL, NULL);
    sgt_cuda_join_heads(c->queue.compute, a, c->buf.dwide, n->dq, n->dk, n->dv);
}

/* ---- the table of implementations ---- */

static const struct path {
    const char *name;
    /* advice for users whose gradients are infinite or NaN: which attention implementation to use
     * instead */
    const char *instead;
    void (*forward)(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a);
    void (*backward)(sgt_cuda_backend *c, const sgt_cuda_block *l, const sgt_cuda_heads *a);
} paths[] = {
    [SGT_PATH_OWN] = {"our attention", "--attention naive instead of our attention", forward_own,
                      backward_own},
    [SGT_PATH_CUDNN] = {"cuDNN's attention", "--attention own instead of cuDNN's attention",
                        forward_cudnn, backward_cudnn},
    [SGT_PATH_NAIVE] = {"naive attention", "--attention own instead of naive attention",
                        forward_naive, backward_naive},
    [SGT_PATH_HOPPER] = {"our attention for sm_90",
                         "--attention mma instead of our attention for sm_90", forward_hopper,
                         backward_hopper},
};

const char *sgt_cuda_attention_name(sgt_cuda_path path, const char **instead)
{
    *instead = paths[path].instead;
    return paths[path].name;
}

static sgt_cuda_heads heads(const sgt_cuda_backend *c, const sgt_cuda_dropout *drop)
{
    return (sgt_cuda_heads){.type = c->shape.type,
                            .tf32 = c->o.precision == SGT_PRECISION_TF32,
                            .B = c->shape.B,
                            .T = c->shape.T,
                            .H = c->shape.H,
                            .D = c->shape.D,
                            .scale = c->shape.scale,
                            .drop = drop,
                            .documents = c->o.documents ? &c->buf.documents : NULL};
}

void sgt_cuda_attend(sgt_cuda_backend *c, size_t layer, int training)
{
    sgt_cuda_dropout space;
    const sgt_cuda_heads a =
        heads(c, sgt_cuda_drop(c, &space, layer, SGT_DROP_ATTENTION, training));
    paths[c->plan.path].forward(c, c->buf.blocks + layer, &a);
}

void sgt_cuda_attend_backward(sgt_cuda_backend *c, size_t layer)
{
    sgt_cuda_dropout space;
    const sgt_cuda_heads a = heads(c, sgt_cuda_drop(c, &space, layer, SGT_DROP_ATTENTION, 1));
    paths[c->plan.path].backward(c, c->buf.blocks + layer, &a);
}
