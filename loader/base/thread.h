/* thread.h: threads of a library, of which a program need not know. */
#ifndef SGT_BASE_THREAD_H
#define SGT_BASE_THREAD_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* pthread_create, and the error number that it returns, with signals blocked in the new thread:
 * they are the program's business, whose own threads are to be interrupted by them. But for those
 * that a thread brings upon itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL), which a handler may mend:
 * sgt_loader_guard_sigbus's does. */
int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#ifdef __cplusplus
}
#endif
#endif
