/* sample.h: the parts of sgt-sample: model.c finds model and vocabulary, prompts.c reads what is to
 * be gone on with, show.c prints texts as they come, or all of them as one JSON document. */
#ifndef SGT_TOOLS_SAMPLE_H
#define SGT_TOOLS_SAMPLE_H

#include <jansson.h>

#include "base/error.h"
#include "generate/generate.h"
#include "sgt_tokenize.h"
#include "tools/cli/options.h"

/* ---- model.c ---- */

typedef struct sample_model {
    char *path; /* the checkpoint's folder, or llm.c's file */
    sgt_model shape;
    sgt_vocab *vocab;
} sample_model;

/* What `path` names: a run (its newest checkpoint), a checkpoint or any Hugging Face GPT-2
 * directory, or llm.c's .bin; and its vocabulary: `vocab` (NULL: what lies beside it, else
 * GPT-2's). */
int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err);
void sample_model_free(sample_model *m);

/* ---- prompts.c ---- */

typedef struct sample_prompt {
    char *text;
    size_t bytes;
    uint16_t *ids;
    size_t count;
} sample_prompt;

typedef struct sample_prompts {
    sample_prompt *items;
    size_t count, room;
} sample_prompts;

/* All of `texts`, where "-" is standard input, then all of `files`, each without its last newline;
 * an empty prompt where there is none. */
int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err);
/* Their ids; those of an empty prompt are the end-of-text id. */
int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err);
void sample_prompts_free(sample_prompts *p);

/* ---- show.c ---- */

/* One text: a prompt, and what was made of it. */
typedef struct sample_text {
    const sample_prompt *prompt;
    uint64_t number; /* of the prompt's samples, from 0 */
    char *bytes;     /* the prompt's, where it is to be shown, and what follows */
    /* begin: where what follows does; shown: so much of it was printed */
    size_t n, room, begin, shown;
    uint16_t *ids;
    size_t count, id_room;
    int ended;
    sgt_generate_end why;
} sample_text;

typedef struct sample_show {
    const sgt_vocab *vocab;
    sample_text *texts;
    size_t count, current; /* the first that is not printed whole */
    int json;              /* print nothing */
    int terminal;          /* what could steer it is printed as \xNN */
    int prompts;           /* show them, too */
} sample_show;

int sample_show_open(sample_show *s, const sample_prompts *p, uint64_t samples, sgt_error *err);
void sample_show_close(sample_show *s);
/* sgt_generate_options.token and .end; ctx is the sample_show. Texts are printed in their order:
 * the first as it comes, the others when those before them are whole. */
int sample_show_token(void *ctx, size_t text, uint16_t id, sgt_error *err);
int sample_show_end(void *ctx, size_t text, sgt_generate_end why, sgt_error *err);
/* Before the first token. And where it was interrupted: the line that was begun ends. */
int sample_show_begin(sample_show *s, sgt_error *err);
void sample_show_cut(const sample_show *s);
json_t *sample_show_json(const sample_show *s); /* an array of objects; NULL: out of memory */

#endif
