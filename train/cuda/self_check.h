/* self_check.h: the self-check of the CUDA backend. A path is a kernel or a library that a step may
 * use. The self-check tests every path that can only be tested on a GPU. It runs a path with small
 * inputs, and compares the results with those of simple code on the host. The table in self_check.c
 * has a row for each path: its name, a time limit in seconds, and a function that returns
 *
 *     SGT_OK            if the results are right
 *     SGT_EUNSUPPORTED  if this machine, GPU or library does not support the path
 *     SGT_EFORMAT       if the results are wrong; the message says by how much
 *     another code      if CUDA or a library reported an error
 *
 * A path can crash or hang, so train/paths.c runs the self-check in a child process. */
#ifndef SGT_CUDA_SELF_CHECK_H
#define SGT_CUDA_SELF_CHECK_H

#include "train/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime.h"
#include "train/verdicts.h"

/* Names of the paths (kernels and libraries) that are checked, as stored in verdicts.
 * sgt_verdict_out takes one of them as its argument `path`. */
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

/* Versions of the libraries that can be loaded. "driver" is the CUDA version that the driver
 * supports, and "runtime" is the version of the CUDA runtime. The other names are those of NVIDIA's
 * libraries: "cublaslt", "cudnn", "nccl" and "cupti". */
typedef struct sgt_cuda_versions {
    size_t count;
    struct {
        char library[12], version[28]; /* "cublaslt", "13.1.0" */
    } of[6];
} sgt_cuda_versions;

/* Functions of libsgt-cuda.so that train/paths.c calls. i: index of a path (kernels or library) in
 * the table of self_check.c; device: index of the device, as for sgt_cuda_device_open. */
typedef struct sgt_cuda_checks {
    size_t (*count)(void);
    const char *(*name)(size_t i);
    int (*seconds)(size_t i); /* time limit of path i */
    /* Write a line that identifies what verdicts depend on to `text`: the GPU, the driver, this
     * build of sgt, and the versions of libraries. */
    int (*identity)(char *text, size_t n, int device, sgt_error *err);
    /* Load NVIDIA's libraries, and list their versions in *v. d: the device in use. */
    void (*versions)(sgt_cuda_versions *v, const sgt_cuda_device *d);
    int (*run)(size_t i, int device, sgt_error *err);
} sgt_cuda_checks;
extern const sgt_cuda_checks sgt_cuda_self_check;

/* If v is not NULL, it is a verdict that forbids a path: return SGT_EUNSUPPORTED with the reason.
 * If v is NULL, return SGT_OK. The message begins with `what`, which names the feature that needs
 * the path, such as "NCCL: ", or is "". */
int sgt_check_refuse(const sgt_checked *v, const char *what, sgt_error *err);

/* ---- the checks ---- */

/* The checks, one function per kind of path (kernels or library). They test number formats, forms
 * of matrix products and the edges of tiles. They do not run complete training steps, which use
 * several paths. */
int sgt_check_attention(const char *path, int device, sgt_error *err);
int sgt_check_products(const char *path, int device, sgt_error *err);
int sgt_check_nccl(const char *path, int device, sgt_error *err);
int sgt_check_cupti(const char *path, int device, sgt_error *err);

/* ---- memory for a check ---- */

/* A stream, and the device memory and pinned memory of a check. */
typedef struct sgt_check_space {
    sgt_cuda_stream stream;
    void *device, *pinned;
} sgt_check_space;

/* Create the stream of *x, and allocate `bytes` bytes of device memory and of pinned memory. The
 * caller must call sgt_check_space_close even if this function fails. */
int sgt_check_space_open(sgt_check_space *x, size_t bytes, sgt_error *err);
void sgt_check_space_close(sgt_check_space *x);

/* ---- arrays of numbers ---- */

/* Fill x with multiples of 1/16 from -1 to 1, which every number format represents exactly.
 * Products of two such numbers are multiples of 1/256, so float32 sums of thousands of products are
 * exact, too. */
void sgt_check_fill(float *x, size_t n, uint32_t seed);
/* Convert n floats to the number format `type`. They must come from sgt_check_fill. */
void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n);
/* Return the name of the number format `type`, for example "float32" or "bf16". */
const char *sgt_check_type(sgt_cuda_type type);

#endif
