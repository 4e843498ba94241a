/* thread.h: start the threads and processes of a library. The threads block signals, so that
 * signals are delivered to the program's own threads. The processes start with no signal
 * blocked. */
#ifndef SGT_BASE_THREAD_H
#define SGT_BASE_THREAD_H

#include <pthread.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start a thread as pthread_create does, but with signals blocked, so that signals are delivered
 * only to the program's own threads. SIGSEGV, SIGBUS, SIGFPE and SIGILL are not blocked, because
 * the thread itself can cause them and the program may have a handler for them (see
 * sgt_loader_guard_sigbus). Return 0, or the error number of pthread_create. */
int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

typedef struct sgt_process {
    /* path of the program, or a name without slashes, which is searched for in PATH */
    const char *program;
    char *const *argv;
    /* file descriptors that become standard input, standard output and standard error of the
     * process. 0 in `in` means /dev/null; 0 in `out` or `errors` means that the process inherits
     * that stream from the caller */
    int in, out, errors;
    /* 1: start a new process group, so that Ctrl-C in the terminal does not signal the process; 0:
     * stay in the caller's process group */
    int group;
    /* 1: the process inherits all descriptors without O_CLOEXEC; 0: it inherits only descriptors 0,
     * 1 and 2 */
    int keeps;
} sgt_process;

/* Start a process in which no signal is blocked or ignored, and store its process id in *pid.
 * Return 0, or an errno value on failure. */
int sgt_process_start(pid_t *pid, const sgt_process *p);

#ifdef __cplusplus
}
#endif
#endif
