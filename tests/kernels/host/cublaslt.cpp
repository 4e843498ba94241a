/* cublaslt.cpp: cuBLASLt on the host, as far as kernels/cuda/gemm.c uses it. It computes
 * column-major products with sums in double, rounded once to D's type, and queues them on the
 * stream like kernels. It reads every attribute that can be set and refuses what the library's
 * documentation calls unsupported. So gemm.c runs here unchanged, and a wrong layout,
 * transposition, alignment or epilogue shows. The rules' sources stand beside them: [H] is
 * cublasLt.h of CUDA 13.0, at the named attribute; [D] is section cublasLtMatmul() of the cuBLAS
 * manual. If neither names the status, it is NOT_SUPPORTED. */
#include "tests/kernels/host/cublaslt_types.h"

#include <math.h>
#include <string.h>

#include <vector>

#include "tests/kernels/host/host.h"
#include "tests/kernels/host/streams.h"

namespace host
{

Lt lt = {false, false, 130100, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0};

void lt_reset()
{
    int alive = lt.alive;
    lt = {false, false, 130100, 0, -1, 0, 0, 0, alive, -1, 0, 0, 0, 0};
}

namespace
{

/* ---- algorithms: 64 bytes that hold an algorithm's number and its library version ---- */

const uint64_t MAGIC = 0x7467736c74616c67u;

sgt_lt_algo make_algo(int id)
{
    sgt_lt_algo algo = {};
    algo.data[0] = MAGIC;
    algo.data[1] = (uint64_t)id;
    algo.data[7] = lt.version; /* [H] cublasLtMatmulAlgo_t: valid only for the same version */
    return algo;
}

bool known(const sgt_lt_algo *algo)
{
    return algo && algo->data[0] == MAGIC && algo->data[1] < LT_ALGOS &&
           algo->data[7] == lt.version;
}

uint32_t reduction_of(int id)
{
    return id == LT_OUTPUT_TYPE ? SGT_LT_REDUCTION_OUTPUT_TYPE
           : id == LT_INPLACE   ? SGT_LT_REDUCTION_INPLACE
           : id == LT_SPLIT     ? SGT_LT_REDUCTION_COMPUTE_TYPE
                                : SGT_LT_REDUCTION_NONE;
}

size_t workspace_of(int id, const Layout &d)
{
    return id == LT_OUTPUT_TYPE || id == LT_SPLIT ? 2 * d.rows * d.columns * sizeof(float) : 0;
}

size_t alignment_of(int id, const Layout &x)
{
    return id == LT_ALIGNED ? 256 : id == LT_PLAIN ? size_of(x.type) : 16;
}

/* ---- what is refused ---- */

bool with_bias(uint32_t e) { return e & SGT_LT_EPILOGUE_BIAS; }
/* [H] cublasLtEpilogue_t: this bit is set in all epilogues with AUX and in the gradients' ones */
bool with_aux(uint32_t e) { return e & 128; }

/* [D] the table of types "when A, B, C and D are regular column- or row-major matrices": the rows
 * with scale type 32F and operand types that sgt uses. C and D have the same type. */
bool types_served(const Desc &p, const Layout &a, const Layout &b, const Layout &c, const Layout &d)
{
    if (p.scale != SGT_LT_R_32F || a.type != b.type || c.type != d.type) return false;
    if (p.compute == SGT_LT_COMPUTE_32F_FAST_TF32)
        return a.type == SGT_LT_R_32F && d.type == SGT_LT_R_32F;
    return p.compute == SGT_LT_COMPUTE_32F && (d.type == a.type || d.type == SGT_LT_R_32F);
}

bool layout_sound(const Layout &x)
{
    /* [H] LAYOUT_LD: columns must not overlap; LAYOUT_ROWS, _COLS: values that fit int32_t */
    uint64_t line = x.order == SGT_LT_ORDER_COL ? x.rows : x.columns;
    return x.rows && x.columns && x.rows <= INT32_MAX && x.columns <= INT32_MAX &&
           x.ld >= (int64_t)line && x.batch > 0;
}

sgt_lt_status epilogue_status(const Desc &p, const Layout &d)
{
    if (p.epilogue == SGT_LT_EPILOGUE_DEFAULT) return SGT_LT_SUCCESS;
    /* [D] notes to that table: GELU, its gradient and bias do not support a D in row order */
    if (d.order != SGT_LT_ORDER_COL) return SGT_LT_NOT_SUPPORTED;
    /* [H] DESC_BIAS_DATA_TYPE, DESC_EPILOGUE_AUX_DATA_TYPE: as D's elements (the exceptions are
     * 8-bit types) */
    if ((p.bias_type != -1 && p.bias_type != d.type) || (p.aux_type != -1 && p.aux_type != d.type))
        return SGT_LT_NOT_SUPPORTED;
    if (with_bias(p.epilogue) && !p.bias) return SGT_LT_INVALID_VALUE;
    if (!with_aux(p.epilogue)) return SGT_LT_SUCCESS;
    /* [H] DESC_EPILOGUE_AUX_LD, for the GELU matrix: at least D's rows, and divisible by 8 */
    if (!p.aux || p.aux_ld < (int64_t)d.rows || p.aux_ld % 8) return SGT_LT_NOT_SUPPORTED;
    /* [H] DESC_EPILOGUE_AUX_BATCH_STRIDE is 0 unless set, and this stand-in does not support
     * setting it */
    return d.batch > 1 ? SGT_LT_NOT_SUPPORTED : SGT_LT_SUCCESS;
}

sgt_lt_status problem_status(const Desc &p, const Layout &a, const Layout &b, const Layout &c,
                             const Layout &d)
{
    if (!layout_sound(a) || !layout_sound(b) || !layout_sound(c) || !layout_sound(d))
        return SGT_LT_INVALID_VALUE;
    uint64_t rows = p.trans[0] ? a.columns : a.rows, k = p.trans[0] ? a.rows : a.columns;
    uint64_t columns = p.trans[1] ? b.rows : b.columns, k_again = p.trans[1] ? b.columns : b.rows;
    if (d.rows != rows || d.columns != columns || k != k_again || c.rows != d.rows ||
        c.columns != d.columns)
        return SGT_LT_INVALID_VALUE;
    if (a.batch != d.batch || b.batch != d.batch || c.batch != d.batch) return SGT_LT_INVALID_VALUE;
    if (p.pointer_mode != SGT_LT_POINTER_MODE_HOST || !types_served(p, a, b, c, d))
        return SGT_LT_NOT_SUPPORTED;
    return epilogue_status(p, d);
}

/* Return whether an algorithm supports pointers with this alignment. */
bool lines_aligned(int id, const Layout &x)
{
    size_t need = alignment_of(id, x), line = (size_t)x.ld * size_of(x.type);
    return (id != LT_TENSOR && id != LT_ALIGNED) ||
           (line % (need < 16 ? need : 16) == 0 &&
            (x.batch == 1 || (size_t)x.stride * size_of(x.type) % 16 == 0));
}

/* ---- the product ---- */

size_t at(const Layout &x, uint64_t row, uint64_t column)
{
    return x.order == SGT_LT_ORDER_COL ? row + column * (size_t)x.ld : row * (size_t)x.ld + column;
}

/* Return op(X), column-major and without gaps. */
std::vector<double> operand(const void *x, const Layout &l, bool transposed, bool tf32,
                            size_t offset)
{
    uint64_t rows = transposed ? l.columns : l.rows, columns = transposed ? l.rows : l.columns;
    std::vector<double> out(rows * columns);
    for (uint64_t j = 0; j < columns; j++)
        for (uint64_t i = 0; i < rows; i++) {
            double value = load(x, l.type, offset + (transposed ? at(l, j, i) : at(l, i, j)));
            out[i + j * rows] = tf32 ? to_tf32(value) : value;
        }
    return out;
}

/* Add the products of column j of op(A) op(B), for k from `from` up to `to`. */
void add_products(std::vector<double> &sum, const std::vector<double> &a,
                  const std::vector<double> &b, uint64_t k, uint64_t j, uint64_t from, uint64_t to)
{
    size_t rows = sum.size();
    for (uint64_t x = from; x < to; x++) {
        double factor = b[x + j * k];
        const double *column = &a[x * rows];
        for (size_t i = 0; i < rows; i++) sum[i] += column[i] * factor;
    }
}

/* A split sum has two parts, each rounded to the type in which the algorithm stores parts. */
std::vector<double> column_of(const Job &job, const std::vector<double> &a,
                              const std::vector<double> &b, uint64_t k, uint64_t j)
{
    const Layout &d = job.layouts[3];
    std::vector<double> sum(d.rows), part(d.rows);
    uint32_t reduction = reduction_of(job.algo);
    add_products(sum, a, b, k, j, 0, reduction ? k / 2 : k);
    if (!reduction) return sum;
    add_products(part, a, b, k, j, k / 2, k);
    int32_t type = reduction == SGT_LT_REDUCTION_COMPUTE_TYPE ? SGT_LT_R_32F : d.type;
    for (size_t i = 0; i < sum.size(); i++) sum[i] = rounded(sum[i], type) + rounded(part[i], type);
    return sum;
}

/* Return the element of D for the sum x of alpha op(A) op(B) + beta C. [H] cublasLtEpilogue_t; the
 * bias runs along D's rows. */
double finish(const Job &job, uint64_t i, uint64_t j, double x)
{
    const Desc &p = job.p;
    int32_t type = job.layouts[3].type;
    size_t place = i + j * (size_t)p.aux_ld;
    if (p.epilogue & SGT_LT_EPILOGUE_BIAS) x += load(p.bias, type, i);
    if (p.epilogue == SGT_LT_EPILOGUE_GELU_AUX_BIAS) {
        store(p.aux, type, place, x);
        return gelu(x);
    }
    if (p.epilogue == SGT_LT_EPILOGUE_DGELU) x *= gelu_slope(load(p.aux, type, place));
    return x;
}

void multiply(const Job &job, int32_t which)
{
    const Layout &a = job.layouts[0], &b = job.layouts[1], &c = job.layouts[2], &d = job.layouts[3];
    bool tf32 = job.p.compute == SGT_LT_COMPUTE_32F_FAST_TF32;
    size_t offsets[4];
    for (int x = 0; x < 4; x++) offsets[x] = (size_t)(which * job.layouts[x].stride);
    std::vector<double> left = operand(job.a, a, job.p.trans[0], tf32, offsets[0]);
    std::vector<double> right = operand(job.b, b, job.p.trans[1], tf32, offsets[1]);
    uint64_t k = job.p.trans[0] ? a.rows : a.columns;
    for (uint64_t j = 0; j < d.columns; j++) {
        std::vector<double> column = column_of(job, left, right, k, j);
        for (uint64_t i = 0; i < d.rows; i++) {
            double x = job.alpha * column[i] / (lt.wrong >> job.algo & 1 ? 2 : 1);
            if (lt.rounds >> job.algo & 1 &&
                (job.beta != 0 || job.p.epilogue != SGT_LT_EPILOGUE_DEFAULT))
                x = rounded(x, d.type);
            /* if beta is 0, C is not read, because it may hold NaN */
            if (job.beta != 0 && !(lt.forgetful >> job.algo & 1))
                x += job.beta * load(job.c, c.type, offsets[2] + at(c, i, j));
            if (lt.rounds >> job.algo & 1 && job.beta != 0 &&
                job.p.epilogue != SGT_LT_EPILOGUE_DEFAULT)
                x = rounded(x, d.type);
            store(job.d, d.type, offsets[3] + at(d, i, j), finish(job, i, j, x));
        }
    }
}

void run(const Job &job)
{
    if (size_t used = workspace_of(job.algo, job.layouts[3])) memset(job.workspace, 0xff, used);
    for (int32_t which = 0; which < job.layouts[3].batch; which++) multiply(job, which);
    if (event_clock >= 0) event_clock += lt.fast < 0 || job.algo == lt.fast ? 1e-5 : 2e-3;
}

/* ---- the functions of the table ---- */

size_t version() { return lt.version; }

const char *status_name(sgt_lt_status status)
{
    switch (status) {
    case SGT_LT_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case SGT_LT_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case SGT_LT_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case SGT_LT_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    default: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
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

sgt_lt_status create(sgt_lt_handle *handle)
{
    return lt.no_driver ? SGT_LT_NOT_INITIALIZED : made(handle, new sgt_lt_context{true});
}

sgt_lt_status desc_create(sgt_lt_desc *desc, sgt_lt_compute compute, sgt_lt_type scale)
{
    Desc *p = new Desc();
    p->compute = compute;
    p->scale = scale;
    p->aux_type = p->bias_type = -1;
    p->epilogue = SGT_LT_EPILOGUE_DEFAULT;
    return made(desc, p);
}

/* [H] ...SetAttribute: the size must be the attribute's. */
template <class T> sgt_lt_status set(T &member, const void *value, size_t size)
{
    if (!value || size != sizeof member) return SGT_LT_INVALID_VALUE;
    memcpy(&member, value, size);
    return SGT_LT_SUCCESS;
}

sgt_lt_status desc_set(sgt_lt_desc p, sgt_lt_desc_attribute attribute, const void *value,
                       size_t size)
{
    switch (attribute) {
    case SGT_LT_DESC_POINTER_MODE: return set(p->pointer_mode, value, size);
    case SGT_LT_DESC_TRANSA: return set(p->trans[0], value, size);
    case SGT_LT_DESC_TRANSB: return set(p->trans[1], value, size);
    case SGT_LT_DESC_EPILOGUE: return set(p->epilogue, value, size);
    case SGT_LT_DESC_BIAS_POINTER: return set(p->bias, value, size);
    case SGT_LT_DESC_AUX_POINTER: return set(p->aux, value, size);
    case SGT_LT_DESC_AUX_LD: return set(p->aux_ld, value, size);
    case SGT_LT_DESC_AUX_DATA_TYPE: return set(p->aux_type, value, size);
    case SGT_LT_DESC_BIAS_DATA_TYPE: return set(p->bias_type, value, size);
    }
    fail("cuBLASLt on the host does not know attribute %d of a product", attribute);
}

sgt_lt_status layout_create(sgt_lt_layout *layout, sgt_lt_type type, uint64_t rows,
                            uint64_t columns, int64_t ld)
{
    return made(layout, new Layout{type, SGT_LT_ORDER_COL, 1, rows, columns, ld, 0});
}

sgt_lt_status layout_set(sgt_lt_layout x, sgt_lt_layout_attribute attribute, const void *value,
                         size_t size)
{
    switch (attribute) {
    case SGT_LT_LAYOUT_TYPE: return set(x->type, value, size);
    case SGT_LT_LAYOUT_ORDER: return set(x->order, value, size);
    case SGT_LT_LAYOUT_BATCH_COUNT: return set(x->batch, value, size);
    case SGT_LT_LAYOUT_BATCH_STRIDE: return set(x->stride, value, size);
    }
    fail("cuBLASLt on the host does not know attribute %d of a matrix", attribute);
}

/* [H] cublasLtMatmulPreferenceAttributes_t: the defaults are no workspace, every reduction, 256
 * bytes of alignment. */
sgt_lt_status preference_create(sgt_lt_preference *preference)
{
    return made(preference, new sgt_lt_preference_opaque{0, 7, {256, 256, 256, 256}});
}

sgt_lt_status preference_set(sgt_lt_preference x, sgt_lt_preference_attribute attribute,
                             const void *value, size_t size)
{
    switch (attribute) {
    case SGT_LT_PREFERENCE_MAX_WORKSPACE: return set(x->workspace, value, size);
    case SGT_LT_PREFERENCE_REDUCTION_MASK: return set(x->reductions, value, size);
    case SGT_LT_PREFERENCE_ALIGNMENT_A:
    case SGT_LT_PREFERENCE_ALIGNMENT_B:
    case SGT_LT_PREFERENCE_ALIGNMENT_C:
    case SGT_LT_PREFERENCE_ALIGNMENT_D:
        return set(x->alignment[attribute - SGT_LT_PREFERENCE_ALIGNMENT_A], value, size);
    }
    fail("cuBLASLt on the host does not know attribute %d of a preference", attribute);
}

sgt_lt_status heuristics(sgt_lt_handle, sgt_lt_desc desc, sgt_lt_layout a, sgt_lt_layout b,
                         sgt_lt_layout c, sgt_lt_layout d, sgt_lt_preference preference, int wanted,
                         sgt_lt_result results[], int *count)
{
    lt.heuristics++;
    *count = 0;
    if (wanted <= 0) return SGT_LT_INVALID_VALUE;
    sgt_lt_status status = problem_status(*desc, *a, *b, *c, *d);
    const Layout *layouts[] = {a, b, c, d};
    for (int id = 0; id < LT_ALGOS && !status && *count < wanted; id++) {
        bool fits = workspace_of(id, *d) <= preference->workspace &&
                    (reduction_of(id) & ~preference->reductions) == 0;
        for (int x = 0; x < 4; x++)
            fits = fits && alignment_of(id, *layouts[x]) <= preference->alignment[x] &&
                   lines_aligned(id, *layouts[x]);
        sgt_lt_result result = {};
        result.algo = make_algo(id);
        result.workspace = workspace_of(id, *d);
        if (fits) results[(*count)++] = result;
    }
    return status || *count ? status : (sgt_lt_status)SGT_LT_NOT_SUPPORTED;
}

sgt_lt_status algo_check(sgt_lt_handle, sgt_lt_desc desc, sgt_lt_layout a, sgt_lt_layout b,
                         sgt_lt_layout c, sgt_lt_layout d, const sgt_lt_algo *algo,
                         sgt_lt_result *result)
{
    lt.checks++;
    if (!known(algo)) return SGT_LT_INVALID_VALUE;
    sgt_lt_status status = problem_status(*desc, *a, *b, *c, *d);
    int id = (int)algo->data[1];
    for (const Layout *x : {a, b, c, d})
        if (!status && !lines_aligned(id, *x)) status = SGT_LT_NOT_SUPPORTED;
    if (status) return status;
    *result = sgt_lt_result();
    result->algo = *algo;
    result->workspace = workspace_of(id, *d);
    return SGT_LT_SUCCESS;
}

bool pointers_aligned(const Job &job)
{
    const void *pointers[] = {job.a, job.b, job.c, job.d};
    for (int x = 0; x < 4; x++)
        if (!pointers[x] || (uintptr_t)pointers[x] % alignment_of(job.algo, job.layouts[x]))
            return false;
    /* [D] the workspace is 256-byte aligned; [H] INVALID_VALUE if it is smaller than the algorithm
     * needs */
    return (uintptr_t)job.workspace % 256 == 0 &&
           workspace_of(job.algo, job.layouts[3]) <= job.workspace_size;
}

/* Name a product for fault.cpp; "_same": both factors are one matrix. */
const char *product_name(const Job &job)
{
    bool mixed = job.alpha != 1 || (job.beta != 0 && job.beta != 1);
    switch (job.p.epilogue) {
    case SGT_LT_EPILOGUE_BIAS: return "product_bias";
    case SGT_LT_EPILOGUE_GELU_AUX_BIAS: return "product_gelu";
    case SGT_LT_EPILOGUE_DGELU: return "product_slope";
    }
    if (job.a == job.b) return mixed ? "product_mixed_same" : "product_plain_same";
    return mixed ? "product_mixed" : "product_plain";
}

sgt_lt_status matmul(sgt_lt_handle handle, sgt_lt_desc desc, const void *alpha, const void *a,
                     sgt_lt_layout as, const void *b, sgt_lt_layout bs, const void *beta,
                     const void *c, sgt_lt_layout cs, void *d, sgt_lt_layout ds,
                     const sgt_lt_algo *algo, void *workspace, size_t workspace_size,
                     sgt_cuda_stream stream)
{
    if (!handle || !handle->open) return SGT_LT_NOT_INITIALIZED;
    sgt_lt_status status = problem_status(*desc, *as, *bs, *cs, *ds);
    if (status) return status;
    if (!known(algo)) return SGT_LT_INVALID_VALUE;
    Job job = {*desc,
               {*as, *bs, *cs, *ds},
               a,
               b,
               c,
               d,
               workspace,
               workspace_size,
               (double)*static_cast<const float *>(alpha),
               (double)*static_cast<const float *>(beta),
               (int)algo->data[1]};
    if (!pointers_aligned(job)) return SGT_LT_INVALID_VALUE;
    if (lt.broken >> job.algo & 1) return SGT_LT_NOT_SUPPORTED;
    lt.matmuls++;
    lt.last = job.algo;
    auto work = [job] { run(job); };
    enqueue(stream, work, product_name(job));
    return SGT_LT_SUCCESS;
}

const sgt_cublaslt table = {version,
                            status_name,
                            create,
                            destroyed<sgt_lt_context>,
                            desc_create,
                            destroyed<Desc>,
                            desc_set,
                            layout_create,
                            destroyed<Layout>,
                            layout_set,
                            preference_create,
                            destroyed<sgt_lt_preference_opaque>,
                            preference_set,
                            heuristics,
                            algo_check,
                            matmul};

} /* namespace */
} /* namespace host */

const sgt_cublaslt *sgt_cublaslt_load(sgt_error *err)
{
    const char *asked = getenv("SGT_HOST_CUBLASLT");
    if (asked && strcmp(asked, "rounds") == 0) host::lt.rounds = ~0;
    if (!host::lt.missing) return &host::table;
    sgt_fail(err, SGT_EUNSUPPORTED, "cuBLASLt: told to be missing");
    return nullptr;
}
