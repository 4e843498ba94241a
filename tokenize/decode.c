/* decode.c: ids back to the bytes they came from. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vocab.h"

int sgt_decode(const sgt_vocab *v, const uint16_t *ids, size_t count, char **text, size_t *n, sgt_error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= v->size)
            return sgt_fail(err, SGT_EFORMAT, "token %zu: id %u is not in the vocabulary %s (below %" PRIu32 ")", i,
                            ids[i], v->name, v->size);
        total += sgt_vocab_length(v, ids[i]); /* a token is under 64 KiB: no overflow before memory ends */
    }
    char *out = malloc(total + 1);
    if (!out) return sgt_fail(err, SGT_ENOMEM, "text of %zu tokens: out of memory", count);
    *text = out;
    *n = total;
    for (size_t i = 0; i < count; i++) {
        size_t len = sgt_vocab_length(v, ids[i]);
        memcpy(out, v->bytes + v->offsets[ids[i]], len);
        out += len;
    }
    *out = 0;
    return SGT_OK;
}
