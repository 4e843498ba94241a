/* cudnn.cpp: a fake of cuDNN for the CUDA backend on the host. It knows only the graphs of
 * attention_cudnn.c, which work on an H100, and offers no engine for any other graph. It computes
 * them with kernels/ref when the stream does its work. It exists if SGT_HOST_CUDNN is set in the
 * environment. If the value is "adds", its engines add to dQ's sums without clearing them; with
 * "adds-short", only for rows of fewer than 128 tokens. If it is "nan", dQ is NaN. If it is "old",
 * the version is 9.15.0. If it is "wrong-long", no results are written for rows of more than 128
 * tokens; if "wrong-wide", none for heads of more than 64 numbers. If it is "no-half", there is no
 * engine for fp16. If it is "slow", events report 100 s more for each run. The real cuDNN is never
 * used: on a machine with a GPU it would take host addresses for device addresses. */
#include "tests/kernels/host/cudnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/cudnn.h"
#include "kernels/kernels.h"
#include "tests/kernels/host/host.h"
#include "tests/kernels/host/streams.h"

#define N(name) SGT_CUDNN_##name

namespace host
{

Cudnn cudnn = {};

namespace
{

enum { FAILED = 5000, WORKSPACE = 1000 };

/* ids of the tensors in memory, as attention_cudnn.c numbers them */
enum Uid { Q = 1, K, V, O, LSE, DO, DQ, DK, DV, DELTA, DQ_SUMS, SCALE, MASKED, KEPT, UIDS };

struct Desc {
    int type, index; /* index: of a configuration */
    std::map<int, std::vector<char>> values;
    Desc *graph;         /* the graph of a configuration or a plan */
    Desc *tensor[UIDS];  /* of a graph: its tensors in memory */
    cudaStream_t stream; /* of a handle */

    template <class T> const T *all(int name) const { return (const T *)values.at(name).data(); }
    template <class T> T get(int name) const { return *all<T>(name); }
    size_t bytes(int name) const { return values.at(name).size(); }
};

/* ---- our graphs as text: each operation's type, its tensors by id and type (16 bits: 9), and, after
 * dots, how it computes (mode, type, axis). t: matrices by column, r: reordered
 * ---- */

#define FORWARD                                                                               \
    "19 1:9 2:9t v1:0.0; 13.1.0 v1:0 12:0 v2:0; 13.501.4.3 v2:0 v4:4; 13.501.4.2 v2:0 v3:4; " \
    "13.303.11 v3:4 v4:4 v5:11; 13.601.0 v2:0 13:0 v6:0 v5:11; 22 v6:0 v7:0.3.0; "            \
    "13.9.0 v6:0 v7:0 v8:0; 13.13.0 v8:0 v9:0; 22 v9:0 v10:0.0.0; 13.15.0 v10:0 v11:0; "      \
    "13.0.0 v7:0 v11:0 5:0; 13.6.0 v9:0 v10:0 v12:9; 19 v12:9 3:9 4:9.0; "
#define BACKWARD                                                                         \
    "13.1.0 6:9 4:9 v1:0; 22 v1:0 v2:0.0.0; 13.1.0 v2:0 14:0 10:0; 19 1:9 2:9t v3:0.0; " \
    "13.1.0 v3:0 12:0 v4:0; 13.9.0 v4:0 5:0 v5:0; 13.501.4.3 v5:0 v7:4; "                \
    "13.501.4.2 v5:0 v6:4; 13.303.11 v6:4 v7:4 v8:11; 13.601.0 v5:0 13:0 v9:0 v8:11; "   \
    "13.13.0 v9:0 v10:0; 31 v10:0 v11:9t; 19 v11:9t 6:9 9:9.0; 19 6:9 3:9t v12:0.0; "    \
    "13.9.0 v12:0 10:0 v13:0; 13.1.0 v13:0 v10:0 v14:0; 13.1.0 v14:0 12:0 v15:0; "       \
    "31 v15:0 v16:9t; 19 v16:9t 1:9 8:9.0; 31 2:9t v17:0; "
#define DQ_BY_SUMS "19 v15:0 v17:0 11:0r.0; 13.21.0 11:0r 7:9; "
#define DQ_AT_ONCE "19 v15:0 v17:0 7:9.0; "

bool by_column(const int64_t *stride) { return stride[2] < stride[3]; }

std::string text_of(Desc *graph, const Desc *op)
{
    std::string text = std::to_string(op->type);
    for (const auto &value : op->values) {
        Desc *x = *(Desc *const *)value.second.data();
        if (x->type != N(BACKEND_TENSOR_DESCRIPTOR)) {
            for (const auto &how : x->values)
                text += "." + std::to_string(*(const int *)how.second.data());
            continue;
        }
        int64_t uid = x->get<int64_t>(N(ATTR_TENSOR_UNIQUE_ID));
        int type = x->get<int>(N(ATTR_TENSOR_DATA_TYPE));
        if (uid < UIDS) graph->tensor[uid] = x;
        text += (uid < UIDS ? " " : " v") + std::to_string(uid % 1000) + ":" +
                std::to_string(type == N(DATA_HALF) ? 9 : type);
        if (by_column(x->all<int64_t>(N(ATTR_TENSOR_STRIDES)))) text += "t";
        if (x->values.count(N(ATTR_TENSOR_REORDERING_MODE))) text += "r";
    }
    return text + "; ";
}

/* ---- one run of a plan, with copies of all that it needs ---- */

struct Job {
    int64_t B, H, T, D, stride[UIDS][4];
    Kind kind;
    void *at[UIDS], *workspace;
    float scale;

    /* Return whether a tensor has these sizes, and, if it has the rows' sums or dQ's sums, no
     * gaps. */
    bool described(int x, const int64_t *dim) const
    {
        const bool one = x == LSE || x == DELTA, column = by_column(stride[x]);
        const int64_t w = one ? 1 : D, *by = stride[x];
        return dim[0] == B && dim[1] == H && dim[2] == (column ? w : T) &&
               dim[3] == (column ? T : w) &&
               (!(one || x == DQ_SUMS) ||
                (by[0] == H * T * w && by[1] == T * w && by[2] == w && by[3] == 1));
    }

    /* Return a pointer to number i of a head of tensor x. K and V may be transposed. */
    uint16_t *number(Uid x, int64_t head, int64_t i) const
    {
        const int64_t *by = stride[x], row = by[2] > by[3] ? by[2] : by[3];
        return (uint16_t *)at[x] + head / H * by[0] + head % H * by[1] + i / D * row + i % D;
    }
    std::vector<float> read(Uid x, int64_t head) const
    {
        std::vector<float> out;
        for (int64_t i = 0; i < T * D; i++) out.push_back(from_16(kind, *number(x, head, i)));
        return out;
    }
    void write(Uid x, int64_t head, const std::vector<float> &from) const
    {
        for (int64_t i = 0; i < T * D; i++) *number(x, head, i) = to_16(kind, from[i]);
    }

    /* Store the sums for a head's dQ, or add to the stored ones. */
    void sum(std::vector<float> &dq, int64_t head) const
    {
        float *sums = (float *)at[DQ_SUMS] + head * T * D;
        for (int64_t i = 0; i < T * D; i++) {
            if (cudnn.sums == SUMS_ADDED && T < cudnn.long_T) dq[i] += sums[i];
            if (cudnn.sums == SUMS_NAN) dq[i] = NAN;
            sums[i] = dq[i];
        }
    }

    void one(int64_t head) const
    {
        const sgt_kernels *ref = sgt_kernels_ref();
        std::vector<float> q = read(Q, head), k = read(K, head), v = read(V, head),
                           out = read(O, head), dq(T * D), dk(T * D), dv(T * D);
        std::vector<double> doubles(ref->attention_scratch(T, D) / 2 + 1);
        float *lse = (float *)at[LSE] + head * T, *scratch = (float *)doubles.data();
        if (!at[DO]) {
            ref->attention(out.data(), D, lse, q.data(), k.data(), v.data(), D, T, D, scale,
                           nullptr, nullptr, scratch);
            write(O, head, out);
            return;
        }
        ref->attention_backward(dq.data(), dk.data(), dv.data(), D, read(DO, head).data(),
                                out.data(), D, lse, q.data(), k.data(), v.data(), D, T, D, scale,
                                nullptr, nullptr, scratch);
        if (at[DQ_SUMS]) sum(dq, head);
        write(DQ, head, dq);
        write(DK, head, dk);
        write(DV, head, dv);
    }

    void run() const
    {
        if (cudnn.slow) event_late += 100;
        if (T > cudnn.T || D > cudnn.D) return;
        for (int64_t head = 0; head < B * H; head++) one(head);
        /* an engine overwrites its workspace */
        memset(workspace, 0xff, WORKSPACE);
        if (at[DELTA]) memset(at[DELTA], 0xff, B * H * T * sizeof(float));
    }
};

/* ---- the functions of the table ---- */

size_t GetVersion() { return (size_t)cudnn.version; }
const char *GetErrorString(int) { return ""; }
void GetLastErrorString(char *, size_t) {}

int BackendCreateDescriptor(int type, sgt_cudnn_desc *out)
{
    *out = new Desc{type, 0, {}, nullptr, {}, nullptr};
    cudnn.alive++;
    return 0;
}

int BackendDestroyDescriptor(sgt_cudnn_desc d)
{
    delete (Desc *)d;
    cudnn.alive--;
    return 0;
}

/* A handle is a descriptor. */
int Create(sgt_cudnn_handle *out)
{
    return cudnn.no_device ? FAILED : BackendCreateDescriptor(-1, (sgt_cudnn_desc *)out);
}

int Destroy(sgt_cudnn_handle handle) { return BackendDestroyDescriptor(handle); }

int SetStream(sgt_cudnn_handle handle, sgt_cuda_stream s)
{
    ((Desc *)handle)->stream = s;
    return 0;
}

int BackendSetAttribute(sgt_cudnn_desc d, int name, int type, int64_t count, const void *values)
{
    const char *from = (const char *)values;
    const bool byte = type == N(TYPE_BOOLEAN),
               wide = type == N(TYPE_INT64) || type == N(TYPE_VOID_PTR) ||
                      type == N(TYPE_BACKEND_DESCRIPTOR) || type == N(TYPE_HANDLE);
    ((Desc *)d)->values[name].assign(from, from + count * (byte ? 1 : wide ? 8 : 4));
    return 0;
}

int BackendGetAttribute(sgt_cudnn_desc of, int name, int, int64_t room, int64_t *count,
                        void *values)
{
    Desc *d = (Desc *)of, **descs = (Desc **)values;
    *count = 1;
    switch (name) {
    case N(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE): *(int64_t *)values = WORKSPACE; break;
    case N(ATTR_ENGINECFG_ENGINE): descs[0]->index = d->index; break;
    case N(ATTR_ENGINE_NUMERICAL_NOTE):
        *count = d->index < cudnn.flagged;
        *(int *)values = N(NUMERICAL_NOTE_NONDETERMINISTIC);
        break;
    case N(ATTR_ENGINEHEUR_RESULTS):
        *count = d->get<int>(N(ATTR_ENGINEHEUR_MODE)) == N(HEUR_MODE_A) ? cudnn.configs : 0;
        for (int i = 0; i < *count && i < room; i++) {
            descs[i]->graph = d->get<Desc *>(N(ATTR_ENGINEHEUR_OPERATION_GRAPH));
            descs[i]->index = i;
        }
        break;
    default: fail("cuDNN on the host does not know attribute %d", name);
    }
    return 0;
}

int BackendFinalize(sgt_cudnn_desc which)
{
    Desc *d = (Desc *)which;
    if (d->type == N(BACKEND_OPERATIONGRAPH_DESCRIPTOR)) {
        const size_t count = d->bytes(N(ATTR_OPERATIONGRAPH_OPS)) / sizeof(Desc *);
        std::string &text = cudnn.graph = "";
        for (size_t i = 0; i < count; i++)
            text += text_of(d, d->all<Desc *>(N(ATTR_OPERATIONGRAPH_OPS))[i]);
        if (cudnn.no_half && d->tensor[Q]->get<int>(N(ATTR_TENSOR_DATA_TYPE)) == N(DATA_HALF))
            return FAILED;
        return text == FORWARD || text == BACKWARD DQ_BY_SUMS || text == BACKWARD DQ_AT_ONCE
                   ? 0
                   : FAILED;
    }
    if (d->type != N(BACKEND_EXECUTION_PLAN_DESCRIPTOR)) return 0;
    const Desc *config = d->get<Desc *>(N(ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    d->graph = config->graph;
    return config->index < cudnn.refused ? FAILED : 0;
}

int BackendExecute(sgt_cudnn_handle handle, sgt_cudnn_desc plan, sgt_cudnn_desc variant)
{
    const Desc *graph = ((Desc *)plan)->graph, *pack = (Desc *)variant, *q = graph->tensor[Q];
    const int64_t *dim = q->all<int64_t>(N(ATTR_TENSOR_DIMENSIONS));
    size_t count = pack->bytes(N(ATTR_VARIANT_PACK_UNIQUE_IDS)) / 8;
    if (cudnn.fails) return FAILED;
    Job job = {};
    job.B = dim[0], job.H = dim[1], job.T = dim[2], job.D = dim[3];
    job.kind = q->get<int>(N(ATTR_TENSOR_DATA_TYPE)) == N(DATA_BFLOAT16) ? BF16 : F16;
    job.workspace = pack->get<void *>(N(ATTR_VARIANT_PACK_WORKSPACE));
    for (size_t i = 0; i < count; i++) {
        int64_t uid = pack->all<int64_t>(N(ATTR_VARIANT_PACK_UNIQUE_IDS))[i];
        job.at[uid] = pack->all<void *>(N(ATTR_VARIANT_PACK_DATA_POINTERS))[i];
    }
    for (int x = Q; x < UIDS; x++) {
        if (!job.at[x] != !graph->tensor[x]) fail("cuDNN: tensor %d: no place, or no use", x);
        if (!job.at[x]) continue;
        memcpy(job.stride[x], graph->tensor[x]->all<int64_t>(N(ATTR_TENSOR_STRIDES)),
               sizeof job.stride[x]);
        dim = graph->tensor[x]->all<int64_t>(N(ATTR_TENSOR_DIMENSIONS));
        if (x < SCALE && !job.described(x, dim)) return FAILED;
    }
    job.scale = *(const float *)job.at[SCALE];
    const float *masked = (const float *)job.at[MASKED], *kept = (const float *)job.at[KEPT];
    if (*masked != -INFINITY || (kept && *kept != 1)) return FAILED;
    auto work = [job] { job.run(); };
    enqueue(((Desc *)handle)->stream, work, "cudnn");
    return 0;
}

} /* namespace */
} /* namespace host */

int sgt_cudnn_load(const sgt_cudnn **out, sgt_error *err)
{
    static sgt_cudnn api;
    const char *how = getenv("SGT_HOST_CUDNN");
    if (!how && !host::cudnn.there)
        return sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: libcudnn.so.9 was not found");
    std::string word = how ? how : "";
    if (word == "old") host::cudnn.version = 91500;
    if (word == "adds" || word == "adds-short") host::cudnn.sums = host::SUMS_ADDED;
    if (word == "adds-short") host::cudnn.long_T = 128;
    if (word == "nan") host::cudnn.sums = host::SUMS_NAN;
    if (word == "wrong-long") host::cudnn.T = 128;
    if (word == "no-half") host::cudnn.no_half = true;
    if (word == "slow") host::cudnn.slow = true;
    if (word == "wrong-wide") host::cudnn.D = 64;
#define ROW(result, name, arguments) api.name = host::name;
    SGT_CUDNN_FUNCTIONS(ROW)
    api.version = host::cudnn.version;
    snprintf(api.title, sizeof api.title, "cuDNN on the host");
    *out = &api;
    return SGT_OK;
}

int sgt_cudnn_check(const sgt_cudnn *, int status, const char *what, sgt_error *err)
{
    return status ? sgt_fail(err, SGT_EUNSUPPORTED, "cuDNN: %s: %d", what, status) : SGT_OK;
}
