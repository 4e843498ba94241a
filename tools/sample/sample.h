/* sample.h: functions and types of sgt-sample, some of which other programs also use. model.c finds
 * a model and its vocabulary. texts.c reads prompts and JSONL files. show.c generates texts, which
 * it prints while they are generated, or returns as JSON at the end. */
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
    char *path; /* path of the checkpoint's folder, or of a .bin file of llm.c */
    sgt_model shape;
    sgt_vocab *vocab;
} sample_model;

/* Find the model at `path`, and open its vocabulary. The model can be a run (the newest checkpoint
 * is used), a checkpoint, a folder with a GPT-2 in Hugging Face's format, or a .bin file of llm.c.
 * The vocabulary is read from the file `vocab` or, if `vocab` is NULL, from the model's folder. If
 * the folder contains no vocabulary, GPT-2's is used. */
int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err);
void sample_model_free(sample_model *m);

/* Open the vocabulary in the folder of the model at `path`: a tokenizer.json, or another file that
 * sgt_vocab_load reads. If there is no such file, open GPT-2's vocabulary if n, the model's number
 * of ids, is GPT-2's (possibly padded). Otherwise, return SGT_EUSAGE with a message that ends with
 * `hint`. */
int sample_vocab_beside(sgt_vocab **out, const char *path, uint32_t n, const char *hint,
                        sgt_error *err);
/* Open the vocabulary with which a data set was tokenized. fingerprint: hash that identifies this
 * vocabulary, or 0 if unknown. n: number of its ids. tokenizer: path of a file that contains the
 * vocabulary, or NULL. Open GPT-2's vocabulary in two cases:
 * - The fingerprint is that of GPT-2's vocabulary.
 * - The fingerprint is 0, `tokenizer` is NULL, and n is the number of GPT-2's ids.
 *
 * Otherwise, open the vocabulary in the file `tokenizer`. Set *out to NULL and return
 * SGT_EUNSUPPORTED if `tokenizer` is NULL or its vocabulary has a different fingerprint. */
int sample_vocab_of_data(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                         sgt_error *err);
/* Return 1 if the folder that contains `file` also contains a meta.pkl, otherwise 0. (nanoGPT's
 * prepare.py writes a meta.pkl for character-level vocabularies.) */
int sample_has_meta(const char *file);
/* Return 1 if each id of vocabulary a stands for the same bytes in vocabulary b, otherwise 0. b can
 * have additional ids. */
int sample_vocab_agrees(const sgt_vocab *a, const sgt_vocab *b);

/* ---- texts.c: files and prompts ---- */

/* State for reading a JSONL file, such as a file of questions. The caller sets the fields path,
 * vocab and err, and sets all other fields to 0. */
typedef struct sample_lines {
    const char *path;
    const sgt_vocab *vocab;
    sgt_error *err;
    /* number of the current line, counted from 1, for messages; 0 to omit it from messages */
    size_t line;
    uint64_t hash;   /* XXH3 of the file */
    int32_t *tokens; /* token ids of all texts read so far, one text after the other */
    /* count: number of ids in `tokens`. room: number of ids for which memory is allocated. */
    size_t count, room;
    sgt_encoder *encoder;
    sgt_normalizer normal;
} sample_lines;

/* Read a JSONL file of at most `most` bytes, and call `add` with the JSON value of each line that
 * is not blank. NaN, Infinity and -Infinity, which are not JSON, but which Python's json module
 * writes, are read as empty lists. If `add` returns an error, stop and return it. If a line is not
 * valid JSON, return SGT_EFORMAT with a message that names the file and the line. */
int sample_lines_read(sample_lines *r, size_t most, int (*add)(void *ctx, const json_t *value),
                      void *ctx);
/* Normalize the n bytes at `text` as the vocabulary requires, tokenize them, and append the ids to
 * r->tokens. After this call, r->tokens has room for at least two more ids, which the caller can
 * append. */
int sample_lines_encode(sample_lines *r, const char *text, size_t n);
/* Return SGT_EFORMAT with a formatted message, to which the file's path and, unless r->line is 0,
 * the line number are prepended. */
int sample_lines_fail(const sample_lines *r, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Free the memory of *r except r->tokens, which the caller frees. */
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

/* Read all prompts. They are the strings in `texts`, in which "-" stands for the text on standard
 * input, followed by the contents of the files in `files`, without the newline at the end of a
 * file. If both lists are empty, add one empty prompt. */
int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err);
/* Normalize all prompts as the vocabulary requires, and tokenize them. An empty prompt becomes the
 * end-of-text id. */
int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err);
void sample_prompts_free(sample_prompts *p);

/* ---- show.c ---- */

/* a prompt, and a text that is generated after it */
typedef struct sample_text {
    const sample_prompt *prompt;
    uint64_t number; /* index of this text among all texts for the same prompt, counted from 0 */
    /* text to print: the prompt (only if sample_show.prompts is 1), followed by the generated
     * text */
    char *bytes;
    /* n: number of bytes in `bytes` so far. room: number of bytes allocated. begin: offset at which
     * the generated text begins. shown: number of bytes already printed. */
    size_t n, room, begin, shown;
    json_t *ids; /* ids of the generated tokens if sample_show.json is 1, otherwise NULL */
    int ended;
    sgt_generate_end why;
} sample_text;

typedef struct sample_show {
    sample_text *texts;
    /* count: number of texts. current: index of the text that is being printed, which is the first
     * text that is not complete. */
    size_t count, current;
    /* 1 if nothing is printed while texts are generated, because they are printed as JSON later;
     * otherwise 0 */
    int json;
    /* 1 if control characters must be printed as \xNN, because a terminal would interpret them;
     * otherwise 0 */
    int terminal;
    int prompts; /* 1 if the prompts are also printed, otherwise 0 */
} sample_show;

/* A model that continues prompts. The caller sets all fields to 0, and then sets `model` (with
 * sample_model_find), `prompts` (with sample_prompts_read) and the options in `show`. It must call
 * sample_run_close at the end, even after an error. */
typedef struct sample_run {
    sample_model model;
    sample_prompts prompts;
    sample_show show;
    sgt_decoder *decoder;
    sgt_generate_result result;
} sample_run;

/* Generate `samples` texts for each prompt, and print them in order: each text is printed while it
 * is generated, once all texts before it are complete. The caller must set these fields, and this
 * function sets all others: in *d, `sequences` (the maximum number of texts generated at the same
 * time), `threads` and `bf16`; in *g, `choice`, `tokens`, `notice`, `stop` and `eot` (-1 if the
 * end-of-text id must not end a text, otherwise 0). */
int sample_generate(sample_run *s, uint64_t samples, sgt_decoder_options *d,
                    sgt_generate_options *g, sgt_error *err);
void sample_run_close(sample_run *s);
/* Return a JSON array with one object for each generated text. */
json_t *sample_show_json(const sample_show *s);

#endif
