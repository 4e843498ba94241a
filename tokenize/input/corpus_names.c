/* corpus_names.c: the files of a corpus as JSON. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/shards/json_dumps.h"
#include "tokenize/input/corpus.h"
#include "tokenize/text/utf8.h"

/* Return `text` as a malloc'd JSON string. */
static char *json_text(const char *text)
{
    json_t *s = json_string(text);
    char *json = s ? sgt_json_dumps(s, JSON_ENCODE_ANY) : NULL;
    json_decref(s);
    return json;
}

static char *hex(const char *s, size_t n)
{
    char *text = malloc(2 * n + 1);
    for (size_t i = 0; text && i < n; i++) sprintf(text + 2 * i, "%02x", (unsigned char)s[i]);
    return text;
}

char *sgt_corpus_json_name(const sgt_corpus *c, size_t i)
{
    const char *name = c->files[i].name;
    char *field = NULL, *path = NULL, *bytes = NULL, *shown = NULL;
    /* each byte takes at most the four characters of \xNN */
    size_t n = strlen(name), room = 4 * n + 1;
    int valid = sgt_utf8_valid((const uint8_t *)name, n) == n;
    if (!valid && (!(shown = malloc(room)) || !(bytes = hex(name, n)))) goto done;
    if (!(path = json_text(valid ? name : sgt_printable(shown, room, name)))) goto done;
    int rc = valid ? asprintf(&field, "\"path\": %s", path)
                   : asprintf(&field, "\"path\": %s, \"path_bytes\": \"%s\"", path, bytes);
    if (rc < 0) field = NULL;
done:
    free(path);
    free(bytes);
    free(shown);
    return field;
}

char *sgt_corpus_describe(const sgt_corpus *c, size_t i, uint64_t size)
{
    const sgt_corpus_file *f = &c->files[i];
    char *line = NULL, *name = sgt_corpus_json_name(c, i), rows[80] = "";
    const char *format = f->lines == 2 ? " \"format\": \"jsonl\"," : "";
    if (f->from_row || f->end_row)
        snprintf(rows, sizeof rows, " \"rows\": [%" PRIu64 ", %" PRIu64 "],", f->from_row,
                 f->end_row);
    if (name && asprintf(&line, "{%s, \"size\": %" PRIu64 ",%s%s", name, size, format, rows) < 0)
        line = NULL;
    free(name);
    return line;
}

char *sgt_corpus_input(const sgt_corpus *c, size_t i)
{
    const sgt_corpus_file *f = &c->files[i];
    char *line = NULL, *begin = sgt_corpus_describe(c, i, f->size);
    if (begin && asprintf(&line,
                          "%s \"mtime\": %" PRId64 ", \"nanoseconds\": %" PRId64
                          ", \"device\": %" PRIu64 ", \"inode\": %" PRIu64 "}\n",
                          begin, f->mtime, f->nanoseconds, f->device, f->inode) < 0)
        line = NULL;
    free(begin);
    return line;
}

char *sgt_corpus_source(const sgt_corpus *c, size_t i, uint64_t size, const sgt_corpus_counts *n)
{
    char *line = NULL, *begin = sgt_corpus_describe(c, i, size);
    if (begin &&
        asprintf(&line,
                 "%s \"mtime\": %" PRId64 ", \"documents\": %" PRIu64 ", \"bytes\": %" PRIu64
                 ", \"tokens\": %" PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}\n",
                 begin, n->mtime, n->documents, n->bytes, n->tokens, n->hash) < 0)
        line = NULL;
    free(begin);
    return line;
}

int sgt_corpus_is_document(const char *line)
{
    static const char begin[] = "{\"document\": ";
    return !strncmp(line, begin, sizeof begin - 1);
}
