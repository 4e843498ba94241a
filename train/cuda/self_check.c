/* self_check.c: the table of paths that the self-check tries, and conversions of numbers on the
 * host. It also writes the line that identifies the machine for which the verdicts hold. Only a
 * card can confirm that the time limits are long enough; runs on the host have longer ones
 * (sgt_cuda_patience). */
#include "self_check.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/version.h"
#include "cuda/cublaslt.h"
#include "cuda/cudnn.h"
#include "cuda/cupti_api.h"
#include "cuda/nccl.h"
#include "cuda/runtime.h"

/* Rows are in the order of dependence: later paths use earlier ones. The first row's limit includes
 * loading the kernels and cuBLASLt; cuDNN's includes compiling its kernels. */
static const struct row {
    const char *name;
    int seconds;
    int (*run)(int device, sgt_error *err);
} rows[] = {
    {SGT_CHECK_PRODUCTS, 10, sgt_check_products},
    {SGT_CHECK_BIAS, 2, sgt_check_products_bias},
    {SGT_CHECK_GELU, 2, sgt_check_products_gelu},
    {SGT_CHECK_SLOPE, 2, sgt_check_products_slope},
    {SGT_CHECK_SLOPE_BIAS, 2, sgt_check_products_slope_bias},
    {SGT_CHECK_RESIDUAL, 2, sgt_check_products_residual},
    {SGT_CHECK_DW_BIAS, 2, sgt_check_products_dw_bias},
    {SGT_CHECK_BULK_LOSS, 2, sgt_check_bulk_loss},
    {SGT_CHECK_NAIVE, 2, sgt_check_attention_naive},
    {SGT_CHECK_OWN, 2, sgt_check_attention_own},
    {SGT_CHECK_HOPPER, 2, sgt_check_attention_hopper},
    {SGT_CHECK_TILED, 2, sgt_check_attention_tiled},
    {SGT_CHECK_CUDNN, 10, sgt_check_attention_cudnn},
    {SGT_CHECK_NCCL, 10, sgt_check_nccl},
    {SGT_CHECK_CUPTI, 2, sgt_check_cupti},
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert(ROWS <= SGT_CHECKED_MOST, "sgt_verdicts has room for a verdict of each row");

static size_t count(void) { return ROWS; }
static const char *name(size_t i) { return rows[i].name; }
static int seconds(size_t i) { return sgt_cuda_patience(rows[i].seconds); }

/* Open device `device`, or device 0 if there is no such device: some launchers show each rank only
 * its own. */
static int open_device(sgt_cuda_device *d, int device, sgt_error *err)
{
    if (device > 0 && sgt_cuda_device_open(d, device, NULL) == SGT_OK) return SGT_OK;
    return sgt_cuda_device_open(d, 0, err);
}

static int run(size_t i, int device, sgt_error *err)
{
    sgt_cuda_device d;
    int rc = open_device(&d, device, err);
    return rc < 0 ? rc : rows[i].run(device, err);
}

/* ---- the machine that verdicts hold for ---- */

/* Describe this build by its version and by the size and time of the library's file. */
static void identify_build(char *text, size_t n)
{
    Dl_info at;
    struct stat st = {0};
    if (dladdr((const void *)&sgt_cuda_self_check, &at) && at.dli_fname) stat(at.dli_fname, &st);
    snprintf(text, n, SGT_VERSION " of %lld bytes, %lld.%09ld", (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static int identity(char *text, size_t n, int device, sgt_error *err)
{
    sgt_cuda_device d;
    sgt_error why;
    char build[96];
    const sgt_cublaslt *lt = sgt_cublaslt_load(&why);
    const sgt_nccl *nccl = sgt_nccl_load(&why);
    const sgt_cupti_api *cupti = sgt_cupti_load(&why);
    const sgt_cudnn *cudnn;
    int nccl_version = 0, rc = open_device(&d, device, err);
    uint32_t cupti_version = 0;
    if (rc < 0) return rc;
    if (nccl) nccl->version(&nccl_version);
    if (cupti) cupti->version(&cupti_version);
    identify_build(build, sizeof build);
    snprintf(text, n,
             "%s, sm_%d%d; driver %d, CUDA %d; sgt %s; cuBLASLt %zu, %s, NCCL %d, CUPTI %u", d.name,
             d.major, d.minor, d.driver, d.runtime, build, lt ? lt->version() : 0,
             sgt_cudnn_load(&cudnn, &why) == SGT_OK ? cudnn->title : "no cuDNN", nccl_version,
             cupti_version);
    return SGT_OK;
}

const sgt_cuda_checks sgt_cuda_self_check = {
    .count = count, .name = name, .seconds = seconds, .identity = identity, .run = run};

/* ---- memory ---- */

int sgt_check_space_open(sgt_check_space *x, size_t bytes, sgt_error *err)
{
    *x = (sgt_check_space){0};
    int rc = sgt_cuda_stream_new(&x->stream, err);
    if (rc == SGT_OK) rc = sgt_cuda_malloc(&x->device, bytes, err);
    return rc == SGT_OK ? sgt_cuda_host_alloc(&x->pinned, bytes, err) : rc;
}

void sgt_check_space_close(sgt_check_space *x)
{
    sgt_cuda_stream_free(x->stream);
    sgt_cuda_free(x->device);
    sgt_cuda_host_free(x->pinned);
}

/* ---- numbers ---- */

void sgt_check_fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)((seed >> 16) % 33) - 16) / 16;
    }
}

static uint16_t half_of(float x)
{
    int exponent;
    float fraction = frexpf(fabsf(x), &exponent); /* from 0.5 to below 1 */
    uint16_t sign = x < 0 ? 0x8000 : 0;
    if (x == 0) return 0;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexpf(fraction, 11) - 1024));
}

static uint16_t bfloat_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n)
{
    uint16_t *to = out;
    if (type == SGT_F32) memcpy(out, x, n * sizeof *x);
    else
        for (size_t i = 0; i < n; i++) to[i] = type == SGT_F16 ? half_of(x[i]) : bfloat_of(x[i]);
}

static double from_half(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return h & 0x8000 ? -x : x;
}

double sgt_check_decode(const void *x, sgt_cuda_type type, size_t i)
{
    float f;
    if (type == SGT_F32) return (double)((const float *)x)[i];
    uint16_t half = ((const uint16_t *)x)[i];
    uint32_t bits = (uint32_t)half << 16;
    if (type == SGT_F16) return from_half(half);
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

double sgt_check_unit(sgt_cuda_type type)
{
    return type == SGT_F32 ? 0x1p-24 : type == SGT_F16 ? 0x1p-11 : 0x1p-8;
}

const char *sgt_check_type(sgt_cuda_type type)
{
    return type == SGT_F32 ? "float32" : type == SGT_F16 ? "fp16" : "bf16";
}
