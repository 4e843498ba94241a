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

/* Load a vocabulary of at most 1,048,576 ids, and check all of it. The caller frees *out.
 *
 * path: tokenizer.json; merges.txt and vocab.json in one folder, or either alone; NAME.tiktoken;
 * tekken.json; a folder with such files; or "gpt2", which is built in (manual: VOCABULARIES). Ids
 * are those in the file, or the ranks, as in tiktoken. If there is only merges.txt, ids have
 * GPT-2's order: bytes, merges, end of text. A file of known ranks (cl100k, o200k, Llama 3 and 4,
 * Qwen) gets its model's pattern, special tokens, size and normal form; ids without a known special
 * token are named "<|unused_ID|>".
 *
 * pattern: how text is split before merging: a PCRE2 pattern, whose matches and the text between
 * them are encoded separately (pattern.h), or the name of a pattern: gpt2, cl100k, o200k, llama3,
 * qwen2, nanochat (split.h). NULL: the file's pattern, that of the known ranks, or GPT-2's.
 *
 * Return SGT_EUSAGE for a wrong pattern, SGT_EFORMAT for a wrong file. Any vocabulary that loads
 * gives the ids of tiktoken's encode_ordinary, and of Hugging Face's encode for text without added
 * tokens. */
int sgt_vocab_load(sgt_vocab **out, const char *path, const char *pattern, sgt_error *err);
void sgt_vocab_free(sgt_vocab *v); /* free its encoders before it; NULL is allowed */

uint32_t sgt_vocab_size(const sgt_vocab *v); /* all ids are below this number. GPT-2: 50257 */
/* bytes of an id: 2; 4 if there are more than 65,536 ids */
size_t sgt_vocab_width(const sgt_vocab *v);
uint32_t sgt_vocab_eot(const sgt_vocab *v); /* id that begins each document. GPT-2: 50256 */
/* XXH3-64 of the tokens, of the pattern, and of those merges that the ids do not imply. The seed is
 * 1 if the vocabulary uses tokens that no merges make, else 0 */
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v);
/* "gpt2", or the last component of `path`, cut to 15 bytes. The name and the bytes of tokens are
 * valid as long as v */
const char *sgt_vocab_name(const sgt_vocab *v);
/* Return the bytes of token `id`, and set *n to their number; return NULL if there is no such
 * id. */
const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n);

/* Write Hugging Face's tokenizer.json into *text, malloc'd, of *n bytes. The caller frees *text. */
int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err);
/* Write merges.txt, vocab.json and tokenizer.json into `folder`, which is created if it is
 * missing. */
int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err);

/* ---- text to ids and back ---- */
/* Create an encoder for v, which must outlive it. It caches the words that it has met, in 13 MiB,
 * or 30 MiB if ids have 4 bytes. So one encoder for a whole corpus is faster than one per text. */
int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err);
void sgt_encoder_free(sgt_encoder *e); /* NULL is allowed */

/* Encode text[n], which may be any bytes, into `ids`, a buffer of ids_bytes bytes, and set *count
 * to the number of ids, of sgt_vocab_width bytes each. A text of n bytes can have n ids; without
 * room for that many, the call fails with SGT_EUSAGE. Bytes that are not UTF-8 become tokens of
 * their own (split.h). Nothing is normalized, and <|endoftext|> is ordinary text. The time is
 * linear in n. A pattern without a name may take longer; if it backtracks beyond PCRE2's limits,
 * the call fails with SGT_EUNSUPPORTED. */
int sgt_encode(sgt_encoder *e, const void *text, size_t n, void *ids, size_t ids_bytes,
               size_t *count, sgt_error *err);

typedef struct sgt_text {
    const void *bytes;
    size_t n; /* number of bytes */
} sgt_text;
/* Encode `count` texts as sgt_encode does, one after the other. The ids of text i end before index
 * ends[i]. */
int sgt_encode_texts(sgt_encoder *e, const sgt_text *texts, size_t count, void *ids,
                     size_t ids_bytes, size_t *ends, sgt_error *err);

/* Write the bytes of ids[count], followed by a NUL, into *text, malloc'd, and set *n to their
 * number without the NUL. The caller frees *text. SGT_EFORMAT names an id that is out of range. */
int sgt_decode(const sgt_vocab *v, const void *ids, size_t count, char **text, size_t *n,
               sgt_error *err);

/* ---- whole corpora: what sgt-tokenize does ---- */
typedef enum sgt_format {
    SGT_FORMAT_AUTO, /* text, JSONL or Parquet, by name and first bytes (manual: --format) */
    SGT_FORMAT_TEXT, /* each file is one document */
    SGT_FORMAT_JSONL /* each line of each file is an object, and its member `field` is a document */
} sgt_format;
typedef enum sgt_binary_files {
    SGT_BINARY_SKIP, /* leave out and count files that are not text (manual: INPUTS) */
    SGT_BINARY_KEEP  /* read them like text */
} sgt_binary_files;
typedef enum sgt_invalid_utf8 {
    SGT_INVALID_KEEP,    /* keep the bytes and count them */
    SGT_INVALID_REPLACE, /* replace each maximal ill-formed part by U+FFFD, and count these */
    SGT_INVALID_FAIL     /* fail with SGT_EFORMAT, which names the file and the offset */
} sgt_invalid_utf8;
typedef enum sgt_normalize {
    SGT_NORMALIZE_AS_VOCAB, /* the form that the vocabulary's file requires; none for GPT-2 */
    SGT_NORMALIZE_NONE,
    SGT_NORMALIZE_NFC, /* Unicode's canonical composition */
    SGT_NORMALIZE_NFKC /* Unicode's compatibility composition */
} sgt_normalize;
typedef enum sgt_layout {
    SGT_LAYOUT_SGT,      /* SPLIT_NNNNNN.bin and .idx: shards that sgt_loader.h reads */
    SGT_LAYOUT_MEGATRON, /* Megatron-LM's SPLIT_text_document.bin and .idx (manual: --shards) */
    SGT_LAYOUT_NANOGPT,  /* nanoGPT's SPLIT.bin */
    SGT_LAYOUT_NPY       /* OLMo-core's SPLIT.npy, which has no NumPy header */
} sgt_layout;

typedef struct sgt_tokenize_options {
    size_t size;
    /* what to read */
    const char *const *inputs; /* files, folders, "@LIST" (a file of paths), "-" (standard input) */
    size_t input_count;
    /* "EXT=COMMAND": read files with this ending through a command (filter.h) */
    const char *const *filters;
    size_t filter_count;
    /* field of JSONL or column of Parquet; default "text"; "a.b" is nested */
    const char *field;
    const char *keep_fields; /* fields that sources.jsonl keeps of each document: "url,date" */
    sgt_format format;
    sgt_binary_files binary;
    int hidden; /* also read hidden files: names below a folder that begin with a dot */
    /* leave out bad lines, bad rows and damaged ends of packed files; default: fail */
    int skip_bad;
    /* how to turn text into ids */
    const char *vocab, *pattern; /* arguments of sgt_vocab_load; default "gpt2", NULL */
    sgt_normalize normalize;     /* normal form of each document's text, before it is split */
    sgt_invalid_utf8 invalid_utf8;
    int special_eot; /* 1: each literal <|endoftext|> begins a document; 0: it is text */
    int dedup;       /* leave out documents whose text occurred earlier (manual: --dedup) */
    /* what to write */
    const char *out;       /* folder, created if missing */
    uint64_t shard_tokens; /* tokens of a shard, below 2^31; default 10^8; 0 for other layouts */
    double val_fraction;   /* fraction of documents for the val split, 0 to 1 (manual: --split) */
    uint64_t shuffle_seed; /* below 2^63 */
    int shuffle;           /* write each split's documents in an order that shuffle_seed decides */
    sgt_layout layout;
    /* how to run */
    int force;            /* replace an OUT that is complete, or has other options or inputs */
    int threads;          /* at most 1,024; default: sgt_tokenize_threads() */
    uint32_t rank, ranks; /* number of this process, from 0; number of all that fill OUT together */
    /* connections among the ranks, for sgt's own programs only; else NULL */
    struct sgt_ranks *joined;
    sgt_notice notice;    /* called with each notice, one line each; a notice is not a failure */
    const sgt_stop *stop; /* checked at intervals; NULL: the call cannot be stopped */
    /* called at intervals, by one thread at a time; bytes_total is 0 if it is unknown */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens);
    void *progress_ctx;
} sgt_tokenize_options;

typedef struct sgt_tokenize_result {
    size_t size;
    /* in OUT and its splits; sgt_vocab_train: ids of the vocabulary */
    uint64_t tokens, train_tokens, val_tokens;
    /* shards written; files and documents read; bytes of the documents' text */
    uint64_t shards, files, documents, bytes;
    /* left out: files that are not text; bad lines (skip_bad) */
    uint64_t skipped, bad_lines;
    uint64_t duplicates; /* documents left out by dedup */
    /* ill-formed parts; lone surrogates in JSONL (U+FFFD) */
    uint64_t invalid_utf8, lone_surrogates;
    uint64_t eot_literals;     /* literal ends of text that were encoded as text */
    uint64_t pieces, distinct; /* sgt_vocab_train: number of pre-tokens, and of distinct ones */
    uint64_t bytes_read;       /* by this call only: fewer if a run was resumed */
    double seconds;            /* duration of this call, without waits for another owner of OUT */
    /* number of parts that other ranks have not completed; if not 0, all counts are this rank's */
    uint32_t waiting;
    /* 1: OUT was complete already, made by the same call: nothing was written */
    int already_done;
} sgt_tokenize_result;

/* Tokenize the inputs into OUT: shards, the documents' offsets, manifest.json, sources.jsonl and
 * tokenizer.json. The bytes written never depend on the number of threads or ranks. If a run was
 * stopped or killed, the same call finishes it (standard input starts over). Calls with different
 * OUTs may run at the same time. All inputs are checked before anything is written, and an input
 * that changes before it has been read is an error. An OUT that has other options, inputs or files
 * is refused unless `force` is set. An OUT that another run is writing is always refused.
 *
 * With ranks, each process makes this call, at any time. The last one to finish joins the parts;
 * the others return with `waiting` set. If a process has died, make its call again.
 *
 * result and err may be NULL. Errors: SGT_EIO: a system call failed, or OUT would not fit on its
 * disk (`force` tries anyway). SGT_EFORMAT: something is wrong with an input or with OUT.
 * SGT_EUNSUPPORTED: a .zst file needs over 128 MiB of memory to unpack, or an encoding of Parquet
 * is not supported. SGT_ESTOPPED: `stop` was requested. */
int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err);
/* number of cores available to the process, within its container's quota */
int sgt_tokenize_threads(void);

/* Train a vocabulary of `tokens` ids, 257 to 1,048,576 (fewer if no pair is left to merge): id 0 is
 * <|endoftext|>, 1 to 256 are the bytes, and the rest are the merges in order. They equal those of
 * Hugging Face's BpeTrainer on the same pre-tokens (merges.h). The caller frees *vocab. Of *o,
 * these are used: what to read, pattern, normalize, invalid_utf8, special_eot, how to run, and
 * `out`, the folder for a later sgt_vocab_save: it must be empty unless `force` is set, and must
 * not hold an unfinished set. Memory: 40 bytes for each byte of the distinct pre-tokens. They may
 * have 2^32 bytes in all; more is SGT_EUNSUPPORTED. */
int sgt_vocab_train(sgt_vocab **vocab, const sgt_tokenize_options *o, uint32_t tokens,
                    sgt_tokenize_result *result, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
