/* memory_log.c: writes the lines of memory.jsonl. The backend knows from its layout which buffers
 * are live, the same in every step, so nothing is measured during computation. */
#include "train/memory/memory_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct page {
    const sgt_backend *b;
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    unsigned layers;
    uint64_t micro_steps;
    FILE *out;
} page;

static void put_kinds(const page *p, const char *name, const uint64_t *bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) sum += bytes[i];
    fprintf(p->out, ",\"%s_bytes\":%" PRIu64 ",\"%s\":{", name, sum, name);
    for (size_t i = 0; i < p->count; i++)
        fprintf(p->out, "%s\"%s\":%" PRIu64, i ? "," : "", p->kinds[i].name, bytes[i]);
    fputs("}", p->out);
}

/* Write the name of a part of a step. */
static void put_name(const page *p, unsigned part)
{
    unsigned L = p->layers;
    if (part == 0) fputs("\"embeddings forward\"", p->out);
    else if (part <= sgt_part_forward(L - 1))
        fprintf(p->out, "\"forward\",\"layer\":%u", part - sgt_part_forward(0));
    else if (part == sgt_part_head(L)) fputs("\"head\"", p->out);
    else if (part <= sgt_part_backward(L, 0))
        fprintf(p->out, "\"backward\",\"layer\":%u", sgt_part_backward(L, 0) - part);
    else fputs(part == sgt_part_embeddings(L) ? "\"embeddings backward\"" : "\"update\"", p->out);
}

static void put_part(const page *p, uint64_t step, uint64_t micro, unsigned part)
{
    uint64_t used[SGT_LIVE_KINDS], live[SGT_LIVE_KINDS];
    p->b->live(p->b, part, micro > 0, used, live);
    fprintf(p->out, "{\"step\":%" PRIu64 ",\"micro_step\":%" PRIu64 ",\"part\":", step, micro);
    put_name(p, part);
    put_kinds(p, "live", live);
    put_kinds(p, "used", used);
    fputs("}\n", p->out);
}

static void put_step(const page *p, uint64_t step)
{
    uint64_t last = p->micro_steps - 1;
    for (uint64_t micro = 0; micro <= last; micro = micro < last ? last : last + 1)
        for (unsigned part = 0; part <= sgt_part_embeddings(p->layers); part++)
            put_part(p, step, micro, part);
    put_part(p, step, last, sgt_part_update(p->layers));
}

static int write_log(const sgt_trainer *t, uint64_t first, uint64_t steps, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    page p = {.b = t->backend, .layers = t->model.layers, .micro_steps = t->plan.backend.accum};
    p.count = p.b->memory(p.b, p.kinds);
    p.out = open_memstream(&text, &n);
    for (uint64_t s = first; s < first + steps && p.out; s++) put_step(&p, s);
    int failed = !p.out || (ferror(p.out) | fclose(p.out));
    int rc = failed ? sgt_fail(err, SGT_ENOMEM, "%s/memory.jsonl: out of memory", t->o->run)
                    : sgt_run_memory(t->run, text, err);
    free(text);
    return rc;
}

int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err)
{
    uint64_t wanted = SGT_MEMORY_LOG_SKIPS + SGT_MEMORY_LOG_STEPS;
    if (!t->run || !t->backend->live || made <= SGT_MEMORY_LOG_SKIPS || made > wanted)
        return SGT_OK;
    if (made < wanted && !last) return SGT_OK;
    return write_log(t, t->state.step + SGT_MEMORY_LOG_SKIPS, made - SGT_MEMORY_LOG_SKIPS, err);
}
