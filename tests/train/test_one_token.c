/* test_one_token.c: rows of a single token, compared with the same steps in double. Such a token
 * attends only to itself, with weight 1 whatever its score is: attention returns its value vector,
 * and queries and keys have no gradient. AdamW divides each gradient by its own size, so a rounding
 * error instead of the zero would become a full step. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/backend.h"

enum { L = 2, C = 16, V = 37, ROWS = 8, STEPS = 50, MOST = 4 * C };
static const double LR = 1e-3;

/* A model in double: parameters, gradients and moments in the flat layout, and the activations of
 * one row that its backward pass needs. */
typedef struct twin {
    sgt_model model;
    double *p, *g, *m, *v;
    double in[L + 1][C], mid[L][C], ln1[L][C], value[L][C], ln2[L][C], fc[L][4 * C], gelu[L][4 * C],
        last[C];
} twin;

static size_t at(const twin *t, size_t tensor)
{
    sgt_tensor x;
    sgt_model_tensor(&t->model, tensor, &x);
    return x.offset;
}

static size_t in_block(const twin *t, size_t layer, size_t which)
{
    return at(t, 2 + SGT_BLOCK_TENSORS * layer + which);
}

/* ---- layers; a backward pass adds to dx and to the gradients of its tensors ---- */

/* Compute out (n) = x (k) w (k, n) + b (n). w and b are offsets in the flat layout; rows of w lie
 * ld numbers apart. */
static void linear(const twin *t, double *out, const double *x, size_t w, size_t b, size_t k,
                   size_t n, size_t ld)
{
    for (size_t j = 0; j < n; j++) {
        out[j] = t->p[b + j];
        for (size_t i = 0; i < k; i++) out[j] += x[i] * t->p[w + i * ld + j];
    }
}

static void linear_backward(twin *t, double *dx, const double *dout, const double *x, size_t w,
                            size_t b, size_t k, size_t n, size_t ld)
{
    for (size_t j = 0; j < n; j++) {
        t->g[b + j] += dout[j];
        for (size_t i = 0; i < k; i++) {
            t->g[w + i * ld + j] += x[i] * dout[j];
            dx[i] += t->p[w + i * ld + j] * dout[j];
        }
    }
}

static double normalize(double xhat[C], const double *x)
{
    double mean = 0, squares = 0;
    for (int c = 0; c < C; c++) mean += x[c] / C;
    for (int c = 0; c < C; c++) squares += (x[c] - mean) * (x[c] - mean);
    double rstd = 1 / sqrt(squares / C + (double)1e-5f);
    for (int c = 0; c < C; c++) xhat[c] = (x[c] - mean) * rstd;
    return rstd;
}

static void layernorm(const twin *t, double *out, const double *x, size_t w, size_t b)
{
    normalize(out, x);
    for (int c = 0; c < C; c++) out[c] = out[c] * t->p[w + (size_t)c] + t->p[b + (size_t)c];
}

static void layernorm_backward(twin *t, double *dx, const double *dout, const double *x, size_t w,
                               size_t b)
{
    double xhat[C], g[C], mean = 0, along = 0, rstd = normalize(xhat, x);
    for (size_t c = 0; c < C; c++) {
        t->g[w + c] += dout[c] * xhat[c];
        t->g[b + c] += dout[c];
        g[c] = dout[c] * t->p[w + c];
        mean += g[c] / C;
        along += g[c] * xhat[c] / C;
    }
    for (size_t c = 0; c < C; c++) dx[c] += rstd * (g[c] - mean - xhat[c] * along);
}

static double gelu_tanh(double x, double *slope)
{
    double k = sqrt(2 / acos(-1)), u = tanh(k * (x + 0.044715 * x * x * x));
    *slope = 0.5 * (1 + u) + 0.5 * x * (1 - u * u) * k * (1 + 3 * 0.044715 * x * x);
    return 0.5 * x * (1 + u);
}

/* ---- a row ---- */

static void block(twin *t, size_t l)
{
    double y[C], slope;
    layernorm(t, t->ln1[l], t->in[l], in_block(t, l, SGT_LN1_W), in_block(t, l, SGT_LN1_B));
    linear(t, t->value[l], t->ln1[l], in_block(t, l, SGT_QKV_W) + 2 * C,
           in_block(t, l, SGT_QKV_B) + 2 * C, C, C, 3 * C);
    linear(t, y, t->value[l], in_block(t, l, SGT_PROJ_W), in_block(t, l, SGT_PROJ_B), C, C, C);
    for (int c = 0; c < C; c++) t->mid[l][c] = t->in[l][c] + y[c];
    layernorm(t, t->ln2[l], t->mid[l], in_block(t, l, SGT_LN2_W), in_block(t, l, SGT_LN2_B));
    linear(t, t->fc[l], t->ln2[l], in_block(t, l, SGT_FC_W), in_block(t, l, SGT_FC_B), C, 4 * C,
           4 * C);
    for (int c = 0; c < 4 * C; c++) t->gelu[l][c] = gelu_tanh(t->fc[l][c], &slope);
    linear(t, y, t->gelu[l], in_block(t, l, SGT_FCPROJ_W), in_block(t, l, SGT_FCPROJ_B), 4 * C, C,
           C);
    for (int c = 0; c < C; c++) t->in[l + 1][c] = t->mid[l][c] + y[c];
}

/* d: the gradient of the block's output on entry, of its input on return. */
static void block_backward(twin *t, double d[C], size_t l)
{
    double wide[MOST] = {0}, narrow[C] = {0}, value[C] = {0}, slope;
    linear_backward(t, wide, d, t->gelu[l], in_block(t, l, SGT_FCPROJ_W),
                    in_block(t, l, SGT_FCPROJ_B), 4 * C, C, C);
    for (int c = 0; c < 4 * C; c++) {
        gelu_tanh(t->fc[l][c], &slope);
        wide[c] *= slope;
    }
    linear_backward(t, narrow, wide, t->ln2[l], in_block(t, l, SGT_FC_W), in_block(t, l, SGT_FC_B),
                    C, 4 * C, 4 * C);
    layernorm_backward(t, d, narrow, t->mid[l], in_block(t, l, SGT_LN2_W),
                       in_block(t, l, SGT_LN2_B));
    linear_backward(t, value, d, t->value[l], in_block(t, l, SGT_PROJ_W),
                    in_block(t, l, SGT_PROJ_B), C, C, C);
    memset(narrow, 0, sizeof narrow);
    linear_backward(t, narrow, value, t->ln1[l], in_block(t, l, SGT_QKV_W) + 2 * C,
                    in_block(t, l, SGT_QKV_B) + 2 * C, C, C, 3 * C);
    layernorm_backward(t, d, narrow, t->in[l], in_block(t, l, SGT_LN1_W),
                       in_block(t, l, SGT_LN1_B));
}

/* Return the row's loss; add the gradients of loss / ROWS. */
static double row(twin *t, size_t x, size_t y)
{
    size_t wte = at(t, 0), wpe = at(t, 1), w = at(t, 2 + SGT_BLOCK_TENSORS * L), b = w + C;
    double logits[V], total = 0, dlast[C] = {0}, d[C] = {0};
    for (size_t c = 0; c < C; c++) t->in[0][c] = t->p[wte + x * C + c] + t->p[wpe + c];
    for (size_t l = 0; l < L; l++) block(t, l);
    layernorm(t, t->last, t->in[L], w, b);
    for (size_t i = 0; i < V; i++) {
        logits[i] = 0;
        for (size_t c = 0; c < C; c++) logits[i] += t->last[c] * t->p[wte + i * C + c];
        total += exp(logits[i]);
    }
    for (size_t i = 0; i < V; i++) {
        double slope = (exp(logits[i]) / total - (i == y)) / ROWS;
        for (size_t c = 0; c < C; c++) {
            dlast[c] += slope * t->p[wte + i * C + c];
            t->g[wte + i * C + c] += slope * t->last[c];
        }
    }
    layernorm_backward(t, d, dlast, t->in[L], w, b);
    for (size_t l = L; l-- > 0;) block_backward(t, d, l);
    for (size_t c = 0; c < C; c++) {
        t->g[wte + x * C + c] += d[c];
        t->g[wpe + c] += d[c];
    }
    return log(total) - logits[y];
}

/* ---- a step ---- */

static double update(twin *t, const sgt_optim *o, int step)
{
    double squares = 0, b1 = (double)o->beta1, b2 = (double)o->beta2;
    double c1 = 1 - pow(b1, step + 1), c2 = 1 - pow(b2, step + 1);
    size_t n = sgt_model_floats(&t->model);
    for (size_t i = 0; i < n; i++) squares += t->g[i] * t->g[i];
    double norm = sqrt(squares), clip = norm > 1 ? 1 / norm : 1;
    for (size_t k = 0; k < sgt_model_tensors(&t->model); k++) {
        sgt_tensor x;
        sgt_model_tensor(&t->model, k, &x);
        for (size_t i = x.offset; i < x.offset + x.count; i++) {
            double g = clip * t->g[i];
            t->m[i] = b1 * t->m[i] + (1 - b1) * g;
            t->v[i] = b2 * t->v[i] + (1 - b2) * g * g;
            double decay = x.dims == 2 ? (double)o->weight_decay : 0;
            t->p[i] -=
                LR * (t->m[i] / c1 / (sqrt(t->v[i] / c2) + (double)o->eps) + decay * t->p[i]);
        }
    }
    memset(t->g, 0, n * sizeof *t->g);
    return norm;
}

/* Take the backend's parameters, with matrices ten times larger, so that values and scores are
 * about 1. */
static void twin_open(twin *t, sgt_backend *b, const sgt_model *model)
{
    size_t n = sgt_model_floats(model);
    double *all = calloc(4 * n, sizeof *all);
    *t = (twin){.model = *model, .p = all, .g = all + n, .m = all + 2 * n, .v = all + 3 * n};
    for (size_t k = 0; k < sgt_model_tensors(model); k++) {
        sgt_tensor x;
        sgt_model_tensor(model, k, &x);
        float *p = malloc(x.count * sizeof *p);
        cr_assert_eq(b->get(b, SGT_PARAMETERS, k, 0, x.count, p, NULL), 0);
        for (size_t i = 0; i < x.count; i++)
            t->p[x.offset + i] = (double)(x.dims == 2 ? p[i] *= 10 : p[i]);
        cr_assert_eq(b->put(b, SGT_PARAMETERS, k, 0, x.count, p, NULL), 0);
        free(p);
    }
}

static double difference(const twin *t, sgt_backend *b)
{
    double worst = 0;
    for (size_t k = 0; k < sgt_model_tensors(&t->model); k++) {
        sgt_tensor x;
        sgt_model_tensor(&t->model, k, &x);
        float *p = malloc(x.count * sizeof *p);
        cr_assert_eq(b->get(b, SGT_PARAMETERS, k, 0, x.count, p, NULL), 0);
        for (size_t i = 0; i < x.count; i++)
            worst = fmax(worst, fabs((double)p[i] - t->p[x.offset + i]));
        free(p);
    }
    return worst;
}

/* Parameters are at most about 1, and each step rounds them by at most 2^-24: 3e-6 in fifty steps.
 * PyTorch's float32 is off by 6e-7. */
Test(one_token, parameters_after_fifty_steps_as_in_double)
{
    sgt_error err = {0};
    twin t;
    sgt_backend *b;
    uint16_t tokens[2 * ROWS];
    sgt_backend_options o = {
        .model = {.layers = L, .channels = C, .heads = 2, .vocab = V, .positions = 4, .eps = 1e-5f},
        .optim =
            {.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f, .grad_clip = 1},
        .batch = ROWS,
        .seq = 1,
        .threads = 1};
    cr_assert_eq(sgt_cpu_backend_open(&b, &o, &err), 0, "%s", err.text);
    cr_assert_eq(sgt_init_parameters(b, &o.model, 5, 1, &err), 0);
    twin_open(&t, b, &o.model);
    for (int s = 0; s < STEPS; s++) {
        sgt_step_metrics m;
        sgt_batch rows = {.tokens = tokens};
        double loss = 0, norm;
        for (unsigned i = 0; i < 2 * ROWS; i++)
            tokens[i] = (uint16_t)((i * 7 + (unsigned)s * 5 + i / 2 * i) % V);
        for (int r = 0; r < ROWS; r++) loss += row(&t, tokens[2 * r], tokens[2 * r + 1]) / ROWS;
        norm = update(&t, &o.optim, s);
        cr_assert_eq(b->micro_step(b, (uint64_t)s, 0, &rows, 1.0 / ROWS, &err), 0, "%s", err.text);
        cr_assert_eq(b->update(b, (uint64_t)s, LR, &err), 0, "%s", err.text);
        cr_assert_eq(b->metrics(b, (uint64_t)s, &m, &err), 0, "%s", err.text);
        cr_expect_float_eq(m.loss, loss, 5e-6, "step %d: loss %.9f, not %.9f", s, m.loss, loss);
        cr_expect_float_eq(m.grad_norm / norm, 1, 5e-6, "step %d: norm %.9f, not %.9f", s,
                           m.grad_norm, norm);
    }
    cr_expect_leq(difference(&t, b), 3e-6, "parameters differ by %g", difference(&t, b));
    free(t.p);
    b->close(b);
}
