/* decode.c: converts ids back to the bytes they came from. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/vocab/vocab.h"

int sgt_decode(const sgt_vocab *v, const uint16_t *ids, size_t count, char **text, size_t *n,
               sgt_error *err)
{
    const uint32_t size = sgt_vocab_size(v), *offsets = v->file ? v->file->offsets : v->offsets;
    const uint8_t *bytes = v->file ? v->file->bytes : v->bytes;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= size)
            return sgt_fail(err, SGT_EFORMAT,
                            "token %zu: id %u is not in the vocabulary %s (below %" PRIu32 ")", i,
                            ids[i], v->name, size);
        /* no overflow: a token has less than 64 KiB, so `ids` would not fit in memory before */
        total += offsets[ids[i] + 1] - offsets[ids[i]];
    }
    char *out = malloc(total + 1);
    if (!out) return sgt_fail(err, SGT_ENOMEM, "text of %zu tokens: out of memory", count);
    *text = out;
    *n = total;
    for (size_t i = 0; i < count; i++) {
        size_t len = offsets[ids[i] + 1] - offsets[ids[i]];
        memcpy(out, bytes + offsets[ids[i]], len);
        out += len;
    }
    *out = 0;
    return SGT_OK;
}
