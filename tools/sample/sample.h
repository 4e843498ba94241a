/* sample.h: the parts of sgt-sample: model.c finds the model and the vocabulary, texts.c reads
 * prompts and files of texts, show.c generates texts and prints them as they come, or all of them
 * as one JSON document. */
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
    char *path; /* path of the checkpoint's folder, or of llm.c's file */
    sgt_model shape;
    sgt_vocab *vocab;
} sample_model;

/* Find the model at `path`: a run (its newest checkpoint is used), a checkpoint or another Hugging
 * Face GPT-2 directory, or a .bin of llm.c. Also open its vocabulary: `vocab`; if that is NULL, the
 * one beside the model; if there is none, GPT-2's. */
int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err);
void sample_model_free(sample_model *m);

/* Open the vocabulary beside the model at `path`, which has n ids: that of a tokenizer.json or of
 * another file that sgt_vocab_load reads; without one, GPT-2's, if n allows that. Else SGT_EUSAGE,
 * with `hint` at the end of the message. */
int sample_vocab_beside(sgt_vocab **out, const char *path, uint32_t n, const char *hint,
                        sgt_error *err);
/* Open the vocabulary of data: GPT-2's, by its fingerprint or (if that is 0) its size n, or else
 * the one in the file `tokenizer` (NULL: there is none). Returns SGT_EUNSUPPORTED, and sets *out to
 * NULL, if that is not the one of the fingerprint. */
int sample_vocab_of_data(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                         sgt_error *err);
/* Return whether a meta.pkl is beside a file of data, or in place of it: nanoGPT's, of a vocabulary
 * that its prepare.py made, of characters. */
int sample_has_meta(const char *file);
/* Return whether every id of `a` stands for the same bytes in `b`, which may have more ids. */
int sample_vocab_agrees(const sgt_vocab *a, const sgt_vocab *b);

/* ---- texts.c: files of questions (sgt-eval) and of examples (sgt-train), and prompts ---- */

/* A file with a JSON value a line, and the ids of its texts. Begins with path, vocab and err set
 * and all else zero. */
typedef struct sample_lines {
    const char *path;
    const sgt_vocab *vocab;
    sgt_error *err;
    size_t line;   /* number of the line that is read, from 1; 0: messages name no line */
    uint64_t hash; /* XXH3 of the file */
    int32_t *tokens;
    size_t count, room; /* of tokens */
    sgt_encoder *encoder;
    sgt_normalizer normal;
} sample_lines;

/* Read a file of at most `most` bytes and call `add` for the value of each line that is not blank.
 * NaN, Infinity and -Infinity, which Python's json writes, are empty lists. Returns add's first
 * failure, or SGT_EFORMAT, with file and line, if a line is not JSON. */
int sample_lines_read(sample_lines *r, size_t most, int (*add)(void *ctx, const json_t *value),
                      void *ctx);
/* Append the ids of a text, in the vocabulary's normal form, and leave room for two more. */
int sample_lines_encode(sample_lines *r, const char *text, size_t n);
/* Return SGT_EFORMAT with a message that begins with file and line. */
int sample_lines_fail(const sample_lines *r, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Free all but the tokens. */
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

/* Read all prompts: first `texts`, in which "-" stands for standard input, then the contents of
 * `files`, without the last newline. If there are none, there is one empty prompt. */
int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err);
/* Set the ids of all prompts, which are brought into the vocabulary's normal form first; an empty
 * prompt becomes the end-of-text id. */
int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err);
void sample_prompts_free(sample_prompts *p);

/* ---- show.c ---- */

/* A prompt and the text generated from it. */
typedef struct sample_text {
    const sample_prompt *prompt;
    uint64_t number; /* number of this sample of the prompt, from 0 */
    char *bytes;     /* text to show: the prompt, if `prompts` is set, and the generated text */
    /* begin: where the generated text begins in `bytes`; shown: bytes printed so far */
    size_t n, room, begin, shown;
    json_t *ids; /* of the generated text; NULL unless the texts are for JSON */
    int ended;
    sgt_generate_end why;
} sample_text;

typedef struct sample_show {
    sample_text *texts;
    size_t count, current; /* current: index of the first text that is not printed completely */
    int json;              /* 1: print nothing, because the texts are for JSON */
    int terminal; /* 1: print control characters, which could steer the terminal, as \xNN */
    int prompts;  /* 1: show the prompts too */
} sample_show;

/* A model that continues prompts. The caller begins with zeros, fills in `model`, `prompts` (by
 * sample_prompts_read) and what `show` prints, and closes it in any case. */
typedef struct sample_run {
    sample_model model;
    sample_prompts prompts;
    sample_show show;
    sgt_decoder *decoder;
    sgt_generate_result result;
} sample_run;

/* Generate `samples` texts for each prompt. Texts are printed in order: the first while it is
 * generated, each other one when all texts before it are complete. Of the options, the caller
 * chooses the decoder's sequences (the most), threads and bf16, and the choice, tokens, eot (-1: it
 * does not end a text; else 0), notice and stop of generation; the others follow from the model. */
int sample_generate(sample_run *s, uint64_t samples, sgt_decoder_options *d,
                    sgt_generate_options *g, sgt_error *err);
void sample_run_close(sample_run *s);
/* return an array of objects */
json_t *sample_show_json(const sample_show *s);

#endif
