/* trace.h: write a trace to t.json in the test's folder, and read it. */
#ifndef SGT_TESTS_TRACE_H
#define SGT_TESTS_TRACE_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"
#include "train/log/trace.h"

SCOPED_POINTER(sgt_trace, sgt_trace_close)

static inline sgt_trace *start(uint64_t first, uint64_t steps)
{
    sgt_trace *t = NULL;
    sgt_trace_options o = {.first = first, .steps = steps, .notice = {hear, said}};
    said[0] = '\0';
    must(sgt_trace_open(&t, in_folder("t.json"), &o, why));
    return t;
}

static inline void step(sgt_trace *t, uint64_t s) { must(sgt_trace_step(t, s, why)); }

static inline json_t *end(sgt_trace *t)
{
    json_error_t wrong;
    must(sgt_trace_finish(t, why));
    sgt_trace_close(t);
    json_t *all = json_load_file(in_folder("t.json"), JSON_REJECT_DUPLICATES, &wrong);
    cr_assert(all, "%s, line %d", wrong.text, wrong.line);
    return all;
}

static inline const char *text(const json_t *e, const char *key)
{
    return json_string_value(json_object_get(e, key));
}
static inline int64_t whole(const json_t *e, const char *key)
{
    return json_integer_value(json_object_get(e, key));
}
static inline int64_t ns(const json_t *e, const char *key)
{
    return llround(json_real_value(json_object_get(e, key)) * 1e3);
}
static inline int64_t other(const json_t *all, const char *key)
{
    return whole(json_object_get(all, "otherData"), key);
}

/* Return event number n of a phase ("ph"), or NULL if there is none. If n < 0, store the number of
 * such events in *count. */
static inline json_t *event(const json_t *all, const char *phase, int n, int *count)
{
    size_t i;
    json_t *e;
    int seen = 0;
    json_array_foreach(json_object_get(all, "traceEvents"), i,
                       e) if (strcmp(text(e, "ph"), phase) == 0 && seen++ == n) return e;
    if (count) *count = seen;
    return NULL;
}

static inline int events(const json_t *all, const char *phase)
{
    int count;
    event(all, phase, -1, &count);
    return count;
}

#endif
