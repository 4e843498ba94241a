/* cuda_runtime.cu: tests failures that cuda/runtime.h reports, on any device. check-step tests
 * streams, events and graphs (switches, waits). Tests that only the host run can do are in
 * host/runtime_cases.cpp. */
#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"

CUDA_CASE(runtime_failures)
{
    sgt_error err;
    sgt_cuda_stream s = nullptr;
    void *p = &err;
    if (sgt_cuda_stream_new(&s, &err) < 0) check_fail(t, "%s", err.text);
    check_at(t, "more memory than there is");
    int rc = sgt_cuda_malloc(&p, (size_t)1 << 50, &err);
    if (rc != SGT_ENOMEM || p) check_fail(t, "code %d, pointer %p", rc, p);
    else if (strcmp(err.text, "out of GPU memory: 1073741824.0 MiB could not be allocated"))
        check_fail(t, "%s", err.text);
    check_at(t, "which leaves nothing behind");
    if (sgt_cuda_check(&err) < 0) check_fail(t, "%s", err.text);
    check_at(t, "what others noted, the first of it, once");
    sgt_cuda_note_failure("cublasLtMatmul", 7);
    sgt_cuda_note_failure("cublasLtMatmul", 8);
    if (sgt_cuda_check(&err) >= 0 || strcmp(err.text, "cublasLtMatmul: error 7"))
        check_fail(t, "not told");
    if (sgt_cuda_check(&err) < 0) check_fail(t, "%s", err.text);
    sgt_cuda_note_failure("cublasLtMatmul", 9);
    if (sgt_cuda_finish(s, &err) >= 0) check_fail(t, "not told by finish");
    sgt_cuda_stream_free(s);
    check_at(t, "nothing is freed");
    sgt_cuda_free(nullptr);
    sgt_cuda_host_free(nullptr);
    sgt_cuda_stream_free(nullptr);
    sgt_cuda_event_free(nullptr);
    sgt_cuda_graph_free(nullptr);
}
