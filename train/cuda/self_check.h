/* self_check.h: the self-check of the CUDA backend. On small inputs, it tests every path whose
 * results only hardware can confirm, and compares the results with plain sums in double on the
 * host. A path is a row of the table in self_check.c: a name, a time limit in seconds, and a
 * function that returns
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

/* Names of the paths, as the backend passes them to sgt_verdict_out. */
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

/* Versions of the driver ("driver": the CUDA version that it supports), the CUDA runtime
 * ("runtime") and those of NVIDIA's libraries that can be loaded ("cublaslt", "cudnn", "nccl",
 * "cupti"). */
typedef struct sgt_cuda_versions {
    size_t count;
    struct {
        char library[12], version[28]; /* "cublaslt", "13.1.0" */
    } of[6];
} sgt_cuda_versions;

/* The functions that libsgt-cuda.so gives to train/paths.c. Paths are numbered from 0. `device` is
 * the device index, as for sgt_cuda_device_open. */
typedef struct sgt_cuda_checks {
    size_t (*count)(void);
    const char *(*name)(size_t i);
    int (*seconds)(size_t i); /* time limit of path i */
    /* Write one line that identifies the machine for which the verdicts are valid: card, driver,
     * this build, and the versions of libraries. */
    int (*identity)(char *text, size_t n, int device, sgt_error *err);
    /* Load the libraries and list their versions. d is the device in use. */
    void (*versions)(sgt_cuda_versions *v, const sgt_cuda_device *d);
    int (*run)(size_t i, int device, sgt_error *err);
} sgt_cuda_checks;
extern const sgt_cuda_checks sgt_cuda_self_check;

/* Fail with SGT_EUNSUPPORTED because of verdict v, which rejects a path. `what` is a prefix that
 * names the user of the path, such as "NCCL: ", or "". */
int sgt_check_refuse(const sgt_checked *v, const char *what, sgt_error *err);

/* ---- the checks, one function for each kind of path. They test properties (types, forms, edges of
 * tiles), not the launches of a step, which use several paths at once ---- */
int sgt_check_attention(const char *path, int device, sgt_error *err);
int sgt_check_products(const char *path, int device, sgt_error *err);
int sgt_check_nccl(const char *path, int device, sgt_error *err);
int sgt_check_cupti(const char *path, int device, sgt_error *err);

/* ---- memory for a check ---- */

/* A stream, and `bytes` bytes each of device memory and pinned memory. */
typedef struct sgt_check_space {
    sgt_cuda_stream stream;
    void *device, *pinned;
} sgt_check_space;

/* Allocate the memory of *x. The caller must call sgt_check_space_close even if this fails. */
int sgt_check_space_open(sgt_check_space *x, size_t bytes, sgt_error *err);
void sgt_check_space_close(sgt_check_space *x);

/* ---- numbers of any type on the host ---- */

/* Fill x with multiples of 1/16 from -1 to 1. Every type represents these numbers exactly, and
 * float32 sums of thousands of products of them are exact. */
void sgt_check_fill(float *x, size_t n, uint32_t seed);
/* Convert n floats, which must come from sgt_check_fill, to `type`. */
void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n);
const char *sgt_check_type(sgt_cuda_type type); /* return its name: "float32", "bf16", ... */

#endif
