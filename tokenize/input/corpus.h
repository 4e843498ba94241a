/* corpus.h: the list of what will be read. Every INPUT is looked at once, before anything is
 * written.
 *
 *     sgt_corpus *c;
 *     if (sgt_corpus_list(&c, &(sgt_corpus_request){.inputs = inputs, .count = n, .out = "out"}, &err) < 0) ...;
 *     for (size_t i = 0; i < c->count; i++) use(c->files[i].path);
 *     sgt_corpus_free(c);
 *
 * INPUTs come in the order given, the files of a folder in byte order of their path below it.
 * Symbolic links are followed, to files and to folders; a link back to a folder it lies in is an
 * error. What is neither file nor folder is skipped with a notice inside a folder, and is an error
 * as an INPUT. A folder without a file is an error, and so is a file that may not be read. OUT is
 * never read: an INPUT that is OUT or lies in it is refused, and below an INPUT it is passed over.
 *
 * @LIST as an INPUT is a file of paths, one a line, each of which is as an INPUT would be (@- is a
 * list on standard input). Blank lines are passed over.
 *
 * Two kinds of names may be left out, with a notice: with skip_hidden those below a folder that
 * begin with a dot; with skip_binary files that are not text (binary.h), unless a filter reads
 * them. Such a file as an INPUT itself is an error, and so is a corpus of which nothing is left.
 *
 * Names tell what files hold: the first filter for a name reads it; else .gz and .zst are packed,
 * and .jsonl and .ndjson, whether packed or not, are JSONL where the format is auto. Upper case is
 * no different. */
#ifndef SGT_CORPUS_H
#define SGT_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "filter.h"
#include "sgt_tokenize.h"

typedef enum sgt_pack { SGT_PACK_NONE, SGT_PACK_GZ, SGT_PACK_ZST, SGT_PACKS } sgt_pack;

typedef struct sgt_corpus_file {
    char *path; /* to open: INPUT, or INPUT/name; "-" for standard input */
    /* within path: relative to its INPUT, or the last component of an INPUT that is a file */
    const char *name;
    uint64_t size;            /* bytes; 0 for standard input */
    int64_t mtime;            /* seconds since 1970; 0 for standard input */
    int stream;               /* is standard input */
    sgt_pack pack;            /* of the bytes on disk */
    const sgt_filter *filter; /* whose output is read in the file's place; NULL: none */
    int lines;                /* JSONL, a document a line; else all of it is one document of text */
    /* text that goes to the val split, whatever its hash says (sgt_text_feed_choose) */
    int val;
} sgt_corpus_file;

typedef struct sgt_corpus {
    sgt_corpus_file *files;
    size_t count, room;
    size_t line_files; /* of JSONL */
    sgt_filter *filters;
    size_t filter_count;
    uint64_t bytes;   /* of all files */
    uint64_t skipped; /* files left out because they are not text */
    int skip_binary;  /* as the request had it: a stream is looked at when it is read */
    /* standard input is among them: neither size nor bytes know it, and a run cannot be resumed */
    int stream;
    /* a stream, a packed or a filtered file is: bytes do not tell how much will be tokenized */
    int unsized;
} sgt_corpus;

typedef struct sgt_corpus_request {
    const char *const *inputs;
    size_t count;
    const char *out; /* the folder that will be written; it need not exist */
    sgt_format format;
    const char *const *filters; /* filter.h */
    size_t filter_count;
    int skip_binary, skip_hidden;
    sgt_notice notice;
    const sgt_stop *stop;
} sgt_corpus_request;

/* What is read of a file is not the bytes on disk, but made from them: its stream has no place to
 * go to directly. */
static inline int sgt_corpus_made(const sgt_corpus_file *f)
{
    return f->pack != SGT_PACK_NONE || f->filter;
}

int sgt_corpus_list(sgt_corpus **out, const sgt_corpus_request *r, sgt_error *err);
/* what these options ask for */
int sgt_corpus_of(sgt_corpus **out, const sgt_tokenize_options *o, sgt_error *err);
void sgt_corpus_free(sgt_corpus *c);

/* Bytes of a line of sources.jsonl or inputs.jsonl, with room to spare: a path's, of each of which
 * there are seven at most, and some numbers. */
#define SGT_CORPUS_LINE ((size_t)1 << 15)

/* The name of file i as it stands in JSON, "path": "...", malloc'd; NULL: out of memory. A name
 * that is not UTF-8 has its odd bytes as \xNN there, and all of it follows in hex as
 * "path_bytes". */
char *sgt_corpus_json_name(const sgt_corpus *c, size_t i);

/* The line of sources.jsonl for file i up to its time stamp: {"path": ..., "size": N, malloc'd;
 * NULL: out of memory. */
char *sgt_corpus_describe(const sgt_corpus *c, size_t i, uint64_t size);

#endif
