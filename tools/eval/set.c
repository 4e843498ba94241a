/* set.c: runs the model on batches of rows, and computes the loss on a set of shards. Each shard is
 * divided into windows of T input tokens, which do not overlap. The targets are the tokens that
 * follow the inputs. Tokens at the end of a shard that do not fill a window are skipped. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/sgt_loader.h"
#include "tools/cli/progress.h"
#include "tools/cli/talk.h"
#include "tools/eval/eval.h"
#include "tokenize/vocab/vocab.h"
#include "train/device.h"
#include "train/log/metrics.h"
#include "train/run/checkpoint.h"

/* ---- batches ---- */

int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err)
{
    sgt_backend_options o = {.model = e->model.shape,
                             /* no parameter is updated, so choose the optimizer that needs the
                              * least memory */
                             .optim = {.kind = SGT_SGD},
                             .batch = (uint32_t)rows,
                             .seq = (uint32_t)seq,
                             .threads = e->threads,
                             .precision = e->precision,
                             .notice = e->notice};
    size_t n = rows * seq;
    *x = (eval_batch){.rows = rows, .seq = seq};
    x->inputs = calloc(2 * n, sizeof *x->inputs); /* `targets` is the second half */
    x->losses = calloc(n, sizeof *x->losses);
    x->greedy = calloc(n, sizeof *x->greedy);
    if (!x->inputs || !x->losses || !x->greedy) return sgt_fail_memory(err, NULL);
    x->targets = x->inputs + n;
    int rc = sgt_device_backend(&x->b, e->device, &o, err);
    return rc == SGT_OK ? sgt_checkpoint_load_model(e->model.path, x->b, &o.model, err) : rc;
}

int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err)
{
    double loss;
    uint64_t counted;
    sgt_batch rows = {.inputs = x->inputs,
                      .targets = x->targets,
                      .losses = x->losses,
                      .greedy = greedy ? x->greedy : NULL};
    if (sgt_stopped(e->stop)) return sgt_fail(err, SGT_ESTOPPED, "%s: interrupted", name);
    return x->b->eval(x->b, &rows, &loss, &counted, err);
}

void eval_batch_close(eval_batch *x)
{
    if (x->b) x->b->close(x->b);
    free(x->inputs);
    free(x->losses);
    free(x->greedy);
}

void eval_show(eval *e, const char *name, const char *what, json_t *result)
{
    char path[4096];
    if (e->results) json_array_append(e->results, result);
    else if (!e->quiet) {
        if (!e->shown++)
            printf("%s on %s in %s\n", sgt_printable(path, sizeof path, e->model.path), e->device,
                   sgt_precision_words[e->precision]);
        putchar('\n');
        sgt_print_facts(name, what, result);
    }
    json_decref(result);
}

/* ---- sets ---- */

typedef struct set {
    const char *path, *split; /* split: name of the split; "" if `path` is a single shard */
    sgt_loader *loader;
    sgt_loader_info info;
    uint32_t *text_bytes; /* array indexed by id: length in bytes of the token's text */
    uint64_t tokens;      /* number of targets */
    double loss;          /* sum of the losses of all targets, in nats */
    /* total bytes and total loss of the targets that stand for text, from which the bits per byte
     * are computed */
    sgt_text_loss text;
} set;

/* Return SGT_EUNSUPPORTED if the data set was tokenized with a different vocabulary than the
 * model's, because the loss and the bits per byte would be meaningless; otherwise 0. */
static int check_vocabulary(const set *s, const eval *e, sgt_error *err)
{
    uint64_t fingerprint = s->info.fingerprint;
    if (!fingerprint || sgt_vocab_fingerprint(e->model.vocab) == fingerprint) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: tokenized with a different vocabulary than the model's, %s (if that is "
                    "wrong, pass --vocab FILE)",
                    s->path, sgt_vocab_name(e->model.vocab));
}

static int open_set(set *s, const eval *e, sgt_error *err)
{
    sgt_loader_options o = {.size = sizeof o,
                            .data = s->path,
                            .split = e->split,
                            .vocab = e->model.shape.vocab,
                            .sampling = SGT_SAMPLING_SEQUENTIAL,
                            .batch = (uint32_t)e->batch,
                            .seq = (uint32_t)e->seq,
                            .reader = SGT_READER_MMAP,
                            .notice = e->notice};
    char file[SGT_PATH];
    int rc = sgt_loader_open(&s->loader, &o, err);
    if (rc < 0) return rc;
    s->info = *sgt_loader_get_info(s->loader);
    if ((rc = check_vocabulary(s, e, err)) < 0) return rc;
    s->text_bytes = calloc(e->model.shape.vocab, sizeof *s->text_bytes);
    if (!s->text_bytes) return sgt_fail_memory(err, NULL);
    if (!s->info.fingerprint && sgt_vocab_size(e->model.vocab) == SGT_GPT2_IDS &&
        sample_has_meta(*s->split ? sgt_path(file, s->path, "meta.pkl") : s->path))
        sgt_say(&e->notice,
                "%s: no bits per byte, because its meta.pkl has a vocabulary other than GPT-2's",
                s->path);
    else sgt_vocab_text_bytes(e->model.vocab, s->text_bytes, e->model.shape.vocab);
    return SGT_OK;
}

static int run_set(set *s, eval_batch *x, const eval *e, sgt_error *err)
{
    uint64_t all = s->info.windows_per_epoch;
    sgt_cursor *cursor = NULL;
    const size_t bytes = 2 * x->rows * x->seq * sizeof *x->inputs;
    sgt_progress *p = sgt_progress_new("windows", e->quiet);
    int rc = sgt_cursor_open(&cursor, s->loader, err);
    for (uint64_t k = 0, at = 0; at < all && rc == SGT_OK; k++, at += x->rows) {
        size_t windows = all - at < x->rows ? (size_t)(all - at) : x->rows;
        rc = sgt_loader_read(s->loader, cursor, k, 1, SGT_OUTPUT_I32, x->inputs, bytes, err);
        /* If fewer windows are left than a batch has rows, the loader fills the other rows with
         * windows of the next epoch. Remove the targets of these rows, so that every window counts
         * exactly once. */
        for (size_t i = windows * x->seq; i < x->rows * x->seq; i++) x->targets[i] = -1;
        if (rc == SGT_OK) rc = eval_batch_run(x, e, s->path, 0, err);
        if (rc < 0) break;
        for (size_t i = 0; i < windows * x->seq; i++) {
            s->loss += (double)x->losses[i];
            sgt_text_loss_add(&s->text, s->text_bytes, x->targets[i], x->losses[i]);
        }
        s->tokens += windows * x->seq;
        sgt_progress_update(p, at + windows, all, 0, "");
    }
    sgt_progress_end(p);
    sgt_cursor_close(cursor);
    return rc;
}

/* ---- results ---- */

static double mean_loss(const set *s) { return s->loss / (double)s->tokens; }

static json_t *to_json(const set *s)
{
    json_t *o =
        json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:f, s:f}", "data", sgt_json_string(s->path),
                  "split", s->split, "seq", (json_int_t)s->info.seq, "windows",
                  (json_int_t)s->info.windows_per_epoch, "tokens", (json_int_t)s->tokens, "bytes",
                  (json_int_t)s->text.bytes, "loss", mean_loss(s), "perplexity", exp(mean_loss(s)));
    if (s->text.bytes > 0)
        json_object_set_new(o, "bits_per_byte", json_real(sgt_bits_per_byte(&s->text)));
    return o;
}

int eval_set(eval *e, const char *path, sgt_error *err)
{
    struct stat st;
    int folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    set s = {.path = path, .split = folder ? e->split : ""};
    eval_batch x = {0};
    int rc = open_set(&s, e, err);
    if (rc == SGT_OK) rc = eval_batch_open(&x, e, s.info.batch, s.info.seq, err);
    if (rc == SGT_OK) rc = run_set(&s, &x, e, err);
    eval_batch_close(&x);
    if (rc == SGT_OK) eval_show(e, path, folder ? s.split : "a shard of tokens", to_json(&s));
    free(s.text_bytes);
    sgt_loader_close(s.loader);
    return rc;
}
