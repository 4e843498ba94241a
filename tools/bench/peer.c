/* peer.c: runs torch_step.py and reads its result, one line of JSON. */
#include "tools/bench/peer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/script.h"

BENCH_EMBED(sgt_torch_step, "tests/peers/torch_step.py");

/* Environment for PyTorch. By default glibc returns large blocks to the kernel at every step,
 * and PyTorch then waits for page faults: it is up to 1.9 times slower on a CPU without these
 * settings. */
static const char *const settings[] = {
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=34359738368:glibc.malloc.trim_threshold="
    "34359738368:glibc.malloc.hugetlb=1",
    "THP_MEM_ALLOC_ENABLE=1", NULL};

typedef struct command {
    char shape[48], batch[16], seq[16], steps[16], accum[16];
    const char *args[15];
} command;

static void fill_command(command *k, const peer_run *p)
{
    const sgt_backend_options *o = p->backend;
    snprintf(k->shape, sizeof k->shape, "%ux%ux%u", o->model.layers, o->model.channels,
             o->model.heads);
    snprintf(k->batch, sizeof k->batch, "%u", o->batch);
    snprintf(k->seq, sizeof k->seq, "%u", o->seq);
    snprintf(k->steps, sizeof k->steps, "%u", p->steps);
    snprintf(k->accum, sizeof k->accum, "%u", o->accum ? o->accum : 1);
    const char *args[] = {
        k->shape,   k->batch,  k->seq,   "--precision", sgt_precision_words[o->precision],
        "--device", p->device, "--mode", p->mode,       "--steps",
        k->steps,   "--accum", k->accum};
    memcpy(k->args, args, sizeof args);
    k->args[sizeof args / sizeof *args] = NULL;
}

static int take(peer_result *r, const peer_run *p, const char *said, sgt_error *err)
{
    json_t *j = json_loads(said, 0, NULL);
    const char *name = json_string_value(json_object_get(j, "peer"));
    *r = (peer_result){.ms = json_number_value(json_object_get(j, "ms_per_step")),
                       .tokens_per_s = json_number_value(json_object_get(j, "tokens_per_s")),
                       .first_steps_s = json_number_value(json_object_get(j, "first_steps_s")),
                       .peak_bytes = (uint64_t)json_number_value(json_object_get(j, "peak_bytes"))};
    snprintf(r->name, sizeof r->name, "%s", name ? name : "");
    json_decref(j);
    if (r->ms > 0) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: no ms_per_step in what it said: %.*s",
                    p->python, (int)strcspn(said, "\n"), said);
}

int bench_peer(peer_result *r, const peer_run *p, sgt_error *err)
{
    command k;
    int cpu = strcmp(p->device, "cpu") == 0;
    char *said = malloc(BENCH_SAID);
    if (!said) return sgt_fail_memory(err, NULL);
    fill_command(&k, p);
    bench_script script = {.python = p->python,
                           .name = "torch_step.py",
                           .text = sgt_torch_step,
                           .args = k.args,
                           .settings = cpu ? settings : NULL,
                           .threads = cpu ? p->backend->threads : 0,
                           .stop = p->stop};
    int rc = bench_script_run(&script, said, err);
    if (rc == SGT_OK) rc = take(r, p, said, err);
    free(said);
    return rc;
}
