/* process.h: start another program. */
#ifndef SGT_BASE_PROCESS_H
#define SGT_BASE_PROCESS_H

#include <sys/types.h>

typedef struct sgt_process {
    const char *program; /* looked up in PATH if it has no slash */
    char *const *argv;
    /* descriptors for standard input, output and error. 0: /dev/null for input, the caller's
     * descriptor for output and error */
    int in, out, errors;
    int group; /* 1: start a new process group, so that Ctrl-C reaches only the caller */
    /* 1: descriptors without O_CLOEXEC stay open in the new process; 0: it closes all above 2 */
    int keeps;
} sgt_process;

/* Start a process with no signal blocked or ignored, and store its id in *pid. Return 0 or an errno
 * value. */
int sgt_process_start(pid_t *pid, const sgt_process *p);

#endif
