/* self_check.c: the table of paths (kernels and libraries) that the self-check tests, the functions
 * for the memory and inputs of the checks, and the function that identifies the machine for which
 * verdicts are valid. On a machine with an H100 (2026-11-26), the first run of all checks took 8 s,
 * and later runs took 4 s. If kernels are emulated on the CPU, time limits are longer
 * (sgt_cuda_patience). */
#include "train/cuda/self_check.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/version.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/nccl.h"
#include "kernels/cuda/runtime.h"
#include "train/cuda/cuda_backend.h"

/* ---- memory and inputs of a check ---- */

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
    float fraction = frexpf(fabsf(x), &exponent); /* in [0.5, 1) */
    uint16_t sign = x < 0 ? 0x8000 : 0;
    if (x == 0) return 0;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexpf(fraction, 11) - 1024));
}

void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n)
{
    uint16_t *to = out;
    if (type == SGT_F32) memcpy(out, x, n * sizeof *x);
    else if (type == SGT_BF16) sgt_kernels_ref()->to_bf16(out, x, n);
    else
        for (size_t i = 0; i < n; i++) to[i] = half_of(x[i]);
}

const char *sgt_check_type(sgt_cuda_type type)
{
    return type == SGT_F32 ? "float32" : type == SGT_F16 ? "fp16" : "bf16";
}

/* ---- the table of paths ---- */

/* The paths (kernels and libraries), in the order in which they are checked. A path comes after all
 * paths that it uses. `seconds`: time limit of the check. The first path's limit includes the time
 * to load the kernels and cuBLASLt. cuDNN's limit includes the time to compile its kernels. */
static const struct row {
    const char *name;
    int seconds;
    int (*run)(const char *path, int device, sgt_error *err);
} rows[] = {
    {SGT_CHECK_PRODUCTS, 10, sgt_check_products}, {SGT_CHECK_BIAS, 2, sgt_check_products},
    {SGT_CHECK_GELU, 2, sgt_check_products},      {SGT_CHECK_SLOPE, 2, sgt_check_products},
    {SGT_CHECK_MUON, 2, sgt_check_products},      {SGT_CHECK_NAIVE, 2, sgt_check_attention},
    {SGT_CHECK_OWN, 2, sgt_check_attention},      {SGT_CHECK_HOPPER, 2, sgt_check_attention},
    {SGT_CHECK_CUDNN, 10, sgt_check_attention},   {SGT_CHECK_NCCL, 10, sgt_check_nccl},
    {SGT_CHECK_CUPTI, 2, sgt_check_cupti},
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert(ROWS <= SGT_CHECKED_MOST, "sgt_verdicts has room for a verdict of each row");

static size_t count(void) { return ROWS; }
static const char *name(size_t i) { return rows[i].name; }
static int seconds(size_t i) { return sgt_cuda_patience(rows[i].seconds); }

static int run(size_t i, int device, sgt_error *err)
{
    sgt_cuda_device d;
    int rc = sgt_cuda_open_card(&d, device, err);
    return rc < 0 ? rc : rows[i].run(rows[i].name, device, err);
}

/* ---- identity of the machine ---- */

/* Write a string that identifies this build to `text`: the version, and the size and modification
 * time of the file that contains this code. */
static void identify_build(char *text, size_t n)
{
    Dl_info at;
    struct stat st = {0};
    if (dladdr((const void *)&sgt_cuda_self_check, &at) && at.dli_fname) stat(at.dli_fname, &st);
    snprintf(text, n, SGT_VERSION " of %lld bytes, %lld.%09ld", (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* Add a library and its version to *v. Do nothing if the version is 0, which means that the library
 * cannot be loaded. CUPTI's versions before CUDA 13 were numbers from 1 to 28. Every other version
 * is major * 10000 + minor * 100 + patch. */
static void add_version(sgt_cuda_versions *v, const char *library, size_t version)
{
    if (!version) return;
    char *to = v->of[v->count].version;
    size_t n = sizeof v->of->version;
    snprintf(v->of[v->count++].library, sizeof v->of->library, "%s", library);
    if (version < 10000) snprintf(to, n, "%zu", version);
    else snprintf(to, n, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

static void versions(sgt_cuda_versions *v, const sgt_cuda_device *d)
{
    sgt_error why;
    const sgt_cublaslt *lt = sgt_cublaslt_load(&why);
    const sgt_nccl *nccl = sgt_nccl_load(&why);
    const sgt_cudnn *cudnn;
    int nccl_version = 0;
    if (nccl) nccl->version(&nccl_version);
    *v = (sgt_cuda_versions){0};
    /* The driver and the runtime encode the version CUDA 13.1 as 13010. Convert it to 130100,
     * because all other libraries would encode it in this form. */
    add_version(v, "driver", (size_t)d->driver * 10);
    add_version(v, "runtime", (size_t)d->runtime * 10);
    add_version(v, "cublaslt", lt ? lt->version() : 0);
    add_version(v, "cudnn", sgt_cudnn_load(&cudnn, &why) == SGT_OK ? (size_t)cudnn->version : 0);
    add_version(v, "nccl", (size_t)nccl_version);
    add_version(v, "cupti", sgt_cupti_version());
}

static int identity(char *text, size_t n, int device, sgt_error *err)
{
    sgt_cuda_device d;
    sgt_cuda_versions v;
    char build[96];
    int rc = sgt_cuda_open_card(&d, device, err);
    if (rc < 0) return rc;
    identify_build(build, sizeof build);
    versions(&v, &d);
    snprintf(text, n, "%s, sm_%d%d; sgt %s", d.name, d.major, d.minor, build);
    for (size_t i = 0; i < v.count; i++) {
        size_t at = strlen(text);
        snprintf(text + at, n - at, ", %s %s", v.of[i].library, v.of[i].version);
    }
    return SGT_OK;
}

int sgt_check_refuse(const sgt_checked *v, const char *what, sgt_error *err)
{
    if (!v) return SGT_OK;
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "%sthe verdict of the self-check is \"%s\": %s (--no-self-check uses it anyway)", what,
        v->verdict, v->why);
}

const sgt_cuda_checks sgt_cuda_self_check = {.count = count,
                                             .name = name,
                                             .seconds = seconds,
                                             .identity = identity,
                                             .versions = versions,
                                             .run = run};
