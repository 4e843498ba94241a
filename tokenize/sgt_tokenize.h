/* sgt_tokenize.h: text to tokens, GPT-2's or those of a vocabulary of your own, and back, and whole
 * folders of text to shards on disk. Links alone (libsgt-tokenize), from C, C++ and any FFI.
 *
 *     sgt_error err;
 *     sgt_vocab *v;
 *     sgt_encoder *e;
 *     if (sgt_vocab_gpt2(&v, &err) < 0 || sgt_encoder_new(&e, v, &err) < 0) fprintf(stderr, "%s\n", err.text), exit(1);
 *     uint16_t *ids = malloc(n * sizeof *ids);            // never more ids than bytes
 *     size_t count = sgt_encode(e, text, n, ids);         // equal to tiktoken's gpt2.encode_ordinary(text)
 *     sgt_encoder_free(e);
 *     sgt_vocab_free(v);                                  // after its encoders
 *
 * and what the program sgt-tokenize does:
 *
 *     const char *inputs[] = {"corpus"};
 *     sgt_tokenize_options o = {.inputs = inputs, .input_count = 1, .out = "out"}; // zero means the default everywhere
 *     sgt_tokenize_result r;
 *     if (sgt_tokenize(&o, &r, &err) < 0) ...;            // r.tokens ids in out/train_000000.bin ...
 *
 * A vocabulary is immutable and shared by any number of threads; an encoder belongs to one thread
 * at a time. Where a call fails, what its `out` or `text` points to is left as it was, and there is
 * nothing to free. Nothing here prints, exits, or reads arguments or the environment.
 * tokenize/examples has whole programs. */
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
    SGT_NORMALIZE_AS_VOCAB, /* as the vocabulary's file says; none for GPT-2 */
    SGT_NORMALIZE_NONE,
    SGT_NORMALIZE_NFC,
    SGT_NORMALIZE_NFKC
} sgt_normalize;

/* GPT-2's, built in: 50,257 tokens, the last of which is <|endoftext|>. 0, or SGT_ENOMEM; *out is
 * the caller's. */
int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err);

/* A byte-level BPE of at most 65,536 ids from `path`, all of whose text is checked: tokenizer.json;
 * merges.txt (or vocab.bpe) with vocab.json (or encoder.json) beside it, or either alone;
 * NAME.tiktoken; or a folder with the first of these that is there. "gpt2" is the one built in.
 * *out is the caller's.
 *
 * Ids: vocab.json's and tokenizer.json's own. merges.txt alone: GPT-2's (bytes, merges, end of
 * text). Where no merges are given ids are ranks, as tiktoken has them. The end of text is the
 * token called <|endoftext|>, <|end_of_text|>, </s>, <eos> or <|eos|>, the first of these that is
 * there; a .tiktoken file names none, so it is the one id that the file leaves out, or else the
 * next. merges.txt alone has it after the merges.
 *
 * rule: a PCRE2 pattern whose matches, and what stands between them, are encoded each by itself
 * (pattern.h). NULL: tokenizer.json's own, or GPT-2's. SGT_EUSAGE for a pattern that is wrong;
 * SGT_EFORMAT for a file that is; both say where. A tokenizer.json's pattern is Oniguruma's: it is
 * translated, and what PCRE2 cannot say is SGT_EFORMAT. A merge that is listed twice counts where
 * it stands last, and truncation and padding are left out, as in training data they must be.
 * SGT_EIO for a file that cannot be read. What this reads and what tiktoken and Hugging Face's
 * tokenizers do with it, they and sgt_encode agree on (their encode_ordinary, and their encode of
 * text without added tokens). */
int sgt_vocab_load(sgt_vocab **out, const char *path, const char *rule, sgt_error *err);

void sgt_vocab_free(sgt_vocab *v); /* after its encoders; NULL is fine */
/* every id is below it, at most 65,536; GPT-2: 50257 */
uint32_t sgt_vocab_size(const sgt_vocab *v);
/* the id before each document of a shard; GPT-2: 50256 */
uint32_t sgt_vocab_eot(const sgt_vocab *v);
/* XXH3-64 of tokens, rule, and merges that ids do not say */
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v);
/* "gpt2", or the last component of `path`; lives as long as v */
const char *sgt_vocab_name(const sgt_vocab *v);

/* The bytes of token `id`: *n of them, living as long as v. NULL for an id that is not in the
 * vocabulary. */
const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n);

/* The whole vocabulary as Hugging Face's tokenizer.json, into malloc'd *text of *n bytes (caller
 * frees). 0, or SGT_ENOMEM. */
int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err);

/* merges.txt, vocab.json and tokenizer.json into `folder`, made if missing; each is there when it
 * is complete. 0, SGT_ENOMEM, or SGT_EIO naming the file. */
int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err);

/* ---- text to ids and back ---- */

#define SGT_ENCODE_FAILED SIZE_MAX

/* An encoder of v's, which must outlive it. It remembers words that it has met, in 13 MiB, so that
 * one for a whole corpus is faster than one for each text. 0, SGT_ENOMEM, or SGT_EUSAGE for a rule
 * that PCRE2 refuses. */
int sgt_encoder_new(sgt_encoder **out, const sgt_vocab *v, sgt_error *err);
void sgt_encoder_free(sgt_encoder *e); /* NULL is fine */

/* `text` of n bytes, any bytes at all, into ids, which has room for n; returns how many there are.
 * Bytes that are not UTF-8 are tokens of their own (see split.h for how they split), nothing is
 * normalized, and <|endoftext|> in text is text. Linear in n, whatever the text. A vocabulary with
 * a rule of its own is as fast as that, and may fail: SGT_ENCODE_FAILED where the rule backtracks
 * beyond PCRE2's limits or memory is short; sgt_encoder_failure says which, until the next call. */
size_t sgt_encode(sgt_encoder *e, const void *text, size_t n, uint16_t *ids);
/* the encoder's own; after SGT_ENCODE_FAILED alone */
const sgt_error *sgt_encoder_failure(const sgt_encoder *e);

/* The bytes of ids[count] into malloc'd *text of *n bytes (caller frees; a NUL follows).
 * SGT_EFORMAT for an id out of range, naming which; SGT_ENOMEM. Any number of threads at once. */
int sgt_decode(const sgt_vocab *v, const uint16_t *ids, size_t count, char **text, size_t *n,
               sgt_error *err);

/* ---- whole corpora: what sgt-tokenize does ---- */

typedef enum sgt_format {
    /* .jsonl and .ndjson, and either with .gz or .zst after it, are JSONL, all else is text */
    SGT_FORMAT_AUTO,
    SGT_FORMAT_TEXT, /* every file is one document of text */
    SGT_FORMAT_JSONL /* every line of every file is an object, one field of which is a document */
} sgt_format;

typedef enum sgt_invalid_utf8 {
    SGT_INVALID_KEEP,    /* byte for byte, and counted */
    SGT_INVALID_REPLACE, /* U+FFFD for each maximal ill-formed part, and counted */
    SGT_INVALID_FAIL     /* SGT_EFORMAT, naming the file and the offset */
} sgt_invalid_utf8;

/* Files that are not text: those that begin with a known magic number (PDF, ELF, PNG, JPEG, ZIP,
 * Parquet) or UTF-16's byte order mark, or hold a NUL byte as well as bytes that are not UTF-8 in
 * their first 64 KiB (binary.h). */
typedef enum sgt_binary_files {
    /* skip; but an OUT made before there was a choice is completed as it was begun: keep */
    SGT_BINARY_DEFAULT,
    SGT_BINARY_SKIP, /* left out with a notice, and counted; as an INPUT itself, SGT_EFORMAT */
    SGT_BINARY_KEEP  /* read like text */
} sgt_binary_files;

typedef struct sgt_tokenize_options {
    /* files, folders, "@LIST" (a file of paths, one a line), or "-": standard input */
    const char *const *inputs;
    size_t input_count;
    const char *out;   /* folder; made if missing */
    const char *vocab; /* as sgt_vocab_load has it; NULL: GPT-2's */
    /* likewise: a pattern to split by. Documents are not cut then, but whole in memory */
    const char *rule;
    /* each document's text, before it is split. GPT-2 itself does no such thing */
    sgt_normalize normalize;
    /* of documents set aside as the val split, by a hash of path and position; 0: none. Of two or
     * more files of text at least one is: that with the smallest hash */
    double val_fraction;
    uint64_t shard_tokens; /* default 100,000,000; at most 2,147,483,647 */
    int threads;           /* at most 1,024; default: the cores at hand */
    /* threads take work in pieces of about so many; default 256 KiB; changes no output */
    size_t piece_bytes;
    sgt_format format;
    const char *field; /* of JSONL: "text", or nested, "a.b"; NULL: "text" */
    /* "EXT=COMMAND": such files are read through the command's output (filter.h) */
    const char *const *filters;
    size_t filter_count;
    /* lines of JSONL without such a string are counted; default: they are an error */
    int skip_bad;
    /* a literal <|endoftext|> in text is the end-of-text id; default: it is text */
    int special_eot;
    sgt_invalid_utf8 invalid_utf8;
    /* documents of each split in an order that shuffle_seed decides (shuffle.h) */
    int shuffle;
    uint64_t shuffle_seed; /* below 2^63 */
    /* documents whose text has been there before are left out (dedup.h) */
    int dedup;
    /* the processes that fill OUT together (see sgt_tokenize); NULL: this one alone */
    sgt_ranks *ranks;
    int force;            /* replace an OUT made with other options or from other inputs */
    sgt_notice notice;    /* what is worth knowing and no failure, a line each */
    const sgt_stop *stop; /* looked at now and then; NULL: it cannot be stopped */
    /* Called now and then, from one thread at a time: bytes of the inputs done and in all (0: not
     * known), tokens. */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total, uint64_t tokens);
    void *progress_ctx;
    sgt_binary_files binary; /* files that are not text */
    /* read names that begin with a dot, below a folder too; default: they are left out */
    int hidden;
} sgt_tokenize_options;

typedef struct sgt_tokenize_result {
    /* bytes: of the documents' text */
    uint64_t tokens, documents, bytes, files, invalid_utf8, shards;
    uint64_t bad_lines;  /* of JSONL, left out */
    uint64_t duplicates; /* documents left out by `dedup` */
    /* \uD800 to \uDFFF in JSONL without the other half: each is U+FFFD now */
    uint64_t lone_surrogates;
    uint64_t train_tokens, val_tokens;
    /* Bytes read by this call, or by all ranks' if they are connected: fewer than `bytes` if it
     * resumed a run. */
    uint64_t bytes_read;
    uint32_t waiting; /* parts of other ranks that are not whole yet: the rest counts ours */
    int already_done; /* OUT was complete from the same command: nothing was written */
    double seconds;
    uint64_t skipped; /* files left out because they are not text */
} sgt_tokenize_result;

/* Inputs → OUT: shards in the format that sgt_loader.h reads, documents' offsets, manifest.json,
 * sources.jsonl and tokenizer.json. Output never depends on the number of threads. A run that was
 * killed is finished by the same call, with the bytes of an undisturbed one. Any number of calls at
 * once, each on an OUT of its own; result and err may be NULL.
 *
 * Inputs are all looked at before anything is written. Folders are walked in byte order of the
 * path, the targets of symbolic links included; names that begin with a dot are left out unless
 * `hidden`, and files that are not text as `binary` says. Errors that name the path: one that is
 * missing or may not be read, a folder without a file, a link that leads nowhere or back to a
 * folder it lies in, an INPUT that is OUT or lies in it (below an INPUT, OUT is passed over), a
 * file whose size changes between listing and reading, or its size or time stamp while it is read.
 * Names may hold any bytes. An OUT made by other options or from inputs whose paths or sizes
 * differ, one that another run is writing, and a folder that holds anything else are refused and
 * left as they are (force: replaced, but for the run at work).
 *
 * With ranks, each process makes the same call but for its number; all of them see the same inputs
 * and OUT. A rank makes its part under OUT/.work, and OUT gets the same bytes as from one process.
 * If the ranks are not connected (ranks->sum is NULL; rank and size are enough), the last one to
 * finish puts the parts together, and the others return with `waiting` set. If they are connected,
 * rank 0 does so with the others' help; all return once OUT is whole, and only rank 0's result
 * counts. After a rank has died, the same calls go on with its part.
 *
 * 0, or: SGT_EUSAGE, options that make no sense; SGT_EIO, the system refused, or OUT would not fit
 * on its disk (force: it is tried); SGT_EFORMAT, an input or an OUT is not what it has to be;
 * SGT_EUNSUPPORTED, a .zst file that wants more than 128 MiB to unpack; SGT_ENOMEM; SGT_ESTOPPED,
 * `stop` said so, and the same call goes on (but standard input starts over). After each of them
 * but SGT_EUSAGE the same call may be made again. */
int sgt_tokenize(const sgt_tokenize_options *o, sgt_tokenize_result *result, sgt_error *err);

/* ---- a vocabulary of one's own: what sgt-tokenize --train-vocab does ---- */

typedef struct sgt_train_result {
    uint32_t tokens; /* fewer than asked for where no pair of tokens is left to merge */
    uint64_t files, documents, bytes, invalid_utf8;
    uint64_t pieces, distinct; /* that the text was split into; of them, different ones */
    double seconds;
    uint64_t skipped; /* files left out because they are not text */
} sgt_train_result;

/* A byte-level BPE of `size` tokens (257 to 65,536) from o's inputs: 0 is <|endoftext|>, 1 to 256
 * the bytes, then a token for each merge; the ids and merges that Hugging Face's BpeTrainer comes
 * to on the same pieces (merges.h). Of *o count inputs, format, field, skip_bad, rule, normalize,
 * special_eot (a literal <|endoftext|> parts what stands on its sides; otherwise it is text),
 * invalid_utf8, binary, hidden, threads, notice, stop and progress; `out` is where sgt_vocab_save
 * is to write: it is never read, and must be empty unless `force`. The same for any number of
 * threads. Memory: all distinct pieces of the text, some 40 bytes for each of their bytes. *vocab
 * is the caller's; result and err may be NULL; failures are those of sgt_tokenize, and
 * SGT_EUNSUPPORTED for more than 2^32 different pieces. */
int sgt_vocab_train(sgt_vocab **vocab, const sgt_tokenize_options *o, uint32_t size,
                    sgt_train_result *result, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
