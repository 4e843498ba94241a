/* failure.c: implements failure.h, and the functions of runtime.h that set how kernels are launched and report failed launches. The
 * CUDA runtime keeps only the last error. Later errors are consequences of the first error, so this
 * file keeps the message of the first error. */
#include "kernels/cuda/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 384 };

/* message of the first failure that was not reported yet; "": no failure */
static char failure[512];
/* 1 (--sync-kernels): wait for each kernel right after its launch, to find the kernel that failed;
 * 0: do not wait */
static int waiting;
static int early; /* sgt_cuda_launch_early */

void sgt_cuda_note(const char *fmt, ...)
{
    va_list ap;
    if (*failure) return;
    va_start(ap, fmt);
    vsnprintf(failure, sizeof failure, fmt, ap);
    va_end(ap);
}

int sgt_cuda_noted(sgt_error *err)
{
    if (!*failure) return SGT_OK;
    int rc = sgt_fail(err, SGT_EIO, "%s", failure);
    *failure = 0;
    return rc;
}

/* The numbers below are values of cudaError_t. runtime.cu checks that they are equal to CUDA's
 * constants. */
int sgt_cuda_error_is_late(int code)
{
    switch (code) {
    case 214: /* uncorrectable memory error */
    case 220: /* uncorrectable NVLink error */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 710: /* failed assertion */
    case 714: /* 714-718: illegal stack, instruction, alignment, address space, program counter */
    case 715:
    case 716:
    case 717:
    case 718:
    case 719: /* unspecified failure */
    case 999: return 1;
    default: return 0;
    }
}

void sgt_cuda_sync_kernels(int on) { waiting = on; }
void sgt_cuda_launch_early(int on) { early = on; }
int sgt_cuda_launches_early(void) { return early; }

/* Note that the work called `name` failed with error `code`. Errors on the device are often
 * reported only by a later call. For such errors, the message also names earlier kernels as a
 * possible cause. */
static void blame(const char *name, int code, const char *why)
{
    if (waiting || !sgt_cuda_error_is_late(code))
        sgt_cuda_note("%s: %s (CUDA error %d)", name, why, code);
    else
        sgt_cuda_note("%s, or an earlier kernel: %s (CUDA error %d; --sync-kernels finds which)",
                      name, why, code);
}

void sgt_cuda_launched(sgt_cuda_stream s, const char *fmt, ...)
{
    const char *why;
    int code = sgt_cuda_device_error(s, waiting, &why);
    char name[NAME];
    va_list ap;
    if (!code) return;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    blame(name, code, why);
}

/* Write the size of a grid or block to text, for example "2048 x 12", without trailing dimensions
 * of 1. Return text. */
static const char *extent(char text[40], const unsigned d[3])
{
    int n = snprintf(text, 40, "%u", d[0]);
    if (d[1] > 1 || d[2] > 1) n += snprintf(text + n, 40 - (size_t)n, " x %u", d[1]);
    if (d[2] > 1) snprintf(text + n, 40 - (size_t)n, " x %u", d[2]);
    return text;
}

/* `kernel` is the source text of DEV_LAUNCH's first argument, for example "(norm_kernel<T,
 * width>)". Messages omit the template arguments, because this text contains only their names, and
 * not the values that they have in this launch. */
void sgt_cuda_kernel_launched(sgt_cuda_stream s, const char *kernel, const unsigned grid[3],
                              const unsigned block[3], size_t shared)
{
    char blocks[40], threads[40];
    const char *why;
    sgt_cuda_count_launch();
    int code = sgt_cuda_device_error(s, waiting, &why);
    if (!code) return;
    kernel += strspn(kernel, "(");
    sgt_cuda_launched(s, "%.*s (grid %s, block %s, %zu bytes of shared memory)",
                      (int)strcspn(kernel, "<)"), kernel, extent(blocks, grid),
                      extent(threads, block), shared);
}
