/* generate.h: continues prompts, given as ids, with generated ids; the library behind sgt-sample.
 *
 *     sgt_prompt p = {.ids = ids, .count = n};
 *     sgt_generate_options o = {
 *         .choice = {.temperature = 0.8}, .tokens = 100, .eot = 50256, .token = print};
 *     if (sgt_generate(decoder, &p, 1, &o, NULL, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *
 * The continuation depends only on the model, the prompt's ids, its sample number and the choice.
 * It does not depend on other prompts, on how many run at a time, or on the number of threads. */
#ifndef SGT_GENERATE_H
#define SGT_GENERATE_H

#include "train/backend.h"

/* ---- the decoder: runs a GPT-2 on the CPU for inference, a forward pass over a few rows at a
 * time. The keys and values of earlier tokens are cached, so nothing is computed twice.
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
 * A row is one token of one sequence. Its result depends only on the tokens of its sequence and on
 * the CPU's level (kernels.h), to the bit. It does not depend on the other rows of a run, on how a
 * sequence is divided into runs, or on the number of threads. Only one thread at a time may call
 * functions on a decoder. ---- */

#define SGT_DECODER_ROWS 64 /* largest number of rows in a run */

typedef struct sgt_decoder sgt_decoder;

typedef struct sgt_decoder_options {
    sgt_model model;
    uint32_t sequences; /* number of sequences that the cache holds, at least 1 */
    /* number of positions of each sequence, at most the model's; 0: as many as the model has */
    uint32_t window;
    int threads; /* 0: all available cores */
    /* 1: round weight matrices to bfloat16, which takes half the memory and is nearly twice as
     * fast; all other numbers, including the inputs of matrix products, stay float32 */
    int bf16;
} sgt_decoder_options;

typedef struct sgt_decoder_row {
    /* numbers of the sequence and the position, below the limits in the options */
    uint32_t sequence, position;
    int32_t id; /* token, below the model's vocab */
    int wanted; /* 1: return the logits of the token after this one */
} sgt_decoder_row;

/* Open a decoder whose parameters are all zero. If it returns SGT_ENOMEM, the message states how
 * much memory is needed. */
int sgt_decoder_open(sgt_decoder **out, const sgt_decoder_options *o, sgt_error *err);
void sgt_decoder_close(sgt_decoder *d); /* NULL is fine */

/* Return a backend for loading parameters: only its `put` may be called, with SGT_PARAMETERS. The
 * decoder owns it until sgt_decoder_close. */
sgt_backend *sgt_decoder_loads(sgt_decoder *d);

/* Run n rows (at most SGT_DECODER_ROWS) of any sequences; rows of one sequence must be in rising
 * order of position. A row attends to the rows of its sequence at lower positions, from this call
 * or earlier ones. Running a position again replaces its keys and values. Writes the logits of all
 * wanted rows to `logits` (wanted rows, vocab), in the order of the rows. */
void sgt_decoder_run(sgt_decoder *d, const sgt_decoder_row *rows, size_t n, float *logits);

uint32_t sgt_decoder_window(const sgt_decoder *d);
uint32_t sgt_decoder_sequences(const sgt_decoder *d);
const sgt_model *sgt_decoder_model(const sgt_decoder *d);
int sgt_decoder_threads(const sgt_decoder *d);
/* Return the bytes of all memory: weights, keys and values, and work space. */
uint64_t sgt_decoder_bytes(const sgt_decoder *d);
/* bytes of the weights; every run reads all of them */
uint64_t sgt_decoder_weights(const sgt_decoder *d);

/* ---- choosing the next id from a model's logits: the likeliest id, or a random one.
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
    /* 0: keep all ids. Otherwise keep an id if at most top_k - 1 ids have a larger logit. If logits
     * are equal, more than top_k ids may be kept. */
    uint64_t top_k;
    /* 0 or 1: keep all ids that top_k keeps. Otherwise keep the fewest of them whose probabilities
     * add up to at least this, beginning with the likeliest; of equally likely ids the lowest comes
     * first. */
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

/* Return the id that u (0 <= u < 1) selects. If u is uniformly random, each kept id is chosen with
 * its probability. Return -1 if no id is kept. */
int32_t sgt_choose(const sgt_choice *c, const float *logits, size_t n, double u, void *room);

/* Return the random u for token `position` (from 0) of a sample: one of 2^53 values. */
double sgt_choose_draw(uint64_t seed, uint64_t sample, uint64_t position);

/* ---- prompts ---- */

typedef struct sgt_prompt {
    const int32_t *ids; /* tokens of the prompt, at least one, each below the model's vocab */
    size_t count;
    uint64_t sample; /* sample number; a prompt gets a different continuation for each number */
} sgt_prompt;

/* reason why a text ended: `tokens` tokens were generated, or the end-of-text id was chosen */
typedef enum sgt_generate_end { SGT_END_TOKENS, SGT_END_TEXT } sgt_generate_end;

typedef struct sgt_generate_options {
    sgt_choice choice;
    uint64_t tokens; /* most tokens for each prompt */
    int64_t eot;     /* id that ends a text, and is not passed to `token`; negative: none */
    uint32_t ids;    /* ids from this number on are never chosen; 0: the model's vocab */
    sgt_notice notice;
    const sgt_stop *stop;
    /* `token` is called with each generated token of prompt number `prompt`, and `end` when the
     * continuation has ended. A negative return value ends generation with that code. */
    int (*token)(void *ctx, size_t prompt, int32_t id, sgt_error *err);
    int (*end)(void *ctx, size_t prompt, sgt_generate_end why, sgt_error *err);
    void *ctx;
} sgt_generate_options;

typedef struct sgt_generate_result {
    /* prompt_tokens: number of prompt tokens read, including tokens that were read again; tokens:
     * number of tokens generated */
    uint64_t prompt_tokens, tokens;
    /* total seconds of decoder runs that read prompts, and of runs that only generated */
    double prompt_seconds, token_seconds;
} sgt_generate_result;

/* Continue all prompts, as many at a time as the decoder has sequences. When a window is full, the
 * later half of its tokens is read again as a new prompt. A prompt that is longer than the window
 * is cut to its last tokens. A notice reports the first time that either happens. Returns 0,
 * SGT_ESTOPPED, or SGT_EFORMAT if the model's logits are not finite. `result` may be NULL. */
int sgt_generate(sgt_decoder *d, const sgt_prompt *prompts, size_t count,
                 const sgt_generate_options *o, sgt_generate_result *result, sgt_error *err);

#endif
