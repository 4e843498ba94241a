/* process.h: functions for the process as a whole: signals, running out of memory, the spinning of
 * OpenMP's threads, the folders of NVIDIA's libraries, and the cache folder.
 *
 *     sgt_spin_little(argv);   // limits how long idle OpenMP threads spin; call it first in main
 *     sgt_search_wheels();     // before anything that uses CUDA
 *     sgt_stop *stop = sgt_catch_signals(); */
#ifndef SGT_CLI_PROCESS_H
#define SGT_CLI_PROCESS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Return a flag that is set when SIGINT, SIGTERM or SIGHUP arrives (SIGHUP only if it is not
 * ignored). A second signal ends the program at once with exit code 130. If the same signal arrives
 * again within a second, it does not count. SIGXFSZ is ignored. Call this function before any slow
 * work. */
sgt_stop *sgt_catch_signals(void);

/* Make signals end the program at once during a wait that cannot check the flag of
 * sgt_catch_signals. Call this function twice:
 * - sgt_end_at_signal(1) before the wait. If a signal has already set the flag, the program ends in
 *   this call.
 * - sgt_end_at_signal(0) after the wait. From then on, a signal sets the flag again.
 *
 * Between the two calls, do not read the flag: it is set even though no stop has been requested. */
void sgt_end_at_signal(int on);

/* Make the program end if jansson, the JSON library, runs out of memory. Otherwise most of
 * jansson's functions would silently omit data. `name` is the name with which the message begins;
 * the string must stay valid. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" to stderr and exit with code 1. Files are left as if the program had
 * been killed; every program can resume from files in that state. */
_Noreturn void sgt_no_memory(void);

/* Limit how long OpenMP's threads spin while they wait for work, before they sleep. By default,
 * libgomp's threads spin for milliseconds at the end of each loop, and a training step has hundreds
 * of loops. If other programs use the same cores, a thread that has work may have to wait until a
 * spinning thread leaves its core. For example, with 2 threads on 2 cores shared with 13 other
 * programs, training processed 200 tokens/s without the limit and 830 tokens/s with it.
 *
 * libgomp reads the limit only from the environment, and only before main begins. Therefore this
 * function sets the limit in the environment and executes the program a second time. A limit that
 * the user has set is kept. */
void sgt_spin_little(char **argv);

/* Return the maximum number of threads according to OMP_NUM_THREADS, or 0 if there is no
 * maximum. */
int sgt_most_threads(void);

/* Return the number of threads to use: `typed`, the value of --threads, if it is not 0. Otherwise,
 * return the default (sgt_cpu_threads) for one of `sharing` processes that share the same cores. */
int sgt_threads(uint64_t typed, uint32_t sharing);

/* Return the folders of NVIDIA's libraries in Python packages, separated by colons. When PyTorch is
 * installed, pip puts cuDNN, cuBLASLt, NCCL and CUPTI into site-packages/nvidia/NAME/lib, where the
 * dynamic linker does not look for them. The order of the list is: the active virtual environment
 * and Conda environment, the environment in which this program is installed, that of the first
 * python3 in PATH, the user's packages, the system's packages. Returns "" if there are no such
 * folders, or NULL if memory runs out. The caller frees the string. The function does not run
 * Python. */
char *sgt_wheel_folders(void);

/* Pass the folders returned by sgt_wheel_folders to sgt_library_search. Call this function before
 * any library is loaded. The list of folders is kept until the program ends. */
void sgt_search_wheels(void);

/* Return whether the folder `folder` contains a file or a folder named `name`. */
int sgt_folder_has(const char *folder, const char *name);

/* Return the path of the cache folder (for example ~/.cache/sgt), in which timings of devices are
 * kept between runs. It follows the XDG base directory specification. Return NULL if there is no
 * such folder. The caller frees the string. */
char *sgt_cache_folder(void);

#endif
