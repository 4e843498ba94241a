/* cublaslt.cpp: cuBLASLt on the host, as far as kernels/cuda/gemm.c uses it. It computes
 * column-major products with sums in double, rounded once to D's type, and queues them on the
 * stream like kernels. gemm.c runs unchanged on it, so a wrong layout, transposition or epilogue
 * gives wrong numbers. Its algorithms differ in what they need, and a test chooses which of them
 * are fast, fail or give wrong results. check-cublaslt, and cases on a GPU, test which attributes
 * and forms the real library accepts. */
#include "tests/kernels/host/cublaslt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <vector>

#include "kernels/cuda/cublaslt.h"
#include "kernels/kernels.h"
#include "tests/kernels/host/host.h"
#include "tests/kernels/host/streams.h"

struct sgt_lt_context {
};

/* The attributes that were set in a descriptor of a product, a matrix or a preference, up to 8
 * bytes each. */
struct Attributes {
    std::map<int, uint64_t> values;
    template <class T> T get(int name, T otherwise) const
    {
        auto found = values.find(name);
        if (found != values.end()) memcpy(&otherwise, &found->second, sizeof otherwise);
        return otherwise;
    }
};
struct sgt_lt_desc_opaque : Attributes {
    sgt_lt_compute compute;
};
struct sgt_lt_layout_opaque : Attributes {
    int32_t type;
    size_t rows, columns, ld;
    int32_t batch() const { return get<int32_t>(SGT_LT_LAYOUT_BATCH_COUNT, 1); }
    size_t at(int32_t which, size_t row, size_t column) const
    {
        return (size_t)which * get<uint64_t>(SGT_LT_LAYOUT_BATCH_STRIDE, 0) + row + column * ld;
    }
};
struct sgt_lt_preference_opaque : Attributes {
};

namespace host
{

Lt lt;

void lt_reset()
{
    int alive = lt.alive;
    lt = {};
    lt.alive = alive;
}

namespace
{

using Desc = sgt_lt_desc_opaque;
using Layout = sgt_lt_layout_opaque;
using Preference = sgt_lt_preference_opaque;

/* ---- algorithms: 64 bytes that hold an algorithm's number and its library version ---- */

const uint64_t MAGIC = 0x7467736c74616c67u;
/* bytes of workspace for the parts of split-K sums, unless these are added in D */
const uint64_t WORKSPACE = 1 << 20;

bool known(const sgt_lt_algo *algo)
{
    return algo && algo->data[0] == MAGIC && algo->data[1] < LT_ALGOS &&
           algo->data[7] == lt.version;
}

uint32_t reduction_of(uint64_t id)
{
    return id == LT_OUTPUT_TYPE ? SGT_LT_REDUCTION_OUTPUT_TYPE
           : id == LT_INPLACE   ? SGT_LT_REDUCTION_INPLACE
           : id == LT_SPLIT     ? SGT_LT_REDUCTION_COMPUTE_TYPE
                                : SGT_LT_REDUCTION_NONE;
}

sgt_lt_result result_of(uint64_t id)
{
    sgt_lt_result result = {};
    result.algo.data[0] = MAGIC;
    result.algo.data[1] = id;
    result.algo.data[7] = lt.version;
    result.workspace = id == LT_OUTPUT_TYPE || id == LT_SPLIT ? WORKSPACE : 0;
    return result;
}

/* ---- the product ---- */

double load(const void *p, int32_t type, size_t i)
{
    if (type == SGT_LT_R_32F) return static_cast<const float *>(p)[i];
    return from_16(type == SGT_LT_R_16BF ? BF16 : F16, static_cast<const uint16_t *>(p)[i]);
}

void store(void *p, int32_t type, size_t i, double x)
{
    if (type == SGT_LT_R_32F) static_cast<float *>(p)[i] = (float)x;
    else static_cast<uint16_t *>(p)[i] = to_16(type == SGT_LT_R_16BF ? BF16 : F16, (float)x);
}

double rounded(double x, int32_t type)
{
    float f;
    store(&f, type, 0, x);
    return load(&f, type, 0);
}

struct Job {
    bool tf32, trans_a, trans_b;
    uint32_t epilogue;
    const void *bias;
    void *aux;
    uint64_t aux_ld;
    Layout a, b, d; /* C's is D's */
    const void *at_a, *at_b, *at_c;
    void *at_d;
    double alpha, beta;
    int algo;

    bool is(int algorithms) const { return algorithms >> algo & 1; }

    /* Return op(X) column by column. */
    std::vector<double> operand(const void *x, const Layout &l, bool transposed,
                                int32_t which) const
    {
        const size_t rows = transposed ? l.columns : l.rows, first = l.at(which, 0, 0);
        std::vector<double> out(l.rows * l.columns);
        for (size_t n = 0; n < out.size(); n++) {
            size_t i = n % rows, j = n / rows;
            float value =
                (float)load(x, l.type, first + (transposed ? j + i * l.ld : i + j * l.ld));
            if (tf32) {
                uint32_t bits = to_tf32(value) & 0xffffe000; /* 10 bits of fraction */
                memcpy(&value, &bits, sizeof value);
            }
            out[n] = value;
        }
        return out;
    }

    /* Return the element of D for the sum x. The bias runs along D's rows. */
    double finish(size_t i, size_t j, double x) const
    {
        if (epilogue & SGT_LT_EPILOGUE_BIAS) x += load(bias, d.type, i);
        float y = (float)x;
        if (epilogue == SGT_LT_EPILOGUE_GELU_AUX_BIAS) {
            store(aux, d.type, i + j * aux_ld, x);
            sgt_kernels_ref()->gelu(&y, &y, 1, SGT_GELU_TANH);
        } else if (epilogue == SGT_LT_EPILOGUE_DGELU) {
            float of = (float)load(aux, d.type, i + j * aux_ld);
            sgt_kernels_ref()->gelu_backward(&y, &y, &of, 1, SGT_GELU_TANH);
        }
        return y;
    }

    void multiply(int32_t which) const
    {
        const std::vector<double> left = operand(at_a, a, trans_a, which),
                                  right = operand(at_b, b, trans_b, which);
        const bool changed = epilogue != SGT_LT_EPILOGUE_DEFAULT;
        const size_t first = d.at(which, 0, 0), k = right.size() / d.columns;
        for (size_t j = 0; j < d.columns; j++) {
            std::vector<double> sum(d.rows);
            for (size_t l = 0; l < k; l++)
                for (size_t i = 0; i < d.rows; i++)
                    sum[i] += left[i + l * d.rows] * right[l + j * k];
            for (size_t i = 0; i < d.rows; i++) {
                const size_t at = first + i + j * d.ld;
                double x = alpha * sum[i] / (is(lt.wrong) ? 2 : 1);
                if (is(lt.rounds) && (beta != 0 || changed)) x = rounded(x, d.type);
                /* if beta is 0, C is not read, because it may hold NaN */
                if (beta != 0 && !is(lt.forgetful)) x += beta * load(at_c, d.type, at);
                if (is(lt.rounds) && beta != 0 && changed) x = rounded(x, d.type);
                store(at_d, d.type, at, finish(i, j, x));
            }
        }
    }

    void run() const
    {
        for (int32_t which = 0; which < d.batch(); which++) multiply(which);
        if (event_clock >= 0) event_clock += lt.fast < 0 || algo == lt.fast ? 1e-5 : 2e-3;
        if (lt.slow_rows) event_late += pow((double)(d.rows * d.columns), 2);
        if (lt.slow_calls) event_late += 1e3;
    }

    /* the name of this work for planted faults (fault.cpp); "_same": both factors are the same
     * matrix */
    const char *name() const
    {
        const bool mixed = alpha != 1 || (beta != 0 && beta != 1);
        switch (epilogue) {
        case SGT_LT_EPILOGUE_BIAS: return "product_bias";
        case SGT_LT_EPILOGUE_GELU_AUX_BIAS: return "product_gelu";
        case SGT_LT_EPILOGUE_DGELU: return "product_slope";
        }
        if (at_a == at_b) return mixed ? "product_mixed_same" : "product_plain_same";
        return mixed ? "product_mixed" : "product_plain";
    }
};

/* ---- the functions of the table ---- */

size_t version() { return lt.version; }

const char *status_name(sgt_lt_status status)
{
    return status == SGT_LT_NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : status == SGT_LT_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                            : "CUBLAS_STATUS_NOT_SUPPORTED";
}

template <class T> sgt_lt_status made(T **out, T *x)
{
    lt.alive++;
    *out = x;
    return SGT_LT_SUCCESS;
}

template <class T> sgt_lt_status destroyed(T *x)
{
    lt.alive--;
    delete x;
    return SGT_LT_SUCCESS;
}

template <class T> sgt_lt_status set(T *x, int attribute, const void *value, size_t size)
{
    uint64_t &to = x->values[attribute] = 0;
    memcpy(&to, value, size);
    return SGT_LT_SUCCESS;
}

sgt_lt_status create(sgt_lt_handle *handle)
{
    return lt.no_driver ? SGT_LT_NOT_INITIALIZED : made(handle, new sgt_lt_context);
}

sgt_lt_status desc_create(sgt_lt_desc *desc, sgt_lt_compute compute, sgt_lt_type)
{
    return made(desc, new Desc{{}, compute});
}

sgt_lt_status layout_create(sgt_lt_layout *layout, sgt_lt_type type, uint64_t rows,
                            uint64_t columns, int64_t ld)
{
    return made(layout, new Layout{{}, type, rows, columns, (size_t)ld});
}

sgt_lt_status preference_create(sgt_lt_preference *preference)
{
    return made(preference, new Preference);
}

/* Check that the sizes of the matrices fit together, and return the library's status. C has the
 * layout of D. */
sgt_lt_status status_of(const Desc *p, const Layout *a, const Layout *b, const Layout *d)
{
    const bool at = p->get<int32_t>(SGT_LT_DESC_TRANSA, 0),
               bt = p->get<int32_t>(SGT_LT_DESC_TRANSB, 0);
    if (lt.refuses) return SGT_LT_NOT_SUPPORTED;
    if (lt.bf16_plain && a->type == SGT_LT_R_16BF &&
        p->get<uint32_t>(SGT_LT_DESC_EPILOGUE, SGT_LT_EPILOGUE_DEFAULT) != SGT_LT_EPILOGUE_DEFAULT)
        return SGT_LT_NOT_SUPPORTED;
    for (const Layout *x : {a, b, d})
        if (!x->rows || !x->columns || x->rows > INT32_MAX || x->columns > INT32_MAX ||
            x->ld < x->rows || x->batch() != d->batch())
            return SGT_LT_INVALID_VALUE;
    return d->rows == (at ? a->columns : a->rows) && d->columns == (bt ? b->rows : b->columns) &&
                   (at ? a->rows : a->columns) == (bt ? b->columns : b->rows)
               ? SGT_LT_SUCCESS
               : SGT_LT_INVALID_VALUE;
}

sgt_lt_status heuristics(sgt_lt_handle, sgt_lt_desc desc, sgt_lt_layout a, sgt_lt_layout b,
                         sgt_lt_layout, sgt_lt_layout d, sgt_lt_preference preference, int wanted,
                         sgt_lt_result results[], int *count)
{
    /* defaults as in the library: no workspace, every reduction scheme, operands at multiples of
     * 256 bytes */
    const uint64_t workspace = preference->get<uint64_t>(SGT_LT_PREFERENCE_MAX_WORKSPACE, 0);
    const uint32_t reductions = preference->get<uint32_t>(SGT_LT_PREFERENCE_REDUCTION_MASK, 7);
    bool aligned = true;
    for (int x = SGT_LT_PREFERENCE_ALIGNMENT_A; x <= SGT_LT_PREFERENCE_ALIGNMENT_D; x++)
        aligned = aligned && preference->get<uint32_t>(x, 256) >= 256;
    lt.heuristics++;
    *count = 0;
    sgt_lt_status status = status_of(desc, a, b, d);
    for (int id = 0; id < LT_ALGOS && !status && *count < wanted; id++) {
        results[*count] = result_of(id);
        *count += results[*count].workspace <= workspace && !(reduction_of(id) & ~reductions) &&
                  (id != LT_ALIGNED || aligned);
    }
    return status;
}

sgt_lt_status algo_check(sgt_lt_handle, sgt_lt_desc desc, sgt_lt_layout a, sgt_lt_layout b,
                         sgt_lt_layout, sgt_lt_layout d, const sgt_lt_algo *algo,
                         sgt_lt_result *result)
{
    lt.checks++;
    if (!known(algo)) return SGT_LT_INVALID_VALUE;
    *result = result_of(algo->data[1]);
    return status_of(desc, a, b, d);
}

sgt_lt_status matmul(sgt_lt_handle, sgt_lt_desc desc, const void *alpha, const void *a,
                     sgt_lt_layout as, const void *b, sgt_lt_layout bs, const void *beta,
                     const void *c, sgt_lt_layout, void *d, sgt_lt_layout ds,
                     const sgt_lt_algo *algo, void *, size_t workspace, sgt_cuda_stream stream)
{
    if (!known(algo) || result_of(algo->data[1]).workspace > workspace) return SGT_LT_INVALID_VALUE;
    if (sgt_lt_status status = status_of(desc, as, bs, ds)) return status;
    const Job job = {desc->compute == SGT_LT_COMPUTE_32F_FAST_TF32,
                     desc->get<int32_t>(SGT_LT_DESC_TRANSA, 0) != 0,
                     desc->get<int32_t>(SGT_LT_DESC_TRANSB, 0) != 0,
                     desc->get<uint32_t>(SGT_LT_DESC_EPILOGUE, SGT_LT_EPILOGUE_DEFAULT),
                     desc->get<const void *>(SGT_LT_DESC_BIAS_POINTER, nullptr),
                     desc->get<void *>(SGT_LT_DESC_AUX_POINTER, nullptr),
                     desc->get<uint64_t>(SGT_LT_DESC_AUX_LD, 0),
                     *as,
                     *bs,
                     *ds,
                     a,
                     b,
                     c,
                     d,
                     (double)*static_cast<const float *>(alpha),
                     (double)*static_cast<const float *>(beta),
                     (int)algo->data[1]};
    for (const void *x : {a, b, c, (const void *)d})
        if ((uintptr_t)x % (job.algo == LT_ALIGNED ? 256 : 16)) return SGT_LT_INVALID_VALUE;
    if (job.is(lt.broken)) return SGT_LT_NOT_SUPPORTED;
    lt.matmuls++;
    lt.last = job.algo;
    lt.multiprocessors = desc->get<int32_t>(SGT_LT_DESC_SM_COUNT_TARGET, 0);
    auto work = [job] { job.run(); };
    enqueue(stream, work, job.name());
    return SGT_LT_SUCCESS;
}

const sgt_cublaslt table = {version,
                            status_name,
                            create,
                            destroyed<sgt_lt_context>,
                            desc_create,
                            destroyed<Desc>,
                            set<Desc>,
                            layout_create,
                            destroyed<Layout>,
                            set<Layout>,
                            preference_create,
                            destroyed<Preference>,
                            set<Preference>,
                            heuristics,
                            algo_check,
                            matmul};

} /* namespace */
} /* namespace host */

const sgt_cublaslt *sgt_cublaslt_load(sgt_error *err)
{
    const char *asked = getenv("SGT_HOST_CUBLASLT");
    if (asked && strcmp(asked, "rounds") == 0) host::lt.rounds = ~0;
    if (asked && strcmp(asked, "slow-rows") == 0) host::lt.slow_rows = true;
    if (asked && strcmp(asked, "slow-calls") == 0) host::lt.slow_calls = true;
    if (asked && strcmp(asked, "bf16-plain") == 0) host::lt.bf16_plain = true;
    if (!host::lt.missing) return &host::table;
    sgt_fail(err, SGT_EUNSUPPORTED, "cuBLASLt: told to be missing");
    return nullptr;
}
