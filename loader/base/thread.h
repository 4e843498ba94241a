/* thread.h: start the threads and processes of a library. A library's threads receive no signals,
 * so that signals reach the program's own threads. A library's processes start with no signal
 * blocked. */
#ifndef SGT_BASE_THREAD_H
#define SGT_BASE_THREAD_H

#include <pthread.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start a thread, as pthread_create does, with signals blocked in it, so that signals reach only
 * the program's own threads. SIGSEGV, SIGBUS, SIGFPE and SIGILL are not blocked: a thread causes
 * these itself, and the program may have a handler for them (see sgt_loader_guard_sigbus). Return
 * 0, or pthread_create's error number if it fails. */
int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

typedef struct sgt_process {
    const char *program; /* path of the program, or its name, which is searched for in PATH */
    char *const *argv;
    /* file descriptors that become the process's standard input, output and error. 0: `in` is
     * /dev/null, `out` and `errors` are the caller's standard output and standard error */
    int in, out, errors;
    /* 1: start a new process group, so that Ctrl-C does not signal this process; 0: stay in the
     * caller's group */
    int group;
    /* 1: the new process inherits descriptors without O_CLOEXEC; 0: it inherits only 0, 1 and 2 */
    int keeps;
} sgt_process;

/* Start a process in which no signal is blocked or ignored, and store its id in *pid. Return 0 or
 * an errno value. */
int sgt_process_start(pid_t *pid, const sgt_process *p);

#ifdef __cplusplus
}
#endif
#endif
