/* sources.c: lines of files are copied, but for those of a file that several ranks have read. */
#include "tokenize/parts/sources.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"

static int add_counts(sgt_corpus_counts *c, const char *line, size_t n, const char *path,
                      sgt_error *err)
{
    json_int_t mtime, documents, bytes, tokens;
    const char *hash;
    json_t *o = json_loadb(line, n, JSON_ALLOW_NUL, NULL);
    const int bad =
        !o || json_unpack(o, "{s:I, s:I, s:I, s:I, s:s}", "mtime", &mtime, "documents", &documents,
                          "bytes", &bytes, "tokens", &tokens, "xxh3", &hash) < 0;
    /* only Parquet is cut, and its hash is a sum */
    if (!bad) c->hash += strtoull(hash, NULL, 16);
    json_decref(o);
    if (bad) return sgt_fail(err, SGT_EFORMAT, "%s: a line is damaged (--force starts over)", path);
    c->mtime = mtime;
    c->documents += (uint64_t)documents;
    c->bytes += (uint64_t)bytes;
    c->tokens += (uint64_t)tokens;
    return SGT_OK;
}

/* Write the line of a file that was cut. */
static int put_counts(sgt_part_sources *s, size_t file, const char *path, sgt_error *err)
{
    char *line = sgt_corpus_source(s->corpus, file, s->corpus->files[file].size, &s->counts);
    if (!line) return sgt_fail_memory(err, path);
    const int rc = fputs(line, s->to) < 0 ? sgt_fail_errno(err, "%s", path) : SGT_OK;
    free(line);
    s->counts = (sgt_corpus_counts){0};
    return rc;
}

int sgt_part_sources_add(sgt_part_sources *s, uint32_t rank, const char *path, sgt_error *err)
{
    const sgt_cut from = s->cuts[rank], to = s->cuts[rank + 1];
    size_t file = from.file, room = 0;
    char *line = NULL;
    FILE *f = NULL;
    int rc = sgt_file_lines(&f, path, err);
    for (ssize_t n; !rc && (n = getline(&line, &room, f)) > 0;) {
        const int begins = !(file == from.file && from.row), ends = file != to.file;
        const int whole = sgt_corpus_is_document(line) || (begins && ends);
        if (whole && fwrite(line, 1, (size_t)n, s->to) < (size_t)n)
            rc = sgt_fail_errno(err, "%s", path);
        if (!whole) rc = add_counts(&s->counts, line, (size_t)n, path, err);
        if (!rc && !whole && ends) rc = put_counts(s, file, path, err);
        file += !sgt_corpus_is_document(line);
    }
    /* getline also returns -1 if memory runs out, without an error of the stream */
    if (!rc && !feof(f)) rc = sgt_fail_errno(err, "%s", path);
    if (f) fclose(f);
    free(line);
    return rc;
}
