/* words.c: generates text with a checkpoint. It is a file of its own because sgt_train.h and
 * sgt_tokenize.h cannot both be included in one file. */
#include "tools/report/words.h"

#include <stdlib.h>
#include <string.h>

#include "train/run/checkpoint.h"
#include "tools/sample/sample.h"

typedef struct words {
    const sgt_vocab *vocab;
    char *bytes;
    size_t n, room;
} words;

static int take_token(void *ctx, size_t prompt, uint16_t id, sgt_error *err)
{
    words *w = ctx;
    size_t n = 0;
    const uint8_t *bytes = sgt_vocab_token(w->vocab, id, &n);
    (void)prompt;
    if (w->n + n + 1 > w->room) {
        size_t room = 2 * (w->n + n) + 256;
        char *more = realloc(w->bytes, room);
        if (!more) return sgt_fail_memory(err, "a sample");
        w->bytes = more;
        w->room = room;
    }
    if (bytes) memcpy(w->bytes + w->n, bytes, n);
    w->n += bytes ? n : 0;
    return SGT_OK;
}

static int take_end(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err)
{
    (void)ctx, (void)prompt, (void)why, (void)err;
    return SGT_OK;
}

static int generate(words *w, const sample_model *m, uint32_t tokens, const sgt_stop *stop,
                    sgt_error *err)
{
    uint16_t eot = (uint16_t)sgt_vocab_eot(m->vocab);
    uint32_t most = m->shape.positions;
    sgt_decoder *d = NULL;
    sgt_decoder_options o = {.model = m->shape,
                             .sequences = 1,
                             .threads = 1,
                             .window = most > tokens ? tokens + 1 : most};
    sgt_prompt prompt = {.ids = &eot, .count = 1};
    sgt_generate_options g = {.choice = {.temperature = 0.8, .top_k = 200, .seed = 1},
                              .tokens = tokens,
                              .eot = (int64_t)eot,
                              .ids = sgt_vocab_size(m->vocab),
                              .stop = stop,
                              .token = take_token,
                              .end = take_end,
                              .ctx = w};
    w->vocab = m->vocab;
    int rc = sgt_decoder_open(&d, &o, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_load_model(m->path, sgt_decoder_loads(d), &m->shape, err);
    if (rc == SGT_OK) rc = sgt_generate(d, &prompt, 1, &g, NULL, err);
    sgt_decoder_close(d);
    return rc;
}

int report_words(char **text, const char *checkpoint, uint32_t tokens, const sgt_stop *stop,
                 sgt_error *err)
{
    sample_model m;
    words w = {0};
    int rc = sample_model_find(&m, checkpoint, NULL, NULL, err);
    if (rc == SGT_OK) rc = generate(&w, &m, tokens, stop, err);
    sample_model_free(&m);
    if (rc == SGT_OK && !(*text = strndup(w.bytes ? w.bytes : "", w.n)))
        rc = sgt_fail_memory(err, "a sample");
    free(w.bytes);
    return rc;
}
