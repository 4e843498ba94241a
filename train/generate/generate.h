/* generate.h: text, as ids, from prompts: what sgt-sample does.
 *
 *     sgt_prompt p = {.ids = ids, .count = n};
 *     sgt_generate_options o = {.choice = {.temperature = 0.8}, .tokens = 100, .eot = 50256, .token = print};
 *     if (sgt_generate(decoder, &p, 1, &o, NULL, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *
 * What follows a prompt is a pure function of the model, the prompt's ids, its sample number and
 * the choice: not of the prompts beside it, nor of how many go at a time, nor of the number of
 * threads (decoder.h). */
#ifndef SGT_GENERATE_H
#define SGT_GENERATE_H

#include "choose.h"
#include "decoder.h"

typedef struct sgt_prompt {
    const uint16_t *ids; /* at least one, each below the model's vocab */
    size_t count;
    uint64_t sample; /* the same prompt with other numbers goes on in other ways */
} sgt_prompt;

/* enough tokens; end-of-text */
typedef enum sgt_generate_end { SGT_END_TOKENS, SGT_END_TEXT } sgt_generate_end;

typedef struct sgt_generate_options {
    sgt_choice choice;
    uint64_t tokens; /* at most so many for each prompt */
    int64_t eot;     /* ends a text, and is not handed out; below 0: none does */
    uint32_t ids;    /* those from here on are never chosen; 0: the model's vocab */
    sgt_notice notice;
    const sgt_stop *stop;
    /* The next token of prompt number `prompt`, and its end. A negative return ends everything with
     * that code. */
    int (*token)(void *ctx, size_t prompt, uint16_t id, sgt_error *err);
    int (*end)(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err);
    void *ctx;
} sgt_generate_options;

typedef struct sgt_generate_result {
    uint64_t prompt_tokens, tokens; /* read, with those read again; made */
    /* of runs that read prompts, and of those that only made tokens */
    double prompt_seconds, token_seconds;
} sgt_generate_result;

/* As many prompts at a time as the decoder keeps sequences. A window that is full goes on from the
 * later half of its tokens, as if those were a prompt (of a longer prompt its last tokens count, as
 * many as the window has); said once. Returns 0; SGT_ESTOPPED; SGT_EFORMAT where the model's
 * numbers are not finite. `result` may be NULL. */
int sgt_generate(sgt_decoder *d, const sgt_prompt *prompts, size_t count,
                 const sgt_generate_options *o, sgt_generate_result *result, sgt_error *err);

#endif
