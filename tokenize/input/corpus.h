/* corpus.h: list the files to read. Every INPUT is checked once, before anything is written.
 *
 *     sgt_corpus *c;
 *     sgt_tokenize_options o = {.inputs = inputs, .input_count = n, .out = "out"};
 *     if (sgt_corpus_list(&c, &o, &err) < 0) ...;
 *     for (size_t i = 0; i < c->count; i++) use(c->files[i].path);
 *     sgt_corpus_free(c);
 *
 * INPUTs keep the given order; the files of a folder are sorted by the bytes of their path below
 * it. Symbolic links to files and folders are followed; a link back to a folder that contains it is
 * an error. A path that is neither a file nor a folder is skipped with a notice inside a folder,
 * and is an error as an INPUT. A folder without a file is an error, and so is an unreadable file.
 * OUT is never read: an INPUT that is OUT or lies in it is refused, and an OUT below an INPUT is
 * skipped.
 *
 * The INPUT @LIST is a file of paths, one per line, each treated like an INPUT, except that a file
 * that is not text is skipped. @- is such a list on standard input. Blank lines are skipped. A byte
 * order mark at the beginning and a CR before a newline are not part of a path. If the first 4 KiB
 * hold a NUL, paths end in NULs instead. A list in UTF-16 or UTF-32 is an error that says so.
 *
 * Two kinds of files are left out, with a notice. Without --hidden, these are names below a folder
 * that begin with a dot, and _SUCCESS, _metadata and _common_metadata. With --binary skip, these
 * are files that are not text (below), unless a filter reads them. A file of the second kind that
 * is itself an INPUT is an error, and so is a corpus in which no file is left.
 *
 * The name tells what a file holds, ignoring case. The first filter that matches the name reads the
 * file. Otherwise .gz and .zst are packed. With the format auto, .jsonl and .ndjson are JSONL,
 * packed or not, and .parquet is Parquet. With the format auto the first bytes tell, too: gzip and
 * zstd by their magic numbers; JSONL by its first lines (below), with a notice; and, with --binary
 * skip, Parquet by PAR1 at its beginning and end. A JSON array is left out with --binary skip. */
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

#define SGT_KEPT_NAMES 16 /* maximum number of fields in --keep-fields */

/* Fields that sources.jsonl keeps of each document (kept.h). */
typedef struct sgt_kept_names {
    char *text;                        /* all names, each followed by a NUL; malloc'd */
    const char *names[SGT_KEPT_NAMES]; /* "url", or "a.b" for a nested one */
    sgt_json_path paths[SGT_KEPT_NAMES];
    size_t count;
} sgt_kept_names;

typedef enum sgt_pack { SGT_PACK_NONE, SGT_PACK_GZ, SGT_PACK_ZST, SGT_PACKS } sgt_pack;

typedef struct sgt_corpus_file {
    char *path; /* path to open: INPUT, or INPUT/name; "-" for standard input */
    /* part of `path`: relative to its INPUT, or the last component of an INPUT that is a file */
    const char *name;
    uint64_t size; /* bytes; 0 for standard input */
    int64_t mtime; /* seconds since 1970; 0 for standard input */
    /* more of the file's stat: with `mtime`, they tell whether it has been changed (feed.h) */
    uint64_t inode;
    int64_t nanoseconds;
    int stream;               /* 1: the file is standard input */
    sgt_pack pack;            /* compression of the bytes on disk */
    const sgt_filter *filter; /* filter whose output is read instead of the file; NULL: none */
    /* 0: the file is one document of text, unless `rows` is set. 1: JSONL, one document per line.
     * 2: JSONL, known only by its first lines, which sources.jsonl records */
    int lines;
    /* 1: the first bytes tell whether it is JSONL. For standard input and files with a filter,
     * `lines` is set when they are opened (feed.h) */
    int detect;
    int rows; /* 1: Parquet, one document per row */
    /* 1: damage ends a packed file, and makes rows bad, instead of failing the run (--skip-bad) */
    int skip_bad;
    /* bytes from ... end - 1 of a Parquet file that several ranks divide: this rank reads the row
     * groups whose middle lies there (parquet.h). end 0: to the end of the file */
    uint64_t from, end;
    /* 1: the text file goes to the val, or to the train, split whatever its hash is
     * (sgt_text_feed_choose) */
    int val, train;
} sgt_corpus_file;

typedef struct sgt_corpus {
    sgt_corpus_file *files;
    size_t count, room;
    size_t line_files;  /* number of JSONL and Parquet files */
    size_t row_files;   /* number of Parquet files */
    const char *field;  /* field of JSONL, or column of Parquet, that holds the text */
    sgt_json_path path; /* `field`, parsed */
    sgt_kept_names kept;
    sgt_filter *filters;
    size_t filter_count;
    uint64_t bytes;   /* bytes of all files on disk */
    uint64_t skipped; /* number of files left out because they are not text */
    int skip_binary;  /* 1: --binary skip; standard input is checked later, when it is read */
    /* 1: one file is standard input. Its size is not part of `bytes`, and the run cannot be
     * resumed */
    int stream;
    /* 1: a file is standard input, packed, filtered or Parquet, so `bytes` is not the amount of
     * text */
    int unsized;
} sgt_corpus;

/* Return whether the file's stream comes from unpacking or from a filter. Such a stream can only be
 * read from its beginning. */
static inline int sgt_corpus_made(const sgt_corpus_file *f)
{
    return f->pack != SGT_PACK_NONE || f->filter;
}

/* Return whether positions in the file are byte offsets on disk, so that reading can begin at any
 * of them. */
static inline int sgt_corpus_sought(const sgt_corpus_file *f)
{
    return !sgt_corpus_made(f) && !f->rows;
}

/* Return how many bytes of the file are to be read, for progress. */
static inline uint64_t sgt_corpus_share(const sgt_corpus_file *f)
{
    return (f->end ? f->end : f->size) - f->from;
}

/* List the files of the inputs that the options name. o->out need not exist. */
int sgt_corpus_list(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err);
void sgt_corpus_free(sgt_corpus *c);

/* Upper bound of the bytes of a line of sources.jsonl or inputs.jsonl: each byte of a path becomes
 * at most seven, and some numbers follow. */
#define SGT_CORPUS_LINE ((size_t)1 << 15)

/* Return the name of file i as a JSON object, {"path": ...}, or NULL if out of memory. If the name
 * is not UTF-8, its ill-formed bytes are written \xNN, and "path_bytes" has all its bytes in
 * hex. */
json_t *sgt_corpus_json_name(const sgt_corpus *c, size_t i);

/* What sources.jsonl records of a file when it has been read. */
typedef struct sgt_corpus_counts {
    uint64_t documents, bytes, tokens;
    uint64_t hash; /* hash of the bytes that were read (feed.h) */
} sgt_corpus_counts;

/* Return a line of sources.jsonl for file i, malloc'd, or NULL if out of memory. With `counts`, it
 * is the complete line, with its newline. Without them, it is the beginning of the line, {"path":
 * ..., "size": N, and, if `stamped`, the time stamp and `stat`: a hash of inode and time, in hex,
 * which tells whether the file has been changed (feed.h). If only a part of the file is read, the
 * line also has "range", the part's bytes. */
char *sgt_corpus_line(const sgt_corpus *c, size_t i, uint64_t size, int stamped,
                      const sgt_corpus_counts *counts);

/* Return whether a line of sources.jsonl, of which at least the beginning is given, describes a
 * document (kept.h), not a file. */
int sgt_corpus_is_document(const char *line);

/* ---- what a stream holds ----
 *
 * Tell by the first bytes of a stream what it holds, whatever its name. Packed streams are unpacked
 * first. Only these bytes decide, so the answer is the same for any number of threads and ranks,
 * and for resumed runs.
 *
 * Is it text? The first SGT_BINARY_PREFIX bytes tell:
 *
 *     const sgt_magic *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * A file that begins with the magic number of a known format, or with the byte order mark of UTF-16
 * or UTF-32, is not text. Neither is UTF-16 or UTF-32 without a mark, recognized by NUL bytes at
 * every second or fourth byte, nor a file that holds both a NUL byte and bytes that are not UTF-8.
 * U+0000 in UTF-8 is text.
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

/* Return what kind of file begins with p[n], or NULL if it is text. whole: p[n] is the entire file.
 * lines: the file is JSONL; only magic numbers are looked for, because the JSON parser reports
 * invalid bytes. */
const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

typedef enum sgt_form {
    SGT_FORM_TEXT,
    SGT_FORM_BRACE, /* text that begins with a brace, but is not JSON Lines */
    SGT_FORM_LINES, /* JSON Lines */
    SGT_FORM_ARRAY, /* a JSON array whose first element is an object with the field */
    SGT_FORM_MORE,  /* not known yet: more bytes are needed */
    SGT_FORM_OTHER  /* not text, or a JSON array, and to be left out */
} sgt_form;

/* Bytes of a stream that have been read but not used yet, malloc'd. */
typedef struct sgt_lookahead {
    uint8_t *bytes;
    size_t n, room;
    int end; /* 1: the stream has no bytes after these */
} sgt_lookahead;

struct sgt_source;
/* Read until *l has `want` bytes, or all bytes of the stream. path: the stream's name, for
 * errors. */
int sgt_lookahead_read(sgt_lookahead *l, struct sgt_source *s, size_t want, const char *path,
                       sgt_error *err);
/* Return the form (sgt_form) of s, the stream of f, and read as many bytes into *l as that takes;
 * *l holds all bytes of s that were read before. On failure return a negative SGT_E*, with its
 * message in *why. For SGT_FORM_OTHER, *why says what the stream is, without a path. If f->detect
 * is 0 (the name or the options fix the format), every form other than SGT_FORM_OTHER is returned
 * as SGT_FORM_TEXT. */
int sgt_stream_form(sgt_lookahead *l, struct sgt_source *s, const sgt_corpus *c,
                    const sgt_corpus_file *f, sgt_error *why);

/* Return the name of a file for messages: its path, or "standard input". */
static inline const char *sgt_corpus_shown(const sgt_corpus_file *f)
{
    return f->stream ? "standard input" : f->path;
}

/* Notify the user how f is read, if its first bytes told its form and it is not plain text. f is
 * the first of `count` such files; count 0: it is the only one. */
void sgt_form_notice(const sgt_notice *to, const sgt_corpus *c, const sgt_corpus_file *f,
                     sgt_form form, size_t count);

#endif
