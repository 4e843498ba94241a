/* sgt_tokenize.h: turn text into token ids and back, and folders of text into shards on disk, with
 * GPT-2's vocabulary or another byte-level BPE. The library, libsgt-tokenize, links alone, and can
 * be called from C, C++ and any FFI. "manual" means sgt-tokenize(1), which tells more of files.
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
 * A vocabulary is immutable, and any number of threads may share it. An encoder belongs to one
 * thread at a time. A call returns 0 or a negative SGT_E*; if it fails, `*out` or `*text` is as it
 * was, and the caller has nothing to free. Nothing here prints, exits, or reads arguments or the
 * environment; only the commands of `filters` inherit it. Arguments are not kept after a call. Its
 * threads end before it does, and block all signals but those that a thread raises itself.
 *
 * Later versions may append fields to structs that begin with `size`, and values to enums; nothing
 * else changes. The caller sets size to the struct's sizeof. Fields that are 0, or that an older
 * program lacks, have their defaults; a field that an older library does not know must be 0. */
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

/* Load a vocabulary of at most 1,048,576 ids, all of it checked. The caller frees *out.
 * path: tokenizer.json, merges.txt with vocab.json beside it or either alone, NAME.tiktoken,
 * tekken.json, a folder with such files, or "gpt2", which is built in (manual: VOCABULARIES). Ids
 * are the file's, or ranks, as in tiktoken; merges.txt alone gets GPT-2's order: bytes, merges, end
 * of text. Known ranks (cl100k, o200k, Llama 3 and 4, Qwen) get their models' pattern and special
 * tokens, size and normal form; ids of special tokens without a known name are "<|unused_ID|>".
 * pattern: what splits text before merging: a PCRE2 pattern, whose matches and the text between
 * them are encoded separately (pattern.h), or the name of one: gpt2, cl100k, o200k, llama3, qwen2,
 * nanochat (split.h). NULL: the file's, that of known ranks, or GPT-2's.
 * SGT_EUSAGE: a wrong pattern. SGT_EFORMAT: a wrong file. The ids of any file that loads are those
 * of tiktoken's encode_ordinary, and of Hugging Face's encode of text without added tokens. */
int sgt_vocab_load(sgt_vocab **out, const char *path, const char *pattern, sgt_error *err);
void sgt_vocab_free(sgt_vocab *v); /* NULL is allowed; free the encoders first */

uint32_t sgt_vocab_size(const sgt_vocab *v); /* number of ids; all are below it. GPT-2: 50257 */
size_t sgt_vocab_width(const sgt_vocab *v);  /* bytes of an id: 2, or 4 if there are over 65,536 */
uint32_t sgt_vocab_eot(const sgt_vocab *v);  /* id that begins each document. GPT-2: 50256 */
/* XXH3-64 of the tokens, the pattern, and those merges that the ids do not imply; its seed is 1 if
 * tokens that no merges make are used, else 0 */
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v);
/* "gpt2" or the last component of `path`, cut to 15 bytes; it and tokens' bytes live as long as v */
const char *sgt_vocab_name(const sgt_vocab *v);
/* Return the bytes of token `id` and their number in *n, or NULL if there is no such id. */
const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n);

/* Write Hugging Face's tokenizer.json into malloc'd *text of *n bytes, which the caller frees. */
int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err);
/* Write merges.txt, vocab.json and tokenizer.json into `folder`, which is made if missing. */
int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err);

/* ---- text to ids and back ---- */
/* Create an encoder for v, which must outlive it. It caches the words that it has met, in 13
 * MiB, or 30 with ids of 4 bytes, so one for a whole corpus is faster than one per text. */
int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err);
void sgt_encoder_free(sgt_encoder *e); /* NULL is allowed */

/* Encode text[n], which may be any bytes, into ids[ids_bytes], and set *count to the number of ids,
 * of sgt_vocab_width bytes each. Without room for n ids, as many as a text can have, the call fails
 * with SGT_EUSAGE. Bytes that are not UTF-8 become tokens of their own (split.h). Nothing is
 * normalized, and <|endoftext|> is text. The time is linear in n. A pattern without a name may take
 * longer, and SGT_EUNSUPPORTED says that it backtracks beyond PCRE2's limits. */
int sgt_encode(sgt_encoder *e, const void *text, size_t n, void *ids, size_t ids_bytes,
               size_t *count, sgt_error *err);

typedef struct sgt_text {
    const void *bytes;
    size_t n; /* number of bytes */
} sgt_text;
/* Encode `count` texts as sgt_encode does, one behind the other: text i ends before id ends[i]. */
int sgt_encode_texts(sgt_encoder *e, const sgt_text *texts, size_t count, void *ids,
                     size_t ids_bytes, size_t *ends, sgt_error *err);

/* Write the bytes of ids[count] and a NUL into malloc'd *text, which the caller frees; *n bytes are
 * before the NUL. SGT_EFORMAT names an id that is out of range. */
int sgt_decode(const sgt_vocab *v, const void *ids, size_t count, char **text, size_t *n,
               sgt_error *err);

/* ---- whole corpora: what sgt-tokenize does ---- */
typedef enum sgt_format {
    SGT_FORMAT_AUTO, /* text, JSONL or Parquet, by name and first bytes (manual: --format) */
    SGT_FORMAT_TEXT, /* each file is one document */
    SGT_FORMAT_JSONL /* each line of each file is an object, whose `field` is a document */
} sgt_format;
typedef enum sgt_binary_files {
    SGT_BINARY_SKIP, /* leave out and count files that are not text (manual: INPUTS) */
    SGT_BINARY_KEEP  /* read them like text */
} sgt_binary_files;
typedef enum sgt_invalid_utf8 {
    SGT_INVALID_KEEP,    /* keep the bytes and count them */
    SGT_INVALID_REPLACE, /* replace each maximal ill-formed part by U+FFFD, and count it */
    SGT_INVALID_FAIL     /* fail with SGT_EFORMAT, which names the file and the offset */
} sgt_invalid_utf8;
typedef enum sgt_normalize {
    SGT_NORMALIZE_AS_VOCAB, /* the form that the vocabulary's file names; none for GPT-2 */
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
    /* what is read */
    const char *const *inputs; /* files, folders, "@LIST" (a file of paths), "-" (standard input) */
    size_t input_count;
    const char *const *filters; /* "EXT=COMMAND": read such files through a command (filter.h) */
    size_t filter_count;
    const char *field;       /* JSONL's field, Parquet's column; default "text"; "a.b" is nested */
    const char *keep_fields; /* those that sources.jsonl keeps of each document: "url,date" */
    sgt_format format;
    sgt_binary_files binary;
    int hidden;   /* read names that begin with a dot, below a folder too */
    int skip_bad; /* leave out bad lines, rows and ends of packed files; default: fail */
    /* how it becomes ids */
    const char *vocab, *pattern; /* for sgt_vocab_load; default "gpt2", NULL */
    sgt_normalize normalize;     /* of each document's text, before it is split */
    sgt_invalid_utf8 invalid_utf8;
    int special_eot; /* each literal <|endoftext|> begins a document; default: it is text */
    int dedup;       /* leave out documents whose text occurred earlier (dedup.h) */
    /* what is written */
    const char *out;       /* a folder, made if missing */
    uint64_t shard_tokens; /* ids of a shard, below 2^31; default 10^8; other layouts: 0 */
    double val_fraction;   /* of documents in the val split, 0 to 1 (manual: --split) */
    uint64_t shuffle_seed; /* below 2^63 */
    int shuffle;           /* write each split's documents in the order of shuffle_seed (order.h) */
    sgt_layout layout;
    /* how it runs */
    int force;            /* replace an OUT that is complete, or of other options or inputs */
    int threads;          /* at most 1,024; default: sgt_tokenize_threads() */
    uint32_t rank, ranks; /* number of this process, from 0, and of all that fill OUT together */
    struct sgt_ranks *joined; /* the connections of sgt's own programs among these; else NULL */
    sgt_notice notice;        /* receives remarks that are not failures, one line each */
    const sgt_stop *stop;     /* checked now and then; NULL: the call cannot be stopped */
    /* called now and then, by one thread at a time; bytes_total is 0 if it is not known */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens);
    void *progress_ctx;
} sgt_tokenize_options;

typedef struct sgt_tokenize_result {
    size_t size;
    uint64_t tokens, train_tokens, val_tokens; /* ids in OUT and its splits; or of the vocabulary */
    uint64_t shards, files, documents, bytes;  /* written; read; bytes of the documents' text */
    uint64_t skipped, bad_lines;               /* left out: files that are not text; by skip_bad */
    uint64_t duplicates;                       /* documents left out by dedup */
    uint64_t invalid_utf8, lone_surrogates;    /* ill-formed parts; half pairs in JSONL (U+FFFD) */
    uint64_t eot_literals;                     /* literal ends of text that were taken for text */
    uint64_t pieces, distinct; /* sgt_vocab_train: pre-tokens of the text, and different ones */
    uint64_t bytes_read;       /* by this call: fewer if a run was resumed */
    double seconds;            /* duration of this call, less waits for an owner of OUT */
    uint32_t waiting;          /* parts that other ranks still owe: all counts are this rank's */
    int already_done;          /* the same call had completed OUT before: nothing was written */
} sgt_tokenize_result;

/* Tokenize the inputs into OUT: shards, the documents' offsets, manifest.json, sources.jsonl and
 * tokenizer.json. The bytes never depend on the number of threads or ranks. After a run was stopped
 * or killed, the same call finishes it (standard input starts over). Calls with different OUTs may
 * run at once. All inputs are checked before anything is written, and one that changes until it is
 * read is an error. An OUT that has other options, inputs or files is refused unless force is set,
 * and one that another run is writing is refused.
 *
 * With ranks, each process makes this call, at any time. The last one to finish joins the parts, and
 * the others return with `waiting` set. After one has died, its call is made again.
 *
 * result and err may be NULL. SGT_EIO: a system call, or OUT would not fit on its disk (force
 * tries). SGT_EFORMAT: an input, or OUT. SGT_EUNSUPPORTED: .zst that needs over 128 MiB to unpack,
 * or an encoding of Parquet. SGT_ESTOPPED: `stop` was requested. */
int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err);
int sgt_tokenize_threads(void); /* one for each core, or CPU of a container's quota, at hand */

/* Train a vocabulary of `tokens` ids, 257 to 1,048,576 (fewer if no pair is left to merge): id 0 is
 * <|endoftext|>, 1 to 256 are the bytes, then one for each merge. They are those of Hugging Face's
 * BpeTrainer on the same pre-tokens (merges.h). The caller frees *vocab. Of *o, what is read,
 * pattern, normalize, invalid_utf8, special_eot and how it runs count; so does `out`, into which
 * sgt_vocab_save will write: it must be empty unless force is set, and hold no unfinished set. Takes 40 bytes of memory for
 * each byte of distinct pre-tokens, of which there may be 2^32 (else SGT_EUNSUPPORTED). */
int sgt_vocab_train(sgt_vocab **vocab, const sgt_tokenize_options *o, uint32_t tokens,
                    sgt_tokenize_result *result, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
