/* sample.h: the parts of sgt-sample. model.c finds the model and the vocabulary. texts.c reads
 * prompts and files of texts. show.c generates texts. It prints each text while it is generated, or
 * all texts at the end as one JSON document. */
#ifndef SGT_TOOLS_SAMPLE_H
#define SGT_TOOLS_SAMPLE_H

#include <jansson.h>

#include "loader/base/error.h"
#include "train/generate/generate.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/text/normalize.h"
#include "tools/cli/options.h"

/* ---- model.c ---- */

typedef struct sample_model {
    char *path; /* folder of the checkpoint, or an llm.c model file */
    sgt_model shape;
    sgt_vocab *vocab;
} sample_model;

/* Find the model at `path`. The path may be a run (whose newest checkpoint is used), a checkpoint,
 * any folder with a Hugging Face GPT-2, or a .bin file of llm.c. Also open the vocabulary: the file
 * `vocab` if that is not NULL, otherwise the vocabulary next to the model, and if there is none,
 * GPT-2's. */
int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err);
void sample_model_free(sample_model *m);

/* Open the vocabulary next to the model at `path`, which has n ids. The vocabulary may be a
 * tokenizer.json, or any other file that sgt_vocab_load reads. If there is no such file, open
 * GPT-2's vocabulary, provided that n fits GPT-2. Otherwise return SGT_EUSAGE, with `hint` at the
 * end of the message. */
int sample_vocab_beside(sgt_vocab **out, const char *path, uint32_t n, const char *hint,
                        sgt_error *err);
/* Open the vocabulary with which data was tokenized. `fingerprint` identifies that vocabulary (0:
 * unknown), and n is its size. The vocabulary is:
 * - GPT-2's, if the fingerprint is GPT-2's
 * - GPT-2's, if the fingerprint is 0, `tokenizer` is NULL, and n is the size of GPT-2's
 * - otherwise that of the file `tokenizer`
 *
 * If `tokenizer` is NULL, or its vocabulary has a different fingerprint, set *out to NULL and
 * return SGT_EUNSUPPORTED. */
int sample_vocab_of_data(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                         sgt_error *err);
/* Return whether there is a meta.pkl in the folder of `file`. nanoGPT's prepare.py writes such a
 * file for character-level vocabularies. */
int sample_has_meta(const char *file);
/* Return whether each id of vocabulary a stands for the same bytes in vocabulary b. b may have more
 * ids than a. */
int sample_vocab_agrees(const sgt_vocab *a, const sgt_vocab *b);

/* ---- texts.c: files of questions (for sgt-eval) and of examples (for sgt-train), and prompts
 * ---- */

/* State of reading a file that has one JSON value per line. `tokens` has the ids of all texts read
 * so far, one text after another. The caller sets path, vocab and err, and zeroes all other
 * members. */
typedef struct sample_lines {
    const char *path;
    const sgt_vocab *vocab;
    sgt_error *err;
    /* line number that messages state, counted from 1; 0: messages state no line number */
    size_t line;
    uint64_t hash; /* XXH3 of the file */
    int32_t *tokens;
    /* count: number of ids in `tokens`; room: allocated size of `tokens`, in ids */
    size_t count, room;
    sgt_encoder *encoder;
    sgt_normalizer normal;
} sample_lines;

/* Read a file of at most `most` bytes, and call `add` with the JSON value of each line that is not
 * blank. Python's json module writes NaN, Infinity and -Infinity, which JSON does not have; they
 * are read as empty lists. Returns the first failure of `add`. If a line is not JSON, returns
 * SGT_EFORMAT; the message names the file and the line. */
int sample_lines_read(sample_lines *r, size_t most, int (*add)(void *ctx, const json_t *value),
                      void *ctx);
/* Normalize the n bytes at `text` as the vocabulary requires, and append their ids to r->tokens.
 * Afterwards there is allocated space for two more ids, which the caller may append itself. */
int sample_lines_encode(sample_lines *r, const char *text, size_t n);
/* Return SGT_EFORMAT with a formatted message that begins with the file and the line. */
int sample_lines_fail(const sample_lines *r, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Free everything except r->tokens, which the caller frees. */
void sample_lines_free(sample_lines *r);

typedef struct sample_prompt {
    char *text;
    size_t bytes;
    int32_t *ids;
    size_t count;
} sample_prompt;

typedef struct sample_prompts {
    sample_prompt *items;
    size_t count, room;
} sample_prompts;

/* Read all prompts: first the texts in `texts`, in which "-" means standard input, then the
 * contents of the files in `files`, without their last newline. If both lists are empty, add one
 * empty prompt. */
int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err);
/* Normalize all prompts as the vocabulary requires, and set their ids. An empty prompt is replaced
 * by the end-of-text id. */
int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err);
void sample_prompts_free(sample_prompts *p);

/* ---- show.c ---- */

/* A prompt, and a text that is generated from it. */
typedef struct sample_text {
    const sample_prompt *prompt;
    uint64_t number; /* index of this text among the texts for the same prompt, counted from 0 */
    /* the text to show: the prompt, if sample_show.prompts is 1, followed by the generated text */
    char *bytes;
    /* n: number of bytes in `bytes` so far; room: number of bytes allocated; begin: offset of the
     * generated text, which follows the prompt; shown: number of bytes already printed */
    size_t n, room, begin, shown;
    json_t *ids; /* ids of the generated tokens if sample_show.json is 1, else NULL */
    int ended;
    sgt_generate_end why;
} sample_text;

typedef struct sample_show {
    sample_text *texts;
    /* count: number of texts; current: index of the first text that is not complete, which is the
     * one being printed */
    size_t count, current;
    int json;     /* 1: print nothing, since the texts are printed as JSON later */
    int terminal; /* 1: print control characters as \xNN, because they could control the terminal */
    int prompts;  /* 1: show the prompts too */
} sample_show;

/* A model that continues prompts. The caller zeroes this struct, then sets `model`, `prompts` (with
 * sample_prompts_read) and the options in `show`. The caller must close it with sample_run_close,
 * even after a failure. */
typedef struct sample_run {
    sample_model model;
    sample_prompts prompts;
    sample_show show;
    sgt_decoder *decoder;
    sgt_generate_result result;
} sample_run;

/* Generate `samples` texts for each prompt. Texts are printed in order. A text is printed while it
 * is generated, once all earlier texts are complete. In *d, the caller sets the maximum number of
 * sequences, threads and bf16. In *g, the caller sets choice, tokens, notice, stop and eot. eot is
 * 0, or -1 if the end-of-text id must not end a text. All other options are set from the model. */
int sample_generate(sample_run *s, uint64_t samples, sgt_decoder_options *d,
                    sgt_generate_options *g, sgt_error *err);
void sample_run_close(sample_run *s);
/* Return a JSON array with one object per text. */
json_t *sample_show_json(const sample_show *s);

#endif
