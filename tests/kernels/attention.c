/* attention.c: tests causal attention of one head, forward and backward, for rows with one document
 * and for rows with several. */
#include "kernels/dropout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/harness.h"
#include "tests/kernels/amx.h"

static const size_t lengths[] = {0,  1,  2,  3,  4,  5,  8,   15,  16,  17,
                                 31, 47, 63, 64, 65, 97, 128, 133, 193, 289};
static const size_t sizes[] = {1, 3, 4, 5, 8, 15, 16, 17, 33, 48, 64, 65, 80, 128};

typedef struct head {
    size_t T, D, ld, ld_out;
    float scale;
    /* pointers into one (T, ld) buffer, as in the trainer, or to separate buffers */
    const float *q, *k, *v;
    const float *dout;
    float *out[2], *lse[2], *grads[2]; /* [0] expected, [1] computed; grads: (T, ld) of dq dk dv */
    float *scratch[2];
    const sgt_dropout *drop; /* NULL: none */
    int32_t *start;          /* NULL: one document */
} head;

/* Dropout in a step with a large number, for elements from number 12 on. Each case has one head,
 * head 0. */
static const sgt_dropout drops = {
    .seed = 77, .draw = UINT64_C(123456789012) << 16, .first = 12, .rate = 0.3f};

/* Return the dropout factor of the probability with which query i attends to key j. */
static double factor(const head *h, size_t i, size_t j)
{
    const sgt_dropout *d = h->drop;
    if (!d) return 1;
    return sgt_dropout_factor(
        d->seed, d->draw, d->first + sgt_dropout_attention_element(0, 0, i, j, 1, h->T), d->rate);
}

static size_t first_key(const head *h, size_t i) { return h->start ? (size_t)h->start[i] : 0; }

/* Draw documents of up to `longest` tokens, and return the start of each position's document. Some
 * documents are within a vector, and some extend over several blocks. In a row of more than 270
 * tokens, the first document has 270. Then some queries of a block see 256 keys before the block,
 * and others see none. */
static int32_t *draw_starts(check *t, size_t T, uint64_t longest)
{
    int32_t *start = check_ids(t, T, 1);
    size_t left = T > 270 ? 270 : 1 + check_number(t, longest);
    for (size_t i = 0, from = 0; i < T; i++, left--) {
        if (left == 0) from = i, left = 1 + check_number(t, longest);
        start[i] = (int32_t)from;
    }
    return start;
}

/* Return the number of floats from the first row's start to the last row's end. */
static size_t span(size_t T, size_t ld, size_t width) { return T ? (T - 1) * ld + width : 0; }

/* Return whether operands are bfloat16. This is so in only one case of this file, which is not in
 * the table sgt_kernels. Its inputs are bfloat16 numbers, so rounding does not change them. */
static int in_bf16(const check *t) { return t->which->library != NULL; }

static float *draw_numbers(check *t, size_t n, float scale)
{
    float *x = check_random(t, n, scale);
    if (in_bf16(t)) t->ref->round_to(x, x, n, SGT_FORMAT_BF16);
    return x;
}

/* Return the relative error by which probabilities and gradients of scores are rounded before they
 * are multiplied. */
static double rounding_of(const check *t) { return in_bf16(t) ? 0x1p-8 : 0; }

static head draw(check *t, size_t T, size_t D)
{
    size_t gap = check_number(t, 3);
    head h = {.T = T,
              .D = D,
              .ld = 3 * D + gap,
              .ld_out = D + gap * 2,
              .scale = (float)(1 / sqrt((double)D))};
    h.drop = check_number(t, 3) ? NULL : &drops;
    if (check_number(t, 2) || (T > 270 && D < 16))
        h.start = draw_starts(t, T, check_number(t, 2) ? 9 : 150);
    const float *qkv = draw_numbers(
        /* with scale 6, a few scores get nearly all of the probability */
        t, span(T, h.ld, 3 * D), check_number(t, 4) ? 1 : 6);
    h.q = qkv, h.k = qkv + D, h.v = qkv + 2 * D;
    h.dout = draw_numbers(t, span(T, h.ld_out, D), 1);
    const sgt_kernels *tables[2] = {t->ref, t->k};
    for (int i = 0; i < 2; i++) {
        h.out[i] = check_output(t, span(T, h.ld_out, D));
        h.lse[i] = check_output(t, T);
        h.grads[i] = check_output(t, span(T, h.ld, 3 * D));
        h.scratch[i] = check_scratch(t, tables[i]->attention_scratch(T, D));
    }
    check_at(t, "T %zu, D %zu, ld %zu, ld_out %zu%s%s", T, D, h.ld, h.ld_out,
             h.drop ? ", dropout" : "", h.start ? ", documents" : "");
    return h;
}

static void forward(const sgt_kernels *k, const head *h, int which)
{
    k->attention(h->out[which], h->ld_out, h->lse[which], h->q, h->k, h->v, h->ld, h->T, h->D,
                 h->scale, h->drop, h->start, h->scratch[which]);
}

static void backward(const sgt_kernels *k, const head *h, int which)
{
    float *g = h->grads[which];
    k->attention_backward(g, g + h->D, g + 2 * h->D, h->ld, h->dout, h->out[0], h->ld_out,
                          h->lse[0], h->q, h->k, h->v, h->ld, h->T, h->D, h->scale, h->drop,
                          h->start, h->scratch[which]);
}

static double dot(const float *a, const float *b, size_t D, double *absolute)
{
    double sum = 0;
    *absolute = 0;
    for (size_t d = 0; d < D; d++)
        sum += (double)a[d] * b[d], *absolute += fabs((double)a[d] * b[d]);
    return sum;
}

/* Error bounds of the forward pass. `rounding` is the result of rounding_of.
 *   score: a scaled sum of D products, (D + 3) u |terms|
 *   E: the largest error of a score in the row, 4u for exp, and the rounding of s - max
 *   p: 2E, relative
 *   sum of p over the keys, in lanes and block by block, with the running rescales: (T/4 + 3T/64 +
 *     8) u
 *   out, relative to the sum of f p |v|, where f is the dropout factor: the errors of p and of its
 *     sum; T u for the sum over v; 2u for f and its product; 4u for other roundings; `rounding` of
 *     f p once
 *   lse: E, the error of the sum, and its own rounding */
static void forward_bounds(double *out, double *lse, const head *h, double rounding)
{
    size_t T = h->T, D = h->D;
    double *p = calloc(T + 1, sizeof *p), absolute;
    for (size_t i = 0; i < T && p; i++) {
        double worst = 0, max = -INFINITY, total = 0, range = 0;
        for (size_t j = first_key(h, i); j <= i; j++) {
            p[j] = h->scale * dot(h->q + i * h->ld, h->k + j * h->ld, D, &absolute);
            worst = fmax(worst, (double)(D + 3) * UNIT * h->scale * absolute);
            max = fmax(max, p[j]);
        }
        for (size_t j = first_key(h, i); j <= i; j++)
            range = fmax(range, max - p[j]), total += p[j] = exp(p[j] - max);
        double E = worst + (4 + fmin(range, 90)) * UNIT,
               sums = ((double)T / 4 + 3.0 * (double)T / 64 + 8) * UNIT;
        lse[i] = E + sums + 2 * UNIT * fabs(max + log(total));
        for (size_t d = 0; d < D; d++) {
            double terms = 0;
            for (size_t j = first_key(h, i); j <= i; j++)
                terms += factor(h, i, j) * p[j] / total * fabs(h->v[j * h->ld + d]);
            out[i * h->ld_out + d] =
                terms * (2 * E + sums + (double)(T + 6) * UNIT + rounding) + 1e-37;
        }
    }
    free(p);
}

static void attention_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof lengths / sizeof *lengths; a++)
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++) {
            size_t T = lengths[a], D = sizes[b];
            if ((T > 70 && D % 16 && D > 3) || T * D > 9000)
                /* Test long rows with few sizes, so that this takes seconds instead of minutes. */
                continue;
            head h = draw(t, T, D);
            double *out = check_doubles(t, span(T, h.ld_out, D)), *lse = check_doubles(t, T);
            forward(t->ref, &h, 0);
            forward(t->k, &h, 1);
            forward_bounds(out, lse, &h, rounding_of(t));
            check_close(t, "out", h.out[1], h.out[0], out, span(T, h.ld_out, D));
            check_close(t, "lse", h.lse[1], h.lse[0], lse, T);
            check_same_bits(t, "out", h.out[1], span(T, h.ld_out, D));
        }
}

/* Error bounds of the backward pass, where p = exp(s - lse) and ds = scale p (f dP - delta).
 *   e_p, the relative error of p: (D + 3) u |terms| for the score, u (|s| + |lse|) for the
 *     difference, and 4u for exp
 *   dP, delta: sums of D products
 *   dq, dk, dv: sums of at most T products, (T + 4) u; f p and ds are rounded once by `rounding` */
static void backward_bounds(double *grads, const head *h, double rounding)
{
    size_t T = h->T, D = h->D, ld = h->ld;
    double terms;
    for (size_t i = 0; i < T; i++) {
        const float *q = h->q + i * ld, *dout = h->dout + i * h->ld_out;
        double delta = dot(dout, h->out[0] + i * h->ld_out, D, &terms),
               e_delta = (double)(D + 2) * UNIT * terms;
        for (size_t j = first_key(h, i); j <= i; j++) {
            const float *k = h->k + j * ld, *v = h->v + j * ld;
            double s = h->scale * dot(q, k, D, &terms);
            double p = exp(s - h->lse[0][i]);
            double e_p = (double)(D + 3) * UNIT * h->scale * terms +
                         UNIT * (fabs(s) + fabs(h->lse[0][i])) + 4 * UNIT;
            double f = factor(h, i, j), dp = f * dot(dout, v, D, &terms),
                   ds = h->scale * p * (dp - delta);
            double e_ds =
                fabs(ds) * (e_p + 4 * UNIT + rounding) +
                h->scale * p * (f * (double)(D + 4) * UNIT * terms + e_delta + UNIT * fabs(dp));
            double sums = (double)(T + 4) * UNIT;
            for (size_t d = 0; d < D; d++) {
                grads[i * ld + d] += (e_ds + sums * fabs(ds)) * fabs(k[d]);
                grads[j * ld + D + d] += (e_ds + sums * fabs(ds)) * fabs(q[d]);
                grads[j * ld + 2 * D + d] +=
                    f * p * (e_p + sums + 2 * UNIT + rounding) * fabs(dout[d]);
            }
        }
    }
    for (size_t x = 0; x < span(T, ld, 3 * D); x++) grads[x] += UNIT * fabs(h->grads[0][x]) + 1e-37;
}

/* Check dq and dk where the result is exactly 0. A query that sees only its own key has probability
 * 1, whatever its score is, so its dq is 0. In a document of one token, dk is 0 too. */
static void check_lone_queries(check *t, const head *h)
{
    for (int which = 0; which < 2; which++)
        for (size_t i = 0; i < h->T; i++) {
            int ends = i + 1 == h->T || first_key(h, i + 1) == i + 1;
            const float *dq = h->grads[which] + i * h->ld, *dk = dq + h->D;
            if (first_key(h, i) != i) continue;
            for (size_t d = 0; d < h->D; d++) {
                check_near(t, "dq of a lone query", dq[d], 0, 0);
                if (ends) check_near(t, "dk of a lone query", dk[d], 0, 0);
            }
        }
}

static void backward_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof lengths / sizeof *lengths; a++)
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++) {
            size_t T = lengths[a], D = sizes[b];
            if ((T > 70 && D % 16 && D > 3) || T * D > 9000) continue;
            head h = draw(t, T, D);
            double *bound = check_doubles(t, span(T, h.ld, 3 * D));
            forward(t->ref, &h, 0);
            backward(t->ref, &h, 0);
            backward(t->k, &h, 1);
            backward_bounds(bound, &h, rounding_of(t));
            check_close(t, "dq dk dv", h.grads[1], h.grads[0], bound, span(T, h.ld, 3 * D));
            check_lone_queries(t, &h);
            check_same_bits(t, "dq dk dv", h.grads[1], span(T, h.ld, 3 * D));
        }
}

/* Known results: the first row sees only itself, equal keys get equal weights, and a later row
 * changes no earlier result. */
static void attention_definition(check *t)
{
    enum { T = 6, D = 3 };
    head h = draw(t, T, D);
    h.drop = NULL;
    h.start = NULL;
    float *k = check_copy(t, h.k, span(T, h.ld, D)), *out = h.out[0];
    for (size_t i = 0; i < T * h.ld && i < span(T, h.ld, D); i++)
        k[i] = i % h.ld < D ? 0.25f : k[i];
    h.k = k;
    check_at(t, "equal keys");
    forward(t->ref, &h, 0);
    for (size_t i = 0; i < T; i++)
        for (size_t d = 0; d < D; d++) {
            double mean = 0;
            for (size_t j = 0; j <= i; j++) mean += h.v[j * h.ld + d] / (double)(i + 1);
            check_near(t, "out", out[i * h.ld_out + d], mean, UNIT * fabs(mean) + 1e-15);
        }
    double unused, score = h.scale * dot(h.q + 5 * h.ld, k + 5 * h.ld, D, &unused);
    check_near(t, "lse", h.lse[0][5], score + log(6), 2 * UNIT * fabs(score + log(6)));
    check_at(t, "another last key");
    k[5 * h.ld] = 9;
    forward(t->ref, &h, 1);
    check_equal(t, "rows before the last", h.out[1], out, span(T - 1, h.ld_out, D));
    if (h.out[1][5 * h.ld_out] == out[5 * h.ld_out]) check_fail(t, "the last row did not change");
}

/* Return the row from token `from` on as a separate row with one document. */
static head tail_of(check *t, const head *h, size_t from)
{
    head tail = *h;
    tail.T -= from, tail.start = NULL;
    tail.q += from * h->ld, tail.k += from * h->ld, tail.v += from * h->ld,
        tail.dout += from * h->ld_out;
    for (int i = 0; i < 2; i++) {
        tail.out[i] = check_output(t, span(tail.T, h->ld_out, h->D));
        tail.lse[i] = check_output(t, tail.T);
        tail.grads[i] = check_output(t, span(tail.T, h->ld, 3 * h->D));
    }
    return tail;
}

/* Test that the last document of a row has the same results as a row that consists of only this
 * document. Without dropout, the bits are equal, because the sums have the same order. */
static void documents_definition(check *t)
{
    enum { T = 9, D = 3 };
    head h = draw(t, T, D);
    h.drop = NULL;
    h.start = check_ids(t, T, 1);
    for (size_t i = 0; i < T; i++) h.start[i] = i < 2 ? 0 : i < 5 ? 2 : 5;
    head alone = tail_of(t, &h, 5);
    check_at(t, "the third document of three");
    forward(t->ref, &h, 0), backward(t->ref, &h, 0);
    forward(t->ref, &alone, 0), backward(t->ref, &alone, 0);
    check_equal(t, "out", h.out[0] + 5 * h.ld_out, alone.out[0], span(T - 5, h.ld_out, D));
    check_equal(t, "lse", h.lse[0] + 5, alone.lse[0], T - 5);
    check_equal(t, "dq dk dv", h.grads[0] + 5 * h.ld, alone.grads[0], span(T - 5, h.ld, 3 * D));
}

/* Test that a row with one document has the same bits with and without the document mask. */
static void one_document(check *t)
{
    for (size_t T = 1; T < 200; T += 33) {
        head h = draw(t, T, 24), plain = h;
        h.start = check_ids(t, T, 1);
        plain.start = NULL;
        plain.scratch[0] = h.scratch[1]; /* both belong to t->k */
        check_at(t, "T %zu: one document", T);
        forward(t->k, &plain, 0), forward(t->k, &h, 1);
        check_equal(t, "out", h.out[1], plain.out[0], span(T, h.ld_out, h.D));
        check_equal(t, "lse", h.lse[1], plain.lse[0], T);
        backward(t->k, &plain, 0), backward(t->k, &h, 1);
        check_equal(t, "dq dk dv", h.grads[1], plain.grads[0], span(T, h.ld, 3 * h.D));
    }
}

typedef struct probe {
    check *t;
    const head *h;
} probe;

static double loss(void *ctx)
{
    const probe *p = ctx;
    const head *h = p->h;
    double sum = 0;
    forward(p->t->ref, h, 1);
    for (size_t i = 0; i < h->T; i++)
        for (size_t d = 0; d < h->D; d++)
            sum += (double)h->out[1][i * h->ld_out + d] * h->dout[i * h->ld_out + d];
    return sum;
}

static void backward_definition(check *t)
{
    enum { T = 5, D = 3 };
    head h = draw(t, T, D);
    float *qkv = check_random(t, span(T, h.ld, 3 * D), 2);
    h.q = qkv, h.k = qkv + D, h.v = qkv + 2 * D;
    probe p = {t, &h};
    for (int dropping = 0; dropping < 2; dropping++) {
        h.drop = dropping ? &drops : NULL;
        check_at(t, "finite differences%s", dropping ? ", dropout" : "");
        forward(t->ref, &h, 0);
        backward(t->ref, &h, 0);
        for (size_t i = 0; i < T; i++)
            for (size_t x = 0; x < 3 * D; x++)
                check_near(t, "gradient", h.grads[0][i * h.ld + x],
                           check_slope(&qkv[i * h.ld + x], loss, &p), check_slope_bound(T * D, 4));
    }
}

static void bench_at(check *t, size_t T, size_t D, int with_backward, int dropping, size_t document)
{
    head h = draw(t, T, D);
    h.drop = dropping ? &drops : NULL;
    h.start = document ? check_ids(t, T, 1) : NULL;
    for (size_t i = 0; i < T && document; i++) h.start[i] = (int32_t)(i / document * document);
    char shape[64];
    double products = (double)(T * T) * (double)D *
                      /* a full matrix product has 2 T^2 D FLOPs, but half of them lie above the
                       * diagonal */
                      2;
    snprintf(shape, sizeof shape, "T %zu, D %zu%s%s", T, D, dropping ? ", dropout" : "",
             !document       ? ""
             : with_backward ? ", documents, backward"
                             : ", documents");
    if (document) products *= (double)document / (double)T;
    forward(t->k, &h, 1);
    if (!with_backward)
        for (bench_start(t); bench_next(t);) forward(t->k, &h, 1);
    h.out[0] = h.out[1], h.lse[0] = h.lse[1]; /* inputs of the backward pass */
    if (with_backward)
        for (bench_start(t); bench_next(t);) backward(t->k, &h, 1);
    bench_report(t, shape, 0, products * (with_backward ? 5 : 2) / 2);
}

static void attention_bench(check *t)
{
    bench_at(t, 64, 64, 0, 0, 0);
    bench_at(t, 512, 64, 0, 0, 0);
    bench_at(t, 512, 64, 0, 1, 0);
    bench_at(t, 1024, 64, 0, 0, 0);
}

static void backward_bench(check *t)
{
    bench_at(t, 64, 64, 1, 0, 0);
    bench_at(t, 512, 64, 1, 0, 0);
    bench_at(t, 512, 64, 1, 1, 0);
    bench_at(t, 1024, 64, 1, 0, 0);
}

/* Measure what the document mask costs: with documents of 100 tokens, of which only the first
 * begins at the start of a tile, and with one document in the whole row. */
static void documents_bench(check *t)
{
    for (int with_backward = 0; with_backward < 2; with_backward++) {
        bench_at(t, 512, 64, with_backward, 0, 100);
        bench_at(t, 512, 64, with_backward, 1, 100);
        bench_at(t, 1024, 64, with_backward, 0, 100);
        bench_at(t, 1024, 64, with_backward, 0, 1024);
    }
}

/* ---- operands in bfloat16 ---- */

static int bf16_table(check *t)
{
    if (strcmp(t->level, "amx") == 0 && !amx_begin(t)) return 0;
    t->k = sgt_kernels_bf16();
    if (t->k == sgt_kernels_cpu())
        check_skip(t, "this CPU has neither vectors nor tiles of bfloat16");
    return !t->skipped;
}

/* Known results: with a single key, nothing is rounded. The output is exactly the key's value, and
 * the value's gradient is exactly the output's gradient. */
static void bf16_definition(check *t)
{
    if (!bf16_table(t)) return;
    for (size_t D = 1; D < 100; D += 13) {
        head h = draw(t, 1, D);
        h.drop = NULL;
        check_at(t, "T 1, D %zu", D);
        forward(t->k, &h, 1);
        h.out[0] = h.out[1], h.lse[0] = h.lse[1]; /* inputs of the backward pass */
        backward(t->k, &h, 1);
        check_equal(t, "out", h.out[1], h.v, D);
        check_equal(t, "dv", h.grads[1] + 2 * D, h.dout, D);
    }
}

static void bf16_against_ref(check *t)
{
    if (!bf16_table(t)) return;
    attention_against_ref(t);
    backward_against_ref(t);
    one_document(t);
}

static void bf16_bench(check *t)
{
    if (!bf16_table(t)) return;
    attention_bench(t);
    backward_bench(t);
}

const kernel_case cases_attention[] = {
    {"attention", attention_definition, attention_against_ref, attention_bench, NULL},
    {"attention_backward", backward_definition, backward_against_ref, backward_bench, NULL},
    {"attention_documents", documents_definition, one_document, documents_bench, NULL},
    {"attention_bf16", bf16_definition, bf16_against_ref, bf16_bench, "fast"},
    {"attention_bf16", bf16_definition, bf16_against_ref, NULL, "amx"},
    {0},
};
