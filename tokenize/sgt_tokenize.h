/* sgt_tokenize.h: turn text into token ids and back, and folders of text into shards on disk. The
 * vocabulary is GPT-2's or your own. The library (libsgt-tokenize) links alone, from C, C++ and any
 * FFI.
 *
 *     sgt_error err;
 *     sgt_vocab *v;
 *     sgt_encoder *e;
 *     if (sgt_vocab_gpt2(&v, &err) < 0 || sgt_encoder_new(&e, v, &err) < 0)
 *         fprintf(stderr, "%s\n", err.text), exit(1);
 *     size_t count, room = n * sgt_vocab_width(v);   // there are never more ids than bytes
 *     uint16_t *ids = malloc(room);                 // as tiktoken's gpt2.encode_ordinary(text):
 *     if (sgt_encode(e, text, n, ids, room, &count, &err) < 0) ...;
 *     sgt_encoder_free(e);
 *     sgt_vocab_free(v);                           // after its encoders
 *
 * To do what the program sgt-tokenize does (a field that is zero has its default):
 *
 *     const char *inputs[] = {"corpus"};
 *     sgt_tokenize_options o = {.inputs = inputs, .input_count = 1, .out = "out"};
 *     sgt_tokenize_result r;
 *     if (sgt_tokenize(&o, &r, &err) < 0) ...;     // r.tokens ids in out/train_000000.bin ...
 *
 * A vocabulary is immutable, and any number of threads may share it. An encoder belongs to one
 * thread at a time. A call that fails leaves `*out` or `*text` as it was, and the caller has
 * nothing to free. Nothing here prints, exits, or reads arguments or the environment; only the
 * commands of `filters` inherit it. Arguments are read during the call and not kept. Threads that a
 * call starts end before it returns, and block all signals except those that a thread raises
 * itself. tokenize/examples has whole programs. */
#ifndef SGT_TOKENIZE_H
#define SGT_TOKENIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabularies ---- */

typedef struct sgt_vocab sgt_vocab;
typedef struct sgt_encoder sgt_encoder;
typedef enum sgt_normalize {
    SGT_NORMALIZE_AS_VOCAB, /* the form that the vocabulary's file names; none for GPT-2 */
    SGT_NORMALIZE_NONE,     /* none */
    SGT_NORMALIZE_NFC,      /* Unicode's canonical composition */
    SGT_NORMALIZE_NFKC      /* Unicode's compatibility composition */
} sgt_normalize;

/* Return the built-in GPT-2 vocabulary in *out: 50,257 tokens, the last of which is <|endoftext|>.
 * The caller frees it. Return 0 or SGT_ENOMEM. */
int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err);

/* Load a byte-level BPE vocabulary of at most 1,048,576 ids from `path`, checking all of its text.
 * The caller frees *out. `path` is one of: tokenizer.json; merges.txt (or vocab.bpe) with
 * vocab.json (or encoder.json) beside it, or either alone; NAME.tiktoken; Mistral's tekken.json; or
 * a folder with one of the first three, of which the first that exists is read. "gpt2" is the
 * built-in vocabulary.
 *
 * Ids are those of vocab.json or tokenizer.json. merges.txt alone gets GPT-2's order: bytes,
 * merges, end of text. Without merges, ids are ranks, as in tiktoken. The end of text is the first
 * of these tokens that exists: <|endoftext|>, <|end_of_text|>, </s>, <eos>, <|eos|>. A .tiktoken
 * file names none, so the end of text is the one id that the file leaves out, or else the next id.
 * The ranks of cl100k, o200k, Llama 3 and 4, and Qwen are known: these have their models' pattern,
 * special tokens, size and normal form, whatever the file's name. Ids of special tokens without a
 * known name are "<|unused_ID|>".
 *
 * rule: a PCRE2 pattern; its matches and the text between them are encoded separately (pattern.h).
 * Or the name of one: gpt2, cl100k, o200k, llama3, qwen2, nanochat. These, by name or text, are
 * split by faster code, which gives the same pieces (split.h). NULL: the pattern in tokenizer.json
 * or of known ranks, or GPT-2's. A pattern in tokenizer.json is recognized by its text: the named
 * ones, Mistral's (Tekken), and any in a file that sgt wrote. Any other is SGT_EFORMAT. A merge
 * that is listed twice counts at its last place. Truncation and padding are ignored, because
 * training data must not have them.
 *
 * Return 0; SGT_EUSAGE for a wrong pattern or SGT_EFORMAT for a wrong file, both saying where; or
 * SGT_EIO for a file that cannot be read. For every file that loads, sgt_encode gives the ids of
 * tiktoken's encode_ordinary and of Hugging Face's encode of text without added tokens. */
int sgt_vocab_load(sgt_vocab **out, const char *path, const char *rule, sgt_error *err);

void sgt_vocab_free(sgt_vocab *v); /* NULL is allowed; free the encoders first */
/* Return the number of ids; every id is below it. GPT-2: 50257. */
uint32_t sgt_vocab_size(const sgt_vocab *v);
/* Return the bytes of an id: 2 (uint16_t), or 4 (uint32_t) if there are more than 65,536 ids. */
size_t sgt_vocab_width(const sgt_vocab *v);
/* Return the id that begins each document of a shard. GPT-2: 50256. */
uint32_t sgt_vocab_eot(const sgt_vocab *v);
/* Return the XXH3-64 of the tokens, the rule, and those merges that the ids do not imply; its seed is
 * 1 if tokens that no merges make are used, else 0. */
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v);
/* Return "gpt2" or the last component of `path`; the string lives as long as v. */
const char *sgt_vocab_name(const sgt_vocab *v);

/* Return the bytes of token `id` and their number in *n; they live as long as v. Return NULL if the
 * vocabulary does not have `id`. */
const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n);

/* Write the whole vocabulary as a Hugging Face tokenizer.json into malloc'd *text of *n bytes,
 * which the caller frees. Return 0 or SGT_ENOMEM. */
int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err);

/* Write merges.txt, vocab.json and tokenizer.json into `folder`, which is made if missing. Each
 * file appears only when it is complete. Return 0, SGT_ENOMEM, or SGT_EIO, which names the file. */
int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err);

/* ---- text to ids and back ---- */

/* Create an encoder for v, which must outlive it. The encoder caches the words it has met (13 MiB),
 * so one encoder for a whole corpus is faster than one per text. Return 0, SGT_ENOMEM, or
 * SGT_EUSAGE for a rule that PCRE2 refuses. */
int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err);
void sgt_encoder_free(sgt_encoder *e); /* NULL is allowed */

/* Encode the n bytes of `text`, which may be any bytes, into `ids`, a buffer of ids_bytes bytes, and
 * set *count to the number of ids, of sgt_vocab_width bytes each. There are never more ids than
 * bytes: a buffer with room for fewer than n ids is SGT_EUSAGE, whatever the text. Bytes that are
 * not UTF-8 become tokens of their own (split.h says how they split). Nothing is normalized, and a
 * <|endoftext|> in the text is plain text. The time is linear in n for any text. A pattern that has
 * no name may take longer, and may fail: SGT_EUNSUPPORTED if it backtracks beyond PCRE2's limits, or
 * SGT_ENOMEM. Return 0 or such a code; after a failure `ids` and *count are undefined. */
int sgt_encode(sgt_encoder *e, const void *text, size_t n, void *ids, size_t ids_bytes,
               size_t *count, sgt_error *err);

/* A text for sgt_encode_texts: `n` bytes, as sgt_encode takes them. */
typedef struct sgt_text {
    const void *bytes;
    size_t n;
} sgt_text;

/* Encode `count` texts in one call: the ids of text i are ids[ends[i - 1]] (the first text's:
 * ids[0]) up to, but not including, ids[ends[i]]. Room for as many ids as the texts have bytes is
 * enough. Otherwise as sgt_encode. */
int sgt_encode_texts(sgt_encoder *e, const sgt_text *texts, size_t count, void *ids,
                     size_t ids_bytes, size_t *ends, sgt_error *err);

/* Write the bytes of ids[count], of sgt_vocab_width bytes each, into malloc'd *text of *n bytes,
 * followed by a NUL; the caller frees it. Return 0, SGT_ENOMEM, or SGT_EFORMAT, which names an id
 * that is out of range. Any number of threads may call this at once. */
int sgt_decode(const sgt_vocab *v, const void *ids, size_t count, char **text, size_t *n,
               sgt_error *err);

/* ---- whole corpora: what sgt-tokenize does ---- */

typedef enum sgt_format {
    /* .jsonl and .ndjson are JSONL, also with .gz or .zst after them; .parquet is Parquet, each row
     * of whose column `field` is a document. A file of any other name is JSONL, too, if its first
     * two lines are objects with such a field (a notice says so); gzip, zstd and Parquet are told by
     * their magic numbers. All other files are text. The first 16 MiB decide (corpus.h) */
    SGT_FORMAT_AUTO,
    SGT_FORMAT_TEXT, /* each file is one document of text */
    SGT_FORMAT_JSONL /* each line of each file is an object, and one of its fields is a document */
} sgt_format;

typedef enum sgt_invalid_utf8 {
    SGT_INVALID_KEEP,    /* keep the bytes and count them */
    SGT_INVALID_REPLACE, /* replace each maximal ill-formed part by U+FFFD, and count it */
    SGT_INVALID_FAIL     /* fail with SGT_EFORMAT, which names the file and the offset */
} sgt_invalid_utf8;

/* What to do with files that are not text. Such a file begins with a known magic number (PDF, ELF,
 * PNG, JPEG, ZIP, tar, WARC, Parquet, and others) or the byte order mark of UTF-16 or UTF-32. Or its
 * first 64 KiB are UTF-16 or UTF-32 without a mark, or hold both a NUL byte and bytes that are not
 * UTF-8. With SGT_FORMAT_AUTO, a JSON array of objects with `field` is no text either. */
typedef enum sgt_binary_files {
    /* skip; but keep when finishing an OUT that was begun before this option existed */
    SGT_BINARY_DEFAULT,
    /* leave out with a notice, and count; an INPUT itself fails with SGT_EFORMAT */
    SGT_BINARY_SKIP,
    SGT_BINARY_KEEP /* read like text */
} sgt_binary_files;

/* What the files of OUT look like. Those of other trainers have one file for a split, of ids
 * without a header, in which the end-of-text id follows each document instead of preceding it. */
typedef enum sgt_layout {
    SGT_LAYOUT_SGT,      /* SPLIT_NNNNNN.bin and .idx: shards that sgt_loader.h reads */
    SGT_LAYOUT_MEGATRON, /* Megatron-LM's SPLIT_text_document.bin, and .idx with its documents */
    SGT_LAYOUT_NANOGPT,  /* nanoGPT's SPLIT.bin */
    SGT_LAYOUT_NPY       /* OLMo-core's SPLIT.npy, which has no NumPy header */
} sgt_layout;

typedef struct sgt_tokenize_options {
    /* files, folders, "@LIST" (a file of paths, which end in newlines or NULs), or "-" for
     * standard input */
    const char *const *inputs;
    size_t input_count;
    const char *out;   /* output folder, made if missing */
    const char *vocab; /* path or name for sgt_vocab_load; NULL: GPT-2's */
    /* split pattern for sgt_vocab_load. If it has no name there, documents are kept whole in
     * memory, not cut */
    const char *rule;
    /* normal form of each document's text, applied before the split; GPT-2 uses none */
    sgt_normalize normalize;
    /* fraction of documents in the val split, chosen by a hash of path and position; 0: none. Of
     * two or more text files, at least one goes to val, unless special_eot is set: the file with the
     * smallest hash. Unless it is 1, one document stays in train, or sgt_tokenize fails */
    double val_fraction;
    uint64_t shard_tokens; /* tokens per shard; default 100,000,000; at most 2,147,483,647 */
    int threads;           /* at most 1,024; default: sgt_tokenize_threads() */
    sgt_format format;     /* what a document is in the input files */
    const char *field;     /* field of a JSONL object: "text", or nested, "a.b"; NULL: "text" */
    /* "EXT=COMMAND": read files of this ending through the command's output (filter.h) */
    const char *const *filters;
    size_t filter_count;
    /* skip and count lines of JSONL and rows of Parquet without such a string, rows in damaged
     * pages, and what follows a damaged place of a .gz or .zst file; default: fail */
    int skip_bad;
    /* each literal <|endoftext|> in the text begins a document, with the end-of-text id; default: it
     * is text */
    int special_eot;
    sgt_invalid_utf8 invalid_utf8; /* what to do with bytes that are not UTF-8 */
    /* write the documents of each split in the order that shuffle_seed decides (order.h) */
    int shuffle;
    uint64_t shuffle_seed; /* seed of that order, below 2^63 */
    /* leave out documents whose text occurred earlier (dedup.h) */
    int dedup;
    /* processes that fill OUT together (see sgt_tokenize); NULL: only this one */
    sgt_ranks *ranks;
    /* replace an OUT that is complete, or that was made with other options or from other inputs */
    int force;
    sgt_notice notice;    /* receives remarks that are not failures, one line each */
    const sgt_stop *stop; /* checked now and then; NULL: the call cannot be stopped */
    /* Called now and then, by one thread at a time: bytes of the inputs done, bytes in all (0:
     * unknown), and tokens. */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens);
    void *progress_ctx;
    sgt_binary_files binary; /* what to do with files that are not text */
    /* read names that begin with a dot, below a folder too; default: skip them */
    int hidden;
    /* fields of JSONL, or columns of Parquet, that sources.jsonl keeps of each document: names with
     * commas between them, "url,date"; NULL: none */
    const char *keep_fields;
    sgt_layout layout; /* files of OUT; not SGT_LAYOUT_SGT: shard_tokens must be 0 */
} sgt_tokenize_options;

typedef struct sgt_tokenize_result {
    /* bytes: bytes of the documents' text */
    uint64_t tokens, documents, bytes, files, invalid_utf8, shards;
    /* lines, rows and ends of packed files left out by `skip_bad`; and what follows the last member of
     * a gzip file, as one */
    uint64_t bad_lines;
    uint64_t duplicates; /* documents left out by `dedup` */
    /* surrogates (\uD800 to \uDFFF) in JSONL that are not part of a pair, each replaced by
     * U+FFFD */
    uint64_t lone_surrogates;
    uint64_t train_tokens, val_tokens; /* tokens of each split */
    /* Bytes that this call read (if ranks are connected: that all ranks read). Fewer than `bytes`
     * if the call resumed a run. */
    uint64_t bytes_read;
    /* parts of other ranks that are not complete yet; if not 0, the other numbers count this rank's
     * part only */
    uint32_t waiting;
    int already_done; /* the same command had completed OUT before: nothing was written */
    double seconds;   /* duration of this call */
    uint64_t skipped; /* files left out because they are not text */
    /* literal ends of text, such as <|endoftext|>, that were tokenized as text (special_eot) */
    uint64_t eot_literals;
} sgt_tokenize_result;

/* Tokenize the inputs into OUT: shards in the format that sgt_loader.h reads, the documents'
 * offsets, manifest.json, sources.jsonl and tokenizer.json. The output never depends on the number
 * of threads. After a run was killed, the same call finishes it, and the bytes are those of an
 * undisturbed run. Any number of calls may run at once, each with its own OUT. result and err may
 * be NULL.
 *
 * All inputs are checked before anything is written. Folders are walked in byte order of the path,
 * including the targets of symbolic links. Names that begin with a dot, and _SUCCESS, _metadata and
 * _common_metadata, are skipped unless `hidden` is set; `binary` says what happens to files that
 * are not text. Names may hold any bytes. These are errors, and name the path: a missing or
 * unreadable path; a folder without a file; a link that leads nowhere, or back to a folder that
 * contains it; an INPUT that is OUT or lies in it (an OUT below an INPUT is skipped); a file whose
 * size or time stamp changes between listing and the end of reading. An OUT with other options,
 * or from inputs of other paths or bytes, is refused and left as it is.
 * So are an OUT that another run is writing and a folder that holds anything else. `force` replaces
 * them, but never one that another run is writing.
 *
 * With another `layout`, a set of shards is made in OUT/.work first and then rewritten, so the disk
 * holds the tokens twice meanwhile. OUT gets the manifest and tokenizer.json too.
 *
 * With ranks, each process makes the same call with its own rank, and all of them see the same
 * inputs and OUT. A rank makes its part under OUT/.work, and OUT gets the same bytes as from one
 * process. If the ranks are not connected (ranks->sum is NULL; rank and size are enough), the last
 * rank to finish joins the parts, and the others return with `waiting` set. If they are connected,
 * they run at the same time and wait for each other by ranks->barrier, sum and broadcast. Each joins
 * a share of the parts. OUT is complete once rank 0 returns, whose result alone counts; the others
 * may return before. After a rank has died, the same calls go on. Only rank 0's `notice` gets the
 * lines that connected ranks would all get; each gets those about the inputs that it reads.
 *
 * Return 0, or: SGT_EUSAGE, the options make no sense; SGT_EIO, a system call failed, or OUT would
 * not fit on its disk (`force` tries anyway); SGT_EFORMAT, an input or OUT has the wrong format;
 * SGT_EUNSUPPORTED, a .zst file needs more than 128 MiB to unpack, or a page of Parquet has an
 * encoding that is not read; SGT_ENOMEM; SGT_ESTOPPED, `stop`
 * was requested. After any of these but SGT_EUSAGE, the same call may be repeated; after
 * SGT_ESTOPPED it continues the run (but standard input starts over). */
int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err);

/* Return the default number of threads: one for each core that this process may run on, or for each
 * CPU that the quota of its control groups (containers, batch systems) grants, if those are
 * fewer. */
int sgt_tokenize_threads(void);

/* ---- training a vocabulary: what sgt-tokenize --train-vocab does ---- */

typedef struct sgt_train_result {
    /* size of the vocabulary; less than asked for if no pair of tokens is left to merge */
    uint32_t tokens;
    uint64_t files, documents, bytes, invalid_utf8; /* what was read, as in sgt_tokenize_result */
    uint64_t pieces, distinct;   /* pre-tokens of the text, and how many of them differ */
    double seconds;              /* duration of this call */
    uint64_t skipped, bad_lines; /* what was left out, as in sgt_tokenize_result */
} sgt_train_result;

/* Train a byte-level BPE of `size` tokens (257 to 1,048,576) on o's inputs: id 0 is <|endoftext|>, 1
 * to 256 are the bytes, then one token per merge. Ids and merges are those of Hugging Face's
 * BpeTrainer on the same pre-tokens (merges.h), for any number of threads. The caller frees *vocab.
 *
 * Used fields of *o: inputs, format, field, skip_bad, rule, normalize, special_eot (a literal
 * <|endoftext|> separates the text on its two sides; otherwise it is text), invalid_utf8, binary,
 * hidden, threads, notice, stop and progress. `out` is the folder that sgt_vocab_save will write:
 * it is never read, and must be empty unless `force` is set. Memory: all distinct pre-tokens, some
 * 40 bytes for each of their bytes. result and err may be NULL. Errors are those of sgt_tokenize,
 * and SGT_EUNSUPPORTED for more than 2^32 distinct pre-tokens, or as many places of pairs in them. */
int sgt_vocab_train(sgt_vocab **vocab, const sgt_tokenize_options *o, uint32_t size,
                    sgt_train_result *result, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
