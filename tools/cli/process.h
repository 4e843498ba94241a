/* process.h: functions for the process itself: signals, running out of memory, OpenMP's threads,
 * the folders of NVIDIA's libraries, and the folder of the cache.
 *
 *     sgt_spin_little(argv);   // limits how long idle OpenMP threads spin; call it first in main
 *     sgt_search_wheels();     // before anything that uses CUDA
 *     sgt_stop *stop = sgt_catch_signals(); */
#ifndef SGT_CLI_PROCESS_H
#define SGT_CLI_PROCESS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Return a flag that SIGINT, SIGTERM and SIGHUP set from now on (SIGHUP only if it is not ignored).
 * A second signal ends the program at once with exit code 130. The same signal within a second of
 * the first counts as one. SIGXFSZ is ignored. Call this before anything slow. */
sgt_stop *sgt_catch_signals(void);

/* Make signals end the program at once during a wait that cannot check the flag. Call in pairs:
 * - sgt_end_at_signal(1) before the wait. If a signal has already set the flag, the program ends
 *   now.
 * - sgt_end_at_signal(0) after the wait: from now on, a signal sets the flag again.
 *
 * Between the two calls, do not read the flag: it is set although nobody has requested a stop. */
void sgt_end_at_signal(int on);

/* Make jansson end the program if memory runs out. Most of its functions would otherwise silently
 * omit data. The message begins with `name`; the string must stay valid. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" and exit with code 1. The program's files are left as if it had been
 * killed, and every program can continue from such files. */
_Noreturn void sgt_no_memory(void);

/* Limit how long OpenMP's threads spin while they wait for work, before they sleep. libgomp's
 * threads spin for milliseconds at the end of each loop, and a training step has hundreds of loops.
 * On a machine that other programs use, too, a thread that has work may have to wait until a
 * spinning thread leaves its core. For example, with 2 threads on 2 cores shared with 13 other
 * programs, training processed 200 tokens/s without the limit and 830 tokens/s with it.
 *
 * libgomp reads the limit only from the environment, and only before main begins. Therefore this
 * function sets the limit in the environment and executes the program a second time. If the user
 * has set a limit, that one is kept. */
void sgt_spin_little(char **argv);

/* Return the maximum number of threads that OMP_NUM_THREADS sets; 0: no maximum. */
int sgt_most_threads(void);

/* Return the number of threads to use: `typed`, the value of --threads, or if that is 0, the
 * default (sgt_cpu_threads) for one of `sharing` processes that use the same cores. */
int sgt_threads(uint64_t typed, uint32_t sharing);

/* Return the folders that contain NVIDIA's libraries in Python packages, separated by colons.
 * cuDNN, cuBLASLt, NCCL and CUPTI are installed there together with PyTorch, in
 * site-packages/nvidia/NAME/lib, where the dynamic linker does not search. The order of the list
 * is: the active virtual environment and Conda environment, the environment of the python3 in PATH,
 * the user's packages, the system's packages. Returns "" if there are none, or NULL if memory runs
 * out. The caller frees the list. Python is not run. */
char *sgt_wheel_folders(void);

/* Pass the folders of sgt_wheel_folders to sgt_library_search. Call this before any library is
 * loaded. The list stays in memory until the program ends. */
void sgt_search_wheels(void);

/* Return whether `folder` has an entry called `name`, a file or a folder. */
int sgt_folder_has(const char *folder, const char *name);

/* Return the folder that keeps the timings of devices between runs, according to the XDG base
 * directory specification. Return NULL if there is none. The caller frees it. */
char *sgt_cache_folder(void);

#endif
