/* sample.h: the parts of sgt-sample: model.c finds the model and the vocabulary, texts.c reads
 * prompts and files of texts, show.c generates texts and prints them while they are generated, or
 * all of them at the end as one JSON document. */
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
 * Face GPT-2 directory, or a .bin of llm.c. Also open the vocabulary: the file `vocab`; if that is
 * NULL, the one next to the model; if there is none, GPT-2's. */
int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err);
void sample_model_free(sample_model *m);

/* Open the vocabulary next to the model at `path`, which has n ids: a tokenizer.json or another
 * file that sgt_vocab_load reads. If there is none, open GPT-2's if n fits it; otherwise return
 * SGT_EUSAGE, with `hint` at the end of the message. */
int sample_vocab_beside(sgt_vocab **out, const char *path, uint32_t n, const char *hint,
                        sgt_error *err);
/* Open the vocabulary of data. It is GPT-2's if the fingerprint says so or, if the fingerprint is 0
 * (unknown), if its size n does. Otherwise it is the one in the file `tokenizer` (NULL: there is
 * none). If that does not have the fingerprint, the function returns SGT_EUNSUPPORTED and sets *out
 * to NULL. */
int sample_vocab_of_data(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                         sgt_error *err);
/* Return whether `file` is a meta.pkl, or has one next to it. nanoGPT's prepare.py writes that file
 * for a character-level vocabulary. */
int sample_has_meta(const char *file);
/* Return whether every id of `a` stands for the same bytes in `b`, which may have more ids. */
int sample_vocab_agrees(const sgt_vocab *a, const sgt_vocab *b);

/* ---- texts.c: files of questions (sgt-eval) and of examples (sgt-train), and prompts ---- */

/* A file with one JSON value per line, and the ids of its texts. The caller sets path, vocab and
 * err, and everything else to zero. */
typedef struct sample_lines {
    const char *path;
    const sgt_vocab *vocab;
    sgt_error *err;
    size_t line;   /* number of the current line, from 1; 0: messages do not name a line */
    uint64_t hash; /* XXH3 of the file */
    int32_t *tokens;
    size_t count, room; /* number of tokens, and capacity of `tokens` */
    sgt_encoder *encoder;
    sgt_normalizer normal;
} sample_lines;

/* Read a file of at most `most` bytes and call `add` for the value of each line that is not blank.
 * NaN, Infinity and -Infinity, which Python's json module writes but JSON lacks, are read as empty
 * lists. Returns add's first failure, or SGT_EFORMAT, with file and line, if a line is not JSON. */
int sample_lines_read(sample_lines *r, size_t most, int (*add)(void *ctx, const json_t *value),
                      void *ctx);
/* Bring a text of n bytes into the vocabulary's normal form, append its ids to r->tokens, and leave
 * room for two more ids. */
int sample_lines_encode(sample_lines *r, const char *text, size_t n);
/* Return SGT_EFORMAT with a message that begins with file and line. */
int sample_lines_fail(const sample_lines *r, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Free everything except the tokens, which the caller frees. */
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
 * `files`, each without its last newline. If both are empty, add one empty prompt. */
int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err);
/* Bring all prompts into the vocabulary's normal form and set their ids. An empty prompt becomes
 * the end-of-text id. */
int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err);
void sample_prompts_free(sample_prompts *p);

/* ---- show.c ---- */

/* A prompt and the text generated from it. */
typedef struct sample_text {
    const sample_prompt *prompt;
    uint64_t number; /* number of this sample of the prompt, from 0 */
    /* text to show: the prompt (if sample_show.prompts is 1) and the generated text */
    char *bytes;
    /* n: bytes of text, in a buffer of `room`; begin: offset of the generated text; shown: bytes
     * printed so far */
    size_t n, room, begin, shown;
    json_t *ids; /* ids of the generated text; NULL unless sample_show.json is 1 */
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

/* A model that continues prompts. The caller sets everything to zero, then fills in `model`,
 * `prompts` (with sample_prompts_read) and the options in `show`. The caller must close it even
 * after a failure. */
typedef struct sample_run {
    sample_model model;
    sample_prompts prompts;
    sample_show show;
    sgt_decoder *decoder;
    sgt_generate_result result;
} sample_run;

/* Generate `samples` texts for each prompt. Texts are printed in order: each is printed while it is
 * generated, once all texts before it are complete. In *d, the caller sets the most sequences,
 * threads and bf16. In *g, the caller sets choice, tokens, eot (-1: the end-of-text id does not end
 * a text; else 0), notice and stop. The other options are set from the model. */
int sample_generate(sample_run *s, uint64_t samples, sgt_decoder_options *d,
                    sgt_generate_options *g, sgt_error *err);
void sample_run_close(sample_run *s);
/* return a JSON array with an object per text */
json_t *sample_show_json(const sample_show *s);

#endif
