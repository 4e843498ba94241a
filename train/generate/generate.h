/* generate.h: the library behind sgt-sample. It continues prompts of token ids with generated token
 * ids.
 *
 *     sgt_prompt p = {.ids = ids, .count = n};
 *     sgt_generate_options o = {
 *         .choice = {.temperature = 0.8}, .tokens = 100, .eot = 50256, .token = print};
 *     if (sgt_generate(decoder, &p, 1, &o, NULL, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *
 * A continuation depends only on the model, the prompt's ids and sample number, and the options in
 * `choice`. It does not depend on other prompts, on how many prompts run at the same time, or on
 * the number of threads. */
#ifndef SGT_GENERATE_H
#define SGT_GENERATE_H

#include "train/backend.h"

/* ---- the decoder ---- */

/* The decoder runs a GPT-2 model on the CPU for inference. Each forward pass processes a few rows.
 * The keys and values of earlier tokens are cached, so no token is processed twice.
 *
 *     sgt_decoder *d;
 *     sgt_decoder_options o = {.model = model, .sequences = 1, .threads = 2};
 *     if (sgt_decoder_open(&d, &o, &err) < 0) ...;
 *     if (sgt_checkpoint_load_model(dir, sgt_decoder_loads(d), &model, &err) < 0) ...;
 *     sgt_decoder_row rows[] = {{.id = 464, .position = 0},
 *                               {.id = 3290, .position = 1, .wanted = 1}};
 *     sgt_decoder_run(d, rows, 2, logits);       // (1, vocab): logits of the token after the two
 *     sgt_decoder_close(d);
 *
 * A row is one token of one sequence. To the bit, its logits depend only on the tokens of its
 * sequence and on the CPU's kernels (level in kernels.h). They do not depend on the other rows of a
 * run, on how a sequence is divided into runs, or on the number of threads. Only one thread at a
 * time may use a decoder. */

#define SGT_DECODER_ROWS 64 /* largest number of rows in a run */

typedef struct sgt_decoder sgt_decoder;

typedef struct sgt_decoder_options {
    sgt_model model;
    uint32_t sequences; /* number of sequences whose keys and values are cached, at least 1 */
    /* number of positions of each sequence for which keys and values are cached, at most the
     * model's number of positions; 0: the model's number */
    uint32_t window;
    int threads; /* 0: all available cores */
    /* 1: round weight matrices to bfloat16, which halves their memory and makes the decoder nearly
     * twice as fast. Everything else, including the inputs of matrix products, stays float32. */
    int bf16;
} sgt_decoder_options;

typedef struct sgt_decoder_row {
    /* sequence: index below `sequences`; position: index below `window` */
    uint32_t sequence, position;
    int32_t id; /* token, below the model's vocab */
    int wanted; /* 1: compute the logits for the token that follows this one */
} sgt_decoder_row;

/* Open a decoder whose parameters are all 0. If memory runs out, return SGT_ENOMEM with a message
 * that states how much memory is needed. */
int sgt_decoder_open(sgt_decoder **out, const sgt_decoder_options *o, sgt_error *err);
void sgt_decoder_close(sgt_decoder *d); /* NULL is fine */

/* Return a backend to which parameters can be loaded: only its `put` may be called, and only with
 * SGT_PARAMETERS. The decoder owns the backend, which is valid until sgt_decoder_close. */
sgt_backend *sgt_decoder_loads(sgt_decoder *d);

/* Process n rows, at most SGT_DECODER_ROWS, of any sequences. Rows of the same sequence must be in
 * ascending order of position. A row attends to its sequence's rows at lower positions, from this
 * call or from earlier calls. If a position is processed again, its keys and values are replaced.
 * The logits of all rows with `wanted` are written to `logits` (wanted rows, vocab), in the order
 * of the rows. */
void sgt_decoder_run(sgt_decoder *d, const sgt_decoder_row *rows, size_t n, float *logits);

uint32_t sgt_decoder_window(const sgt_decoder *d);
uint32_t sgt_decoder_sequences(const sgt_decoder *d);
const sgt_model *sgt_decoder_model(const sgt_decoder *d);
int sgt_decoder_threads(const sgt_decoder *d);
/* Return the size in bytes of the decoder's memory: weights, cached keys and values, and work
 * space. */
uint64_t sgt_decoder_bytes(const sgt_decoder *d);

/* ---- choosing a token ---- */

/* Functions that choose the next token from a model's logits: the most likely token, or a random
 * token.
 *
 *     sgt_choice c = {.temperature = 0.8, .top_k = 200, .seed = 1};
 *     void *room = malloc(sgt_choose_room(vocab));
 *     double u = sgt_choose_draw(c.seed, sample, position);
 *     int32_t id = sgt_choose(&c, logits, vocab, u, room);
 *
 * These functions have no side effects. Several threads may call them at the same time if each
 * thread has its own scratch memory `room`. */

typedef struct sgt_choice {
    /* divisor of the logits before softmax; 0: always choose the id with the largest logit, or the
     * lowest of several such ids */
    double temperature;
    /* Number of most likely ids among which a token is chosen; 0: all ids. Ids whose logit equals
     * that of the last of them are included, too. */
    uint64_t top_k;
    /* Choose only among the most likely of the ids that top_k leaves: the smallest number of ids
     * whose probabilities add up to at least top_p. If several ids are equally likely, lower ids
     * are preferred. 0 or 1: no limit. */
    double top_p;
    uint64_t seed;
} sgt_choice;

/* Return how many bytes of scratch memory are needed for n logits. The memory must be aligned as
 * malloc aligns it. */
size_t sgt_choose_room(size_t n);

/* Apply temperature, top_k and top_p. Set *ids to the ids that may be chosen, and *weights to their
 * weights, which are their probabilities times a common factor. Both arrays are in `room`. Return
 * the number of these ids, which is at least 1. Return 0 if a logit is NaN or positive infinity, or
 * if no logit is finite. */
size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights);

/* Return the id that the random number u (0 <= u < 1) selects. If u is uniformly distributed, each
 * id that may be chosen is selected with its probability. Return -1 if a logit is NaN or positive
 * infinity, or if no logit is finite. `room`: scratch memory of sgt_choose_room(n) bytes. */
int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room);

/* Return the random number u for the token at index `position` of sample `sample`: a multiple of
 * 2^-53 that depends only on the three arguments. */
double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position);

/* ---- prompts ---- */

typedef struct sgt_prompt {
    const int32_t *ids; /* the prompt's token ids: at least one, each below the vocabulary size */
    size_t count;
    /* sample number: equal prompts with different numbers get different continuations */
    uint64_t sample;
} sgt_prompt;

/* Why a continuation ended: SGT_END_TOKENS: it has `tokens` tokens; SGT_END_TEXT: the end-of-text
 * id was chosen. */
typedef enum sgt_generate_end { SGT_END_TOKENS, SGT_END_TEXT } sgt_generate_end;

typedef struct sgt_generate_options {
    sgt_choice choice;
    uint64_t tokens; /* maximum number of generated tokens for each prompt */
    /* id of the end of text, which ends a continuation and is not passed to `token`; negative:
     * none */
    int64_t eot;
    uint32_t ids; /* only ids below this one can be chosen; 0: all ids of the model */
    sgt_notice notice;
    const sgt_stop *stop;
    /* Callbacks. `token` is called with each generated token, and `end` when a continuation has
     * ended. `prompt` is the index of the prompt. If a callback returns a negative number,
     * sgt_generate stops and returns that number. */
    int (*token)(void *ctx, size_t prompt, int32_t id, sgt_error *err);
    int (*end)(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err);
    void *ctx;
} sgt_generate_options;

typedef struct sgt_generate_result {
    /* prompt_tokens: number of tokens that the decoder has processed as part of prompts, including
     * tokens that it processed again after a window was full; tokens: number of generated tokens */
    uint64_t prompt_tokens, tokens;
    /* Seconds spent in the decoder. prompt_seconds: in runs that processed tokens of prompts;
     * token_seconds: in all other runs. */
    double prompt_seconds, token_seconds;
} sgt_generate_result;

/* Continue all prompts, as many at the same time as the decoder has sequences. If a prompt is
 * longer than the window, only its last tokens are used. If a window becomes full, the later half
 * of its tokens is processed again as a new prompt. A notice is given the first time that a window
 * becomes full, and for each prompt that is cut. Return 0, SGT_ESTOPPED, or SGT_EFORMAT if the
 * model's logits are not finite. `result` may be NULL. */
int sgt_generate(sgt_decoder *d, const sgt_prompt *prompts, size_t count,
                 const sgt_generate_options *o, sgt_generate_result *result, sgt_error *err);

#endif
