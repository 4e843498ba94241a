/* sgt_tokenize.h: turn text into token ids and back, and folders of text into shards on disk, with
 * GPT-2's vocabulary or another byte-level BPE. The library, libsgt-tokenize, needs no other
 * library of sgt, and can be called from C, C++ and any FFI. "manual" means sgt-tokenize(1), which
 * tells more about files.
 *
 *     #include <sgt_tokenize.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         const char text[] = "Hello, world!", *inputs[] = {"corpus"};
 *         uint16_t ids[sizeof text]; // GPT-2's take 2 bytes, and are never more than bytes
 *         size_t count = 0;
 *         sgt_error err;
 *         sgt_vocab *v = NULL;
 *         sgt_encoder *e = NULL;
 *         int rc = sgt_vocab_load(&v, "gpt2", NULL, &err);
 *         if (!rc) rc = sgt_encoder_new(&e, v, &err);
 *         if (!rc) rc = sgt_encode(e, text, sizeof text - 1, ids, sizeof ids, &count, &err);
 *         for (size_t i = 0; i < count; i++) printf("%d\n", ids[i]); // 15496, 11, 995, 0
 *         sgt_encoder_free(e);
 *         sgt_vocab_free(v);
 *         sgt_tokenize_options o = {
 *             .size = sizeof o, .inputs = inputs, .input_count = 1, .out = "out"};
 *         if (!rc) rc = sgt_tokenize(&o, NULL, &err); // writes out/train_000000.bin and more
 *         if (rc < 0) fprintf(stderr, "%s\n", err.text);
 *         return rc < 0;
 *     }
 *
 * A vocabulary is immutable, and any number of threads may share it. Only one thread at a time may
 * use an encoder. A call returns 0 or a negative SGT_E*; if it fails, `*out` or `*text` is not
 * changed, and the caller has nothing to free. No call prints, exits, or reads arguments or the
 * environment; only the commands of `filters` inherit the environment. No call keeps its arguments.
 * The threads of a call end before it returns, and block all signals except those that a thread
 * raises itself.
 *
 * Later versions may append fields to structs that begin with `size`, and values to enums; nothing
 * else changes. The caller sets `size` to the struct's sizeof. A field that is 0, or that an older
 * program lacks, has its default. A field that an older library does not know must be 0. */
#ifndef SGT_TOKENIZE_H
#define SGT_TOKENIZE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabularies ---- */
typedef struct sgt_vocab sgt_vocab;
typedef struct sgt_encoder sgt_encoder;

/* Load a vocabulary of at most 1,048,576 ids, and check the complete file. The caller frees *out.
 *
 * path: one of: tokenizer.json; merges.txt; vocab.json; a NAME.tiktoken file; tekken.json; a folder
 * with such files (merges.txt and vocab.json in one folder belong together); or "gpt2", which is
 * built in (manual: VOCABULARIES). Ids are taken from the file; a file without ids gives the ranks
 * of its tokens, as in tiktoken. merges.txt without vocab.json gives ids in GPT-2's order: bytes,
 * merges, end of text. If the ranks in a file are those of cl100k, o200k, Llama 3, Llama 4 or Qwen,
 * the vocabulary gets that model's pattern, special tokens, size and normal form; ids without a
 * known special token are named "<|unused_ID|>".
 *
 * pattern: how text is split before merging. This is a PCRE2 pattern, whose matches and the text
 * between them are encoded separately (pattern.h), or one of these names: gpt2, cl100k, o200k,
 * llama3, qwen2, nanochat (split.h). NULL selects the file's own pattern, else that of the known
 * model, else GPT-2's.
 *
 * Return SGT_EUSAGE for an invalid pattern and SGT_EFORMAT for an invalid file. A loaded vocabulary
 * gives the same ids as tiktoken's encode_ordinary, and as Hugging Face's encode for text without
 * added tokens. */
int sgt_vocab_load(sgt_vocab **out, const char *path, const char *pattern, sgt_error *err);
void sgt_vocab_free(sgt_vocab *v); /* frees v, which may be NULL; free its encoders first */

uint32_t sgt_vocab_size(const sgt_vocab *v); /* number of ids; every id is smaller. GPT-2: 50257 */
/* size of an id in bytes: 2, or 4 if the vocabulary has more than 65,536 ids */
size_t sgt_vocab_width(const sgt_vocab *v);
/* id of the end-of-text token, which begins each document. GPT-2: 50256 */
uint32_t sgt_vocab_eot(const sgt_vocab *v);
/* Return a hash that identifies the vocabulary: XXH3-64 of the tokens, the pattern, and the merges
 * unless the ids imply them. The hash's seed is 1 if the vocabulary uses tokens that no merges
 * produce, else 0. */
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v);
/* Return the vocabulary's name: "gpt2", or the last component of the path it was loaded from, cut
 * to 15 bytes. The string is valid as long as v. */
const char *sgt_vocab_name(const sgt_vocab *v);
/* Return the bytes of token `id`, and set *n to their number. Return NULL if no token has this id.
 * The bytes are valid as long as v. */
const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n);

/* Write the vocabulary as Hugging Face's tokenizer.json into *text, and set *n to its length in
 * bytes. *text is allocated with malloc, and the caller frees it. */
int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err);
/* Write merges.txt, vocab.json and tokenizer.json into `folder`. The folder is created if it does
 * not exist. */
int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err);

/* ---- text to ids and back ---- */
/* Create an encoder for v. The vocabulary must outlive the encoder. The encoder caches the words it
 * has encoded, in 13 MiB of memory, or 30 MiB if ids have 4 bytes. For this reason, one encoder for
 * a complete corpus is faster than one per text. */
int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err);
void sgt_encoder_free(sgt_encoder *e); /* NULL is allowed */

/* Encode text[n], which may be any bytes, into `ids`, a buffer of ids_bytes bytes. Set *count to
 * the number of ids; each has sgt_vocab_width bytes. A text of n bytes can have n ids; if the
 * buffer is too small for n ids, the call fails with SGT_EUSAGE. Bytes that are not UTF-8 become
 * separate tokens (split.h). The text is not normalized, and <|endoftext|> is ordinary text. The
 * time is linear in n, except that a user-defined PCRE2 pattern may take longer; if it exceeds
 * PCRE2's backtracking limits, the call fails with SGT_EUNSUPPORTED. */
int sgt_encode(sgt_encoder *e, const void *text, size_t n, void *ids, size_t ids_bytes,
               size_t *count, sgt_error *err);

typedef struct sgt_text {
    const void *bytes;
    size_t n; /* number of bytes */
} sgt_text;
/* Encode `count` texts as sgt_encode does, and store their ids one text after the other. The ids of
 * text i end before index ends[i] in `ids`. */
int sgt_encode_texts(sgt_encoder *e, const sgt_text *texts, size_t count, void *ids,
                     size_t ids_bytes, size_t *ends, sgt_error *err);

/* Decode ids[count] into *text, followed by a NUL, and set *n to the number of bytes without the
 * NUL. *text is allocated with malloc, and the caller frees it. If an id is out of range, the call
 * fails with SGT_EFORMAT and names the id. */
int sgt_decode(const sgt_vocab *v, const void *ids, size_t count, char **text, size_t *n,
               sgt_error *err);

/* ---- complete corpora: the library calls behind sgt-tokenize ---- */
typedef enum sgt_format {
    SGT_FORMAT_AUTO, /* choose by each file's name and first bytes (manual: --format) */
    SGT_FORMAT_TEXT, /* each file is one document */
    /* each line of a file is a JSON object, whose field `field` holds a document */
    SGT_FORMAT_JSONL
} sgt_format;
typedef enum sgt_binary_files {
    SGT_BINARY_SKIP, /* leave out files that are not text, and count them (manual: INPUTS) */
    SGT_BINARY_KEEP  /* read them like text */
} sgt_binary_files;
typedef enum sgt_invalid_utf8 {
    SGT_INVALID_KEEP, /* keep the bytes and count them */
    /* replace each maximal ill-formed part by U+FFFD, and count the replacements */
    SGT_INVALID_REPLACE,
    SGT_INVALID_FAIL /* fail with SGT_EFORMAT; the error names the file and the offset */
} sgt_invalid_utf8;
typedef enum sgt_normalize {
    /* the normal form that the vocabulary's file asks for; none for GPT-2 */
    SGT_NORMALIZE_AS_VOCAB,
    SGT_NORMALIZE_NONE,
    SGT_NORMALIZE_NFC, /* Unicode's canonical composition */
    SGT_NORMALIZE_NFKC /* compatibility decomposition, then canonical composition (Unicode) */
} sgt_normalize;
typedef enum sgt_layout {
    SGT_LAYOUT_SGT,      /* sgt's shards, SPLIT_NNNNNN.bin and .idx, which sgt_loader.h reads */
    SGT_LAYOUT_MEGATRON, /* Megatron-LM's SPLIT_text_document.bin and .idx (manual: --shards) */
    SGT_LAYOUT_NANOGPT,  /* nanoGPT's SPLIT.bin */
    SGT_LAYOUT_NPY       /* OLMo-core's SPLIT.npy, which has no NumPy header */
} sgt_layout;

typedef struct sgt_tokenize_options {
    size_t size;
    /* what to read */
    /* paths of files and folders; "@LIST" is a file of paths, "-" is standard input */
    const char *const *inputs;
    size_t input_count;
    /* "EXT=COMMAND" strings: read files whose name ends in .EXT through COMMAND (filter.h) */
    const char *const *filters;
    size_t filter_count;
    /* JSONL field or Parquet column that holds the text; default "text"; "a.b" means field b of
     * object a */
    const char *field;
    /* comma-separated fields to copy from each document into sources.jsonl, such as "url,date" */
    const char *keep_fields;
    sgt_format format;
    sgt_binary_files binary;
    int hidden; /* 1: when listing an input folder, include names that begin with a dot */
    /* 1: leave out bad lines, bad rows and damaged ends of compressed files; 0: fail */
    int skip_bad;
    /* how to turn text into ids */
    /* arguments `path` and `pattern` of sgt_vocab_load; default "gpt2" and NULL */
    const char *vocab, *pattern;
    /* Unicode normal form that each document's text is converted to before it is split */
    sgt_normalize normalize;
    sgt_invalid_utf8 invalid_utf8;
    /* 1: each <|endoftext|> in the text begins a new document; 0: it is ordinary text */
    int special_eot;
    int dedup; /* 1: leave out a document whose text occurred earlier (manual: --dedup) */
    /* what to write */
    const char *out; /* folder, created if missing */
    /* tokens per shard, below 2^31; default 10^8; must be 0 for other layouts than sgt's */
    uint64_t shard_tokens;
    /* fraction of documents put into the validation split, 0 to 1 (manual: --split) */
    double val_fraction;
    uint64_t shuffle_seed; /* below 2^63 */
    /* 1: shuffle the documents of each split, in an order that shuffle_seed determines */
    int shuffle;
    sgt_layout layout;
    /* how to run */
    /* 1: replace an output folder that is complete or was written with other options or inputs */
    int force;
    int threads; /* number of threads, at most 1,024; default: sgt_tokenize_threads() */
    /* rank: index of this process, from 0; ranks: number of processes that fill the output
     * folder together */
    uint32_t rank, ranks;
    /* connections between the ranks; only sgt's own programs set this field; others leave it
     * NULL */
    struct sgt_ranks *joined;
    sgt_notice notice; /* called with each notice, a message of one line that is not an error */
    /* read at intervals to see if the caller asks to stop; NULL: the call cannot be stopped */
    const sgt_stop *stop;
    /* called at intervals, by one thread at a time; bytes_total is 0 if the inputs' size is
     * unknown */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens);
    void *progress_ctx;
} sgt_tokenize_options;

typedef struct sgt_tokenize_result {
    size_t size;
    /* tokens in the output folder and in its two splits; after sgt_vocab_train, `tokens` is the
     * number of ids in the vocabulary */
    uint64_t tokens, train_tokens, val_tokens;
    /* shards written, files read, documents read, and bytes of the documents' text */
    uint64_t shards, files, documents, bytes;
    /* skipped: files left out because they are not text; bad_lines: bad lines and rows left out, if
     * skip_bad is set */
    uint64_t skipped, bad_lines;
    uint64_t duplicates; /* documents left out by dedup */
    /* invalid_utf8: ill-formed parts of UTF-8; lone_surrogates: \u escapes in JSONL that are half a
     * surrogate pair, replaced by U+FFFD */
    uint64_t invalid_utf8, lone_surrogates;
    uint64_t eot_literals; /* occurrences of <|endoftext|> that were encoded as ordinary text */
    /* set by sgt_vocab_train: number of pre-tokens, and of distinct pre-tokens */
    uint64_t pieces, distinct;
    /* input bytes that this call has read; a resumed run does not read all of them */
    uint64_t bytes_read;
    /* duration of this call, without waiting for another process that owns the output folder */
    double seconds;
    /* number of parts that other ranks have not completed; if not 0, the counts above cover only
     * this rank */
    uint32_t waiting;
    /* 1: the same call had already completed the output folder, so nothing was written */
    int already_done;
} sgt_tokenize_result;

/* Tokenize the inputs into the output folder OUT, which `out` names. The files written are shards,
 * the documents' offsets, manifest.json, sources.jsonl and tokenizer.json. Their bytes never depend
 * on the number of threads or ranks. If a run was stopped or killed, repeating the call finishes
 * it; standard input is then read from its beginning. Calls with different OUTs may run at the same
 * time. All inputs are checked before anything is written. If an input changes before it has been
 * read, the call fails. If OUT has other options, inputs or files, the call fails unless `force` is
 * set. If another run is writing OUT, the call always fails.
 *
 * With several ranks, each process makes this call, at any time. The last process to finish joins
 * the parts; in the others, the call returns with `waiting` set. If a process has died, repeat its
 * call.
 *
 * result and err may be NULL. Errors: SGT_EIO: a system call failed, or OUT would not fit on its
 * disk (with `force`, the call tries anyway). SGT_EFORMAT: something is wrong with an input or with
 * OUT. SGT_EUNSUPPORTED: a .zst file needs over 128 MiB of memory to unpack, or a Parquet encoding
 * is not supported. SGT_ESTOPPED: a stop was requested through `stop`. */
int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err);
/* Return the number of cores that this process may use, within its container's quota. */
int sgt_tokenize_threads(void);

/* Train a vocabulary of `tokens` ids, from 257 to 1,048,576; the vocabulary is smaller if no pair
 * is left to merge. Id 0 is <|endoftext|>, ids 1 to 256 are the bytes, and the rest are the merges
 * in order. The merges equal those of Hugging Face's BpeTrainer on the same pre-tokens (merges.h).
 * The caller frees *vocab.
 *
 * Only these options of *o are used: what to read, pattern, normalize, invalid_utf8, special_eot,
 * how to run, and `out`. `out` names the folder that the caller will pass to sgt_vocab_save. This
 * folder must be empty unless `force` is set, and must never hold an unfinished set of shards.
 * Training needs 40 bytes of memory for each byte of the distinct pre-tokens. If the distinct
 * pre-tokens exceed 2^32 bytes, the call fails with SGT_EUNSUPPORTED. */
int sgt_vocab_train(sgt_vocab **vocab, const sgt_tokenize_options *o, uint32_t tokens,
                    sgt_tokenize_result *result, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
