/* corpus.h: list the files to read. Every INPUT is checked once, before anything is written.
 *
 *     sgt_corpus *c;
 *     sgt_tokenize_options o = {.inputs = inputs, .input_count = n, .out = "out"};
 *     if (sgt_corpus_list(&c, &o, &err) < 0) ...;
 *     for (size_t i = 0; i < c->count; i++) use(c->files[i].path);
 *     sgt_corpus_free(c);
 *
 * INPUTs keep the given order; the files of a folder come in byte order of their path below it.
 * Symbolic links to files and folders are followed; a link back to a folder that contains it is an
 * error. A path that is neither file nor folder is skipped with a notice inside a folder, and is an
 * error as an INPUT. A folder without a file is an error, and so is an unreadable file. OUT is
 * never read: an INPUT that is OUT or lies in it is refused, and an OUT below an INPUT is skipped.
 *
 * The INPUT @LIST is a file of paths, one per line, each treated like an INPUT, except that a file
 * that is not text is skipped. @- is such a list on standard input. Blank lines are skipped. A byte
 * order mark at the beginning and a CR before a newline are not part of a path. If the first 4 KiB
 * hold a NUL, paths end in NULs instead. A list in UTF-16 or UTF-32 is an error that says so.
 *
 * Two kinds of files are left out, with a notice. Without --hidden they are names below a folder
 * that begin with a dot, and _SUCCESS, _metadata and _common_metadata. With --binary skip they are
 * files that are not text (below), unless a filter reads them. Such a file given as an INPUT is an
 * error, and so is a corpus with no file left.
 *
 * The name says what a file holds. The first filter for a name reads it. Otherwise .gz and .zst are
 * packed, and with the format auto .jsonl and .ndjson are JSONL, packed or not, and .parquet is
 * Parquet. Case is ignored. With the format auto the first bytes tell, too: gzip and zstd by their
 * magic numbers; JSONL by its first lines (below), with a notice; and with --binary skip, Parquet by
 * PAR1 at its beginning and end, and a JSON array, which is left out. */
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

#define SGT_KEPT_NAMES 16 /* maximum number of fields */

/* Fields that sources.jsonl keeps of each document (kept.h). */
typedef struct sgt_kept_names {
    char *text;                        /* all names, each with a NUL behind it; malloc'd */
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
    /* more of its stat: they and `mtime` tell whether it has been changed (feed.h) */
    uint64_t inode;
    int64_t nanoseconds;
    int stream;               /* 1: the file is standard input */
    sgt_pack pack;            /* compression of the bytes on disk */
    const sgt_filter *filter; /* filter whose output is read instead of the file; NULL: none */
    /* not 0: JSONL, one document per line; otherwise the file is one document of text. 2: its first
     * lines tell, which sources.jsonl says */
    int lines;
    /* 1: the first bytes tell whether it is JSONL; of standard input and files with a filter,
     * `lines` is set when their turn comes (feed.h) */
    int detect;
    int rows;     /* 1: Parquet, one document per row */
    int skip_bad; /* 1: damage ends a packed file, and makes rows bad (--skip-bad) */
    /* bytes from ... end - 1 of a Parquet file that ranks divide: the row groups that have their
     * middle there are read (parquet.h); end 0: to its end */
    uint64_t from, end;
    /* a text file that goes to the val, or the train, split whatever its hash says
     * (sgt_text_feed_choose) */
    int val, train;
} sgt_corpus_file;

typedef struct sgt_corpus {
    sgt_corpus_file *files;
    size_t count, room;
    size_t line_files;  /* number of JSONL and Parquet files */
    size_t row_files;   /* number of Parquet files */
    const char *field;  /* field of JSONL, or column of Parquet, that holds the text */
    sgt_json_path path; /* that of the field */
    sgt_kept_names kept;
    sgt_filter *filters;
    size_t filter_count;
    uint64_t bytes;   /* bytes of all files */
    uint64_t skipped; /* files left out because they are not text */
    int skip_binary;  /* --binary skip: standard input is checked later, when it is read */
    /* 1: one file is standard input. `size` and `bytes` leave it out, and the run cannot be
     * resumed */
    int stream;
    /* 1: a file is standard input, packed, filtered or Parquet, so `bytes` does not tell how much
     * text there is */
    int unsized;
} sgt_corpus;

/* Return whether the file's stream is made by unpacking or by a filter. Such a stream can only be
 * read from its beginning. */
static inline int sgt_corpus_made(const sgt_corpus_file *f)
{
    return f->pack != SGT_PACK_NONE || f->filter;
}

/* Return whether positions in the file are byte offsets on disk, at any of which reading can
 * begin. */
static inline int sgt_corpus_sought(const sgt_corpus_file *f)
{
    return !sgt_corpus_made(f) && !f->rows;
}

/* Return the bytes of the file that are to be read, for progress. */
static inline uint64_t sgt_corpus_share(const sgt_corpus_file *f)
{
    return (f->end ? f->end : f->size) - f->from;
}

/* List the inputs that the options name. o->out need not exist. */
int sgt_corpus_list(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err);
void sgt_corpus_free(sgt_corpus *c);

/* Upper bound of the bytes of a line of sources.jsonl or inputs.jsonl: each byte of a path takes at
 * most seven, and some numbers follow. */
#define SGT_CORPUS_LINE ((size_t)1 << 15)

/* Return the name of file i as it stands in JSON, {"path": ...}; NULL: out of memory. In a name that
 * is not UTF-8, the wrong bytes are written \xNN, and "path_bytes" has the whole name in hex. */
json_t *sgt_corpus_json_name(const sgt_corpus *c, size_t i);

/* What sources.jsonl says of a file when it has been read. */
typedef struct sgt_corpus_counts {
    uint64_t documents, bytes, tokens;
    uint64_t hash; /* of what was read of it (feed.h) */
} sgt_corpus_counts;

/* Return a line of sources.jsonl for file i, malloc'd; NULL: out of memory. With the counts: the whole
 * line, with its newline. Without them: its beginning, {"path": ..., "size": N, and if `stamped`, also
 * the time stamp and `stat`: a hash of inode and time, in hex, which tells whether the file has been
 * changed (feed.h). A file of which only a part is read also has "range", its bytes. */
char *sgt_corpus_line(const sgt_corpus *c, size_t i, uint64_t size, int stamped,
                      const sgt_corpus_counts *counts);

/* Return whether a line of sources.jsonl, of which at least the beginning is given, is about a
 * document (kept.h), and not about a file. */
int sgt_corpus_is_document(const char *line);

/* ---- what a stream holds ----
 *
 * Find out by the first bytes of a stream what it holds, whatever its name. Streams are
 * unpacked if they are packed. Only these bytes decide, so the answer is the same for any threads,
 * ranks and resumed runs.
 *
 * Whether it is text: the first SGT_BINARY_PREFIX bytes tell.
 *
 *     const sgt_magic *b = sgt_binary_of(bytes, n, n < SGT_BINARY_PREFIX, 0);
 *     if (b) printf("%s: %s, not UTF-8 text (%s)\n", path, b->what, b->hint);
 *
 * A file that begins with the magic number of a known format or with the byte order mark of UTF-16
 * or UTF-32 is not text. Neither is UTF-16 or UTF-32 without a mark, which NUL bytes at every second
 * or fourth place tell, nor a file that holds both a NUL byte and bytes that are not UTF-8. U+0000
 * in UTF-8 is text.
 *
 * Whether it is JSON Lines, and both:
 *
 *     sgt_lookahead l = {0};
 *     int form = sgt_stream_form(&l, source, corpus, &corpus->files[i], &why);
 *
 * A stream is JSON Lines if its first line, and the second if there is one, is an object whose
 * field is a string. Blank lines do not count. A line without a newline counts only at the end of
 * the stream. At most 16 MiB decide, so a stream whose first line is longer is text. */

#define SGT_BINARY_PREFIX ((size_t)64 << 10) /* bytes examined */

/* Return what the file that begins with p[n] is, or NULL if it is text. whole: p[n] is the entire
 * file. lines: the file is JSONL; only magic numbers are looked for, because the JSON parser
 * reports invalid bytes. */
const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines);

typedef enum sgt_form {
    SGT_FORM_TEXT,
    SGT_FORM_BRACE, /* text that begins with a brace */
    SGT_FORM_LINES, /* JSON Lines */
    SGT_FORM_ARRAY, /* a JSON array, whose first element is an object with that field */
    SGT_FORM_MORE,  /* not known yet: more bytes are needed */
    SGT_FORM_OTHER  /* not text, or such an array, and to be left out */
} sgt_form;

/* Bytes of a stream that have been read and not been used, malloc'd. */
typedef struct sgt_lookahead {
    uint8_t *bytes;
    size_t n, room;
    int end; /* 1: the stream has no bytes after these */
} sgt_lookahead;

struct sgt_source;
/* Read on until there are `want` bytes, or all. path: of the stream, for errors. */
int sgt_lookahead_read(sgt_lookahead *l, struct sgt_source *s, size_t want, const char *path,
                       sgt_error *err);
/* Return what s holds, the stream of f, of which nothing has been read but *l, and read as much of
 * it as that takes; or a negative SGT_E* with its message in *why. For SGT_FORM_OTHER, *why says
 * what it is, without a path. If the format is not open (f->detect), all but that is text. */
int sgt_stream_form(sgt_lookahead *l, struct sgt_source *s, const sgt_corpus *c,
                    const sgt_corpus_file *f, sgt_error *why);

/* Return the name of a file for messages: its path, or "standard input". */
static inline const char *sgt_corpus_shown(const sgt_corpus_file *f)
{
    return f->stream ? "standard input" : f->path;
}

/* Say how f is read, whose form its first bytes told, unless it is plain text. f is the first of
 * `count` such files; count 0: there is only this one. */
void sgt_form_notice(const sgt_notice *to, const sgt_corpus *c, const sgt_corpus_file *f,
                     sgt_form form, size_t count);

#endif
