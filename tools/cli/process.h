/* process.h: functions for the process itself: signals, running out of memory, and OpenMP's
 * threads; and for finding folders: NVIDIA's libraries and the cache.
 *
 *     sgt_spin_little(argv);            // first in main: it may execute the program again
 *     sgt_search_wheels();              // before anything that uses CUDA
 *     sgt_stop *stop = sgt_catch_signals(); */
#ifndef SGT_CLI_PROCESS_H
#define SGT_CLI_PROCESS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Let SIGINT, SIGTERM and, unless it is ignored, SIGHUP set the returned flag. A second signal ends
 * the program at once with exit code 130, but the same signal within a second of the first counts
 * as one. SIGXFSZ is ignored. Call this before anything slow. */
sgt_stop *sgt_catch_signals(void);

/* If `on` is 1, let the first signal end the program at once, even one that has already come. This
 * is for a wait that cannot check the flag. If `on` is 0, let the first signal set the flag again.
 * Calls with 1 and 0 must alternate, and nothing may read the flag between them. */
void sgt_end_at_signal(int on);

/* Make jansson end the program if memory runs out; otherwise most of its calls would silently leave
 * out data. The message begins with `name`, a string that must stay valid. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" and exit with code 1. The program's files are left as if it had been
 * killed; every program can continue from such files. */
_Noreturn void sgt_no_memory(void);

/* Limit how long OpenMP's threads spin, waiting for work, before they sleep. libgomp's threads spin
 * for milliseconds at the end of each loop, and a training step has hundreds of loops. If another
 * program uses one of the cores, a thread with work may have to wait until a spinning thread leaves
 * its core. With 2 threads on 2 cores shared with 13 other programs, training processed 200
 * tokens/s without the limit and 830 with it. libgomp reads the limit only from the environment,
 * before main, so this function sets it there and executes the program again. Values that the user
 * has set are kept. */
void sgt_spin_little(char **argv);

/* Return the largest number of threads that OMP_NUM_THREADS allows a program by default; 0: any. */
int sgt_most_threads(void);

/* Return `typed`, the value of --threads. If it is 0, return the default for one of `sharing`
 * processes that share their cores (sgt_cpu_threads). */
int sgt_threads(uint64_t typed, uint32_t sharing);

/* Return the folders of NVIDIA's libraries in Python packages (cuDNN, cuBLASLt, NCCL and CUPTI come
 * with PyTorch), separated by colons; "" if there are none, NULL if memory runs out. The caller
 * must free it. The folders are site-packages/nvidia/NAME/lib, which the dynamic linker does not
 * search. They are listed in this order: the active virtual environment and Conda environment, the
 * environment of the python3 in PATH, the user's packages, the system's packages. The function does
 * not run Python. */
char *sgt_wheel_folders(void);

/* Pass the folders of sgt_wheel_folders to sgt_library_search. A program calls this before it loads
 * any library; the list is kept until the program ends. */
void sgt_search_wheels(void);

/* Return whether the folder contains a file or folder called `name`. */
int sgt_folder_has(const char *folder, const char *name);

/* Return the folder in which a device's timings are kept between runs, as the XDG base directory
 * specification defines it. Return NULL if there is none. The caller must free the result. */
char *sgt_cache_folder(void);

#endif
