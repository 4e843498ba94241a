/* batch.c: opens the model and runs it on one batch of rows (see eval.h). */
#include <stdio.h>
#include <stdlib.h>

#include "train/device.h"
#include "train/run/checkpoint.h"
#include "tools/eval/eval.h"

int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err)
{
    sgt_backend_options o = {.model = e->model.shape,
                             /* SGD has the least state; nothing is updated */
                             .optim = {.kind = SGT_SGD},
                             .batch = (uint32_t)rows,
                             .seq = (uint32_t)seq,
                             .threads = e->threads,
                             .precision = e->precision,
                             .notice = e->notice};
    size_t n = rows * seq;
    *x = (eval_batch){.rows = rows, .seq = seq};
    x->tokens = calloc(n + rows, sizeof *x->tokens);
    x->targets = calloc(n, sizeof *x->targets);
    x->losses = calloc(n, sizeof *x->losses);
    x->greedy = calloc(n, sizeof *x->greedy);
    if (!x->tokens || !x->targets || !x->losses || !x->greedy) return sgt_fail_memory(err, NULL);
    int rc = sgt_device_backend(&x->b, e->device, &o, err);
    return rc == SGT_OK ? sgt_checkpoint_load_model(e->model.path, x->b, &o.model, err) : rc;
}

int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err)
{
    double loss;
    uint64_t counted;
    sgt_batch rows = {.tokens = x->tokens,
                      .targets = x->targets,
                      .losses = x->losses,
                      .greedy = greedy ? x->greedy : NULL};
    if (sgt_stopped(e->stop)) return sgt_fail(err, SGT_ESTOPPED, "%s: interrupted", name);
    return x->b->eval(x->b, &rows, &loss, &counted, err);
}

void eval_batch_close(eval_batch *x)
{
    if (x->b) x->b->close(x->b);
    free(x->tokens);
    free(x->targets);
    free(x->losses);
    free(x->greedy);
}

void eval_show_name(eval *e, const char *name)
{
    char path[4096];
    if (!e->shown++)
        printf("%s on %s in %s\n", sgt_printable(path, sizeof path, e->model.path), e->device,
               sgt_precision_words[e->precision]);
    printf("\n%s", sgt_printable(path, sizeof path, name));
}
