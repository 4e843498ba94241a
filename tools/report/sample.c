/* sample.c: lets a run's newest checkpoint write a few words, if the model is not too large. They
 * show what its loss means. */
#include "tools/report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/run/checkpoint.h"
#include "tools/cli/process.h"
#include "tools/sample/sample.h"

/* The largest model that writes a sample: it takes a core two seconds, and 256 MiB. */
#define MOST_PARAMETERS 64000000

typedef struct words {
    const sgt_vocab *vocab;
    FILE *text;
} words;

static int append_token(void *ctx, size_t prompt, uint16_t id, sgt_error *err)
{
    const words *w = ctx;
    size_t n = 0;
    const uint8_t *bytes = sgt_vocab_token(w->vocab, id, &n);
    (void)prompt;
    if (bytes && fwrite(bytes, 1, n, w->text) < n) return sgt_fail_memory(err, "a sample");
    return SGT_OK;
}

static int ignore_end(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err)
{
    (void)ctx, (void)prompt, (void)why, (void)err;
    return SGT_OK;
}

/* Tokens are chosen with sgt-sample's defaults. (If a model is little trained, its likeliest tokens
 * would all be newlines.) */
static int generate(words *w, const sample_model *m, const sgt_stop *stop, sgt_error *err)
{
    uint16_t eot = (uint16_t)sgt_vocab_eot(m->vocab);
    uint32_t most = m->shape.positions;
    sgt_decoder *d = NULL;
    sgt_decoder_options o = {.model = m->shape,
                             .sequences = 1,
                             .threads = 1,
                             .window =
                                 most > REPORT_SAMPLE_TOKENS ? REPORT_SAMPLE_TOKENS + 1 : most};
    sgt_prompt prompt = {.ids = &eot, .count = 1};
    sgt_generate_options g = {.choice = {.temperature = 0.8, .top_k = 200, .seed = 1},
                              .tokens = REPORT_SAMPLE_TOKENS,
                              .eot = (int64_t)eot,
                              .ids = sgt_vocab_size(m->vocab),
                              .stop = stop,
                              .token = append_token,
                              .end = ignore_end,
                              .ctx = w};
    w->vocab = m->vocab;
    int rc = sgt_decoder_open(&d, &o, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_load_model(m->path, sgt_decoder_loads(d), &m->shape, err);
    if (rc == SGT_OK) rc = sgt_generate(d, &prompt, 1, &g, NULL, err);
    sgt_decoder_close(d);
    return rc;
}

/* Generate the text, which ends at its first NUL, with spaces for control characters: browsers
 * collapse them. */
static int write_text(char **text, const char *checkpoint, const sgt_stop *stop, sgt_error *err)
{
    sample_model m;
    size_t n;
    words w = {.text = open_memstream(text, &n)};
    if (!w.text) sgt_no_memory();
    int rc = sample_model_find(&m, checkpoint, NULL, NULL, err);
    if (rc == SGT_OK) rc = generate(&w, &m, stop, err);
    sample_model_free(&m);
    if (fclose(w.text) == EOF && rc == SGT_OK) rc = sgt_fail_memory(err, "a sample");
    for (char *c = *text; rc == SGT_OK && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    if (rc == SGT_OK) return rc;
    free(*text);
    *text = NULL;
    return rc;
}

static void explain(report_sample *s, const char *fmt, ...) SGT_PRINTF(2, 3);
static void explain(report_sample *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&s->why_not, fmt, args) < 0) sgt_no_memory();
    va_end(args);
}

/* Return the length of a message without a final hint in parentheses. Such a hint names an option
 * of sgt-sample that sgt-report does not have. */
static size_t length_without_hint(const char *text)
{
    const char *hint = strrchr(text, '(');
    size_t n = strlen(text);
    return hint && hint > text && text[n - 1] == ')' ? (size_t)(hint - text - 1) : n;
}

int report_sample_write(report_sample *s, const char *checkpoint, uint64_t parameters,
                        const sgt_stop *stop, sgt_error *err)
{
    if (!checkpoint) {
        explain(s, "the run has no checkpoint yet");
        return SGT_OK;
    }
    if (parameters > MOST_PARAMETERS) {
        explain(s, "the model has more than %d million parameters (sgt-sample lets it write)",
                MOST_PARAMETERS / 1000000);
        return SGT_OK;
    }
    int rc = write_text(&s->text, checkpoint, stop, err);
    if (rc == SGT_ESTOPPED) return rc;
    if (rc < 0) explain(s, "%.*s", (int)length_without_hint(err->text), err->text);
    return SGT_OK;
}
