/* step_parts.c: computes milliseconds per part of a step (embeddings, forward and backward pass of
 * the blocks, head, update) from a trace of some steps. A trace's events are in the order of their
 * beginnings. */
#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/step.h"
#include "train/log/trace.h"

/* Write the name of the part that a trace event belongs to: for "h.11 forward" it is "blocks
 * forward". */
static void name_part(char *out, size_t size, const char *name)
{
    size_t at = 2;
    while (strncmp(name, "h.", 2) == 0 && isdigit((unsigned char)name[at])) at++;
    int block = at > 2 && name[at] == ' ';
    snprintf(out, size, "%s%s", block ? "blocks" : "", block ? name + at : name);
}

/* Milliseconds of each part in each step, summed. The update is the last part of a step. */
typedef struct part_times {
    double ms[STEP_PARTS][SGT_TRACE_STEPS];
    size_t steps; /* number of complete steps */
} part_times;

static void add_part(step_result *r, part_times *times, const char *name, double ms)
{
    char part[sizeof r->parts[0].name];
    size_t i = 0;
    name_part(part, sizeof part, name);
    while (i < r->part_count && strcmp(r->parts[i].name, part) != 0) i++;
    if (i == STEP_PARTS || times->steps == SGT_TRACE_STEPS) return;
    if (i == r->part_count) snprintf(r->parts[r->part_count++].name, sizeof part, "%s", part);
    times->ms[i][times->steps] += ms;
    times->steps += strcmp(part, "update") == 0;
}

/* Return whether events of this category are parts of a step. */
static int is_part(const char *category)
{
    static const char *const names[] = {"forward",  "head",      "recompute",
                                        "backward", "optimizer", NULL};
    int i = 0;
    while (names[i] && strcmp(names[i], category) != 0) i++;
    return names[i] != NULL;
}

static const char *text_of(json_t *event, const char *key)
{
    const char *s = json_string_value(json_object_get(event, key));
    return s ? s : "";
}

int bench_step_parts(step_result *r, const char *path, sgt_error *err)
{
    json_error_t why;
    json_t *top = json_load_file(path, 0, &why), *events = json_object_get(top, "traceEvents"), *e;
    size_t i;
    part_times times = {.steps = 0};
    if (!events) {
        json_decref(top);
        return sgt_fail(err, SGT_EIO, "%s: not a trace: %s", path, why.text);
    }
    json_array_foreach(events, i, e) if (is_part(text_of(e, "cat")))
        add_part(r, &times, text_of(e, "name"), json_number_value(json_object_get(e, "dur")) / 1e3);
    json_decref(top);
    for (i = 0; i < r->part_count; i++) r->parts[i].ms = bench_median(times.ms[i], times.steps);
    return SGT_OK;
}
