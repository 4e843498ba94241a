/* thread.c: start threads in which signals are blocked, and processes in which no signal is
 * blocked. */
#include "loader/base/thread.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

int sgt_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

extern char **environ;

static int describe_files(posix_spawn_file_actions_t *files, const sgt_process *p)
{
    int rc = p->in ? posix_spawn_file_actions_adddup2(files, p->in, STDIN_FILENO)
                   : posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", 0, 0);
    if (!rc && p->out) rc = posix_spawn_file_actions_adddup2(files, p->out, STDOUT_FILENO);
    if (!rc && p->errors) rc = posix_spawn_file_actions_adddup2(files, p->errors, STDERR_FILENO);
    if (!rc && !p->keeps) rc = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
    return rc;
}

int sgt_process_start(pid_t *pid, const sgt_process *p)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                           (p->group ? POSIX_SPAWN_SETPGROUP : 0)));
    int rc = describe_files(&files, p);
    if (!rc) rc = posix_spawnp(pid, p->program, &files, &how, p->argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}
