/* nvtx.h: named ranges of host time for profilers that are attached from outside (Nsight Systems,
 * Nsight Compute). They nest on each thread:
 *
 *     sgt_nvtx_push("h.3 forward");
 *     ...
 *     sgt_nvtx_pop();
 *
 * If no profiler is attached, a call takes a few nanoseconds. If nvtx3/nvToolsExt.h was missing at
 * build time, calls do nothing. */
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
