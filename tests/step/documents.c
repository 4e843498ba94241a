/* documents.c: --document-mask: rows of several documents, with attention masked between
 * documents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/step/cases.h"

/* Let each row begin with a document of 9 tokens without targets. `other` reverses these tokens:
 * the row then has the same tokens in another order, so the sum for each id in wte's gradient is
 * computed in the same order. */
static void two_documents(fixture *f, int other)
{
    enum { LENGTH = 9 };
    for (uint32_t b = 0; b < f->batch; b++) {
        int32_t *row = f->x + b * f->seq;
        for (uint32_t t = 0; t < LENGTH; t++) {
            row[t] = (int32_t)(b + (other ? LENGTH - 1 - t : t));
            f->y[b * f->seq + t] = -1;
        }
        row[LENGTH] = 255;
    }
}

/* Check that the tokens before a document change no bit of its loss and gradients with the mask,
 * and do change them without it. */
static void unseen_by(step_check *s, sgt_attention attention, int masked)
{
    scoped(fixture) f;
    sgt_error err = {0};
    double loss[2];
    uint64_t counted;
    float *gradients[2];
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    size_t n = sgt_model_floats(&f.model);
    sgt_backend_options o = fixture_options(s, &f, f.batch);
    o.deterministic = s->cuda;
    o.attention = attention;
    o.documents = masked;
    o.eot = 255;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    snprintf(s->at, sizeof s->at, "attention %d, %s", (int)attention,
             masked ? "masked" : "not masked");
    for (int other = 0; other < 2; other++) {
        two_documents(&f, other);
        sgt_batch rows = {.inputs = f.x, .targets = f.y};
        expect(s, b->eval(b, &rows, &loss[other], &counted, &err) == 0, "%s", err.text);
        fixture_micro_step_of(&f, b, 0, 0, 0, f.batch, 1.0 / (f.batch * f.seq));
        gradients[other] = flat_state(b, &f.model, SGT_GRADIENTS);
        /* end the step; it changes nothing, because the rate is 0 */
        expect(s, b->update(b, 0, 0, &err) == 0, "%s", err.text);
    }
    double off = largest_difference(gradients[0], gradients[1], n);
    expect(s, (loss[0] == loss[1]) == masked, "losses %.17g and %.17g", loss[0], loss[1]);
    expect(s, (off <= 0) == masked, "gradients differ by %g", off);
    free(gradients[0]);
    free(gradients[1]);
}

/* Compute loss and gradient with two documents per row. If `told` is set, the rows' `starts` say
 * where they begin; otherwise the backend searches for the id `eot`. */
static double gradient_of(step_check *s, sgt_attention attention, int32_t eot, int told,
                          float **gradient)
{
    scoped(fixture) f;
    sgt_error err = {0};
    double loss;
    uint64_t counted;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped_memory int32_t *starts = calloc((size_t)f.batch * f.seq, sizeof *starts);
    for (uint32_t i = 0; i < f.batch * f.seq; i++) starts[i] = i % f.seq < 9 ? 0 : 9;
    sgt_backend_options o = fixture_options(s, &f, f.batch);
    o.deterministic = s->cuda;
    o.attention = attention;
    o.documents = 1;
    o.eot = eot;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    two_documents(&f, 0);
    sgt_batch rows = {.inputs = f.x, .targets = f.y, .starts = told ? starts : NULL};
    expect(s, b->eval(b, &rows, &loss, &counted, &err) == 0, "%s", err.text);
    expect(s, b->micro_step(b, 0, 0, &rows, 1.0 / (f.batch * f.seq), &err) == 0, "%s", err.text);
    /* micro_step has read them already, and must not read them again */
    memset(starts, 1, f.batch * f.seq * sizeof *starts);
    *gradient = flat_state(b, &f.model, SGT_GRADIENTS);
    expect(s, b->update(b, 0, 0, &err) == 0, "%s", err.text);
    return loss;
}

/* Check that if rows have document starts, the mask follows these, whatever the ids are. */
static void told_by_rows(step_check *s, sgt_attention attention)
{
    enum { BY_ID, BY_ROWS, WAYS };
    /* id 1 occurs within the first document of a row, so the mask would be wrong if the backend
     * searched for it */
    static const int32_t eots[WAYS] = {255, 1};
    double loss[WAYS];
    float *gradient[WAYS];
    fixture f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    size_t n = sgt_model_floats(&f.model);
    fixture_free(&f);
    snprintf(s->at, sizeof s->at, "attention %d, told by the rows", (int)attention);
    for (int way = 0; way < WAYS; way++)
        loss[way] = gradient_of(s, attention, eots[way], way == BY_ROWS, &gradient[way]);
    expect(s, loss[BY_ROWS] == loss[BY_ID], "losses %.17g and %.17g", loss[BY_ROWS], loss[BY_ID]);
    expect(s, largest_difference(gradient[BY_ROWS], gradient[BY_ID], n) <= 0, "other gradients");
    for (int way = 0; way < WAYS; way++) free(gradient[way]);
}

void documents(step_check *s)
{
    /* rows of 70 tokens with dropout, and heads of 6 numbers, for which CUDA uses naive attention */
    expect_pytorch(s, "options_documents", SGT_GELU_TANH);
    for (int naive = 0; naive <= s->cuda; naive++) {
        sgt_attention attention = naive ? SGT_ATTENTION_NAIVE : SGT_ATTENTION_AUTO;
        for (int masked = 0; masked < 2; masked++) unseen_by(s, attention, masked);
        told_by_rows(s, attention);
    }
}
