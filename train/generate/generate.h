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

#include "train/generate/choose.h"
#include "train/generate/decoder.h"

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
