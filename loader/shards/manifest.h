/* manifest.h: OUT/manifest.json, which records what a folder of shards holds and the options it was
 * made with; and the tokenizer_config.json of folders that hold a tokenizer. */
#ifndef SGT_MANIFEST_H
#define SGT_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_manifest_shard {
    char file[64];  /* "train_000000.bin" */
    char split[16]; /* "train", "val" */
    uint64_t tokens, documents, xxh3;
} sgt_manifest_shard;

typedef struct sgt_manifest {
    char *options;        /* JSON object, as text: the options that change the output */
    char vocabulary[64];  /* "gpt2" */
    uint64_t fingerprint; /* identifies the vocabulary: vocab.h defines it */
    uint32_t vocab, eot;
    sgt_manifest_shard *shards;
    size_t count;
    uint64_t tokens, documents, bytes, files; /* totals over all splits */
    /* ill-formed UTF-8 sequences (maximal subparts) found in the input */
    uint64_t invalid_utf8;
    /* JSONL lines left out; lone surrogates in JSONL. Not written if 0 */
    uint64_t bad_lines, lone_surrogates;
    uint64_t duplicates; /* documents left out as duplicates; not written if 0 */
    /* literal ends of text that were tokenized as text; not written if 0 */
    uint64_t eot_literals;
    /* files left out because they are not text; not written if 0 */
    uint64_t skipped;
    /* JSON array, as text: {path, offset} of the first ill-formed UTF-8 sequences; NULL: none */
    char *invalid;
    /* Set by sgt_manifest_read. foreign: the files are laid out for another trainer (option
     * `shards`): they have no header, and any number of tokens; raw: no .idx lists their documents
     * either */
    int foreign, raw;
    uint64_t hash; /* XXH3-64 of the file's bytes, also set by sgt_manifest_read */
} sgt_manifest;

/* Read and check OUT/manifest.json. A shard is named by its file name in the folder, without a
 * slash. It may be a symbolic link, for example to another disk; sgt reads through it and never
 * writes through it. Takes at most 30 times the file's size in memory, plus 24 MiB. Free it with
 * sgt_manifest_free. */
int sgt_manifest_read(sgt_manifest *m, const char *folder, sgt_error *err);
/* Read it if there is one; otherwise *m is {0}, and m->options NULL. */
int sgt_manifest_find(sgt_manifest *m, const char *folder, sgt_error *err);
/* Write OUT/manifest.json atomically. The same content gives the same bytes. */
int sgt_manifest_write(const sgt_manifest *m, const char *folder, sgt_error *err);
void sgt_manifest_free(sgt_manifest *m);

/* ---- tokenizer_config.json ----
 *
 * Hugging Face's transformers reads it beside tokenizer.json. Without it, AutoTokenizer goes by the
 * model's type: it may replace the split pattern and the normal form by GPT-2's, add another end of
 * text, and drop blanks before punctuation in decoded text. */

#define SGT_TOKENIZER_CONFIG "tokenizer_config.json"

/* Write DIR/tokenizer_config.json. eot: name of the end-of-text token, which also begins a text;
 * NULL: unknown. positions: longest text in tokens; 0: no limit. */
int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions,
                               sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
