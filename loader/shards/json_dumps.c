/* json_dumps.c: see json_dumps.h. A first pass counts the bytes, a second pass writes them. */
#include "loader/shards/json_dumps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

char *sgt_json_dumps(const json_t *json, size_t flags)
{
    size_t n = json ? json_dumpb(json, NULL, 0, flags) : 0; /* 0: JSON cannot express the value */
    char *text = n ? malloc(n + 1) : NULL;
    if (!text) return NULL;
    if (json_dumpb(json, text, n, flags) != n) {
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

json_t *sgt_json_hex(uint64_t v)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, v);
    return json_string(text);
}
