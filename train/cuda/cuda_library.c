/* cuda_library.c: defines the only symbol that libsgt-cuda.so exports. */
#include "train/cuda/cuda_library.h"

#include "loader/base/library.h"
#include "loader/base/version.h"
#include "train/cuda/cuda_backend.h"

static int usable(sgt_cuda_device *d, sgt_error *err) { return sgt_cuda_device_open(d, 0, err); }

static const sgt_cuda_gemm_calls gemm_calls = {.open = sgt_cuda_gemms_open,
                                               .close = sgt_cuda_gemms_close,
                                               .library = sgt_cuda_gemms_library,
                                               .plan = sgt_cuda_gemm_plan,
                                               .ms = sgt_cuda_gemm_ms};

static const sgt_cupti_calls cupti_calls = {.open = sgt_cupti_open,
                                            .close = sgt_cupti_close,
                                            .begin = sgt_cupti_begin,
                                            .end = sgt_cupti_end};

extern const sgt_cuda_library sgt_cuda;
const sgt_cuda_library sgt_cuda = {.interface = SGT_CUDA_INTERFACE,
                                   .backend = sizeof(sgt_backend),
                                   .options = sizeof(sgt_backend_options),
                                   .version = SGT_VERSION,
                                   .usable = usable,
                                   .search = sgt_library_search,
                                   .open = sgt_cuda_backend_open,
                                   .estimate = sgt_cuda_backend_estimate,
                                   .count = sgt_cuda_count,
                                   .checks = &sgt_cuda_self_check,
                                   .gemm = &gemm_calls,
                                   .cupti = &cupti_calls,
                                   .attention = sgt_cuda_bench_attention};
