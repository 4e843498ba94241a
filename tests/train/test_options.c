/* What a step on a CPU may be asked for beside AdamW in float32, against PyTorch in float64 and against itself. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "run/checkpoint.h"
#include "model/config.h"
#include "fixture.h"
#include "folder.h"
#include "run/safetensors.h"

static uint32_t counted_targets(const fixture *f, uint32_t first, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = first * f->seq; i < (first + count) * f->seq; i++)
        n += !(f->options.ignoring && f->y[i] == f->options.ignore);
    return n;
}

/* Step `step` of the fixture, its rows in micro-steps of `rows`, up to the update. */
static void accumulate(const fixture *f, sgt_backend *b, uint64_t step, uint32_t rows)
{
    double scale = 1.0 / counted_targets(f, 0, f->batch);
    for (uint32_t m = 0; m < f->batch / rows; m++) fixture_micro_step_of(f, b, step, m, m * rows, rows, scale);
}

static void finish(const fixture *f, sgt_backend *b, uint64_t step, sgt_step_metrics *m)
{
    sgt_error err;
    cr_assert_eq(b->update(b, step, f->lr, &err), 0, "%s", err.text);
    cr_assert_eq(b->metrics(b, step, m, &err), 0, "%s", err.text);
}

/* What one step of the last bit is worth in a 16-bit format; 0 in float32. */
static double last_bit(const fixture *f)
{
    sgt_precision p = f->options.precision;
    return p == SGT_PRECISION_BF16 ? 0x1p-8 : p == SGT_PRECISION_FP16 ? 0x1p-11 : 0;
}

/* How far gradients may be off, of their norm. float32: 5e-6, which is about 2^6 units. Where operands are rounded, the
 * reference rounds at the same places, but a number that far from its own may fall on a halfway point's other side: of
 * all numbers 2 * 2^6 * 2^-24 / last bit do, and are off by one last bit then. About 16 roundings lie one after another
 * on a gradient's way; left out, each would be worth a third of a last bit on every number. */
static double gradient_bound(const fixture *f)
{
    double bit = last_bit(f);
    return bit > 0 ? sqrt(16 * 0x1p-17 / bit) * bit : 5e-6;
}

/* The forward pass has about 2^15 numbers with errors of 2^2 units: 2^15 * 2^-21 / last bit of them are off by a last
 * bit, each in the loss of one of N positions, whose logits are below 1/2; such errors add as their squares do. */
static double loss_bound(const fixture *f)
{
    return 5e-6 + sqrt(0x1p-6 * last_bit(f)) / (f->batch * f->seq);
}

/* Of a tensor's norm and of the whole's; of a tensor of a few numbers one may be off by a last bit. */
static void check_gradients(const fixture *f, sgt_backend *b)
{
    float *g = flat_state(b, &f->model, SGT_GRADIENTS);
    double scale = f->options.precision == SGT_PRECISION_FP16 ? 65536 : 1, all = 0, whole = 0;
    for (size_t i = 0; i < sgt_model_tensors(&f->model); i++) {
        sgt_tensor t;
        double diff = 0, norm = 0;
        sgt_model_tensor(&f->model, i, &t);
        for (size_t j = t.offset; j < t.offset + t.count; j++) {
            double d = (double)g[j] / scale - f->grads[j];
            diff += d * d;
            norm += f->grads[j] * f->grads[j];
        }
        all += diff, whole += norm;
        cr_expect_leq(sqrt(diff / norm), fmax(5e-6, last_bit(f)), "gradient of %s: relative error %g", t.name,
                      sqrt(diff / norm));
    }
    cr_expect_leq(sqrt(all / whole), gradient_bound(f), "gradient: relative error %g", sqrt(all / whole));
    free(g);
}

/* With gradients good to so much of their norm, which is clipped to 1: AdamW's first steps are lr long whatever a
 * gradient's size, so that one near 0 may move a parameter by lr/5; SGD's three steps weigh a gradient by at most 8 lr
 * in all, and each rounds a parameter below 2. */
static double parameter_bound(const fixture *f)
{
    return f->options.optim.kind == SGT_SGD ? f->lr * 8 * gradient_bound(f) + 3 * 0x1p-23 : f->lr / 5;
}

static void check_evaluation(const fixture *f, sgt_backend *b)
{
    double loss;
    uint64_t targets;
    sgt_rows rows = {.tokens = f->tokens, .targets = f->y};
    cr_assert_eq(b->eval(b, &rows, &loss, &targets, NULL), 0);
    cr_expect_eq(targets, counted_targets(f, 0, f->batch));
    cr_expect_float_eq(loss / (double)targets, f->loss[f->steps], loss_bound(f), "evaluation: %.9f, not %.9f",
                       loss / (double)targets, f->loss[f->steps]);
}

static void against_reference(const char *name, uint32_t micro)
{
    fixture f;
    sgt_step_metrics m;
    fixture_load(&f, name, SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.batch = f.batch / micro;
    sgt_backend *b = fixture_open(&f, &o);
    for (uint32_t s = 0; s < f.steps; s++) {
        accumulate(&f, b, s, o.batch);
        if (s == 0) check_gradients(&f, b);
        finish(&f, b, s, &m);
        cr_expect_float_eq(m.loss, f.loss[s], loss_bound(&f), "step %u: loss %.9f, not %.9f", s, m.loss, f.loss[s]);
        cr_expect_float_eq(m.grad_norm / f.norm[s], 1, gradient_bound(&f), "step %u: norm %.9f, not %.9f", s,
                           m.grad_norm, f.norm[s]);
    }
    float *p = flat_state(b, &f.model, SGT_PARAMETERS);
    double worst = 0;
    for (size_t i = 0; i < sgt_model_floats(&f.model); i++) worst = fmax(worst, fabs((double)p[i] - f.final[i]));
    cr_expect_leq(worst, parameter_bound(&f), "parameters after %u steps differ by %g", f.steps, worst);
    free(p);
    if (micro == 1) check_evaluation(&f, b);
    b->close(b);
    fixture_free(&f);
}

/* The reference draws its masks for the whole step: each way of cutting it must draw the same. */
Test(options, dropout_as_pytorch_in_float64)
{
    for (uint32_t micro = 1; micro <= 4; micro *= 2) against_reference("options_dropout", micro);
}

Test(options, sgd_and_an_ignored_id_as_pytorch_in_float64) { against_reference("options_sgd", 1); }

Test(options, nesterov_and_an_untied_head_as_pytorch_in_float64)
{
    for (uint32_t micro = 1; micro <= 4; micro *= 2) against_reference("options_untied", micro);
}

/* Documents that begin within tiles, beside one another and at both ends of a row; with dropout, whose elements do not
 * know of them. */
Test(options, documents_masked_from_one_another_as_pytorch_in_float64)
{
    for (uint32_t micro = 1; micro <= 4; micro *= 2) against_reference("options_documents", micro);
}

/* The loss of a step, its gradients in the flat layout. */
static float *step_gradients(const fixture *f, const sgt_backend_options *o, double *loss)
{
    sgt_step_metrics m;
    sgt_backend *b = fixture_open(f, o);
    accumulate(f, b, 0, o->batch);
    float *g = flat_state(b, &f->model, SGT_GRADIENTS);
    finish(f, b, 0, &m);
    *loss = m.loss;
    b->close(b);
    return g;
}

/* Where documents from place 40 + b of row b on alone have targets, what came before it leaves no trace, down to the
 * bits; and it does where documents see one another. */
Test(options, a_document_does_not_see_the_one_before)
{
    for (int masked = 0; masked <= 1; masked++) {
        fixture f;
        double loss[2];
        float *g[2];
        fixture_load(&f, "options_documents", SGT_GELU_TANH);
        f.options.documents = masked;
        f.options.ignoring = 1, f.options.ignore = 36;
        for (int other = 0; other < 2; other++) {
            for (uint32_t b = 0; b < f.batch; b++)
                for (uint32_t t = 0; t < 41 + b; t++) {
                    f.tokens[b * (f.seq + 1) + t] = t == 40 + b ? 5 : (uint16_t)(6 + t * (other ? 7 : 3) % 30);
                    if (t < 40 + b) f.y[b * f.seq + t] = 36;
                }
            g[other] = step_gradients(&f, &f.options, &loss[other]);
        }
        int same = loss[0] == loss[1];
        for (size_t i = 0; i < sgt_model_floats(&f.model); i++) same &= g[0][i] == g[1][i];
        cr_expect_eq(same, masked, "masked %d: losses %.9g and %.9g", masked, loss[0], loss[1]);
        free(g[0]);
        free(g[1]);
        fixture_free(&f);
    }
}

/* Rows without the id are one document each. */
Test(options, a_row_of_one_document_has_the_bits_of_a_row_without_the_mask)
{
    fixture f;
    double loss[3];
    float *g[3];
    fixture_load(&f, "options_documents", SGT_GELU_TANH);
    for (int i = 0; i < 3; i++) { /* the third: an id that is in the rows */
        sgt_backend_options o = f.options;
        o.documents = i > 0;
        if (i == 1) o.eot = 60000;
        g[i] = step_gradients(&f, &o, &loss[i]);
    }
    size_t bytes = sgt_model_floats(&f.model) * sizeof *g[0];
    cr_expect(loss[0] == loss[1] && memcmp(g[0], g[1], bytes) == 0, "losses %.9g and %.9g", loss[0], loss[1]);
    cr_expect(loss[0] != loss[2] && memcmp(g[0], g[2], bytes) != 0);
    for (int i = 0; i < 3; i++) free(g[i]);
    fixture_free(&f);
}

/* The reference rounds operands where the backend does: our own head rounds others than one of whole logits. */
Test(options, bf16_as_pytorch_with_rounded_operands)
{
    const sgt_head h = {.V = 37, .C = 18, .bf16 = 1};
    const char *name = sgt_head_possible(&h) ? "options_bf16_head" : "options_bf16";
    for (uint32_t micro = 1; micro <= 2; micro++) against_reference(name, micro);
}

static void keep_notice(void *ctx, const char *text) { snprintf(ctx, 200, "%s", text); }

/* What the bits depend on is in the level's name, and what is slower than the option sounds is said. */
static void check_path(sgt_precision precision, const char *level, const char *said)
{
    char notice[200] = "";
    fixture f;
    fixture_load(&f, "options_bf16", SGT_GELU_TANH);
    f.options.precision = precision;
    f.options.notice = (sgt_notice){keep_notice, notice};
    sgt_backend *b = fixture_open(&f, &f.options);
    cr_expect(strstr(b->level, level), "%s is not of %s", level, b->level);
    cr_expect_str_eq(notice, said);
    b->close(b);
    fixture_free(&f);
}

Test(options, the_level_says_how_products_are_made)
{
    int bf16 = sgt_gemm_has_bf16();
    check_path(SGT_PRECISION_FP32, "", "");
    check_path(SGT_PRECISION_BF16, bf16 ? "/bf16" : "/rounded",
               bf16 ? "" : "--precision bf16: operands are rounded to it and multiplied in fp32");
    check_path(SGT_PRECISION_FP16, "/rounded", "--precision fp16: operands are rounded to it and multiplied in fp32");
}

/* A level that has no products of bfloat16; each test is a process of its own. */
Test(options, bf16_where_the_cpu_has_no_such_products)
{
    sgt_error err;
    cr_assert_eq(sgt_cpu_limit("plain", &err), 0, "%s", err.text);
    check_path(SGT_PRECISION_BF16, "plain/rounded",
               "--precision bf16: operands are rounded to it and multiplied in fp32");
    against_reference("options_bf16", 1);
}

Test(options, fp16_as_pytorch_with_rounded_operands)
{
    for (uint32_t micro = 1; micro <= 2; micro++) against_reference("options_fp16", micro);
}

/* Parameters after the fixture's steps. */
static float *trained(const fixture *f, const sgt_backend_options *o)
{
    sgt_step_metrics m;
    sgt_backend *b = fixture_open(f, o);
    for (uint32_t s = 0; s < f->steps; s++) {
        accumulate(f, b, s, o->batch);
        finish(f, b, s, &m);
    }
    float *p = flat_state(b, &f->model, SGT_PARAMETERS);
    b->close(b);
    return p;
}

static const char *const names[] = {"options_dropout", "options_sgd", "options_untied", "options_bf16",
                                    "options_fp16", "options_documents"};

Test(options, the_same_bits_for_any_number_of_threads_and_any_recomputation)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fixture f;
        fixture_load(&f, names[i], SGT_GELU_TANH);
        sgt_backend_options o = f.options;
        float *want = trained(&f, &o);
        for (int threads = 1; threads <= 5; threads += 2)
            for (int r = SGT_RECOMPUTE_NONE; r <= SGT_RECOMPUTE_BLOCK; r++) {
                o.threads = threads;
                o.recompute = (sgt_recompute)r;
                float *p = trained(&f, &o);
                cr_expect(memcmp(p, want, sgt_model_floats(&f.model) * sizeof *p) == 0,
                          "%s, %d threads, recompute %d: other bits", names[i], threads, r);
                free(p);
            }
        free(want);
        fixture_free(&f);
    }
}

/* Levels by layer: n, g, b. What some share must not be read by the others, wherever the last of them is. */
static const char *const mixes[] = {"nnnnn", "ggbbn", "bnbgn", "nbgnb", "gnnbn", "bbbgg", "nnnnb"};

Test(options, the_same_bits_for_any_mix_of_recomputation)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fixture f;
        fixture_load(&f, names[i], SGT_GELU_TANH);
        fixture_deepen(&f, 5);
        f.steps = 3;
        sgt_backend_options o = f.options;
        float *want = trained(&f, &o);
        for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++) {
            uint8_t at[5];
            for (int l = 0; l < 5; l++) at[l] = (uint8_t)(strchr("ngb", mixes[k][l]) - "ngb");
            o.recompute_at = at;
            float *p = trained(&f, &o);
            cr_expect(memcmp(p, want, sgt_model_floats(&f.model) * sizeof *p) == 0, "%s, %s: other bits", names[i],
                      mixes[k]);
            free(p);
        }
        free(want);
        fixture_free(&f);
    }
}

/* ---- which bytes are live when ---- */

/* In `name`'s options with those levels, after every part all but what is said to be live is overwritten. */
static void scrubbed(const char *name, const char *levels, uint32_t micro, int documents)
{
    fixture f;
    uint8_t at[5];
    fixture_load(&f, name, SGT_GELU_TANH);
    fixture_deepen(&f, 5);
    sgt_backend_options o = f.options;
    for (int l = 0; l < 5; l++) at[l] = (uint8_t)(strchr("ngb", levels[l]) - "ngb");
    o.recompute_at = at;
    o.batch = f.batch / micro;
    o.documents = documents;
    o.eot = f.x[3];
    f.steps = 3;
    float *want = trained(&f, &o);
    o.scrub = 1;
    float *p = trained(&f, &o);
    cr_expect(memcmp(p, want, sgt_model_floats(&f.model) * sizeof *p) == 0, "%s, %s, %u micro-steps: other bits", name,
              levels, micro);
    free(want);
    free(p);
    fixture_free(&f);
}

Test(live, what_is_said_to_be_dead_is_read_by_nobody)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++) scrubbed(names[i], mixes[k], 1 + k % 2, k % 3 == 0);
}

/* A backend of 4 layers, and what is live of one kind after each part, and at some time within it. */
enum { DEEP = 4, DEEP_PARTS = 2 * DEEP + 4 };
typedef struct curve {
    uint64_t within[DEEP_PARTS], after[DEEP_PARTS], whole;
} curve;

static curve curve_of(const sgt_backend_options *o, const char *kind, int again)
{
    sgt_error err;
    sgt_backend *b;
    curve c = {0};
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t within[SGT_LIVE_KINDS], after[SGT_LIVE_KINDS];
    cr_assert_eq(sgt_cpu_backend_open(&b, o, &err), 0, "%s", err.text);
    cr_assert(b->live, "it does not know what is live");
    size_t n = b->memory(b, kinds);
    for (unsigned part = 0; part < DEEP_PARTS; part++) {
        b->live(b, part, again, within, after);
        for (size_t i = 0; i < n; i++) {
            cr_expect(after[i] <= within[i] && within[i] <= kinds[i].bytes, "part %u, %s: %lu, %lu of %lu", part,
                      kinds[i].name, (unsigned long)after[i], (unsigned long)within[i], (unsigned long)kinds[i].bytes);
            if (strcmp(kinds[i].name, kind)) continue;
            c.within[part] = within[i];
            c.after[part] = after[i];
            c.whole = kinds[i].bytes;
        }
    }
    b->close(b);
    return c;
}

/* B*T*C floats at a time: a layer's own are 16 of them, and of statistics and lse 4 + H numbers a position.
 * What is computed again is freed and made anew. */
Test(live, activations_rise_forward_and_fall_backward)
{
    enum { C = 64, B = 2, T = 16, N = B * T, UNIT = N * C * 4, STATISTICS = N * 4 };
    sgt_error err;
    sgt_backend_options o = {.batch = B, .seq = T, .threads = 1};
    cr_assert_eq(sgt_model_named(&o.model, "4x64x2", &err), 0);
    o.model.vocab = 100;
    for (int r = SGT_RECOMPUTE_NONE; r <= SGT_RECOMPUTE_BLOCK; r++) {
        static const uint64_t kept[] = {16, 10, 1}, statistics[] = {6, 2, 0};
        o.recompute = (sgt_recompute)r;
        curve c = curve_of(&o, "activations", 0);
        for (unsigned layer = 0; layer + 1 < DEEP; layer++) {
            uint64_t rise = c.after[1 + layer] - c.after[layer];
            uint64_t fall = c.after[sgt_part_backward(DEEP, layer + 1)] - c.after[sgt_part_backward(DEEP, layer)];
            uint64_t want = kept[r] * UNIT + statistics[r] * STATISTICS;
            cr_expect_eq(rise, want, "level %d, layer %u forward: %lu, not %lu", r, layer, (unsigned long)rise,
                         (unsigned long)want);
            if (layer + 2 < DEEP)
                cr_expect_eq(fall, want, "level %d, layer %u backward: %lu, not %lu", r, layer, (unsigned long)fall,
                             (unsigned long)want);
        }
        cr_expect_eq(c.whole - c.within[sgt_part_head(DEEP)], (DEEP - 1) * (6 - statistics[r]) * STATISTICS,
                     "level %d: all are in use as the head is, but statistics that will be made anew", r);
        cr_expect_eq(c.after[sgt_part_backward(DEEP, 0)], 0, "level %d: nothing is left", r);
    }
}

Test(live, weights_stay_and_gradients_come_with_the_backward_pass)
{
    sgt_error err;
    sgt_backend_options o = {.batch = 2, .seq = 16, .threads = 1};
    cr_assert_eq(sgt_model_named(&o.model, "4x64x2", &err), 0);
    o.model.vocab = 100;
    curve weights = curve_of(&o, "weights", 0), moments = curve_of(&o, "moments", 0);
    curve first = curve_of(&o, "gradients", 0), again = curve_of(&o, "gradients", 1);
    for (unsigned part = 0; part < DEEP_PARTS; part++) {
        cr_expect(weights.after[part] == weights.whole && moments.after[part] == moments.whole, "part %u", part);
        cr_expect_eq(again.after[part], part == sgt_part_update(DEEP) ? 0 : again.whole, "part %u", part);
    }
    cr_expect_eq(first.after[sgt_part_forward(DEEP - 1)], 0);
    cr_expect_eq(first.after[sgt_part_head(DEEP)], 100 * 64 * 4, "wte's, from the head's product");
    for (unsigned layer = 1; layer < DEEP; layer++) /* its four matrices, 12 C^2 */
        cr_expect_eq(first.after[sgt_part_backward(DEEP, layer - 1)] - first.after[sgt_part_backward(DEEP, layer)],
                     12 * 64 * 64 * 4);
    cr_expect_eq(first.after[sgt_part_embeddings(DEEP)], first.whole);
    cr_expect_eq(first.after[sgt_part_update(DEEP)], 0);
}

TestSuite(untied, .init = make_folder, .fini = remove_folder);

/* Through a checkpoint and back, under transformers' names: the head is no part of "transformer". */
Test(untied, a_head_with_a_weight_of_its_own_is_kept)
{
    fixture f;
    sgt_error err;
    sgt_model m;
    sgt_safetensors *s;
    fixture_load(&f, "options_untied", SGT_GELU_TANH);
    sgt_backend *b = fixture_open(&f, &f.options), *other = fixture_open(&f, &f.options);
    sgt_checkpoint_state state = {.sampling = "shuffle", .device = "cpu", .level = "", .library = "", .options = "{}"};
    cr_assert_eq(sgt_checkpoint_write(folder, &state, b, &f.model, NULL, -1, &err), 0, "%s", err.text);
    cr_assert_eq(sgt_config_read(&m, folder, &err), 0, "%s", err.text);
    cr_expect(memcmp(&m, &f.model, sizeof m) == 0);
    float *zeros = calloc(sgt_model_floats(&m), sizeof *zeros);
    put_flat(other, &m, SGT_PARAMETERS, zeros);
    cr_assert_eq(sgt_checkpoint_load_model(folder, other, &m, &err), 0, "%s", err.text);
    cr_assert_eq(sgt_checkpoint_load_moments(folder, other, &m, &err), 0, "%s", err.text);
    float *p = flat_state(other, &m, SGT_PARAMETERS);
    cr_expect(memcmp(p, f.initial, sgt_model_floats(&m) * sizeof *p) == 0);
    cr_assert_eq(sgt_safetensors_open(&s, in_folder("model.safetensors"), &err), 0, "%s", err.text);
    cr_expect(sgt_safetensors_find(s, "lm_head.weight") && sgt_safetensors_find(s, "transformer.ln_f.bias"));
    sgt_safetensors_close(s);
    free(p);
    free(zeros);
    b->close(b);
    other->close(other);
    fixture_free(&f);
}

static uint64_t bytes_of(const sgt_backend_options *o, const char *kind)
{
    sgt_error err;
    sgt_backend *b;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t bytes = 0;
    cr_assert_eq(sgt_cpu_backend_open(&b, o, &err), 0, "%s", err.text);
    size_t n = b->memory(b, kinds);
    for (size_t i = 0; i < n; i++)
        if (strcmp(kinds[i].name, kind) == 0) bytes += kinds[i].bytes;
    b->close(b);
    return bytes;
}

/* Of 16 C numbers a position and layer `gelu` keeps two LayerNorms and GELU once for all layers, 6 C, and `block` all
 * but the block's output, 15 C. */
Test(options, recomputation_takes_the_bytes_it_should)
{
    enum { LAYERS = 6, C = 32, B = 2, T = 16 };
    sgt_error err;
    sgt_backend_options o = {.batch = B, .seq = T, .threads = 1};
    cr_assert_eq(sgt_model_named(&o.model, "6x32x2", &err), 0);
    o.model.vocab = 100;
    uint64_t unit = (LAYERS - 1) * sizeof(float) * B * T * C, none = bytes_of(&o, "activations");
    o.recompute = SGT_RECOMPUTE_GELU;
    cr_expect_eq(bytes_of(&o, "activations"), none - 6 * unit);
    o.recompute = SGT_RECOMPUTE_BLOCK;
    cr_expect_eq(bytes_of(&o, "activations"), none - 15 * unit);
    cr_expect_leq(2 * bytes_of(&o, "activations"), none);
    /* two that compute GELU again share one's 6 C, three whole blocks one's 15 C, of which 6 C with the others */
    uint8_t at[LAYERS] = {SGT_RECOMPUTE_GELU, SGT_RECOMPUTE_GELU, SGT_RECOMPUTE_BLOCK,
                          SGT_RECOMPUTE_NONE, SGT_RECOMPUTE_BLOCK, SGT_RECOMPUTE_BLOCK};
    o.recompute_at = at;
    cr_expect_eq(bytes_of(&o, "activations"), none - (4 * 6 + 2 * 9) * unit / (LAYERS - 1));
}

Test(options, sgd_has_one_moment)
{
    fixture f;
    float x = 3;
    fixture_load(&f, "options_sgd", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    uint64_t sgd = bytes_of(&o, "moments");
    cr_expect_eq(sgd, bytes_of(&o, "weights"));
    sgt_backend *b = fixture_open(&f, &o);
    cr_expect_eq(b->put(b, SGT_MOMENT2, 0, 0, 1, &x, NULL), 0);
    cr_expect_eq(b->get(b, SGT_MOMENT2, 0, 0, 1, &x, NULL), 0);
    cr_expect_eq(x, 0);
    b->close(b);
    o.optim.kind = SGT_ADAMW;
    cr_expect_eq(bytes_of(&o, "moments"), 2 * sgd);
    fixture_free(&f);
}

/* fp16's loss scale: what overflows leaves no trace but a smaller scale; AdamW's first update is still its first. */
Test(options, an_overflow_skips_the_update_and_halves_the_scale)
{
    fixture f;
    sgt_step_metrics m;
    sgt_scaler scaler;
    fixture_load(&f, "options_fp16", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.optim.kind = SGT_ADAMW;
    o.loss_scale = 0x1p22f; /* 1/44 of it is more than fp16 holds, of half of it not */
    sgt_backend *b = fixture_open(&f, &o);
    uint64_t step = 0;
    for (;; step++) {
        float scale = ldexpf(o.loss_scale, -(int)step);
        accumulate(&f, b, step, f.batch);
        finish(&f, b, step, &m);
        cr_expect_eq(m.loss_scale, scale);
        cr_assert_eq(b->get_scaler(b, &scaler, NULL), 0);
        if (isfinite(m.grad_norm)) break;
        float *p = flat_state(b, &f.model, SGT_PARAMETERS), *v = flat_state(b, &f.model, SGT_MOMENT2);
        cr_expect(memcmp(p, f.initial, sgt_model_floats(&f.model) * sizeof *p) == 0, "parameters changed");
        for (size_t i = 0; i < sgt_model_floats(&f.model); i++) cr_assert_eq(v[i], 0, "a moment changed");
        free(p);
        free(v);
        cr_expect(m.skipped == step + 1 && scaler.skipped == step + 1 && scaler.good_steps == 0);
        cr_expect_eq(scaler.scale, scale / 2);
        cr_assert_lt(step, 10);
    }
    cr_expect_geq(step, 1);
    cr_expect(m.skipped == step && scaler.skipped == step && scaler.good_steps == 1);
    o.loss_scale = scaler.scale;
    sgt_backend *first = fixture_open(&f, &o);
    accumulate(&f, first, 0, f.batch);
    finish(&f, first, 0, &m);
    float *got = flat_state(b, &f.model, SGT_PARAMETERS), *want = flat_state(first, &f.model, SGT_PARAMETERS);
    cr_expect(memcmp(got, want, sgt_model_floats(&f.model) * sizeof *got) == 0);
    free(got);
    free(want);
    first->close(first);
    b->close(b);
    fixture_free(&f);
}

Test(options, good_steps_double_the_scale)
{
    fixture f;
    sgt_step_metrics m;
    sgt_scaler s = {.scale = 1024, .good_steps = SGT_SCALE_GROWTH - 2, .skipped = 5};
    fixture_load(&f, "options_fp16", SGT_GELU_TANH);
    sgt_backend *b = fixture_open(&f, &f.options);
    b->put_scaler(b, 7, &s);
    for (uint64_t step = 7; step < 9; step++) {
        accumulate(&f, b, step, f.batch);
        finish(&f, b, step, &m);
        cr_expect(m.loss_scale == 1024 && m.skipped == 5);
        cr_assert_eq(b->get_scaler(b, &s, NULL), 0);
        cr_expect(s.scale == (step == 7 ? 1024 : 2048) && s.good_steps == (step == 7 ? SGT_SCALE_GROWTH - 1 : 0));
    }
    b->close(b);
    f.options.precision = SGT_PRECISION_BF16; /* no scale, but updates left out are counted */
    b = fixture_open(&f, &f.options);
    b->put_scaler(b, 9, &s);
    cr_assert_eq(b->get_scaler(b, &s, NULL), 0);
    cr_expect(s.scale == 1 && s.good_steps == 0 && s.skipped == 5);
    b->close(b);
    fixture_free(&f);
}

/* A mean over no targets is 0, and so are its gradients: the update only decays. */
Test(options, a_step_without_a_target)
{
    fixture f;
    sgt_step_metrics m;
    double loss;
    uint64_t targets;
    fixture_load(&f, "options_sgd", SGT_GELU_TANH);
    sgt_backend *b = fixture_open(&f, &f.options);
    for (uint32_t i = 0; i < f.batch * f.seq; i++) f.y[i] = f.options.ignore;
    fixture_micro_step_of(&f, b, 0, 0, 0, f.batch, 1.0 / 44);
    finish(&f, b, 0, &m);
    cr_expect(m.loss == 0 && m.grad_norm == 0, "loss %g, norm %g", m.loss, m.grad_norm);
    float *p = flat_state(b, &f.model, SGT_PARAMETERS);
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        for (size_t j = t.offset; j < t.offset + t.count; j++) {
            double want = f.initial[j] * (t.dims > 1 ? 1 - f.lr * 0.1 : 1);
            cr_assert_float_eq(p[j], want, 0x1p-23 * fabs(want), "%s: %g, not %g", t.name, (double)p[j], want);
        }
    }
    free(p);
    sgt_rows rows = {.tokens = f.tokens, .targets = f.y};
    cr_assert_eq(b->eval(b, &rows, &loss, &targets, NULL), 0);
    cr_expect(targets == 0 && loss == 0);
    b->close(b);
    fixture_free(&f);
}

/* Without targets of their own rows give the token after each, and the ignored id is looked for there too. */
Test(options, ignored_ids_among_rows)
{
    fixture f;
    sgt_step_metrics beside, within;
    fixture_load(&f, "options_sgd", SGT_GELU_TANH);
    uint32_t T = f.seq;
    for (uint32_t i = 0; i < f.batch * T; i++) f.y[i] = f.tokens[i / T * (T + 1) + i % T + 1];
    f.options.ignore = f.y[0];
    sgt_backend *b = fixture_open(&f, &f.options), *rows_alone = fixture_open(&f, &f.options);
    sgt_rows rows = {.tokens = f.tokens};
    accumulate(&f, b, 0, f.batch);
    finish(&f, b, 0, &beside);
    cr_assert_eq(rows_alone->micro_step(rows_alone, 0, 0, &rows, 1.0 / counted_targets(&f, 0, f.batch), NULL), 0);
    finish(&f, rows_alone, 0, &within);
    cr_expect_lt(counted_targets(&f, 0, f.batch), f.batch * T);
    cr_expect(beside.loss == within.loss && beside.grad_norm == within.grad_norm);
    b->close(b);
    rows_alone->close(rows_alone);
    fixture_free(&f);
}

Test(options, what_a_cpu_lacks_is_refused_by_name)
{
    const struct {
        sgt_backend_options o;
        int code;
        const char *text;
    } bad[] = {
        {{.attention = SGT_ATTENTION_CUDNN}, SGT_EUNSUPPORTED, "--attention cudnn: needs --device cuda"},
        {{.attention = SGT_ATTENTION_NAIVE}, SGT_EUNSUPPORTED, "--attention naive: needs --device cuda"},
        {{.no_fuse = 1}, SGT_EUNSUPPORTED, "--no-fuse: needs --device cuda"},
        {{.no_graphs = 1}, SGT_EUNSUPPORTED, "--no-graphs: needs --device cuda"},
        {{.no_overlap = 1}, SGT_EUNSUPPORTED, "--no-overlap: needs --device cuda"},
        {{.no_pad_vocab = 1}, SGT_EUNSUPPORTED, "--no-pad-vocab: needs --device cuda"},
        {{.precision = SGT_PRECISION_TF32},
         SGT_EUNSUPPORTED,
         "--precision tf32: no CPU has it (fp32 is as good, or --device cuda)"},
        {{.dropout = 1}, SGT_EUSAGE, "--dropout 1: must be at least 0 and below 1"},
        {{.attention = SGT_ATTENTION_OWN, .deterministic = 1}, SGT_OK, NULL}, /* as it is anyway */
    };
    sgt_model m;
    sgt_error err;
    cr_assert_eq(sgt_model_named(&m, "1x8x1", &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sgt_backend *b;
        sgt_backend_options o = bad[i].o;
        o.model = m, o.batch = 1, o.seq = 4, o.threads = 1;
        cr_expect_eq(sgt_cpu_backend_open(&b, &o, &err), bad[i].code, "%zu: %s", i, err.text);
        if (bad[i].text) cr_expect_str_eq(err.text, bad[i].text);
        else b->close(b);
    }
}
