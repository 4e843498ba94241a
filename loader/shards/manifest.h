/* manifest.h: OUT/manifest.json, which records the content of a folder of shards and the options
 * with which it was made; and tokenizer_config.json, for folders that hold a tokenizer. */
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
    char *options;        /* the options that change the output: the text of a JSON object */
    char vocabulary[64];  /* "gpt2" */
    uint64_t fingerprint; /* identifies the vocabulary; defined in vocab.h */
    uint32_t vocab, eot;
    sgt_manifest_shard *shards;
    size_t count;
    uint64_t tokens, documents, bytes, files; /* totals of all splits */
    /* ill-formed UTF-8 sequences (maximal subparts) found in the input */
    uint64_t invalid_utf8;
    /* JSONL lines left out as invalid; lone surrogates in JSONL. Each is not written if 0 */
    uint64_t bad_lines, lone_surrogates;
    uint64_t duplicates; /* documents left out as duplicates; not written if 0 */
    /* occurrences of the end-of-text token's name in the text, which were tokenized as plain text;
     * not written if 0 */
    uint64_t eot_literals;
    /* files left out because they are not text; not written if 0 */
    uint64_t skipped;
    /* the first ill-formed UTF-8 sequences: the text of a JSON array of {path, offset}; NULL:
     * none */
    char *invalid;
    /* Set by sgt_manifest_read. foreign: 1 if the files have the layout of another trainer (option
     * `shards`), with no header and any number of tokens. raw: 1 if there are no .idx files
     * either */
    int foreign, raw;
    uint64_t hash; /* XXH3-64 of the file's bytes, also set by sgt_manifest_read */
} sgt_manifest;

/* Read and check OUT/manifest.json. It names each shard by its file name in the folder, without a
 * slash. A shard may be a symbolic link, for example to another disk; sgt reads through the link
 * but never writes through it. Takes memory of at most 30 times the file's size, plus 24 MiB. Free
 * it with sgt_manifest_free. */
int sgt_manifest_read(sgt_manifest *m, const char *folder, sgt_error *err);
/* The same, except that a missing manifest is no error: *m is then {0}, and m->options NULL. */
int sgt_manifest_find(sgt_manifest *m, const char *folder, sgt_error *err);
/* Write OUT/manifest.json atomically. The same content gives the same bytes. */
int sgt_manifest_write(const sgt_manifest *m, const char *folder, sgt_error *err);
void sgt_manifest_free(sgt_manifest *m);

/* ---- tokenizer_config.json ----
 *
 * Hugging Face's transformers reads this file together with tokenizer.json. Without it,
 * AutoTokenizer chooses settings by the model's type. It may then use GPT-2's split pattern and
 * normalization, add a second end-of-text token, and drop blanks before punctuation in decoded
 * text. */

#define SGT_TOKENIZER_CONFIG "tokenizer_config.json"

/* Write DIR/tokenizer_config.json. eot: name of the end-of-text token, which is also the token that
 * begins a text; NULL: unknown. positions: longest text in tokens; 0: no limit. */
int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions,
                               sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
