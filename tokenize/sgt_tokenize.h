/* sgt_tokenize.h: turns text into token ids and back, and folders of text into shards on disk, with
 * GPT-2's vocabulary or another byte-level BPE. "manual" means sgt-tokenize(1).
 *
 *     #include <sgt_tokenize.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         const char text[] = "Hello, world!", *inputs[] = {"corpus"};
 *         uint16_t ids[sizeof text]; // 2 bytes per id; a text has no more ids than bytes
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
 * use an encoder. A call returns 0 or a negative SGT_E*. A failed call leaves `*out` and `*text`
 * unchanged, and the caller has nothing to free. No call prints, exits, keeps its arguments, or
 * reads the command line or the environment (which the `filters` commands inherit). Threads that a
 * call starts end before it returns, and block all signals but those that a thread raises itself.
 *
 * If a struct has a field `size`, set it to sizeof the struct. A field that is 0 has its default.
 * Later versions only append fields and enum values (sgt_tokenize(3), COMPATIBILITY). */
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
 * The vocabulary gives the same ids as tiktoken's encode_ordinary and, for text without added
 * tokens, as Hugging Face's encode. Return SGT_EUSAGE for an invalid pattern, SGT_EFORMAT for an
 * invalid file.
 *
 * path: "gpt2" (built in); a file (tokenizer.json, merges.txt, vocab.json, NAME.tiktoken or
 * tekken.json); or a folder that holds such files (manual: VOCABULARIES).
 *
 * pattern: how text is split before merging:
 * - gpt2, cl100k, o200k, llama3, qwen2 or nanochat: the split rule with this name
 * - a PCRE2 pattern: its matches, and the text between them, are encoded separately
 * - NULL: the file's own pattern, else that of the known model with the same ranks, else GPT-2's */
int sgt_vocab_load(sgt_vocab **out, const char *path, const char *pattern, sgt_error *err);
void sgt_vocab_free(sgt_vocab *v); /* v may be NULL; free all encoders of v first */

uint32_t sgt_vocab_size(const sgt_vocab *v); /* number of ids (GPT-2: 50257); ids are below it */
size_t sgt_vocab_width(const sgt_vocab *v);  /* bytes per id: 2 up to 65,536 ids, else 4 */
uint32_t sgt_vocab_eot(const sgt_vocab *v);  /* end-of-text id, written before each document */
/* Return a hash of the tokens, the pattern and the merges, which identifies the vocabulary. */
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v);
/* Return "gpt2", or the last component of the path, cut to 15 bytes; valid as long as v. */
const char *sgt_vocab_name(const sgt_vocab *v);
/* Return token `id`, *n bytes that are valid as long as v, or NULL if there is no such token. */
const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n);

/* Store the vocabulary as Hugging Face's tokenizer.json in *text, a malloc'd string of *n bytes. */
int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err);
/* Write merges.txt, vocab.json and tokenizer.json into `folder`; create it if it is missing. */
int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err);

/* ---- text to ids and back ---- */
/* Create an encoder for v. v must outlive the encoder. An encoder caches encoded words in 13 MiB of
 * memory, or 30 MiB if ids are 4 bytes wide, so use it for many texts. */
int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err);
void sgt_encoder_free(sgt_encoder *e); /* NULL is allowed */

/* Encode the n bytes at `text` into `ids`, a buffer of ids_bytes bytes. Set *count to the number of
 * ids, which are sgt_vocab_width bytes each. If the buffer is too small for n ids, return
 * SGT_EUSAGE. The text may hold any bytes; those that are not UTF-8 become separate tokens. The
 * text is not normalized, and <|endoftext|> in it is ordinary text. Time is linear in n, except for
 * a PCRE2 pattern. If PCRE2 exceeds its backtracking limits, return SGT_EUNSUPPORTED. */
int sgt_encode(sgt_encoder *e, const void *text, size_t n, void *ids, size_t ids_bytes,
               size_t *count, sgt_error *err);

typedef struct sgt_text {
    const void *bytes;
    size_t n;
} sgt_text;
/* Encode `count` texts, one after another. ends[i] is the index after the last id of text i. */
int sgt_encode_texts(sgt_encoder *e, const sgt_text *texts, size_t count, void *ids,
                     size_t ids_bytes, size_t *ends, sgt_error *err);

/* Decode `count` ids to *text (*n bytes and a NUL, malloc'd). SGT_EFORMAT: an id is too large. */
int sgt_decode(const sgt_vocab *v, const void *ids, size_t count, char **text, size_t *n,
               sgt_error *err);

/* ---- complete corpora ---- */
typedef enum sgt_format {
    SGT_FORMAT_AUTO, /* choose by each file's name and first bytes (manual: --format) */
    SGT_FORMAT_TEXT, /* each file is one document */
    SGT_FORMAT_JSONL /* each line is a JSON object that holds a document (see `field`) */
} sgt_format;
typedef enum sgt_binary_files {
    SGT_BINARY_SKIP, /* skip files that are not text, and count them (manual: INPUTS) */
    SGT_BINARY_KEEP  /* read them like text */
} sgt_binary_files;
typedef enum sgt_invalid_utf8 {
    SGT_INVALID_KEEP,    /* keep the bytes and count them */
    SGT_INVALID_REPLACE, /* replace each ill-formed sequence with U+FFFD and count it */
    SGT_INVALID_FAIL     /* fail with SGT_EFORMAT; the error states the file and the offset */
} sgt_invalid_utf8;
typedef enum sgt_normalize {
    SGT_NORMALIZE_AS_VOCAB, /* normal form that the vocabulary file specifies (GPT-2: none) */
    SGT_NORMALIZE_NONE,
    SGT_NORMALIZE_NFC, /* Unicode's canonical composition */
    SGT_NORMALIZE_NFKC /* Unicode's compatibility composition (NFKC) */
} sgt_normalize;
typedef enum sgt_layout {
    SGT_LAYOUT_SGT,      /* sgt's shards, SPLIT_NNNNNN.bin and .idx, which sgt_loader.h reads */
    SGT_LAYOUT_MEGATRON, /* Megatron-LM's SPLIT_text_document.bin and .idx (manual: --shards) */
    SGT_LAYOUT_NANOGPT,  /* nanoGPT's SPLIT.bin */
    SGT_LAYOUT_NPY       /* OLMo-core's SPLIT.npy: only ids, no NumPy header */
} sgt_layout;

typedef struct sgt_tokenize_options {
    size_t size;
    /* what to read */
    const char *const *inputs; /* files, folders, "@LIST" (a file of paths), "-" (standard input) */
    size_t input_count;
    const char *const *filters; /* "EXT=COMMAND": for NAME.EXT, read the output of COMMAND */
    size_t filter_count;
    const char *field;       /* JSONL field or Parquet column; default "text"; "a.b" is nested */
    const char *keep_fields; /* fields to copy to sources.jsonl, such as "url,date" */
    sgt_format format;
    sgt_binary_files binary;
    int hidden;   /* 1: in folders, also read files and folders whose name begins with a dot */
    int skip_bad; /* 1: skip bad lines, bad rows and damaged ends of compressed files; 0: fail */
    /* how to turn text into ids */
    const char *vocab, *pattern; /* arguments of sgt_vocab_load; defaults: "gpt2" and NULL */
    sgt_normalize normalize;     /* Unicode normal form to convert text to before splitting */
    sgt_invalid_utf8 invalid_utf8;
    int special_eot; /* 1: <|endoftext|> in the text begins a document; 0: it is ordinary text */
    int dedup;       /* 1: skip each document whose text equals that of an earlier document */
    /* what to write */
    const char *out;       /* folder, created if missing */
    uint64_t shard_tokens; /* tokens per shard, below 2^31; default 10^8; only SGT_LAYOUT_SGT */
    double val_fraction;   /* fraction (0 to 1) of documents for validation (manual: --split) */
    uint64_t shuffle_seed; /* below 2^63 */
    int shuffle; /* 1: shuffle the documents of each split, with shuffle_seed as the seed */
    sgt_layout layout;
    /* how to run */
    int force;            /* 1: replace an `out` that is complete or used other options or inputs */
    int threads;          /* number of threads, at most 1,024; default: sgt_tokenize_threads() */
    uint32_t rank, ranks; /* index of this process, and number of processes that write `out` */
    struct sgt_ranks *joined; /* NULL, except in sgt's own programs */
    sgt_notice notice;        /* called with each notice (a one-line message, not an error) */
    const sgt_stop *stop;     /* stop request, polled at intervals; NULL: no stop is possible */
    /* called at intervals, by one thread at a time; bytes_total is 0 if it is unknown */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens);
    void *progress_ctx;
} sgt_tokenize_options;

typedef struct sgt_tokenize_result {
    size_t size;
    /* tokens in `out`, in all and by split; for sgt_vocab_train, `tokens` is the number of ids */
    uint64_t tokens, train_tokens, val_tokens;
    uint64_t shards, files, documents, bytes; /* bytes: size of the documents' text */
    uint64_t skipped, bad_lines; /* skipped non-text files; skipped bad lines and rows */
    uint64_t duplicates;         /* documents skipped by dedup */
    /* invalid_utf8: ill-formed sequences; lone_surrogates: those in JSONL, replaced with U+FFFD */
    uint64_t invalid_utf8, lone_surrogates;
    uint64_t eot_literals;     /* occurrences of <|endoftext|> that were encoded as ordinary text */
    uint64_t pieces, distinct; /* only sgt_vocab_train: numbers of all and of distinct pre-tokens */
    uint64_t bytes_read;       /* input bytes that this call read, without those of a resumed run */
    double seconds;            /* duration without waits for a process that was writing `out` */
    uint32_t waiting; /* unfinished parts of other ranks; if not 0, counts are this rank's */
    int already_done; /* 1: an earlier identical call completed `out`; this call wrote nothing */
} sgt_tokenize_result;

/* Tokenize the inputs into the folder `out`: shards, the documents' offsets, manifest.json,
 * sources.jsonl and tokenizer.json. The contents of these files do not depend on the number of
 * threads or ranks. If a run was stopped or killed, repeat the call to finish it; standard input is
 * then read again from its beginning. All inputs are checked before anything is written. If an
 * input changes before it has been read, the call fails. An `out` with other options, inputs or
 * files is refused unless `force` is set. An `out` that another run is writing is always refused.
 *
 * With several ranks, each process makes this call, at any time, and writes parts of the set. The
 * last to finish joins them, and the others set result->waiting. If one died, repeat its call.
 *
 * result and err may be NULL. SGT_EIO: a system call failed, or `out` would not fit on its disk
 * (with `force`, the call tries anyway). SGT_EFORMAT: an input or `out` is invalid. SGT_ESTOPPED: a
 * stop was requested. SGT_EUNSUPPORTED: a .zst file needs over 128 MiB of memory, or a Parquet file
 * has an encoding that sgt does not read. */
int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err);
int sgt_tokenize_threads(void); /* number of CPU cores that this process may use */

/* Train a vocabulary of `tokens` ids, 257 to 1,048,576, or fewer if no pair is left to merge. Id 0
 * is <|endoftext|>, ids 1 to 256 are the bytes, and the rest come from merges, which equal those of
 * Hugging Face's BpeTrainer on the same pre-tokens. The caller frees *vocab.
 *
 * Only these options are used: "what to read", "how to run", pattern, normalize, invalid_utf8,
 * special_eot and `out`, the folder for a later sgt_vocab_save. `out` must be empty unless `force`
 * is set, and must never hold an unfinished set of shards. Training takes 40 bytes of memory for
 * each byte of the distinct pre-tokens. If they exceed 2^32 bytes, return SGT_EUNSUPPORTED. */
int sgt_vocab_train(sgt_vocab **vocab, const sgt_tokenize_options *o, uint32_t tokens,
                    sgt_tokenize_result *result, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
