/* kept.c: the names of the fields, and their values in a line of JSONL. */
#include "tokenize/input/kept.h"

#include <stdlib.h>
#include <string.h>

#include "tokenize/text/utf8.h"

/* Return why the name, which stands in JSON as it is, cannot be kept; NULL: it can. */
static const char *wrong_name(const sgt_kept_names *k, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < k->count; i++)
        if (!strcmp(name, k->names[i])) return "is there twice";
    if (sgt_utf8_valid((const uint8_t *)name, n) < n) return "is not UTF-8";
    for (size_t i = 0; i < n; i++)
        if (name[i] == '"' || name[i] == '\\' || (unsigned char)name[i] < 0x20)
            return "holds a quote, a backslash or a control character";
    return NULL;
}

int sgt_kept_names_set(sgt_kept_names *k, const char *list, sgt_error *err)
{
    *k = (sgt_kept_names){.count = 0};
    for (const char *at = list; at;) {
        const size_t n = strcspn(at, ",");
        if (k->count == SGT_KEPT_NAMES)
            return sgt_fail(err, SGT_EUSAGE, "keep-fields: more than %d names", SGT_KEPT_NAMES);
        char *name = strndup(at, n);
        if (!name) return sgt_fail_memory(err, "keep-fields");
        const char *why = wrong_name(k, name);
        if (why) {
            const int rc = sgt_fail(err, SGT_EUSAGE, "keep-fields: \"%s\" %s", name, why);
            free(name);
            return rc;
        }
        k->names[k->count++] = name;
        sgt_error said;
        if (sgt_json_path_set(&k->paths[k->count - 1], name, &said) < 0)
            return sgt_fail(err, SGT_EUSAGE, "keep-fields: %s", said.text);
        at = at[n] ? at + n + 1 : NULL;
    }
    return SGT_OK;
}

void sgt_kept_names_free(sgt_kept_names *k)
{
    for (size_t i = 0; i < k->count; i++) free(k->names[i]);
    k->count = 0;
}

static int append(sgt_unit *u, const void *bytes, size_t n, sgt_error *err)
{
    if (n > u->kept_room - u->kept_used) {
        const size_t room = 2 * (u->kept_used + n);
        char *more = realloc(u->kept, room);
        if (!more) return sgt_fail_memory(err, "fields to keep");
        u->kept = more;
        u->kept_room = room;
    }
    if (n) memcpy(u->kept + u->kept_used, bytes, n);
    u->kept_used += n;
    return SGT_OK;
}

static int append_text(sgt_unit *u, const char *text, sgt_error *err)
{
    return append(u, text, strlen(text), err);
}

int sgt_kept_line(const sgt_kept_names *k, uint8_t *line, sgt_unit *u, sgt_part *p, sgt_error *err)
{
    int rc = SGT_OK;
    p->kept = u->kept_used;
    for (size_t i = 0; i < k->count && !rc; i++) {
        size_t at, n;
        const char *why = sgt_json_value(&k->paths[i], line, u->scratch, &at, &n);
        rc = append_text(u, i ? ", \"" : "{\"", err);
        if (!rc) rc = append_text(u, k->names[i], err);
        if (!rc) rc = append_text(u, "\": ", err);
        if (!rc) rc = why || !n ? append_text(u, "null", err) : append(u, line + at, n, err);
    }
    if (!rc) rc = append_text(u, "}", err);
    p->kept_length = u->kept_used - p->kept;
    return rc;
}
