/* attention.c: tests causal attention of one head, forward and backward, for rows with one document
 * and for rows with several. */
#include <stdio.h>
#include <string.h>

#include "tests/kernels/amx.h"
#include "tests/kernels/attention_head.h"

static const size_t lengths[] = {0,  1,  2,  3,  4,  5,  8,   15,  16,  17,
                                 31, 47, 63, 64, 65, 97, 128, 133, 193, 289};
static const size_t sizes[] = {1, 3, 4, 5, 8, 15, 16, 17, 33, 48, 64, 65, 80, 128};

/* Dropout in a step with a large number, for elements from number 12 on. Each case has one head,
 * head 0. */
static const sgt_dropout drops = {
    .seed = 77, .draw = UINT64_C(123456789012) << 16, .first = 12, .rate = 0.3f};

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

/* Return whether operands are bfloat16. This is so in only one case of this file, which is not in
 * the table sgt_kernels. Its inputs are bfloat16 numbers, so rounding does not change them. */
static int in_bf16(const check *t) { return t->which->library != NULL; }

static float *draw_numbers(check *t, size_t n, float scale)
{
    float *x = check_random(t, n, scale);
    if (in_bf16(t)) t->ref->round_to(x, x, n, SGT_FORMAT_BF16);
    return x;
}

static head_errors errors_of(const check *t)
{
    return (head_errors){.unit = in_bf16(t) ? 0x1p-8 : 0};
}

static head draw(check *t, size_t T, size_t D)
{
    size_t gap = check_number(t, 3);
    head h = {.T = T,
              .D = D,
              .ld = 3 * D + gap,
              .ld_out = D + gap * 2,
              .part = D,
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

static void forward_at(check *t, const head *h)
{
    const head_errors errors = errors_of(t);
    size_t n = span(h->T, h->ld_out, h->D);
    double *out = check_doubles(t, n), *lse = check_doubles(t, h->T);
    forward(t->ref, h, 0);
    forward(t->k, h, 1);
    forward_bounds(out, lse, h, &errors);
    check_close(t, "out", h->out[1], h->out[0], out, n);
    check_close(t, "lse", h->lse[1], h->lse[0], lse, h->T);
    check_same_bits(t, "out", h->out[1], n);
}

static void backward_at(check *t, const head *h)
{
    const head_errors errors = errors_of(t);
    size_t n = span(h->T, h->ld, 3 * h->D);
    double *bound = check_doubles(t, n);
    forward(t->ref, h, 0);
    backward(t->ref, h, 0);
    backward(t->k, h, 1);
    backward_bounds(bound, h, &errors);
    for (size_t x = 0; x < n; x++) bound[x] += UNIT * fabs(h->grads[0][x]) + 1e-37;
    check_close(t, "dq dk dv", h->grads[1], h->grads[0], bound, n);
    for (int i = 0; i < 2; i++) check_lone_queries(t, h, h->grads[i]);
    check_same_bits(t, "dq dk dv", h->grads[1], n);
}

static void each_shape(check *t, void (*one)(check *t, const head *h))
{
    for (size_t a = 0; a < sizeof lengths / sizeof *lengths; a++)
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++) {
            size_t T = lengths[a], D = sizes[b];
            if ((T > 70 && D % 16 && D > 3) || T * D > 9000)
                /* Test long rows with few sizes, so that this takes seconds instead of minutes. */
                continue;
            head h = draw(t, T, D);
            one(t, &h);
        }
}

static void attention_against_ref(check *t) { each_shape(t, forward_at); }
static void backward_against_ref(check *t) { each_shape(t, backward_at); }

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
    h.start = (const int32_t[T]){0, 0, 2, 2, 2, 5, 5, 5, 5};
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

/* Known result: two equal keys, so the second query gives each a weight of 1/2. The first query sees
 * only its own key, so its gradient is 0. */
static void backward_definition(check *t)
{
    float q[] = {5, 2}, k[] = {1, 1}, v[] = {3, 7}, dout[] = {10, 4}, out[2], lse[2], dq[2], dk[2],
          dv[2];
    float *scratch = check_scratch(t, t->ref->attention_scratch(2, 1));
    check_at(t, "two equal keys");
    t->ref->attention(out, 1, lse, q, k, v, 1, 2, 1, 1, NULL, NULL, scratch);
    t->ref->attention_backward(dq, dk, dv, 1, dout, out, 1, lse, q, k, v, 1, 2, 1, 1, NULL, NULL,
                               scratch);
    /* the second query's dP is 4*3 and 4*7, delta is 4*5, and dS is -4 and 4 */
    const double want[3][2] = {{0, 0}, {-8, 8}, {10 + 2, 2}};
    for (int i = 0; i < 2; i++) {
        check_near(t, "dq", dq[i], want[0][i], 32 * UNIT);
        check_near(t, "dk", dk[i], want[1][i], 32 * UNIT);
        check_near(t, "dv", dv[i], want[2][i], 32 * UNIT);
    }
}

static void bench_at(check *t, size_t T, int with_backward, int dropping)
{
    enum { D = 64 };
    head h = draw(t, T, D);
    h.drop = dropping ? &drops : NULL;
    h.start = NULL;
    char shape[64];
    /* a full matrix product has 2 T^2 D FLOPs, but half of them lie above the diagonal */
    double products = (double)(T * T) * 2 * D;
    snprintf(shape, sizeof shape, "T %zu, D %d%s", T, D, dropping ? ", dropout" : "");
    forward(t->k, &h, 1);
    h.out[0] = h.out[1], h.lse[0] = h.lse[1]; /* inputs of the backward pass */
    for (bench_start(t); bench_next(t);) (with_backward ? backward : forward)(t->k, &h, 1);
    bench_report(t, shape, 0, products * (with_backward ? 5 : 2) / 2);
}

static void bench_rows(check *t, int with_backward)
{
    bench_at(t, 64, with_backward, 0);
    bench_at(t, 512, with_backward, 0);
    bench_at(t, 512, with_backward, 1);
    bench_at(t, 1024, with_backward, 0);
}

static void attention_bench(check *t) { bench_rows(t, 0); }
static void backward_bench(check *t) { bench_rows(t, 1); }

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
    {"attention_documents", documents_definition, one_document, NULL, NULL},
    {"attention_bf16", bf16_definition, bf16_against_ref, bf16_bench, "fast"},
    {"attention_bf16", bf16_definition, bf16_against_ref, NULL, "amx"},
    {0},
};
