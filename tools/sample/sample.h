/* sample.h: functions and types of sgt-sample, some of which other programs use, too. model.c finds
 * the model and its vocabulary. texts.c reads prompts and JSONL files. show.c generates texts, and
 * either prints each text while it is generated, or returns all texts as JSON at the end. */
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
    char *path; /* path of the checkpoint's folder, or of a model file of llm.c */
    sgt_model shape;
    sgt_vocab *vocab;
} sample_model;

/* Find the model at `path`, which may be a run (the newest checkpoint is used), a checkpoint, a
 * folder with a GPT-2 in Hugging Face's format, or a .bin file of llm.c. Also open the model's
 * vocabulary. This is the file `vocab` if that is not NULL, otherwise the vocabulary in the model's
 * folder, or GPT-2's if that folder has none. */
int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err);
void sample_model_free(sample_model *m);

/* Open the vocabulary in the folder of the model at `path`: a tokenizer.json, or another file that
 * sgt_vocab_load reads. If there is no such file, open GPT-2's vocabulary, provided that the
 * model's number of ids, n, fits GPT-2. Otherwise, return SGT_EUSAGE with a message that ends with
 * `hint`. */
int sample_vocab_beside(sgt_vocab **out, const char *path, uint32_t n, const char *hint,
                        sgt_error *err);
/* Open the vocabulary with which a set of data was tokenized. `fingerprint` identifies this
 * vocabulary (0 if unknown), and n is the number of its ids. The vocabulary is:
 * - GPT-2's, if the fingerprint is GPT-2's
 * - GPT-2's, if the fingerprint is 0, `tokenizer` is NULL, and n is the size of GPT-2's
 * - otherwise that in the file `tokenizer`
 *
 * Set *out to NULL and return SGT_EUNSUPPORTED if `tokenizer` is needed but is NULL, or if the
 * vocabulary in that file has a different fingerprint. */
int sample_vocab_of_data(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                         sgt_error *err);
/* Return whether the folder that contains `file` has a meta.pkl. nanoGPT's prepare.py writes this
 * file for character-level vocabularies. */
int sample_has_meta(const char *file);
/* Return whether each id of vocabulary a stands for the same bytes in vocabulary b. b may have
 * additional ids. */
int sample_vocab_agrees(const sgt_vocab *a, const sgt_vocab *b);

/* ---- texts.c: files and prompts ---- */

/* State for reading a JSONL file, such as a file of questions. `tokens` holds the ids of all texts
 * read so far, one text after the other. The caller sets the members path, vocab and err, and
 * zeroes all others. */
typedef struct sample_lines {
    const char *path;
    const sgt_vocab *vocab;
    sgt_error *err;
    /* number of the current line for use in messages, counted from 1; 0 if messages state no line
     * number */
    size_t line;
    uint64_t hash; /* XXH3 of the file */
    int32_t *tokens;
    /* `count` is the number of ids in `tokens`, and `room` the number for which memory is
     * allocated */
    size_t count, room;
    sgt_encoder *encoder;
    sgt_normalizer normal;
} sample_lines;

/* Read a JSONL file of at most `most` bytes. For each line that is not blank, call `add` with the
 * JSON value. NaN, Infinity and -Infinity, which are not JSON but are written by Python's json
 * module, are read as empty lists. If `add` returns an error, stop and return that error. If a line
 * is not valid JSON, return SGT_EFORMAT with a message that names the file and the line. */
int sample_lines_read(sample_lines *r, size_t most, int (*add)(void *ctx, const json_t *value),
                      void *ctx);
/* Normalize the n bytes at `text` as the vocabulary requires, tokenize them, and append the ids to
 * r->tokens. Afterwards r->tokens has room for at least two more ids, which the caller may
 * append. */
int sample_lines_encode(sample_lines *r, const char *text, size_t n);
/* Return SGT_EFORMAT with a formatted message that begins with the file's path and, unless r->line
 * is 0, the line number. */
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

/* Read all prompts: first the strings in `texts` ("-" stands for the text on standard input), then
 * the contents of the files in `files`. The newline at the end of a file is removed. If both lists
 * are empty, add one empty prompt. */
int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err);
/* Normalize all prompts as the vocabulary requires, and tokenize them. An empty prompt gets a
 * single id, the end-of-text id. */
int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err);
void sample_prompts_free(sample_prompts *p);

/* ---- show.c ---- */

/* A prompt, and one text that is generated as its continuation. */
typedef struct sample_text {
    const sample_prompt *prompt;
    uint64_t number; /* index of this text among all texts for the same prompt, counted from 0 */
    /* text to show: the prompt (only if sample_show.prompts is 1), followed by the generated
     * text */
    char *bytes;
    /* `n` is the number of bytes in `bytes` so far, and `room` the number of bytes allocated.
     * `begin` is the offset at which the generated text begins. `shown` is the number of bytes
     * already printed. */
    size_t n, room, begin, shown;
    json_t *ids; /* ids of the generated tokens if sample_show.json is 1, otherwise NULL */
    int ended;
    sgt_generate_end why;
} sample_text;

typedef struct sample_show {
    sample_text *texts;
    /* `count` is the number of texts. `current` is the index of the text that is being printed,
     * which is the first one that is not complete. */
    size_t count, current;
    /* 1 if nothing is printed during generation, because all texts are printed as JSON later;
     * otherwise 0 */
    int json;
    /* 1 if control characters are printed as \xNN, because they could control the terminal;
     * otherwise 0 */
    int terminal;
    int prompts; /* 1: show the prompts too */
} sample_show;

/* A model that continues prompts. The caller zeroes this struct, then sets `model`, `prompts` (with
 * sample_prompts_read) and the options in `show`. The caller must call sample_run_close at the end,
 * even after a failure. */
typedef struct sample_run {
    sample_model model;
    sample_prompts prompts;
    sample_show show;
    sgt_decoder *decoder;
    sgt_generate_result result;
} sample_run;

/* Generate `samples` texts for each prompt, and print them in order. A text is printed while it is
 * generated, as soon as all texts before it are complete. The caller sets three members of *d:
 * `sequences` (their maximum number), `threads` and `bf16`. In *g, the caller sets `choice`,
 * `tokens`, `notice`, `stop` and `eot`; eot is -1 if the end-of-text id must not end a text,
 * otherwise 0. All other members are set from the model. */
int sample_generate(sample_run *s, uint64_t samples, sgt_decoder_options *d,
                    sgt_generate_options *g, sgt_error *err);
void sample_run_close(sample_run *s);
/* Return a JSON array with one object for each generated text. */
json_t *sample_show_json(const sample_show *s);

#endif
