/* self_check.h: every path of the CUDA backend that only hardware can confirm, tried on small random inputs and held to
 * the plainest way to compute the same, on the host. A path is a row of the table in self_check.c: its name, its limit
 * in seconds, and a function that returns
 *
 *     SGT_OK            its results are right
 *     SGT_EUNSUPPORTED  this machine, card or library does not have it
 *     SGT_EFORMAT       its results are wrong; the message says by how much
 *     another           CUDA or a library reported an error
 *
 * A path that crashes or hangs takes its process with it: train/self_check.c tries them in a process of their own. */
#ifndef SGT_CUDA_SELF_CHECK_H
#define SGT_CUDA_SELF_CHECK_H

#include "backend.h"
#include "cuda/cuda.h"
#include "verdicts.h"

/* The names that the backend asks for (sgt_verdict_out). */
#define SGT_CHECK_OWN "attention own"
#define SGT_CHECK_HOPPER "attention hopper"
#define SGT_CHECK_TILED "attention tiled"
#define SGT_CHECK_CUDNN "attention cudnn"
#define SGT_CHECK_NAIVE "attention naive"
#define SGT_CHECK_PRODUCTS "products"
#define SGT_CHECK_BIAS "products with bias"
#define SGT_CHECK_GELU "products with GELU"
#define SGT_CHECK_SLOPE "products with GELU's slope"
#define SGT_CHECK_SLOPE_BIAS "products with slope and bias sums"
#define SGT_CHECK_NCCL "NCCL"
#define SGT_CHECK_CUPTI "CUPTI"

/* What libsgt-cuda.so gives to train/self_check.c. Paths have numbers from 0; `device` is what sgt_cuda_device_open
 * takes. */
typedef struct sgt_cuda_checks {
    size_t (*count)(void);
    const char *(*name)(size_t i);
    int (*seconds)(size_t i); /* how long it may take */
    /* What the verdicts hold for, in one line: card, driver, this build, versions of the libraries. */
    int (*identity)(char *text, size_t n, int device, sgt_error *err);
    int (*run)(size_t i, int device, sgt_error *err);
} sgt_cuda_checks;
extern const sgt_cuda_checks sgt_cuda_self_check;

/* ---- between its files: the checks that rows name ---- */
int sgt_check_attention_own(int device, sgt_error *err);
int sgt_check_attention_hopper(int device, sgt_error *err);
int sgt_check_attention_tiled(int device, sgt_error *err);
int sgt_check_attention_cudnn(int device, sgt_error *err);
int sgt_check_attention_naive(int device, sgt_error *err);
int sgt_check_products(int device, sgt_error *err);
int sgt_check_products_bias(int device, sgt_error *err);
int sgt_check_products_gelu(int device, sgt_error *err);
int sgt_check_products_slope(int device, sgt_error *err);
int sgt_check_products_slope_bias(int device, sgt_error *err);
int sgt_check_nccl(int device, sgt_error *err);
int sgt_check_cupti(int device, sgt_error *err);

/* ---- numbers of any type on the host ---- */

/* x[i], multiples of 1/16 from -1 to 1, which every type holds exactly: sums of their products are exact in float32 up
 * to thousands of terms. */
void sgt_check_fill(float *x, size_t n, uint32_t seed);
void sgt_check_encode(void *out, sgt_cuda_type type, const float *x, size_t n); /* only numbers as above */
double sgt_check_decode(const void *x, sgt_cuda_type type, size_t i);
double sgt_check_unit(sgt_cuda_type type); /* the largest relative error of rounding to it: 2^-8, 2^-11, 2^-24 */
static inline size_t sgt_check_width(sgt_cuda_type type) { return type == SGT_F32 ? 4 : 2; }

#endif
