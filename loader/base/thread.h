/* thread.h: the threads that a library starts. */
#ifndef SGT_BASE_THREAD_H
#define SGT_BASE_THREAD_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Call pthread_create, with signals blocked in the new thread: they are for the program's own
 * threads. Only the signals that a thread causes itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL) are not
 * blocked, because a handler may act on them, as that of sgt_loader_guard_sigbus does. Returns its
 * error number. */
int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#ifdef __cplusplus
}
#endif
#endif
