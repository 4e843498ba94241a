/* thread.h: the threads that a library starts. */
#ifndef SGT_BASE_THREAD_H
#define SGT_BASE_THREAD_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Call pthread_create with signals blocked in the new thread, so that only the program's own
 * threads receive them. Only the signals that a thread causes itself (SIGSEGV, SIGBUS, SIGFPE,
 * SIGILL) are not blocked, because a handler may act on them, as that of sgt_loader_guard_sigbus
 * does. Return pthread_create's error number. */
int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#ifdef __cplusplus
}
#endif
#endif
