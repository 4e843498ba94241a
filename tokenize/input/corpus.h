/* corpus.h: lists the files that are read as input. Every INPUT argument is checked before anything
 * is written.
 *
 *     sgt_corpus *c;
 *     sgt_tokenize_options o = {.inputs = inputs, .input_count = n, .out = "out"};
 *     if (sgt_corpus_list(&c, &o, &err) < 0) ...;
 *     for (size_t i = 0; i < c->count; i++) use(c->files[i].path);
 *     sgt_corpus_free(c);
 *
 * INPUTs keep the order in which they are passed. The files in a folder are sorted by the bytes of
 * their paths relative to the folder. Symbolic links to files and folders are followed.
 *
 * These are errors: a folder without files; a file that cannot be read; a symbolic link to a folder
 * that contains the link; and an INPUT that is neither a file nor a folder. (Inside a folder, a
 * path that is neither is skipped with a notice.) The output folder OUT is never read: it is an
 * error if an INPUT is OUT or is inside OUT, and OUT is skipped if it is inside an INPUT.
 *
 * The INPUT @LIST names a file, LIST, that lists paths, one per line. Each path is treated like an
 * INPUT, except that a path to a file that is not text is skipped and is no error. The INPUT @-
 * reads such a list from standard input. Blank lines are skipped. A byte order mark at the
 * beginning of the list and a CR before a newline are not part of a path. If the first 4 KiB of the
 * list contain a NUL, each path ends in a NUL instead of a newline. If a list is in UTF-16 or
 * UTF-32, the error message says so.
 *
 * Two kinds of files are skipped, with a notice:
 * - Without --hidden: files and folders inside an INPUT whose names begin with a dot or are
 *   _SUCCESS, _metadata or _common_metadata.
 * - With --binary skip: files that are not text (see the end of this header), unless a filter
 *   converts them. It is an error if such a file is itself an INPUT, or if all files are skipped.
 *
 * How a file is read depends first on the ending of its name, in upper or lower case:
 * - If a filter is set for the ending, the filter converts the file. Of several such filters, the
 *   first one is used.
 * - If no filter is set for the ending, .gz and .zst files are decompressed.
 * - With --format auto, .jsonl and .ndjson files are read as JSONL, even with .gz or .zst after the
 *   ending, and .parquet files as Parquet.
 *
 * It also depends on the first bytes of the file:
 * - With --format auto, gzip and zstd files are recognized by their magic numbers, and JSONL files
 *   by their first lines (see the end of this header). For recognized JSONL files, a notice is
 *   printed.
 * - With --binary skip, a file that begins and ends with PAR1 is read as Parquet (with --format
 *   auto), and a JSON array is skipped. */
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

/* Names of the fields whose values are copied from each document to sources.jsonl (the option
 * --keep-fields; see kept.h). */
typedef struct sgt_kept_names {
    /* memory of all names, each followed by a NUL; allocated with malloc */
    char *text;
    const char *names[SGT_KEPT_NAMES]; /* "url", or "a.b" for a nested one */
    sgt_json_path paths[SGT_KEPT_NAMES];
    size_t count;
} sgt_kept_names;

typedef enum sgt_pack { SGT_PACK_NONE, SGT_PACK_GZ, SGT_PACK_ZST, SGT_PACKS } sgt_pack;

typedef struct sgt_corpus_file {
    /* path to open: an INPUT, or a file inside an INPUT folder; "-" for standard input */
    char *path;
    /* name by which the output refers to the file: the path relative to the INPUT folder, or, if
     * the INPUT is a file, the last component of the path. It points into `path`. */
    const char *name;
    uint64_t size; /* bytes; 0 for standard input */
    int64_t mtime; /* modification time, in seconds since 1970; 0 for standard input */
    /* Inode number, and the fraction of a second, in nanoseconds, of the modification time. If the
     * inode number, the modification time or the size differs later, the file may have been changed
     * since it was listed (feed.h). */
    uint64_t inode;
    int64_t nanoseconds;
    int stream;    /* 1: the file is standard input */
    sgt_pack pack; /* how the file is compressed on disk */
    /* filter whose output is read instead of the file; NULL if the file is read directly */
    const sgt_filter *filter;
    /* How documents are stored in a file that is not Parquet (`rows` is 0):
     * 0: the whole file is one document
     * 1: JSONL (one document per line), as stated by the file's name or by an option
     * 2: JSONL, recognized by the first lines of the file; sources.jsonl records this */
    int lines;
    /* 1 if neither the file's name nor an option states the format; otherwise 0. If it is 1, the
     * first bytes of the file decide whether the file is JSONL. These bytes are read when the
     * inputs are listed or, if the file is standard input or has a filter, when it is tokenized
     * (feed.h). */
    int detect;
    int rows; /* 1: Parquet, one document per row */
    /* What to do if the data in the file is damaged:
     * 0: fail
     * 1 (--skip-bad): if the file is compressed, treat the damage as the end of the text; if it is
     * Parquet, skip the damaged rows and count them as bad */
    int skip_bad;
    /* The range of the file's bytes that this rank (process) reads, from offset `from` up to but
     * not including offset `end`. If `end` is 0, the range ends at the end of the file. The range
     * is only used if a Parquet file is divided among ranks: a rank reads each row group whose
     * middle is in the rank's range (parquet.h). */
    uint64_t from, end;
    /* If `val` is 1, the file belongs to the validation split; if `train` is 1, to the training
     * split. If both are 0, a hash of the name decides. At most one file of a corpus has `val` or
     * `train` set, to avoid an empty split (sgt_text_feed_choose). */
    int val, train;
} sgt_corpus_file;

typedef struct sgt_corpus {
    sgt_corpus_file *files;
    size_t count, room;
    size_t line_files;  /* number of JSONL and Parquet files */
    size_t row_files;   /* number of Parquet files */
    const char *field;  /* name of the JSONL field or Parquet column that holds the text */
    sgt_json_path path; /* `field`, parsed */
    sgt_kept_names kept;
    sgt_filter *filters;
    size_t filter_count;
    uint64_t bytes;   /* bytes of all files on disk */
    uint64_t skipped; /* number of files that were skipped because they are not text */
    /* 1: skip files that are not text, and fail if standard input is not text; 0: read all files
     * and standard input as if they were text */
    int skip_binary;
    /* 1 if standard input is one of the files; otherwise 0. If it is 1, `bytes` does not include
     * the size of standard input, and an interrupted run cannot be resumed. */
    int stream;
    /* 1 if the total size of the text is unknown, because at least one file is standard input,
     * compressed, filtered or Parquet; 0 if `bytes` is the total size of the text */
    int unsized;
} sgt_corpus;

/* Return 1 if the text of the file is the output of decompression or of a filter; otherwise 0. If
 * it is, the text can only be read from its beginning. */
static inline int sgt_corpus_made(const sgt_corpus_file *f)
{
    return f->pack != SGT_PACK_NONE || f->filter;
}

/* Return 1 if the text is the bytes of the file on disk, so that reading can begin at any byte;
 * return 0 if the file is compressed, filtered or Parquet. */
static inline int sgt_corpus_sought(const sgt_corpus_file *f)
{
    return !sgt_corpus_made(f) && !f->rows;
}

/* Return the number of bytes of the file that this process reads, to show progress: the bytes in
 * this rank's range if the file is divided among ranks (processes); otherwise all bytes. */
static inline uint64_t sgt_corpus_share(const sgt_corpus_file *f)
{
    return (f->end ? f->end : f->size) - f->from;
}

/* List and examine the files of the inputs o->inputs. Set *out to the list, which the caller frees
 * with sgt_corpus_free. The output folder o->out need not exist. */
int sgt_corpus_list(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err);
void sgt_corpus_free(sgt_corpus *c);

/* Maximum size in bytes of the line in sources.jsonl or inputs.jsonl that describes a file. In such
 * a line, each byte of the file's path takes at most seven bytes, and a few numbers follow. */
#define SGT_CORPUS_LINE ((size_t)1 << 15)

/* Return a JSON object {"path": NAME} with the name of file i, or NULL if out of memory. If the
 * name is not UTF-8, ill-formed bytes in "path" are written as \xNN, and a second member,
 * "path_bytes", holds all bytes of the name in hex. */
json_t *sgt_corpus_json_name(const sgt_corpus *c, size_t i);

/* Counts for one file that sources.jsonl records after the file has been read. */
typedef struct sgt_corpus_counts {
    uint64_t documents, bytes, tokens;
    uint64_t hash; /* hash of the bytes that were tokenized (feed.h) */
} sgt_corpus_counts;

/* Return the line of sources.jsonl that describes file i, allocated with malloc, or NULL if out of
 * memory. If `counts` is NULL, return only the beginning of the line, which is a JSON object with
 * these members:
 * "path", "size"
 * "format"         if the file was recognized as JSONL by its first lines
 * "range"          if only a part of the file is read: the range of its bytes
 * "mtime", "stat"  if `stamped` is set; "stat" is a hash of inode and modification time in hex,
 *                 which shows if the file has been changed (feed.h) */
char *sgt_corpus_line(const sgt_corpus *c, size_t i, uint64_t size, int stamped,
                      const sgt_corpus_counts *counts);

/* Return 1 if the line of sources.jsonl at `line` describes a document (kept.h), or 0 if it
 * describes a file. Only the first bytes of the line are needed. */
int sgt_corpus_is_document(const char *line);

/* ---- what a stream holds ----
 *
 * These functions determine from the first bytes of a stream what the stream holds. A stream is the
 * bytes of a file, after decompression if the file is compressed. The result depends only on these
 * bytes, so it is the same for any number of threads and ranks, and in resumed runs.
 *
 * The first SGT_BINARY_PREFIX bytes decide whether a file is text:
 *
 *     const sgt_magic *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * These are not text:
 * - a file that begins with the magic number of a known format, or with the byte order mark of
 *   UTF-16 or UTF-32;
 * - a file in UTF-16 or UTF-32 without a byte order mark, which is recognized by the positions of
 *   NUL bytes;
 * - a file that contains both a NUL byte and bytes that are not valid UTF-8.
 *
 * NUL bytes in a file that is valid UTF-8 are text (U+0000).
 *
 * This call also determines whether a stream is JSON Lines:
 *
 *     sgt_lookahead l = {0};
 *     int form = sgt_stream_form(&l, source, corpus, &corpus->files[i], &why);
 *
 * A stream is JSON Lines if its first line, and its second line if there is one, are JSON objects
 * in which the text field (--field) is a string. Blank lines are ignored. An incomplete line is
 * ignored, unless it is the end of the stream. At most 16 MiB are examined, so a stream whose first
 * line is longer is text. */

#define SGT_BINARY_PREFIX ((size_t)64 << 10) /* bytes that sgt_binary_of examines */

/* Return the kind of binary file that begins with the n bytes at p, or NULL if the file is text.
 *
 * whole: 1 if the n bytes are the entire file
 * lines: 1 if the file is known to be JSONL, otherwise 0. If it is 1, only magic numbers are
 *        checked, because the JSON parser reports invalid bytes later. */
const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

typedef enum sgt_form {
    SGT_FORM_TEXT,
    /* text that begins with a brace, but that is not JSON Lines, because a line among the first two
     * is not a JSON object with the text field */
    SGT_FORM_BRACE,
    SGT_FORM_LINES, /* JSON Lines */
    SGT_FORM_ARRAY, /* JSON array whose first element is an object with the text field */
    SGT_FORM_MORE,  /* not known yet: more bytes of the stream are needed to decide */
    /* not text, or a JSON array, while --binary skip is set: the file cannot be tokenized */
    SGT_FORM_OTHER
} sgt_form;

/* Bytes that have been read from a stream but not yet used. `bytes` is allocated with malloc. */
typedef struct sgt_lookahead {
    uint8_t *bytes;
    size_t n, room;
    int end; /* 1 if the stream ends after these bytes */
} sgt_lookahead;

struct sgt_source;
/* Read from the stream s until *l holds `want` bytes or the stream ends. Error messages name the
 * stream by `path`. */
int sgt_lookahead_read(sgt_lookahead *l, struct sgt_source *s, size_t want, const char *path,
                       sgt_error *err);
/* Return what s, the stream of file f, holds (a value of sgt_form). If f->detect is 0, because the
 * file's name or an option states the format, the result is SGT_FORM_TEXT or SGT_FORM_OTHER. If the
 * result is SGT_FORM_OTHER, *why says what the stream holds, without the file's path. On failure,
 * return a negative SGT_E* and set *why. Before the call, *l must hold all bytes that have been
 * read from s; the call reads more bytes into *l. */
int sgt_stream_form(sgt_lookahead *l, struct sgt_source *s, const sgt_corpus *c,
                    const sgt_corpus_file *f, sgt_error *why);

/* Return the name of the file f for messages: its path, or "standard input". */
static inline const char *sgt_corpus_shown(const sgt_corpus_file *f)
{
    return f->stream ? "standard input" : f->path;
}

/* Print a notice that says how the file f is read, if `form`, which was determined from the file's
 * first bytes, is not SGT_FORM_TEXT. `count` is the number of files with this form, of which f is
 * the first, and is printed as well; if `count` is 0, no number is printed. */
void sgt_form_notice(const sgt_notice *to, const sgt_corpus *c, const sgt_corpus_file *f,
                     sgt_form form, size_t count);

#endif
