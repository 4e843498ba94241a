/* peer.h: measures PyTorch's training step of the same shape in a separate process, to compare with
 * ours in one run. */
#ifndef SGT_TOOLS_BENCH_PEER_H
#define SGT_TOOLS_BENCH_PEER_H

#include "train/backend.h"

typedef struct peer_run {
    const char *python; /* interpreter that has PyTorch */
    const char *mode;   /* torch.compile's mode: "default", "max-autotune"; or "eager" */
    const char *device; /* "cpu" or "cuda" */
    const sgt_backend_options *backend; /* shape, precision, threads */
    unsigned steps;
    const sgt_stop *stop;
} peer_run;

typedef struct peer_result {
    char name[96]; /* "torch 2.9.1 default" */
    double ms, tokens_per_s, first_steps_s;
    uint64_t peak_bytes;
} peer_result;

/* Run tests/peers/torch_step.py, which is embedded in the program, with that interpreter on the
 * same number of cores. If it fails, returns SGT_EUNSUPPORTED with its last line of output. */
int bench_peer(peer_result *r, const peer_run *p, sgt_error *err);

#endif
