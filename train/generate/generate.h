/* generate.h: continues prompts, given as ids, with generated ids; the library behind sgt-sample.
 *
 *     sgt_prompt p = {.ids = ids, .count = n};
 *     sgt_generate_options o = {
 *         .choice = {.temperature = 0.8}, .tokens = 100, .eot = 50256, .token = print};
 *     if (sgt_generate(decoder, &p, 1, &o, NULL, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *
 * The continuation depends only on the model, the prompt's ids, its sample number and the choice.
 * It does not depend on other prompts, on how many run at a time, or on the number of threads
 * (decoder.h). */
#ifndef SGT_GENERATE_H
#define SGT_GENERATE_H

#include "train/generate/decoder.h"

/* ---- the choice of the next id from a model's logits: the likeliest one, or a random one.
 *
 *     sgt_choice c = {.temperature = 0.8, .top_k = 200, .seed = 1};
 *     void *room = malloc(sgt_choose_room(vocab));
 *     double u = sgt_choose_draw(c.seed, sample, position);
 *     int32_t id = sgt_choose(&c, logits, vocab, u, room);
 *
 * No function has side effects. Threads may call them at the same time, each with its own
 * `room`. ---- */

typedef struct sgt_choice {
    /* 0: always choose the id of the largest logit, the first of equal ones */
    double temperature;
    /* 0: keep all ids. Otherwise keep an id if at most top_k - 1 ids have a larger logit; these may
     * be more than top_k ids if logits are equal. */
    uint64_t top_k;
    /* 0 or 1: keep all ids that top_k keeps. Otherwise keep the fewest of them whose probabilities
     * add up to this share: the likeliest first, and of equally likely ones the lowest. */
    double top_p;
    uint64_t seed;
} sgt_choice;

/* Return the size in bytes of `room` for n logits. `room` must be aligned as malloc aligns it. */
size_t sgt_choose_room(size_t n);

/* Write the ids that may be chosen to *ids, and their weights (probability times a common factor)
 * to *weights; both arrays are in `room`. Return their number, which is at least 1; but return 0 if
 * a logit is NaN or positive infinity, or if none is finite. */
size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights);

/* Return the id that u (0 <= u < 1) selects: for a random u, each kept id has its probability.
 * Return -1 if no id is kept. */
int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room);

/* Return the random u for token `position` (from 0) of a sample: one of 2^53 values. */
double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position);

/* ---- prompts ---- */

typedef struct sgt_prompt {
    const uint16_t *ids; /* tokens of the prompt, at least one, each below the model's vocab */
    size_t count;
    uint64_t sample; /* sample number: a prompt has another continuation for each number */
} sgt_prompt;

/* reason why a text ended: it has `tokens` tokens, or the end-of-text id came */
typedef enum sgt_generate_end { SGT_END_TOKENS, SGT_END_TEXT } sgt_generate_end;

typedef struct sgt_generate_options {
    sgt_choice choice;
    uint64_t tokens; /* most tokens for each prompt */
    int64_t eot;     /* id that ends a text and is not passed to `token`; below 0: none */
    uint32_t ids;    /* ids from this number on are never chosen; 0: the model's vocab */
    sgt_notice notice;
    const sgt_stop *stop;
    /* `token` is called with the next token of prompt number `prompt`, `end` when the prompt has
     * ended. A negative return value ends generation with that code. */
    int (*token)(void *ctx, size_t prompt, uint16_t id, sgt_error *err);
    int (*end)(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err);
    void *ctx;
} sgt_generate_options;

typedef struct sgt_generate_result {
    /* prompt_tokens: tokens of prompts that were read, including those read again; tokens: those
     * generated */
    uint64_t prompt_tokens, tokens;
    /* seconds of decoder runs that read prompts, and of runs that only generated */
    double prompt_seconds, token_seconds;
} sgt_generate_result;

/* Continue all prompts, as many at a time as the decoder has sequences. When a window is full, the
 * later half of its tokens becomes a new prompt; a prompt longer than the window is cut to its last
 * tokens. The first time either happens, a notice says so. Returns 0; SGT_ESTOPPED; or SGT_EFORMAT
 * if the model's logits are not finite. `result` may be NULL. */
int sgt_generate(sgt_decoder *d, const sgt_prompt *prompts, size_t count,
                 const sgt_generate_options *o, sgt_generate_result *result, sgt_error *err);

#endif
