/* corpus.h: lists the files to read. Every INPUT is checked once, before anything is written.
 *
 *     sgt_corpus *c;
 *     sgt_tokenize_options o = {.inputs = inputs, .input_count = n, .out = "out"};
 *     if (sgt_corpus_list(&c, &o, &err) < 0) ...;
 *     for (size_t i = 0; i < c->count; i++) use(c->files[i].path);
 *     sgt_corpus_free(c);
 *
 * INPUTs keep the order in which they are passed. The files of a folder are sorted by the bytes of
 * their path below it. Symbolic links to files and folders are followed.
 *
 * Errors are: a folder without a file; an unreadable file; a link back to a folder that contains
 * it; and an INPUT that is neither a file nor a folder. (Inside a folder, such a path is skipped
 * with a notice.) The output folder OUT is never read: an INPUT that is OUT or inside OUT is an
 * error, and an OUT below an INPUT is skipped.
 *
 * The INPUT @LIST is a file of paths, one per line, each treated like an INPUT. But if one of these
 * files is not text, it is skipped. @- is such a list on standard input. Blank lines are skipped. A
 * byte order mark at the beginning and a CR before a newline are not part of a path. If the first 4
 * KiB hold a NUL, paths end in NULs instead. A list in UTF-16 or UTF-32 is an error that says so.
 *
 * Two kinds of files are skipped, with a notice:
 * - Without --hidden: files and folders below an INPUT whose name begins with a dot, or is
 *   _SUCCESS, _metadata or _common_metadata.
 * - With --binary skip: files that are not text (below), unless a filter reads them. If such a file
 *   is itself an INPUT, or if no file is left, that is an error.
 *
 * The ending of a file's name, ignoring case, decides how the file is read:
 * - The first filter that matches the name reads the file.
 * - Without a filter, .gz and .zst files are decompressed.
 * - With the format auto, .jsonl and .ndjson files are JSONL, compressed or not, and .parquet files
 *   are Parquet.
 *
 * The first bytes of a file decide as well:
 * - With the format auto, gzip and zstd are recognized by their magic numbers, and JSONL by its
 *   first lines (below), with a notice.
 * - With --binary skip, a file with PAR1 at its beginning and end is Parquet, and a JSON array is
 *   skipped. */
#ifndef SGT_CORPUS_H
#define SGT_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "loader/base/error.h"
#include "tokenize/input/filter.h"
#include "tokenize/input/json_line.h"
#include "tokenize/sgt_tokenize.h"
#include "loader/base/magic.h"

#define SGT_KEPT_NAMES 16 /* maximum number of fields that --keep-fields accepts */

/* Names of the fields that are copied from each document to sources.jsonl (--keep-fields; see
 * kept.h). */
typedef struct sgt_kept_names {
    /* all names, each followed by a NUL; allocated with malloc */
    char *text;
    const char *names[SGT_KEPT_NAMES]; /* "url", or "a.b" for a nested one */
    sgt_json_path paths[SGT_KEPT_NAMES];
    size_t count;
} sgt_kept_names;

typedef enum sgt_pack { SGT_PACK_NONE, SGT_PACK_GZ, SGT_PACK_ZST, SGT_PACKS } sgt_pack;

typedef struct sgt_corpus_file {
    char *path; /* path to open: an input, or a file in an input folder; "-" is standard input */
    /* name of the file in the output, a suffix of `path`: the path below the input folder, or the
     * last component if the input is a file */
    const char *name;
    uint64_t size; /* bytes; 0 for standard input */
    int64_t mtime; /* modification time in seconds since 1970; 0 for standard input */
    /* inode: inode number; nanoseconds: fraction of the modification time. A change of inode, time
     * or size shows that the file may have been changed since it was listed (feed.h). */
    uint64_t inode;
    int64_t nanoseconds;
    int stream;    /* 1: the file is standard input */
    sgt_pack pack; /* compression of the bytes on disk */
    /* filter whose output is read instead of the file; NULL if there is none */
    const sgt_filter *filter;
    /* How documents are stored, if `rows` is 0:
     * 0: the whole file is one document
     * 1: JSONL (one document per line), by the file's name or an option
     * 2: JSONL, recognized by the file's first lines; sources.jsonl then says so */
    int lines;
    /* 1: neither the name nor an option fixes the format, so the file's first bytes decide whether
     * it is JSONL. The first bytes of standard input and of filtered files are read only when the
     * file is tokenized (feed.h). */
    int detect;
    int rows; /* 1: Parquet, one document per row */
    /* What to do with damaged data:
     * 0: fail
     * 1 (--skip-bad): the text of a compressed file ends where the damage begins; damaged Parquet
     *    rows count as bad and are skipped */
    int skip_bad;
    /* This rank's range of the file's bytes, from `from` up to but not including `end`; 0 for `end`
     * means the end of the file. Only used if a Parquet file is divided among ranks: the rank reads
     * each row group whose middle is in the range (parquet.h). */
    uint64_t from, end;
    /* 1 overrides the hash that chooses this file's split, because a split would otherwise be empty
     * (sgt_text_feed_choose). val: put the file into the validation split; train: into the training
     * split. */
    int val, train;
} sgt_corpus_file;

typedef struct sgt_corpus {
    sgt_corpus_file *files;
    size_t count, room;
    size_t line_files;  /* number of JSONL and Parquet files */
    size_t row_files;   /* number of Parquet files */
    const char *field;  /* JSONL field or Parquet column that holds the text */
    sgt_json_path path; /* `field`, parsed */
    sgt_kept_names kept;
    sgt_filter *filters;
    size_t filter_count;
    uint64_t bytes;   /* bytes of all files on disk */
    uint64_t skipped; /* number of files skipped because they are not text */
    /* 1: skip files that are not text, and refuse such standard input; 0: read both like text */
    int skip_binary;
    /* 1 if standard input is one of the files; its size is not in `bytes`, and the run cannot be
     * resumed */
    int stream;
    /* 1 if `bytes` does not tell how much text there is, because at least one file is standard
     * input, compressed, filtered or Parquet */
    int unsized;
} sgt_corpus;

/* Return 1 if the file's stream is the output of decompression or of a filter. Such a stream can
 * only be read from its beginning. */
static inline int sgt_corpus_made(const sgt_corpus_file *f)
{
    return f->pack != SGT_PACK_NONE || f->filter;
}

/* Return 1 if the file is read as it is on disk, so that reading can begin at any byte. */
static inline int sgt_corpus_sought(const sgt_corpus_file *f)
{
    return !sgt_corpus_made(f) && !f->rows;
}

/* Return how many bytes of the file this process will read (used to show progress): all of them or,
 * if the file is divided among ranks, those in this rank's range. */
static inline uint64_t sgt_corpus_share(const sgt_corpus_file *f)
{
    return (f->end ? f->end : f->size) - f->from;
}

/* List and examine the files of the inputs that the options name. The folder o->out need not exist.
 * The caller frees *out with sgt_corpus_free. */
int sgt_corpus_list(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err);
void sgt_corpus_free(sgt_corpus *c);

/* Maximum size in bytes of a file's line in sources.jsonl or inputs.jsonl. Each byte of the path
 * needs at most seven bytes there, and some numbers follow. */
#define SGT_CORPUS_LINE ((size_t)1 << 15)

/* Return the name of file i as a JSON object {"path": ...}, or NULL if out of memory. In a name
 * that is not UTF-8, ill-formed bytes are written as \xNN, and the member "path_bytes" has the
 * name's bytes in hex. */
json_t *sgt_corpus_json_name(const sgt_corpus *c, size_t i);

/* Counts that sources.jsonl records about a file once it has been read. */
typedef struct sgt_corpus_counts {
    uint64_t documents, bytes, tokens;
    uint64_t hash; /* hash of the bytes read from the file (feed.h) */
} sgt_corpus_counts;

/* Return the line of sources.jsonl for file i, allocated with malloc, or NULL if out of memory. If
 * `counts` is NULL, return only the beginning of the line, with these members:
 * "path", "size"
 * "format"         if the file was recognized as JSONL by its first lines
 * "range"          if only a part of the file is read: the range of its bytes
 * "mtime", "stat"  if `stamped` is set; "stat" is a hash of inode and modification time in hex,
 *                 which shows if the file has been changed (feed.h) */
char *sgt_corpus_line(const sgt_corpus *c, size_t i, uint64_t size, int stamped,
                      const sgt_corpus_counts *counts);

/* Return 1 if a line of sources.jsonl describes a document (kept.h), 0 if it describes a file. The
 * line may be incomplete, because its beginning suffices. */
int sgt_corpus_is_document(const char *line);

/* ---- what a stream holds ----
 *
 * These functions recognize by the first bytes of a stream what it holds, whatever its name. If the
 * stream is compressed, they examine the decompressed bytes. The answer depends only on these
 * bytes, so it is the same for any number of threads and ranks, and for resumed runs.
 *
 * Is it text? The first SGT_BINARY_PREFIX bytes decide:
 *
 *     const sgt_magic *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * These are not text:
 * - a file that begins with the magic number of a known format, or with the byte order mark of
 *   UTF-16 or UTF-32;
 * - UTF-16 or UTF-32 without a mark, recognized by NUL bytes at every second or fourth byte;
 * - a file that holds both a NUL byte and bytes that are not UTF-8.
 *
 * NUL bytes in UTF-8 are text (U+0000).
 *
 * Is it JSON Lines? This call answers both questions:
 *
 *     sgt_lookahead l = {0};
 *     int form = sgt_stream_form(&l, source, corpus, &corpus->files[i], &why);
 *
 * A stream is JSON Lines if its first line, and its second line if there is one, is an object whose
 * field is a string. Blank lines do not count. A line without a newline counts only at the end of
 * the stream. At most 16 MiB are examined, so a stream with a longer first line is text. */

#define SGT_BINARY_PREFIX ((size_t)64 << 10) /* bytes that sgt_binary_of examines */

/* Return the kind of binary file that begins with the n bytes at p, or NULL if it is text.
 *
 * whole: 1 if the n bytes are the entire file
 * lines: 1 if the file is JSONL, whose invalid bytes the JSON parser reports. For such a file, only
 *        magic numbers are checked */
const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

typedef enum sgt_form {
    SGT_FORM_TEXT,
    /* text that begins with a brace, but whose first lines are not JSON objects that have the text
     * field */
    SGT_FORM_BRACE,
    SGT_FORM_LINES, /* JSON Lines */
    SGT_FORM_ARRAY, /* JSON array whose first element is an object that has the text field */
    SGT_FORM_MORE,  /* undecided: more bytes of the stream are needed */
    /* not text, or a JSON array while such files are skipped: the file cannot be tokenized */
    SGT_FORM_OTHER
} sgt_form;

/* Bytes of a stream that have been read but not yet used. The array is allocated with malloc. */
typedef struct sgt_lookahead {
    uint8_t *bytes;
    size_t n, room;
    int end; /* 1 if the stream ends after these bytes */
} sgt_lookahead;

struct sgt_source;
/* Read from s until *l has `want` bytes, or until the stream ends. `path` names the stream in
 * errors. */
int sgt_lookahead_read(sgt_lookahead *l, struct sgt_source *s, size_t want, const char *path,
                       sgt_error *err);
/* Return what s, the stream of file f, holds (sgt_form). If f->detect is 0, because the name or the
 * options fix the format, the result is SGT_FORM_TEXT or SGT_FORM_OTHER. For SGT_FORM_OTHER, *why
 * says what the stream holds, without a path. On failure, return a negative SGT_E* and set *why. *l
 * must hold all bytes of s that were read before; the call adds the bytes that it reads. */
int sgt_stream_form(sgt_lookahead *l, struct sgt_source *s, const sgt_corpus *c,
                    const sgt_corpus_file *f, sgt_error *why);

/* Return the name of a file for messages: its path or "standard input". */
static inline const char *sgt_corpus_shown(const sgt_corpus_file *f)
{
    return f->stream ? "standard input" : f->path;
}

/* Print a notice that says how f is read, if this was decided by f's first bytes and f is not plain
 * text. f is the first of `count` such files; if `count` is 0, no number is printed. */
void sgt_form_notice(const sgt_notice *to, const sgt_corpus *c, const sgt_corpus_file *f,
                     sgt_form form, size_t count);

#endif
