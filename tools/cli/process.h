/* process.h: functions for a program's process: handle signals, end the program if memory runs out,
 * limit how long OpenMP threads spin, and find NVIDIA's libraries and the cache folder.
 *
 *     sgt_spin_little(argv);   // must be called first in main
 *     sgt_search_wheels();     // must be called before anything that uses CUDA
 *     sgt_stop *stop = sgt_catch_signals(); */
#ifndef SGT_CLI_PROCESS_H
#define SGT_CLI_PROCESS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Catch SIGINT, SIGTERM and, unless it is ignored, SIGHUP. Return a flag that the first signal
 * sets. A second signal ends the program at once with exit code 130. (If the same signal arrives
 * again within a second, it counts as one.) Also ignore SIGXFSZ. Call this function before any slow
 * work. */
sgt_stop *sgt_catch_signals(void);

/* Make a signal end the program at once while the program waits and cannot check the flag that
 * sgt_catch_signals returned. Call this function twice:
 * - sgt_end_at_signal(1) before the wait. If a signal has already set the flag, this call ends the
 *   program.
 * - sgt_end_at_signal(0) after the wait. From now on, a signal sets the flag again.
 *
 * Do not read the flag between the two calls, because it is set even if no signal has arrived. */
void sgt_end_at_signal(int on);

/* Make the program end if the JSON library jansson runs out of memory. Without this, most of its
 * functions would silently omit data. name: the program's name, which the message begins with; the
 * string must stay valid until the program ends. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" to stderr and exit with code 1, without finishing any files. This
 * leaves files as if the program had been killed, a state from which every program can resume. */
_Noreturn void sgt_no_memory(void);

/* Limit how long idle OpenMP threads spin before they sleep. By default, libgomp's threads spin for
 * milliseconds at the end of each parallel loop, and a training step has hundreds of such loops. If
 * other programs use the same cores, a thread that has work may have to wait for a core on which
 * another thread only spins. For example, with 2 threads on 2 cores shared with 13 other programs,
 * training processed 200 tokens/s without the limit and 830 tokens/s with it.
 *
 * libgomp reads the limit only from the environment, and only before main begins. Therefore, this
 * function sets the limit in the environment and executes the program again. If the user has set a
 * limit, it is kept. */
void sgt_spin_little(char **argv);

/* Return the maximum number of threads that the environment variable OMP_NUM_THREADS sets, or 0 if
 * it sets none. */
int sgt_most_threads(void);

/* Return the number of threads to use. typed: the value of --threads, which is returned if it is
 * not 0. sharing: the number of processes on the same cores, from which the default is computed
 * (sgt_cpu_threads). */
int sgt_threads(uint64_t typed, uint32_t sharing);

/* Return the folders with NVIDIA's libraries that were installed as Python packages, separated by
 * colons. (With PyTorch, pip installs cuDNN, cuBLASLt, NCCL and CUPTI in
 * site-packages/nvidia/NAME/lib, where the dynamic linker does not find them.) The folders are
 * searched for in this order: the active virtual environment and Conda environment, the environment
 * in which this program is installed, the environment of the first python3 in PATH, the user's
 * packages, the system's packages. Return "" if there are no such folders, or NULL if memory runs
 * out. The caller frees the string. */
char *sgt_wheel_folders(void);

/* Make sgt_library_search also search the folders that sgt_wheel_folders returns. Call this
 * function before any CUDA library is loaded. */
void sgt_search_wheels(void);

/* Return 1 if `folder` contains a file or a folder named `name`, otherwise 0. */
int sgt_folder_has(const char *folder, const char *name);

/* Return the path of the cache folder, such as ~/.cache/sgt, in which timings of devices are kept
 * between runs. (The folder is chosen by the XDG base directory specification.) Return NULL if the
 * environment names no such folder. The caller frees the string. */
char *sgt_cache_folder(void);

#endif
