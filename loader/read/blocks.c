/* blocks.c: see blocks.h. */
#include "loader/read/blocks.h"

#include <inttypes.h>
#include <stdlib.h>

struct sgt_blocks {
    const sgt_mix *mix;
    uint32_t windows; /* most windows that one fetch asks for */
    sgt_pool *pools[SGT_BLOCKS_SETS];
};

struct sgt_blocks_cursor {
    sgt_blocks *b;
    uint32_t n; /* number of windows left over by the last fetch */
    sgt_pool_cursor *pooled[SGT_BLOCKS_SETS];
    sgt_window *some; /* the windows of one set; then those left over */
    uint32_t *places; /* their indices among the fetched windows */
    const uint16_t **tokens;
};

int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_reader_options *o, sgt_error *err)
{
    *out = NULL;
    if (o->sampling != SGT_SAMPLING_BLOCK) return SGT_OK;
    if (o->mix->sets > SGT_BLOCKS_SETS) {
        sgt_say(&o->notice,
                "blocks of %" PRIu32 " sets would take too much memory: reading windows one by one",
                o->mix->sets);
        return SGT_OK;
    }
    sgt_blocks *b = calloc(1, sizeof *b);
    if (!b) return sgt_fail_memory(err, "pools of blocks");
    b->mix = o->mix;
    b->windows = o->windows;
    for (uint32_t i = 0; i < o->mix->sets; i++) {
        int rc = sgt_pool_open(&b->pools[i], rings, set, &o->mix->samplers[i],
                               o->mix->shards_before[i], err);
        if (rc == 0 && b->pools[i]) continue;
        sgt_blocks_close(b); /* other sets would give the same result: it depends on T alone */
        return rc;
    }
    *out = b;
    return SGT_OK;
}

void sgt_blocks_close(sgt_blocks *b)
{
    if (!b) return;
    for (uint32_t i = 0; i < b->mix->sets; i++) sgt_pool_close(b->pools[i]);
    free(b);
}

int sgt_blocks_cursor_open(sgt_blocks_cursor **out, sgt_blocks *b, sgt_error *err)
{
    sgt_blocks_cursor *c = calloc(1, sizeof *c);
    int rc = SGT_OK;
    if (c) {
        c->b = b;
        c->some = calloc(b->windows, sizeof *c->some);
        c->places = calloc(b->windows, sizeof *c->places);
        c->tokens = calloc(b->windows, sizeof *c->tokens);
    }
    if (!c || !c->some || !c->places || !c->tokens)
        rc = sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " windows: out of memory", b->windows);
    for (uint32_t i = 0; i < b->mix->sets && rc == 0; i++)
        rc = sgt_pool_cursor_open(&c->pooled[i], b->pools[i], b->windows, err);
    if (rc < 0) sgt_blocks_cursor_close(c);
    else *out = c;
    return rc;
}

void sgt_blocks_cursor_close(sgt_blocks_cursor *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->b->mix->sets; i++) sgt_pool_cursor_close(c->pooled[i]);
    free(c->some);
    free(c->places);
    free(c->tokens);
    free(c);
}

/* Fetch the windows of one set among several. */
static void fetch_set(sgt_blocks_cursor *c, uint32_t set, const sgt_window *windows, uint32_t n,
                      const uint16_t **tokens)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (sgt_mix_set_of(c->b->mix, windows[i].shard) != set) continue;
        c->some[k] = windows[i];
        c->places[k++] = i;
    }
    if (k) sgt_pool_fetch(c->pooled[set], c->some, k, c->tokens);
    for (uint32_t i = 0; i < k; i++) tokens[c->places[i]] = c->tokens[i];
}

uint32_t sgt_blocks_fetch(sgt_blocks_cursor *c, const sgt_window *windows, uint32_t n,
                          const uint16_t **tokens, const sgt_window **left, const uint16_t ***where)
{
    if (c->b->mix->sets == 1) sgt_pool_fetch(c->pooled[0], windows, n, tokens);
    else
        for (uint32_t i = 0; i < c->b->mix->sets; i++) fetch_set(c, i, windows, n, tokens);
    c->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (tokens[i]) continue;
        c->some[c->n] = windows[i];
        c->places[c->n++] = i;
    }
    *left = c->some;
    *where = c->tokens;
    return c->n;
}

void sgt_blocks_put(const sgt_blocks_cursor *c, const uint16_t **tokens)
{
    for (uint32_t i = 0; i < c->n; i++) tokens[c->places[i]] = c->tokens[i];
}
