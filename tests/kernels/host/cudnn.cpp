/* cudnn.cpp: cuDNN for the CUDA backend on the host. It is tests/kernels/cudnn/stand_in.c, whose
 * work waits in the stream's queue like all other work. It exists if SGT_HOST_CUDNN is set in the
 * environment. With the value "adds", its engines leave clearing dQ's sums to the caller; with
 * "adds-last", that of the last sum; with "nan", dQ is NaN. With "old" it is cuDNN 9.15.0. The real cuDNN is never used: on
 * a machine with a GPU it would take host addresses for device addresses. */
#include "kernels/cuda/cudnn.h"

#include <stdio.h>
#include <stdlib.h>

#include <set>
#include <string>

#include "tests/kernels/cudnn/stand_in.h"
#include "tests/kernels/host/host.h"

/* functions of stand_in.c, if it is linked */
#pragma weak stand_in
#define DECLARE(result, name, arguments) \
    extern "C" result cudnn##name arguments __attribute__((weak));
SGT_CUDNN_FUNCTIONS(DECLARE)

namespace host
{
namespace
{

/* Variant packs that a queue or a captured graph may still use. They are kept until the end. */
struct Packs {
    std::set<sgt_cudnn_desc> held;
    ~Packs()
    {
        for (sgt_cudnn_desc d : held) cudnnBackendDestroyDescriptor(d);
    }
} packs;

cudaStream_t stream_of_next; /* one handle and one thread use it */

int set_stream(sgt_cudnn_handle, sgt_cuda_stream s)
{
    stream_of_next = s;
    return 0;
}

int execute(sgt_cudnn_handle handle, sgt_cudnn_desc plan, sgt_cudnn_desc pack)
{
    packs.held.insert(pack);
    enqueue(
        stream_of_next,
        [=] {
            char why[300];
            if (!cudnnBackendExecute(handle, plan, pack)) return;
            cudnnGetLastErrorString(why, sizeof why);
            fail("cuDNN: %s", why);
        },
        "cudnn");
    return 0;
}

int destroy(sgt_cudnn_desc d) { return packs.held.count(d) ? 0 : cudnnBackendDestroyDescriptor(d); }

} /* namespace */
} /* namespace host */

int sgt_cudnn_load(const sgt_cudnn **out, sgt_error *err)
{
    static sgt_cudnn api;
    if (!cudnnGetVersion || !getenv("SGT_HOST_CUDNN"))
        return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: libcudnn.so.9 is not on this machine");
#define ROW(result, name, arguments) api.name = cudnn##name;
    SGT_CUDNN_FUNCTIONS(ROW)
    api.SetStream = host::set_stream;
    api.BackendExecute = host::execute;
    api.BackendDestroyDescriptor = host::destroy;
    api.version = (int)cudnnGetVersion();
    std::string how = getenv("SGT_HOST_CUDNN");
    if (how == "old") api.version = 91500;
    stand_in.adds = how == "adds" ? 1 : how == "adds-last" ? 2 : how == "nan" ? 3 : 0;
    snprintf(api.title, sizeof api.title, "cuDNN on the host");
    *out = &api;
    return SGT_OK;
}

int sgt_cudnn_check(const sgt_cudnn *, int status, const char *what, sgt_error *err)
{
    return status ? sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: %s: %d", what, status) : SGT_OK;
}
