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

typedef struct document_way {
    sgt_attention attention;
    int masked, other; /* other: two_documents */
    int32_t eot;       /* id that the backend searches for, unless the rows have starts */
    int told;          /* the rows' `starts` say where documents begin */
} document_way;

/* Return loss and gradient with two documents per row. The caller frees the gradient. */
static double gradient_of(step_check *s, const document_way *way, float **gradient)
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
    o.attention = way->attention;
    o.documents = way->masked;
    o.eot = way->eot;
    scoped(sgt_backend) *b = open_fixture(s, &f, &o, f.batch);
    two_documents(&f, way->other);
    sgt_batch rows = {.inputs = f.x, .targets = f.y, .starts = way->told ? starts : NULL};
    expect(s, b->eval(b, &rows, &loss, &counted, &err) == 0, "%s", err.text);
    expect(s, b->micro_step(b, 0, 0, &rows, 1.0 / (f.batch * f.seq), &err) == 0, "%s", err.text);
    /* micro_step has read them already, and must not read them again */
    memset(starts, 1, f.batch * f.seq * sizeof *starts);
    *gradient = flat_state(b, &f.model, SGT_GRADIENTS);
    /* end the step; it changes nothing, because the rate is 0 */
    expect(s, b->update(b, 0, 0, &err) == 0, "%s", err.text);
    return loss;
}

/* Check whether both ways have the same bits. */
static void expect_equal(step_check *s, const document_way *a, const document_way *b, int equal)
{
    fixture f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    size_t n = sgt_model_floats(&f.model);
    fixture_free(&f);
    float *of_a, *of_b;
    double loss_a = gradient_of(s, a, &of_a), loss_b = gradient_of(s, b, &of_b),
           off = largest_difference(of_a, of_b, n);
    expect(s, (loss_a == loss_b) == equal, "losses %.17g and %.17g", loss_a, loss_b);
    expect(s, (off <= 0) == equal, "gradients differ by %g", off);
    free(of_a);
    free(of_b);
}

/* Check that the tokens before a document change no bit of its loss and gradients with the mask,
 * and do change them without it. */
static void unseen_by(step_check *s, sgt_attention attention, int masked)
{
    const document_way first = {attention, masked, 0, 255, 0},
                       other = {attention, masked, 1, 255, 0};
    snprintf(s->at, sizeof s->at, "attention %d, %s", (int)attention,
             masked ? "masked" : "not masked");
    expect_equal(s, &first, &other, masked);
}

/* Check that if rows have document starts, the mask follows these, whatever the ids are. Id 1 occurs
 * within the first document of a row, so the mask would be wrong if the backend searched for it. */
static void told_by_rows(step_check *s, sgt_attention attention)
{
    const document_way by_id = {attention, 1, 0, 255, 0}, by_rows = {attention, 1, 0, 1, 1};
    snprintf(s->at, sizeof s->at, "attention %d, told by the rows", (int)attention);
    expect_equal(s, &by_id, &by_rows, 1);
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
