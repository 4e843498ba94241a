/* process.h: what a program does with its process: signals, memory that runs out, OpenMP's threads,
 * and folders: those of NVIDIA's libraries and of the cache, and what is in one.
 *
 *     sgt_spin_little(argv);            // first in main: it may execute the program again
 *     sgt_search_wheels();              // before anything that uses CUDA
 *     sgt_stop *stop = sgt_catch_signals(); */
#ifndef SGT_CLI_PROCESS_H
#define SGT_CLI_PROCESS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Let SIGINT and SIGTERM set the returned flag, and SIGHUP unless it is ignored; a second signal ends
 * the program at once with exit code 130, unless it is the same within a second. SIGXFSZ is ignored.
 * Call this before anything slow. */
sgt_stop *sgt_catch_signals(void);

/* If `on`, let the first signal end the program at once, also one that has come before: for a wait
 * that cannot look at the flag. If not, let the first signal set the flag again. Calls alternate,
 * and nothing else may look at the flag between them. */
void sgt_end_at_signal(int on);

/* Make jansson end the program when its memory runs out; otherwise most of its calls would silently
 * leave out data. Messages begin with `name`, whose pointer is kept. */
void sgt_end_without_memory(const char *name);

/* Print "NAME: out of memory" and exit with code 1. The program's files are then as after a kill,
 * and every program can continue from those. */
_Noreturn void sgt_no_memory(void);

/* Limit how long OpenMP's threads look for work before they sleep. libgomp's threads spin for
 * milliseconds at the end of each loop, and a training step has hundreds of loops. If another
 * program uses one of the cores, a thread with work may have to wait until a spinning thread leaves
 * its core. With 2 threads on two cores and 13 other programs, training made 200 tokens a second,
 * and 830 with the limit. libgomp reads the limit only from the environment, before main, so this
 * function sets it there and executes the program again. Values that the user has set are kept. */
void sgt_spin_little(char **argv);

/* Return the largest number of threads that OMP_NUM_THREADS allows a program by default; 0: any. */
int sgt_most_threads(void);

/* Return the number of threads that was typed, or if it is 0, the default of a process that shares
 * its cores with `sharing` - 1 others (sgt_cpu_threads). */
int sgt_threads(uint64_t typed, uint32_t sharing);

/* Return the folders of NVIDIA's libraries in Python packages (cuDNN, cuBLASLt, NCCL and CUPTI come
 * with PyTorch), separated by colons; "" if there are none, NULL if memory runs out. The caller
 * must free it. They are site-packages/nvidia/NAME/lib, which the dynamic linker does not search.
 * Their order is: the active virtual environment and Conda environment, the environment of the
 * python3 in PATH, the user's packages, the system's. No Python is started. */
char *sgt_wheel_folders(void);

/* Pass the folders of sgt_wheel_folders to sgt_library_search. A program calls this before anything
 * else; the list is kept until the program ends. */
void sgt_search_wheels(void);

/* Return whether the folder has a file or folder of this name. */
int sgt_folder_has(const char *folder, const char *name);

/* Return the folder for a device's timings, which are kept between runs: by the XDG base
 * directories, or NULL if there is none. The caller must free it. */
char *sgt_cache_folder(void);

#endif
