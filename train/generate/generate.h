/* generate.h: the functions behind the program sgt-sample. They generate tokens that continue a
 * prompt. Prompts and results are arrays of token ids.
 *
 *     sgt_prompt p = {.ids = ids, .count = n};
 *     sgt_generate_options o = {
 *         .choice = {.temperature = 0.8}, .tokens = 100, .eot = 50256, .token = print};
 *     if (sgt_generate(decoder, &p, 1, &o, NULL, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *
 * A continuation depends only on the model, the prompt's ids, the prompt's sample number and the
 * sampling options (`choice`). It does not depend on other prompts, on how many prompts are
 * processed at a time, or on the number of threads. */
#ifndef SGT_GENERATE_H
#define SGT_GENERATE_H

#include "train/backend.h"

/* ---- the decoder ---- */

/* The decoder runs a GPT-2 model on the CPU for inference. A forward pass, called a run, processes
 * a few rows; a row is one token of one sequence. Keys and values are cached, so that earlier
 * tokens need not be processed again.
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
 * Every bit of a row's logits depends only on the model, the tokens of its sequence and the
 * instruction set of the CPU's kernels (`level` in kernels.h). The logits do not depend on other
 * sequences, on how a sequence is divided into runs, or on the number of threads. Only one thread
 * at a time may use a decoder. */

#define SGT_DECODER_ROWS 64 /* largest number of rows in a run */

typedef struct sgt_decoder sgt_decoder;

typedef struct sgt_decoder_options {
    sgt_model model;
    /* number of sequences that the cache of keys and values can hold, at least 1 */
    uint32_t sequences;
    /* number of positions of each sequence that the cache can hold, at most the model's number of
     * positions; 0: the model's number of positions */
    uint32_t window;
    int threads; /* 0: all available cores */
    /* 1: round weight matrices to bfloat16, which halves their memory and makes the decoder nearly
     * twice as fast; all other values stay float32. 0: store all weights as float32. */
    int bf16;
} sgt_decoder_options;

typedef struct sgt_decoder_row {
    /* sequence: index of the sequence, < o.sequences; position: index of the token in the sequence,
     * < o.window */
    uint32_t sequence, position;
    int32_t id; /* token, below the model's vocab */
    int wanted; /* 1: compute the logits of the next token after this one; 0: do not */
} sgt_decoder_row;

/* Open a decoder whose parameters are all 0. If there is not enough memory, return SGT_ENOMEM with
 * a message that states how much is needed. */
int sgt_decoder_open(sgt_decoder **out, const sgt_decoder_options *o, sgt_error *err);
void sgt_decoder_close(sgt_decoder *d); /* NULL is fine */

/* Return a backend through which parameters are loaded into the decoder. Its only function is
 * `put`, which accepts only SGT_PARAMETERS. The decoder owns the backend, which is valid until
 * sgt_decoder_close. */
sgt_backend *sgt_decoder_loads(sgt_decoder *d);

/* Process n <= SGT_DECODER_ROWS rows, which may belong to different sequences. The rows of each
 * sequence must be in ascending order of position. A row attends to itself and to its sequence's
 * rows at lower positions, from this call or from earlier calls. Processing a position again
 * replaces the cached keys and values. The logits of the rows with `wanted` = 1 are written to
 * `logits`, with shape (wanted rows, vocab), in the order of the rows. */
void sgt_decoder_run(sgt_decoder *d, const sgt_decoder_row *rows, size_t n, float *logits);

uint32_t sgt_decoder_window(const sgt_decoder *d);
uint32_t sgt_decoder_sequences(const sgt_decoder *d);
const sgt_model *sgt_decoder_model(const sgt_decoder *d);
int sgt_decoder_threads(const sgt_decoder *d);
/* Return how many bytes of memory the decoder uses for weights, cached keys and values, and work
 * space. */
uint64_t sgt_decoder_bytes(const sgt_decoder *d);

/* ---- choosing a token ---- */

/* The following functions choose the next token from a model's logits: either the most likely
 * token, or a token drawn from the model's distribution.
 *
 *     sgt_choice c = {.temperature = 0.8, .top_k = 200, .seed = 1};
 *     void *room = malloc(sgt_choose_room(vocab));
 *     double u = sgt_choose_draw(c.seed, sample, position);
 *     int32_t id = sgt_choose(&c, logits, vocab, u, room);
 *
 * Several threads may call these functions at the same time if each thread passes different scratch
 * memory (`room`). */

typedef struct sgt_choice {
    /* divisor of the logits before softmax; 0: always choose the most likely id (of equally likely
     * ids, the lowest) */
    double temperature;
    /* number of most likely ids from which the next id is drawn; 0: all ids. If the last of these
     * ids is as likely as further ids, those ids are included, too. */
    uint64_t top_k;
    /* Draw only from the fewest most likely ids, of those that top_k leaves, whose probabilities
     * add up to at least top_p. Of equally likely ids, lower ids are included first. 0 or 1: no
     * limit. */
    double top_p;
    uint64_t seed;
} sgt_choice;

/* Return how many bytes of scratch memory (`room`) are needed for n logits. The memory must be
 * aligned as malloc does. */
size_t sgt_choose_room(size_t n);

/* Apply temperature, top_k and top_p to n logits. Set *ids to the array of ids that may be chosen,
 * and *weights to their weights, which are proportional to their probabilities. Both arrays are in
 * `room`. Return the number of these ids, or 0 if a logit is NaN or positive infinity, or if no
 * logit is finite. */
size_t sgt_choose_kept(const sgt_choice *c, const float *logits, size_t n, void *room,
                       const uint32_t **ids, const double **weights);

/* Return the id that the random number u (0 <= u < 1) selects among the ids that may be chosen.
 * With a uniformly distributed u, each id is selected with its probability. Return -1 if a logit is
 * NaN or positive infinity, or if no logit is finite. `room`: scratch memory of sgt_choose_room(n)
 * bytes. */
int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room);

/* Return the random number u, with 0 <= u < 1, for the generated token with index `position` in the
 * continuation with number `sample`. u is a multiple of 2^-53 and depends only on the arguments. */
double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position);

/* ---- prompts ---- */

typedef struct sgt_prompt {
    /* token ids of the prompt: at least one id, each < the model's vocabulary size */
    const int32_t *ids;
    size_t count;
    /* sample number; prompts with equal ids but different sample numbers get different
     * continuations */
    uint64_t sample;
} sgt_prompt;

/* Reason why a continuation ended. SGT_END_TOKENS: the maximum number of tokens was generated;
 * SGT_END_TEXT: the end-of-text id was chosen. */
typedef enum sgt_generate_end { SGT_END_TOKENS, SGT_END_TEXT } sgt_generate_end;

typedef struct sgt_generate_options {
    sgt_choice choice;
    uint64_t tokens; /* maximum number of generated tokens for each prompt */
    /* id of the end-of-text token, which ends a continuation and is not passed to the callback
     * `token`; negative: no id ends a continuation */
    int64_t eot;
    uint32_t ids; /* only ids below this number can be chosen; 0: all ids of the model */
    sgt_notice notice;
    const sgt_stop *stop;
    /* Callbacks. sgt_generate calls `token` for each generated token, and `end` when a continuation
     * has ended. `prompt` is the prompt's index. If a callback returns a negative number,
     * sgt_generate stops and returns it. */
    int (*token)(void *ctx, size_t prompt, int32_t id, sgt_error *err);
    int (*end)(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err);
    void *ctx;
} sgt_generate_options;

typedef struct sgt_generate_result {
    /* prompt_tokens: number of tokens processed in decoder runs that included a prompt, also those
     * processed again after a window was full; tokens: number of generated tokens */
    uint64_t prompt_tokens, tokens;
    /* Seconds spent in the decoder and on choosing tokens. prompt_seconds: in runs that processed
     * tokens of a prompt; token_seconds: in all other runs. */
    double prompt_seconds, token_seconds;
} sgt_generate_result;

/* Continue all prompts, as many at a time as the decoder has sequences. If a prompt is longer than
 * the window, use only its last tokens and give a notice. If a window becomes full, process the
 * later half of its tokens again as a new prompt; give a notice the first time. Return 0,
 * SGT_ESTOPPED, SGT_EFORMAT if the model's logits are not finite, or another negative SGT_E*.
 * `result` may be NULL. */
int sgt_generate(sgt_decoder *d, const sgt_prompt *prompts, size_t count,
                 const sgt_generate_options *o, sgt_generate_result *result, sgt_error *err);

#endif
