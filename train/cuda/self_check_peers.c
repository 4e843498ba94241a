/* self_check_peers.c: checks NCCL and CUPTI. NCCL runs with a single rank, to check that it loads,
 * initializes and copies data correctly on this GPU. CUPTI must record a kernel. */
#include <string.h>

#include "kernels/cuda/cupti.h"
#include "kernels/cuda/nccl.h"
#include "kernels/cuda/runtime.h"
#include "train/cuda/self_check.h"

/* COUNT: floats per array; ARRAYS: number of arrays: the input, and the results of three NCCL
 * calls */
enum { COUNT = 256, ARRAYS = 4, BYTES = ARRAYS * COUNT * (int)sizeof(float) };

/* ---- NCCL ---- */

static int fail_nccl(const sgt_nccl *n, const char *what, int code, sgt_error *err)
{
    return code ? sgt_fail(err, SGT_EIO, "%s: %s", what, n->error_string(code)) : SGT_OK;
}

/* Make the NCCL calls that a training step makes (train/cuda/ranks.c). With one rank, each call is
 * a copy. */
static int calls(const sgt_nccl *n, sgt_nccl_comm comm, const sgt_check_space *x, sgt_error *err)
{
    float *d = x->device, *reduced = d + COUNT, *scattered = reduced + COUNT,
          *gathered = scattered + COUNT;
    int rc = fail_nccl(
        n, "all_reduce",
        n->all_reduce(d, reduced, COUNT, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, x->stream), err);
    if (rc == SGT_OK)
        rc = fail_nccl(
            n, "reduce_scatter",
            n->reduce_scatter(d, scattered, COUNT, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, comm, x->stream),
            err);
    return rc < 0 ? rc
                  : fail_nccl(n, "all_gather",
                              n->all_gather(d, gathered, COUNT, SGT_NCCL_FLOAT32, comm, x->stream),
                              err);
}

/* Make the NCCL calls in a CUDA graph. Every training step except the first does this. */
static int calls_in_graph(const sgt_nccl *n, sgt_nccl_comm comm, const sgt_check_space *x,
                          sgt_cuda_graph *g, sgt_error *err)
{
    int rc = sgt_cuda_capture(x->stream, err);
    if (rc == SGT_OK) rc = calls(n, comm, x, err);
    if (rc == SGT_OK) rc = sgt_cuda_capture_end(x->stream, g, err);
    if (rc == SGT_OK) sgt_cuda_graph_run(*g, x->stream);
    return rc;
}

/* Make the NCCL calls, and check their results. If g is not NULL, make the calls in a CUDA
 * graph. */
static int reduce(const sgt_nccl *n, sgt_nccl_comm comm, sgt_check_space *x, sgt_cuda_graph *g,
                  sgt_error *err)
{
    float want[COUNT], *pinned = x->pinned;
    sgt_check_fill(want, COUNT, 3);
    memset(pinned, 0, BYTES);
    memcpy(pinned, want, sizeof want);
    sgt_cuda_copy(x->stream, x->device, pinned, BYTES);
    int rc = g ? calls_in_graph(n, comm, x, g, err) : calls(n, comm, x, err);
    if (rc < 0) return rc;
    sgt_cuda_copy(x->stream, pinned, x->device, BYTES);
    if ((rc = sgt_cuda_finish(x->stream, err)) < 0) return rc;
    for (size_t i = 0; i < (size_t)ARRAYS * COUNT; i++)
        if (pinned[i] != want[i % COUNT])
            return sgt_fail(err, SGT_EFORMAT,
                            "call %zu on one rank: number %zu is %g instead of %g", i / COUNT,
                            i % COUNT, (double)pinned[i], (double)want[i % COUNT]);
    return SGT_OK;
}

int sgt_check_nccl(const char *path, int device, sgt_error *err)
{
    (void)path, (void)device;
    sgt_check_space x;
    sgt_nccl_id id;
    sgt_nccl_comm comm = NULL;
    sgt_cuda_graph graph = NULL;
    const sgt_nccl *n = sgt_nccl_load(err);
    if (!n) return SGT_EUNSUPPORTED;
    int rc = fail_nccl(n, "an id", n->unique_id(&id), err);
    if (rc == SGT_OK)
        rc = fail_nccl(n, "joining one rank", n->comm_init_rank(&comm, 1, id, 0), err);
    if (rc < 0) return rc;
    if ((rc = sgt_check_space_open(&x, BYTES, err)) == SGT_OK) rc = reduce(n, comm, &x, NULL, err);
    if (rc == SGT_OK) rc = reduce(n, comm, &x, &graph, err);
    /* free the graph, which contains NCCL calls, before the communicator */
    sgt_cuda_graph_free(graph);
    n->comm_destroy(comm);
    sgt_check_space_close(&x);
    return rc;
}

/* ---- CUPTI ---- */

static void count_kernel(void *ctx, const sgt_cupti_kernel *k)
{
    *(unsigned *)ctx += strcmp(k->category, "kernel") == 0;
}

int sgt_check_cupti(const char *path, int device, sgt_error *err)
{
    (void)path, (void)device;
    sgt_check_space x;
    sgt_cupti *p;
    unsigned kernels = 0;
    int rc = sgt_cupti_open(&p, err);
    if (rc < 0) return rc;
    rc = sgt_check_space_open(&x, BYTES, err);
    if (rc == SGT_OK) rc = sgt_cupti_begin(p, err);
    if (rc == SGT_OK) {
        float *d = x.device;
        sgt_cuda_zero(x.stream, d, COUNT * sizeof *d);
        sgt_cuda_add(x.stream, SGT_F32, d + COUNT, d, d, COUNT);
        rc = sgt_cuda_finish(x.stream, err);
    }
    if (rc == SGT_OK) rc = sgt_cupti_end(p, count_kernel, &kernels, err);
    if (rc == SGT_OK && kernels != 1)
        rc = sgt_fail(err, SGT_EFORMAT, "it recorded %u kernels, but 1 was launched", kernels);
    sgt_check_space_close(&x);
    sgt_cupti_close(p);
    return rc;
}
