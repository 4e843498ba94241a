/* live.c: the table of buffers and their uses. It is small (about twenty buffers per layer) and
 * searched only a few times per run, so it is not sorted. */
#include "train/memory/live.h"

#include <stdlib.h>
#include <string.h>

void sgt_live_free(sgt_live *l)
{
    free(l->buffers);
    free(l->spans);
    *l = (sgt_live){0};
}

/* Return `array` with room for one more element of `size` bytes, moved if needed. If memory runs
 * out, set `failed` and return NULL. */
static void *one_more(sgt_live *l, void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) return array;
    void *more = realloc(array, (2 * (size_t)*room + 64) * size);
    if (more) *room = 2 * *room + 64;
    else l->failed = 1;
    return more;
}

void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind)
{
    if (!bytes) return;
    sgt_live_buffer *b = one_more(l, l->buffers, l->count, &l->room, sizeof *b);
    if (!b) return;
    l->buffers = b;
    b[l->count++] = (sgt_live_buffer){.at = at, .bytes = bytes, .kind = kind};
}

/* Return the index of the buffer that begins at `at`; if there is none, set `failed` and return
 * l->count. */
static uint32_t find(sgt_live *l, const void *at)
{
    uint32_t i = 0;
    while (i < l->count && l->buffers[i].at != at) i++;
    if (i == l->count) l->failed = 1;
    return i;
}

void sgt_live_always(sgt_live *l, const void *at)
{
    uint32_t i = at ? find(l, at) : l->count;
    if (i < l->count) l->buffers[i].always = 1;
}

void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last)
{
    uint32_t i = at ? find(l, at) : l->count;
    if (i == l->count) return;
    sgt_live_span *s = one_more(l, l->spans, l->span_count, &l->span_room, sizeof *s);
    if (!s) return;
    l->spans = s;
    s[l->span_count++] = (sgt_live_span){i, first, last};
}

int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part)
{
    for (uint32_t i = 0; i < l->span_count; i++) {
        const sgt_live_span *s = l->spans + i;
        if (s->buffer == buffer && s->first <= part && part <= s->last) return 1;
    }
    return l->buffers[buffer].always;
}

int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part)
{
    for (uint32_t i = 0; i < l->span_count; i++) {
        const sgt_live_span *s = l->spans + i;
        if (s->buffer == buffer && s->first <= part && part < s->last) return 1;
    }
    return l->buffers[buffer].always;
}

void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS])
{
    memset(within, 0, SGT_LIVE_KINDS * sizeof *within);
    memset(after, 0, SGT_LIVE_KINDS * sizeof *after);
    for (uint32_t i = 0; i < l->count; i++) {
        const sgt_live_buffer *b = l->buffers + i;
        if (sgt_live_within(l, i, part)) within[b->kind] += b->bytes;
        if (sgt_live_after(l, i, part)) after[b->kind] += b->bytes;
    }
}
