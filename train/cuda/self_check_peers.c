/* self_check_peers.c: the libraries that a step may call beside cuBLASLt and cuDNN: NCCL, as one rank alone, which
 * shows whether it loads, joins and moves the right numbers on this card; and CUPTI, which has to see a kernel. */
#include <stdio.h>

#include "cuda/cupti.h"
#include "cuda/cupti_api.h"
#include "cuda/nccl.h"
#include "cuda/runtime.h"
#include "self_check.h"

enum { COUNT = 256, ARRAYS = 4 }; /* numbers; what goes in, and what three calls give */

typedef struct space {
    sgt_cuda_stream stream;
    float *device, *pinned; /* (ARRAYS, COUNT) */
} space;

static int space_open(space *x, sgt_error *err)
{
    void *device, *pinned;
    *x = (space){0};
    int rc = sgt_cuda_stream_new(&x->stream, err);
    if (rc < 0 || (rc = sgt_cuda_malloc(&device, (size_t)ARRAYS * COUNT * sizeof(float), err)) < 0) return rc;
    x->device = device;
    if ((rc = sgt_cuda_host_alloc(&pinned, (size_t)ARRAYS * COUNT * sizeof(float), err)) == SGT_OK) x->pinned = pinned;
    return rc;
}

static void space_close(space *x)
{
    sgt_cuda_stream_free(x->stream);
    sgt_cuda_free(x->device);
    sgt_cuda_host_free(x->pinned);
}

/* ---- NCCL ---- */

static int said(const sgt_nccl *n, const char *what, int code, sgt_error *err)
{
    return code ? sgt_fail(err, SGT_EIO, "%s: %s", what, n->error_string(code)) : SGT_OK;
}

/* The calls of a step (train/cuda/ranks.c), which for one rank copy. */
static int calls(const sgt_nccl *n, sgt_nccl_comm comm, const space *x, sgt_error *err)
{
    float *d = x->device, *reduced = d + COUNT, *scattered = reduced + COUNT, *gathered = scattered + COUNT;
    int rc = said(n, "all_reduce", n->all_reduce(d, reduced, COUNT, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, x->stream),
                  err);
    if (rc == SGT_OK)
        rc = said(n, "reduce_scatter",
                  n->reduce_scatter(d, scattered, COUNT, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, x->stream), err);
    return rc < 0 ? rc
                  : said(n, "all_gather", n->all_gather(d, gathered, COUNT, SGT_NCCL_FLOAT32, comm, x->stream),
                         err);
}

static int reduce(const sgt_nccl *n, sgt_nccl_comm comm, space *x, sgt_error *err)
{
    size_t bytes = (size_t)ARRAYS * COUNT * sizeof(float);
    float want[COUNT];
    sgt_check_fill(want, COUNT, 3);
    memset(x->pinned, 0, bytes);
    memcpy(x->pinned, want, sizeof want);
    sgt_cuda_copy(x->stream, x->device, x->pinned, bytes);
    int rc = calls(n, comm, x, err);
    if (rc < 0) return rc;
    sgt_cuda_copy(x->stream, x->pinned, x->device, bytes);
    if ((rc = sgt_cuda_finish(x->stream, err)) < 0) return rc;
    for (size_t i = 0; i < (size_t)ARRAYS * COUNT; i++)
        if (x->pinned[i] != want[i % COUNT])
            return sgt_fail(err, SGT_EFORMAT, "call %zu: number %zu of one rank is %g, not %g", i / COUNT, i % COUNT,
                            (double)x->pinned[i], (double)want[i % COUNT]);
    return SGT_OK;
}

int sgt_check_nccl(int device, sgt_error *err)
{
    (void)device;
    space x;
    sgt_nccl_id id;
    sgt_nccl_comm comm = NULL;
    const sgt_nccl *n = sgt_nccl_load(err);
    if (!n) return SGT_EUNSUPPORTED;
    int rc = said(n, "an id", n->unique_id(&id), err);
    if (rc == SGT_OK) rc = said(n, "joining one rank", n->comm_init_rank(&comm, 1, id, 0), err);
    if (rc < 0) return rc;
    if ((rc = space_open(&x, err)) == SGT_OK) rc = reduce(n, comm, &x, err);
    n->comm_destroy(comm);
    space_close(&x);
    return rc;
}

/* ---- CUPTI ---- */

int sgt_check_cupti(int device, sgt_error *err)
{
    (void)device;
    space x;
    sgt_cupti *p;
    sgt_cupti_counts counts = {0};
    if (!sgt_cupti_load(err)) return SGT_EUNSUPPORTED;
    int rc = sgt_cupti_open(&p, err);
    if (rc < 0) return rc;
    if ((rc = space_open(&x, err)) == SGT_OK) rc = sgt_cupti_begin(p, SGT_CUPTI_COUNT, err);
    if (rc == SGT_OK) {
        sgt_cuda_zero(x.stream, x.device, COUNT * sizeof(float));
        sgt_cuda_add(x.stream, SGT_F32, x.device + COUNT, x.device, x.device, COUNT);
        rc = sgt_cuda_finish(x.stream, err);
    }
    if (rc == SGT_OK) rc = sgt_cupti_end(p, NULL, NULL, &counts, err);
    if (rc == SGT_OK && (counts.kernels != 1 || counts.lost))
        rc = sgt_fail(err, SGT_EFORMAT, "it saw %llu kernels of one, and lost %llu records",
                      (unsigned long long)counts.kernels, (unsigned long long)counts.lost);
    space_close(&x);
    sgt_cupti_close(p);
    return rc;
}
