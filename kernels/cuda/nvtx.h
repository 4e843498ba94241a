/* nvtx.h: named ranges of the host's time, for profilers that are attached from outside (Nsight
 * Systems, Nsight Compute). They nest on each thread:
 *
 *     sgt_nvtx_push("h.3 forward");
 *     ...
 *     sgt_nvtx_pop();
 *
 * Without such a profiler a call costs a few nanoseconds; without nvtx3/nvToolsExt.h at build time
 * it does nothing. */
#ifndef SGT_NVTX_H
#define SGT_NVTX_H

#ifdef __cplusplus
extern "C" {
#endif

void sgt_nvtx_push(const char *name);
void sgt_nvtx_pop(void);

#ifdef __cplusplus
}
#endif
#endif
