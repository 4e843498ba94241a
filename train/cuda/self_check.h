/* self_check.h: the self-check of the CUDA backend. A path is a kernel or a library that a step may
 * use. The self-check tests every path whose results only hardware can confirm. A path is run with
 * small inputs, and its results are compared with plain sums in double on the host. Each path is a
 * row of the table in self_check.c: a name, a time limit in seconds, and a function that returns
 *
 *     SGT_OK            if the results are right
 *     SGT_EUNSUPPORTED  if this machine, card or library does not have the path
 *     SGT_EFORMAT       if the results are wrong; the message says by how much
 *     another code      if CUDA or a library reported an error
 *
 * A path may crash or hang, so train/paths.c runs the paths in a child process. */
#ifndef SGT_CUDA_SELF_CHECK_H
#define SGT_CUDA_SELF_CHECK_H

#include "train/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime.h"
#include "train/verdicts.h"

/* Names of the paths (kernels or libraries to check), as stored in verdicts. Pass one of them as
 * argument `path` of sgt_verdict_out. */
#define SGT_CHECK_OWN "attention own"
#define SGT_CHECK_HOPPER "attention hopper"
#define SGT_CHECK_CUDNN "attention cudnn"
#define SGT_CHECK_NAIVE "attention naive"
#define SGT_CHECK_PRODUCTS "products"
#define SGT_CHECK_BIAS "products with bias"
#define SGT_CHECK_GELU "products with GELU"
#define SGT_CHECK_SLOPE "products with GELU's slope"
#define SGT_CHECK_MUON "products for Muon"
#define SGT_CHECK_NCCL "NCCL"
#define SGT_CHECK_CUPTI "CUPTI"

/* Versions of the libraries that can be loaded: "driver" (the CUDA version that the driver
 * supports), "runtime" (the CUDA runtime), and NVIDIA's libraries "cublaslt", "cudnn", "nccl" and
 * "cupti". */
typedef struct sgt_cuda_versions {
    size_t count;
    struct {
        char library[12], version[28]; /* "cublaslt", "13.1.0" */
    } of[6];
} sgt_cuda_versions;

/* Functions of libsgt-cuda.so that train/paths.c calls. i: index of a path, from 0; device: index
 * of the device, as for sgt_cuda_device_open. */
typedef struct sgt_cuda_checks {
    size_t (*count)(void);
    const char *(*name)(size_t i);
    int (*seconds)(size_t i); /* time limit of path i */
    /* Write one line that identifies the machine for which verdicts are valid: GPU, driver, this
     * build, and library versions. */
    int (*identity)(char *text, size_t n, int device, sgt_error *err);
    /* Load NVIDIA's libraries and list their versions. d: the device in use. */
    void (*versions)(sgt_cuda_versions *v, const sgt_cuda_device *d);
    int (*run)(size_t i, int device, sgt_error *err);
} sgt_cuda_checks;
extern const sgt_cuda_checks sgt_cuda_self_check;

/* If there is a verdict v that a path must not be used, return SGT_EUNSUPPORTED with its reason. If
 * v is NULL, return SGT_OK. The message begins with `what`, which names the user of the path, for
 * example "NCCL: ", or is "". */
int sgt_check_refuse(const sgt_checked *v, const char *what, sgt_error *err);

/* ---- the checks ---- */

/* The checks, one function for each kind of path (kernels or a library that a step may use). They
 * test what is special about a path: number formats, forms of matrix products, edges of tiles. They
 * do not test complete training steps, which use several paths. */
int sgt_check_attention(const char *path, int device, sgt_error *err);
int sgt_check_products(const char *path, int device, sgt_error *err);
int sgt_check_nccl(const char *path, int device, sgt_error *err);
int sgt_check_cupti(const char *path, int device, sgt_error *err);

/* ---- memory for a check ---- */

/* A stream, `bytes` bytes of device memory, and `bytes` bytes of pinned memory. */
typedef struct sgt_check_space {
    sgt_cuda_stream stream;
    void *device, *pinned;
} sgt_check_space;

/* Create the stream and allocate the memory of *x. The caller must call sgt_check_space_close even
 * if this function fails. */
int sgt_check_space_open(sgt_check_space *x, size_t bytes, sgt_error *err);
void sgt_check_space_close(sgt_check_space *x);

/* ---- arrays in any number format, on the host ---- */

/* Fill x with multiples of 1/16 from -1 to 1. Every number format represents them exactly. Their
 * products are multiples of 1/256, so that float32 sums of thousands of products are exact, too. */
void sgt_check_fill(float *x, size_t n, uint32_t seed);
/* Convert n floats to the number format `type`. The floats must come from sgt_check_fill. */
void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n);
/* Return the name of a number format: "float32", "bf16", ... */
const char *sgt_check_type(sgt_cuda_type type);

#endif
