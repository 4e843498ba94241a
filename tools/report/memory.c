/* memory.c: reads memory.jsonl: the memory in use, by kind, in each part of a step. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tools/report/report.h"

#define MOST ((size_t)64 << 20) /* most bytes of the file; 48 layers have 100 kB */
/* Most parts that are read; 48 layers have 400 for two micro-steps of two steps. */
#define PARTS 4096

/* Return the index of a kind of memory, which is added if it is new; -1 if there is no room for
 * it. */
static int place(report_memory *m, const char *kind)
{
    for (size_t i = 0; i < m->kind_count; i++)
        if (strncmp(m->kinds[i], kind, sizeof m->kinds[i] - 1) == 0) return (int)i;
    if (m->kind_count == SGT_MEMORY_KINDS) return -1;
    snprintf(m->kinds[m->kind_count], sizeof m->kinds[0], "%s", kind);
    return (int)m->kind_count++;
}

static void take(report_memory *m, json_t *line)
{
    const char *kind, *part = json_string_value(json_object_get(line, "part"));
    json_t *bytes, *used = json_object_get(line, "used");
    if (!part || !json_is_object(used) || m->count == PARTS) return;
    report_part *p = &m->parts[m->count++];
    *p = (report_part){.step = (uint64_t)json_integer_value(json_object_get(line, "step")),
                       .micro_step =
                           (uint64_t)json_integer_value(json_object_get(line, "micro_step"))};
    snprintf(p->name, sizeof p->name, "%s", part);
    json_object_foreach(used, kind, bytes)
    {
        int i = place(m, kind);
        if (i >= 0 && json_integer_value(bytes) > 0)
            p->used[i] = (uint64_t)json_integer_value(bytes);
    }
}

int report_memory_read(report_memory *m, const char *path, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    *m = (report_memory){0};
    sgt_error why;
    int rc = sgt_file_get(&text, &n, path, MOST, &why);
    if (rc < 0) return rc == SGT_ENOMEM ? sgt_fail(err, rc, "%s", why.text) : SGT_OK;
    m->parts = calloc(PARTS, sizeof *m->parts);
    if (!m->parts) {
        free(text);
        return sgt_fail_memory(err, path);
    }
    for (char *at = text, *end; (end = memchr(at, '\n', n - (size_t)(at - text))); at = end + 1) {
        json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
        take(m, line);
        json_decref(line);
    }
    free(text);
    return SGT_OK;
}

uint64_t report_memory_most(const report_memory *m, size_t kind)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->parts[i].used[kind] > most) most = m->parts[i].used[kind];
    return most;
}
