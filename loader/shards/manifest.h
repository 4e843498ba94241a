/* manifest.h: read and write OUT/manifest.json, which describes the content of a folder of shards
 * and the options with which the folder was made. Also write tokenizer_config.json, for folders
 * that contain a tokenizer. */
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
    /* options of sgt-tokenize that affect its output, as a JSON object in text form */
    char *options;
    char vocabulary[64];  /* "gpt2" */
    uint64_t fingerprint; /* fingerprint of the vocabulary; defined in vocab.h */
    uint32_t vocab, eot;
    sgt_manifest_shard *shards;
    size_t count;
    uint64_t tokens, documents, bytes, files; /* totals of all splits */
    /* number of ill-formed UTF-8 sequences in the input (maximal subparts, as the Unicode Standard
     * defines) */
    uint64_t invalid_utf8;
    /* bad_lines: number of invalid lines of JSONL input, which were skipped; lone_surrogates:
     * number of unpaired UTF-16 surrogates in strings of JSONL input. Either of them is written to
     * the file only if it is not 0 */
    uint64_t bad_lines, lone_surrogates;
    /* number of documents removed as duplicates; written only if it is not 0 */
    uint64_t duplicates;
    /* number of times that the name of the end-of-text token occurs in the text, where it is
     * tokenized as ordinary text; written only if it is not 0 */
    uint64_t eot_literals;
    /* number of files skipped because they are not text; written only if it is not 0 */
    uint64_t skipped;
    /* positions of the first ill-formed UTF-8 sequences, as a JSON array of objects {path, offset}
     * in text form; NULL: none */
    char *invalid;
    /* foreign: 1 if the shards are in the format of a different training program, which has no
     * header; raw: 1 if, in addition, they have no .idx files. sgt_manifest_read sets both fields
     * according to the option `shards` in the manifest */
    int foreign, raw;
    uint64_t hash; /* XXH3-64 hash of the bytes of manifest.json; set by sgt_manifest_read */
} sgt_manifest;

/* Read and check OUT/manifest.json. It lists shards by their file names in the folder, which have
 * no slash. A shard may be a symbolic link, for example to a different disk; sgt reads through such
 * a link but never writes through it. The call takes at most 24 MiB of memory plus 30 times the
 * size of the file. Free m with sgt_manifest_free. */
int sgt_manifest_read(sgt_manifest *m, const char *folder, sgt_error *err);
/* Read and check OUT/manifest.json, as sgt_manifest_read does, if it exists. If it does not exist,
 * return SGT_OK and zero *m, so that m->options is NULL. */
int sgt_manifest_find(sgt_manifest *m, const char *folder, sgt_error *err);
/* Write OUT/manifest.json atomically. The same content always gives the same bytes. */
int sgt_manifest_write(const sgt_manifest *m, const char *folder, sgt_error *err);
void sgt_manifest_free(sgt_manifest *m);

/* ---- tokenizer_config.json ----
 *
 * Hugging Face's transformers reads this file together with tokenizer.json. If the file is missing,
 * AutoTokenizer chooses its settings by the type of the model. As a result, it may use the split
 * pattern and normalization of GPT-2, add a second end-of-text token, and remove spaces before
 * punctuation from decoded text. */

#define SGT_TOKENIZER_CONFIG "tokenizer_config.json"

/* Write DIR/tokenizer_config.json. `eot` is the name of the end-of-text token, which is also used
 * as the beginning-of-text token; NULL: unknown. `positions` is the maximum length in tokens of a
 * text; 0: no limit. */
int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions,
                               sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
