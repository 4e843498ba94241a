/* manifest.h: read and write OUT/manifest.json, which records the content of a folder of shards and
 * the options with which it was made. Also write tokenizer_config.json, for folders that hold a
 * tokenizer. */
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
    /* options of sgt-tokenize that affect its output, as the text of a JSON object */
    char *options;
    char vocabulary[64];  /* "gpt2" */
    uint64_t fingerprint; /* fingerprint of the vocabulary; defined in vocab.h */
    uint32_t vocab, eot;
    sgt_manifest_shard *shards;
    size_t count;
    uint64_t tokens, documents, bytes, files; /* totals of all splits */
    /* number of ill-formed UTF-8 sequences (maximal subparts) in the input */
    uint64_t invalid_utf8;
    /* bad_lines: number of JSONL lines skipped as invalid; lone_surrogates: number of unpaired
     * UTF-16 surrogates in JSONL strings. Neither is written to the file if it is 0 */
    uint64_t bad_lines, lone_surrogates;
    uint64_t duplicates; /* number of documents removed as duplicates; not written if 0 */
    /* number of times the end-of-text token's name occurs in the text, where it is tokenized as
     * plain text; not written if 0 */
    uint64_t eot_literals;
    /* number of files skipped because they are not text; not written if 0 */
    uint64_t skipped;
    /* positions of the first ill-formed UTF-8 sequences, as the text of a JSON array of {path,
     * offset}; NULL: none */
    char *invalid;
    /* foreign: 1 if the shards are in a different trainer's format, which has no header; raw: 1 if
     * they have no .idx files either. sgt_manifest_read sets both from the manifest's option
     * `shards` */
    int foreign, raw;
    uint64_t hash; /* XXH3-64 hash of the manifest's bytes; set by sgt_manifest_read */
} sgt_manifest;

/* Read and check OUT/manifest.json. Shards are listed by their file names in the folder, without a
 * slash. A shard may be a symbolic link, for example to a different disk. sgt reads through such a
 * link but never writes through it. The call takes memory of at most 30 times the file's size, plus
 * 24 MiB. Free m with sgt_manifest_free. */
int sgt_manifest_read(sgt_manifest *m, const char *folder, sgt_error *err);
/* Read and check OUT/manifest.json (see sgt_manifest_read) if there is one. If there is none,
 * return SGT_OK and zero *m, so that m->options is NULL. */
int sgt_manifest_find(sgt_manifest *m, const char *folder, sgt_error *err);
/* Write OUT/manifest.json atomically. The same content always gives the same bytes. */
int sgt_manifest_write(const sgt_manifest *m, const char *folder, sgt_error *err);
void sgt_manifest_free(sgt_manifest *m);

/* ---- tokenizer_config.json ----
 *
 * Hugging Face's transformers reads this file together with tokenizer.json. If the file is missing,
 * AutoTokenizer chooses settings by the type of the model. As a result, it may use GPT-2's split
 * pattern and normalization, add a second end-of-text token, and drop spaces before punctuation in
 * decoded text. */

#define SGT_TOKENIZER_CONFIG "tokenizer_config.json"

/* Write DIR/tokenizer_config.json. `eot` is the name of the end-of-text token, which also begins a
 * text; NULL: unknown. `positions` is the maximum length of a text in tokens; 0: no limit. */
int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions,
                               sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
