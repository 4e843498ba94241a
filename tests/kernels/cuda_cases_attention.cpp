/* cuda_cases_attention.cpp: flash attention on the device, forward and backward, compared with sums
 * in double: tensor cores in 16 bits, float32 and TF32; tiles; Hopper's; dropout; documents. */
#include <string.h>

#include <vector>

#include "tests/kernels/attention_head.h"
#include "tests/kernels/cuda_types.h"

enum { MOST_T = 1024 }; /* tokens per row */
struct shape {
    size_t B, T, H, D;
};
using shape_list = std::initializer_list<shape>;
static const shape_list shapes = {{1, 1, 1, 64},   {1, 17, 1, 64},  {2, 64, 2, 64}, {1, 65, 2, 64},
                                  {1, 129, 1, 64}, {1, 193, 1, 64}, {1, 70, 3, 8},  {1, 100, 1, 40},
                                  {1, 80, 2, 80},  {1, 97, 1, 128}, {1, 92, 1, 64}};
/* shapes for dropout: numbers of keys that are not multiples of 4, and several key tiles of both
 * widths */
static const shape_list dropped_shapes = {
    {2, 19, 3, 8}, {1, 130, 1, 64}, {1, 66, 2, 128}, {3, 1, 2, 8}};

struct path {
    decltype(&sgt_cuda_attention) forward;
    decltype(&sgt_cuda_attention_backward) backward;
    double operand; /* relative rounding error of each operand of a matrix product */
};
static const path tensor_cores = {sgt_cuda_attention, sgt_cuda_attention_backward, 0};
static const path tf32 = {sgt_cuda_attention, sgt_cuda_attention_backward, 0x1p-11};
static const path hopper = {sgt_cuda_attention_hopper, sgt_cuda_attention_hopper_backward, 0};

struct heads {
    size_t B, T, H, D;
    const float *qkv, *dout;            /* as floats */
    float *out, *lse, *grads, *scratch; /* computed by kernels/ref */
    const sgt_cuda_dropout *drop;       /* NULL: none */
    const int32_t *start; /* (B, T): first token of each token's document; NULL: one per row */
    sgt_cuda_documents documents;

    float scale() const { return (float)(1 / sqrt((double)D)); }
};

struct extras {
    bool drops;     /* with dropout */
    size_t longest; /* maximum tokens of a document; 0: one document per row */
};
static const extras plain = {false, 0}, dropping = {true, 0};

/* Return the arguments for computing these heads by a path. */
template <class T> static sgt_cuda_heads asked(const heads &h, const path &by)
{
    return {Type<T>::id,
            by.operand > 0,
            h.B,
            h.T,
            h.H,
            h.D,
            h.scale(),
            h.drop,
            h.start ? &h.documents : NULL};
}

/* Draw documents of up to `longest` tokens, and of about a quarter of that in every other row. */
static void draw_documents(check *t, heads *h, size_t longest)
{
    int32_t *start = cuda_output<int32_t>(t, h->B * h->T),
            *end = cuda_output<int32_t>(t, h->B * h->T);
    for (size_t b = 0, from, to; b < h->B; b++)
        for (from = 0; from < h->T; from = to) {
            to = from + 1 + check_number(t, b % 2 ? longest / 4 + 1 : longest);
            if (to > h->T) to = h->T;
            for (size_t i = from; i < to; i++)
                start[b * h->T + i] = (int32_t)from, end[b * h->T + i] = (int32_t)to;
        }
    h->start = start;
    h->documents = {start, end};
}

/* Return head `which` of B*H as kernels/ref takes it, until the next call. The first number of dq, dk
 * and dv is in grads[0]. */
static head head_of(const heads &h, size_t which)
{
    static sgt_dropout drop;
    size_t width = h.H * h.D, row = which / h.H, column = which % h.H * h.D;
    const float *q = h.qkv + row * h.T * 3 * width + column;
    head one = {};
    one.T = h.T, one.D = h.D, one.ld = 3 * width, one.ld_out = one.part = width;
    one.scale = h.scale();
    one.q = q, one.k = q + width, one.v = q + 2 * width;
    one.dout = h.dout + row * h.T * width + column;
    one.out[0] = h.out + row * h.T * width + column;
    one.lse[0] = h.lse + which * h.T;
    one.grads[0] = h.grads + (q - h.qkv);
    one.scratch[0] = h.scratch;
    one.start = h.start ? h.start + row * h.T : NULL;
    if (!h.drop) return one;
    const sgt_cuda_place *p = h.drop->place;
    drop = {p->seed, sgt_dropout_draw(p->step, h.drop->layer, h.drop->site),
            sgt_dropout_attention_element(p->row + row * p->ranks, which % h.H, 0, 0, h.H, h.T),
            h.drop->rate};
    one.drop = &drop;
    return one;
}

template <class T>
static heads draw(check *t, const shape &s, T **qkv, T **dout, const extras &with)
{
    static const sgt_cuda_place place = {77, 123456789012, 11, 3};
    static sgt_cuda_dropout drop;
    /* in memory that the device can read */
    drop = {cuda_copy<sgt_cuda_place>(t, &place, 1), 0, 5, SGT_DROP_ATTENTION, 0.3f};
    heads h = {};
    h.B = s.B, h.T = s.T, h.H = s.H, h.D = s.D;
    if (with.drops) h.drop = &drop;
    size_t n = s.B * s.T * s.H * s.D, rows = s.B * s.T * s.H;
    *qkv =
        /* with scale 5, a few scores get nearly all of the probability */
        cuda_random<T>(t, 3 * n, check_number(t, 3) ? 1 : 5);
    *dout = cuda_random<T>(t, n, 1);
    h.qkv = cuda_floats(t, *qkv, 3 * n), h.dout = cuda_floats(t, *dout, n);
    h.out = check_output(t, n), h.lse = check_output(t, rows), h.grads = check_output(t, 3 * n);
    h.scratch = check_scratch(t, t->ref->attention_scratch(s.T, s.D));
    if (with.longest) draw_documents(t, &h, with.longest);
    check_at(t, "B %zu, T %zu, H %zu, D %zu%s%s", s.B, s.T, s.H, s.D, with.drops ? ", dropout" : "",
             with.longest ? ", documents" : "");
    for (size_t i = 0; i < s.B * s.H; i++) {
        const head one = head_of(h, i);
        forward(t->ref, &one, 0);
    }
    return h;
}

template <class T> static head_errors errors_of(const path &by)
{
    return {1, by.operand, Type<T>::unit, Type<T>::tiny};
}

template <class T>
static void forward_at(check *t, const shape &s, const path &by, const extras &with)
{
    size_t n = s.B * s.T * s.H * s.D, rows = s.B * s.T * s.H;
    T *qkv, *dout, *out = cuda_output<T>(t, n);
    heads h = draw(t, s, &qkv, &dout, with);
    float *lse = cuda_output<float>(t, rows);
    double *bound = check_doubles(t, n), *lse_bound = check_doubles(t, rows);
    const sgt_cuda_heads a = asked<T>(h, by);
    by.forward(0, &a, out, lse, cuda_there(t, qkv));
    for (size_t i = 0; i < s.B * s.H; i++) {
        const head one = head_of(h, i);
        const head_errors e = errors_of<T>(by);
        forward_bounds(bound + (one.out[0] - h.out), lse_bound + i * s.T, &one, &e);
    }
    stored_as<T>(bound, h.out, n);
    cuda_sync(t);
    check_close(t, "out", cuda_floats(t, out, n), h.out, bound, n);
    check_close(t, "lse", lse, h.lse, lse_bound, rows);
}

template <class T>
static void backward_at(check *t, const shape &s, const path &by, const extras &with)
{
    size_t n = s.B * s.T * s.H * s.D, rows = s.B * s.T * s.H;
    T *qkv, *dout, *out = cuda_output<T>(t, n), *grads = cuda_output<T>(t, 3 * n);
    heads h = draw(t, s, &qkv, &dout, with);
    double *bound = check_doubles(t, 3 * n);
    /* both start from the same stored output of the forward pass */
    for (size_t i = 0; i < n; i++) {
        out[i] = dev::from_float<T>(h.out[i]);
        h.out[i] = dev::to_float(out[i]);
    }
    const sgt_cuda_heads a = asked<T>(h, by);
    by.backward(0, &a, grads, cuda_output<float>(t, rows), cuda_there(t, dout), out,
                cuda_copy<float>(t, h.lse, rows), cuda_there(t, qkv));
    for (size_t i = 0; i < s.B * s.H; i++) {
        const head one = head_of(h, i);
        const head_errors e = errors_of<T>(by);
        backward(t->ref, &one, 0);
        backward_bounds(bound + (one.grads[0] - h.grads), &one, &e);
    }
    stored_as<T>(bound, h.grads, 3 * n);
    cuda_sync(t);
    const float *got = cuda_floats(t, grads, 3 * n);
    check_close(t, "dq dk dv", got, h.grads, bound, 3 * n);
    for (size_t i = 0; i < s.B * s.H; i++) {
        const head one = head_of(h, i);
        check_lone_queries(t, &one, got + (one.grads[0] - h.grads));
    }
}

enum pass { FORWARD, BACKWARD };

template <class T>
static void one_pass(check *t, pass which, const shape &s, const path &by, const extras &with)
{
    if (which == FORWARD) forward_at<T>(t, s, by, with);
    else backward_at<T>(t, s, by, with);
}

template <class T>
static void each(check *t, pass which, const path &by, shape_list list, const extras &with = plain)
{
    for (const shape &s : list) one_pass<T>(t, which, s, by, with);
}

/* Short documents, and documents longer than a tile. One kind has dropout. */
template <class T> static void documents(check *t, pass which, const path &by, shape_list list)
{
    for (const shape &s : list)
        for (size_t longest : {9, 130})
            one_pass<T>(t, which, s, by, {(longest == 9) == (which == FORWARD), longest});
}

/* Define a case for each type. `call` uses T. */
#define CASES_16(name, call) \
    CUDA_CASE(name##_bf16)   \
    {                        \
        using T = dev::bf16; \
        call;                \
    }                        \
    CUDA_CASE(name##_f16)    \
    {                        \
        using T = dev::f16;  \
        call;                \
    }
#define CASES(name, call) \
    CUDA_CASE(name##_f32) \
    {                     \
        using T = float;  \
        call;             \
    }                     \
    CASES_16(name, call)
/* The same for the types that Hopper's attention supports. */
#define HOPPER_CASES(name, call) CASES_16(name, if (cuda_hopper(t)) call)

CASES(cuda_attention, each<T>(t, FORWARD, tensor_cores, shapes))
CASES(cuda_attention_backward, each<T>(t, BACKWARD, tensor_cores, shapes))
CUDA_CASE(cuda_attention_tf32) { each<float>(t, FORWARD, tf32, shapes); }
CUDA_CASE(cuda_attention_backward_tf32) { each<float>(t, BACKWARD, tf32, shapes); }

/* Rows as long as in training. On a CPU this takes minutes, so the case needs a GPU. */
CUDA_CASE(card_attention_rows)
{
    if (!cuda_card(t)) return;
    for (pass which : {FORWARD, BACKWARD})
        each<dev::bf16>(t, which, tensor_cores, {{1, MOST_T, 2, 64}, {1, MOST_T, 2, 128}});
}

CASES(cuda_attention_dropout, each<T>(t, FORWARD, tensor_cores, dropped_shapes, dropping))
CASES(cuda_attention_dropout_backward, each<T>(t, BACKWARD, tensor_cores, dropped_shapes, dropping))
CUDA_CASE(cuda_attention_dropout_tf32) { each<float>(t, FORWARD, tf32, dropped_shapes, dropping); }
CUDA_CASE(cuda_attention_dropout_backward_tf32)
{
    each<float>(t, BACKWARD, tf32, dropped_shapes, dropping);
}

/* Documents that begin and end within tiles, and longer documents, with both tile widths. */
static const shape_list document_shapes = {{2, 203, 2, 64}, {2, 150, 1, 128}, {1, 70, 1, 8}};

CASES(cuda_attention_documents, documents<T>(t, FORWARD, tensor_cores, document_shapes))
CASES(cuda_attention_documents_backward, documents<T>(t, BACKWARD, tensor_cores, document_shapes))

/* Rows that end within a tile and at its end. The next sequence's keys must not be read. */
static const shape_list hopper_shapes = {{1, 1, 1, 64},   {2, 17, 2, 64},  {2, 128, 1, 64},
                                         {1, 129, 2, 64}, {2, 450, 1, 64}, {1, 70, 2, 128},
                                         {2, 261, 1, 128}};
static const shape_list hopper_dropped = {{2, 203, 2, 64}, {2, 203, 2, 128}, {1, 390, 1, 64}};
/* Documents for which whole tiles are skipped, by both warpgroups of a block or by one of them. */
static const shape_list hopper_documents = {{2, 450, 1, 64}, {2, 203, 2, 128}};

HOPPER_CASES(cuda_attention_hopper, each<T>(t, FORWARD, hopper, hopper_shapes))
HOPPER_CASES(cuda_attention_hopper_backward, each<T>(t, BACKWARD, hopper, hopper_shapes))
HOPPER_CASES(cuda_attention_hopper_dropout, each<T>(t, FORWARD, hopper, hopper_dropped, dropping))
HOPPER_CASES(cuda_attention_hopper_dropout_backward,
             each<T>(t, BACKWARD, hopper, hopper_dropped, dropping))
HOPPER_CASES(cuda_attention_hopper_documents, documents<T>(t, FORWARD, hopper, hopper_documents))
HOPPER_CASES(cuda_attention_hopper_documents_backward,
             documents<T>(t, BACKWARD, hopper, hopper_documents))

/* Memory after a sequence must not affect its results, even if it holds NaN. */
CUDA_CASE(cuda_attention_hopper_apart)
{
    if (!cuda_hopper(t)) return;
    enum { T = 70, D = 64, N = T * D };
    dev::bf16 *qkv = cuda_random<dev::bf16>(t, 6 * N, 1),
              *dout = cuda_random<dev::bf16>(t, 2 * N, 1);
    float *want = check_output(t, N), *grads = check_output(t, 3 * N);
    check_at(t, "NaN after the sequence");
    for (int again = 0; again < 2; again++) {
        dev::bf16 *out = cuda_output<dev::bf16>(t, 2 * N), *dqkv = cuda_output<dev::bf16>(t, 6 * N);
        float *lse = cuda_output<float>(t, 2 * T), *delta = cuda_output<float>(t, 2 * T);
        const dev::bf16 *in = cuda_there(t, qkv);
        const sgt_cuda_heads a = {SGT_BF16, 0, 2, T, 1, D, 0.125f, NULL, NULL};
        sgt_cuda_attention_hopper(0, &a, out, lse, in);
        sgt_cuda_attention_hopper_backward(0, &a, dqkv, delta, cuda_there(t, dout), out, lse, in);
        cuda_sync(t);
        if (again) {
            check_equal(t, "out", cuda_floats(t, out, N), want, N);
            check_equal(t, "dq dk dv", cuda_floats(t, dqkv, 3 * N), grads, 3 * N);
        } else {
            check_near(t, "numbers", isnan(dev::to_float(out[0]) + dev::to_float(dqkv[0])), 0, 0);
            memcpy(want, cuda_floats(t, out, N), N * sizeof *want);
            memcpy(grads, cuda_floats(t, dqkv, 3 * N), 3 * N * sizeof *grads);
        }
        for (int i = 0; i < 3 * N; i++) qkv[3 * N + i] = dev::from_float<dev::bf16>(NAN);
        for (int i = 0; i < N; i++) dout[N + i] = dev::from_float<dev::bf16>(NAN);
    }
}

/* Launch Hopper's backward pass many times on the same inputs. A rare race would change some
 * bits. */
template <class T> static void attend_again(check *t, size_t D, const extras &with)
{
    const shape s = {2, 203, 2, D};
    const size_t rows = s.B * s.T * s.H, n = 3 * rows * D;
    T *qkv, *dout, *out = cuda_output<T>(t, rows * D), *grads = cuda_output<T>(t, n);
    float *lse = cuda_output<float>(t, rows), *delta = cuda_output<float>(t, rows);
    const heads h = draw(t, s, &qkv, &dout, with);
    const sgt_cuda_heads a = asked<T>(h, hopper);
    std::vector<T> first;
    hopper.forward(0, &a, out, lse, cuda_there(t, qkv));
    for (int launch = 0; launch < 200 && !t->failures; launch++) {
        memset(grads, 0xff, n * sizeof *grads);
        hopper.backward(0, &a, grads, delta, cuda_there(t, dout), out, lse, cuda_there(t, qkv));
        cuda_sync(t);
        if (!launch) first.assign(grads, grads + n);
        if (memcmp(grads, first.data(), n * sizeof *grads) == 0) continue;
        check_equal(t, "dq dk dv again", cuda_floats(t, grads, n), cuda_floats(t, first.data(), n),
                    n);
    }
}

CUDA_CASE(card_attention_hopper_again)
{
    if (!cuda_card(t) || !cuda_hopper(t)) return;
    for (size_t D : {64, 128})
        for (bool drops : {false, true})
            for (size_t longest : {0, 7, 130}) {
                attend_again<dev::bf16>(t, D, {drops, longest});
                attend_again<dev::f16>(t, D, {drops, longest});
            }
}
