/* thread.h: the threads and processes that a library starts, and their signals. */
#ifndef SGT_BASE_THREAD_H
#define SGT_BASE_THREAD_H

#include <pthread.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Call pthread_create with signals blocked in the new thread, so that only the program's own
 * threads receive them. The signals that a thread causes itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL)
 * are not blocked, because a handler may act on them; sgt_loader_guard_sigbus installs one for
 * SIGBUS. Return pthread_create's error number. */
int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

typedef struct sgt_process {
    const char *program; /* looked up in PATH if it has no slash */
    char *const *argv;
    /* descriptors for standard input, output and error. 0: /dev/null for input, the caller's
     * descriptor for output and error */
    int in, out, errors;
    int group; /* 1: start a new process group, so that Ctrl-C signals only the caller */
    /* 1: descriptors without O_CLOEXEC stay open in the new process; 0: it closes all above 2 */
    int keeps;
} sgt_process;

/* Start a process with no signal blocked or ignored, and store its id in *pid. Return 0 or an errno
 * value. */
int sgt_process_start(pid_t *pid, const sgt_process *p);

#ifdef __cplusplus
}
#endif
#endif
