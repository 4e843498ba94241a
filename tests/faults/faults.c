/* faults.c: run a program and disturb one of its calls, chosen by its number. All tests that
 * kill sgt's programs at each call in turn, or make each call fail, use this
 * (tests/cli/faults.inc).
 *
 *     faults [-o FILE] CALLS:WHAT[:N] PROGRAM [ARGUMENT]...
 *
 *     faults -o seen rename:count sgt-tokenize ...  count the calls: write SEEN HIT to "seen"
 *     faults write,pwrite64:kill:7 ...      SIGKILL before the 7th call
 *     faults fsync:EIO:2 ...                the 2nd call fails; 2+: all calls from the 2nd on
 *     faults read,write:short:3 ...         the 3rd call is limited to half of its bytes
 *     faults clone,clone3,vfork:EAGAIN:1 ...  no thread or process can be started
 *     faults memory:fail:17 ...             malloc and its like, called by the program's code, fail
 *     faults memory@libjansson:fail:17 ...  ... called by the code of a library
 *     faults clock:back:5 ...               from the 5th query on, clocks are an hour behind;
 *                                           forward: ten years ahead; wild: alternating
 *
 * seccomp and ptrace catch the system calls of the program's own process and all its threads,
 * whether libc, liburing or a raw instruction makes them. They begin at the program's entry point,
 * so the dynamic loader's calls are not disturbed. Calls that are not system calls are caught by
 * faults.so, which is preloaded. The exit status is the program's, or 128 plus the number of the
 * signal that killed it. It is 77 if tracing is not permitted, and on machines other than x86-64
 * Linux. */
#include <stdio.h>

#ifndef __x86_64__
int main(void)
{
    fprintf(stderr, "faults: not for this machine\n");
    return 77;
}
#else
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/plan.h"

#define MOST_CALLS 32

/* The calls that the scripts disturb. size_of: number of the argument that is the size in bytes,
 * counted from 1; 0: there is none. */
static const struct call {
    const char *name;
    int number, size_of;
} calls[] = {
    {"read", SYS_read, 3},
    {"pread64", SYS_pread64, 3},
    {"write", SYS_write, 3},
    {"pwrite64", SYS_pwrite64, 3},
    {"copy_file_range", SYS_copy_file_range, 5},
    {"getrandom", SYS_getrandom, 2},
    {"getdents64", SYS_getdents64, 0},
    {"openat", SYS_openat, 0},
    {"fsync", SYS_fsync, 0},
    {"fdatasync", SYS_fdatasync, 0},
    {"rename", SYS_rename, 0},
    {"renameat2", SYS_renameat2, 0},
    {"link", SYS_link, 0},
    {"symlink", SYS_symlink, 0},
    {"unlink", SYS_unlink, 0},
    {"unlinkat", SYS_unlinkat, 0},
    {"rmdir", SYS_rmdir, 0},
    {"mkdir", SYS_mkdir, 0},
    {"ftruncate", SYS_ftruncate, 0},
    {"fallocate", SYS_fallocate, 0},
    {"lseek", SYS_lseek, 0},
    {"stat", SYS_stat, 0},
    {"lstat", SYS_lstat, 0},
    {"fstat", SYS_fstat, 0},
    {"newfstatat", SYS_newfstatat, 0},
    {"statx", SYS_statx, 0},
    {"access", SYS_access, 0},
    {"faccessat2", SYS_faccessat2, 0},
    {"getcwd", SYS_getcwd, 0},
    {"readlink", SYS_readlink, 0},
    {"mmap", SYS_mmap, 0},
    {"io_uring_setup", SYS_io_uring_setup, 0},
    {"io_uring_enter", SYS_io_uring_enter, 0},
    {"io_uring_register", SYS_io_uring_register, 0},
    {"clone", SYS_clone, 0},
    {"clone3", SYS_clone3, 0},
    {"vfork", SYS_vfork, 0},
};

static const struct error {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EINTR", EINTR}, {"EAGAIN", EAGAIN}};

typedef enum what { COUNT, KILL, SHORT, ERROR } what;

typedef struct run {
    const struct call *calls[MOST_CALLS];
    int count;
    what what;
    int error;
    fault_place place;
    pid_t pid;        /* process id of the program; its threads have other ids */
    long entry, text; /* the entry point, and the instruction there */
    int began;
    uint64_t seen, hits;
} run;

static _Noreturn void stop(const char *why, const char *name)
{
    fprintf(stderr, "faults: %s%s%s%s\n", name, *name ? ": " : "", why,
            errno ? strerror(errno) : "");
    exit(77);
}

/* ---- the plan ---- */

static int is_shims(const char *name)
{
    return !strcmp(name, "clock") || !strcmp(name, "memory") || !strncmp(name, "memory@", 7);
}

static void add_call(run *r, const char *name)
{
    errno = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name)) {
            if (r->count == MOST_CALLS) stop("more calls than there is room for", name);
            r->calls[r->count++] = &calls[i];
            return;
        }
    stop("no such call", name);
}

static void set_what(run *r, const char *text)
{
    static const char *const names[] = {"count", "kill", "short"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], text)) {
            r->what = (what)i;
            return;
        }
    r->what = ERROR;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(errors[i].name, text)) r->error = errors[i].number;
    errno = 0;
    if (!r->error) stop("not what can be done", text);
}

/* ---- the child ---- */

/* Install a seccomp filter that stops at the plan's calls and allows all others. */
static void filter_calls(const run *r)
{
    struct sock_filter f[2 * MOST_CALLS + 2];
    unsigned short n = 0;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < r->count; i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                              (unsigned)r->calls[i]->number, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog all = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) < 0)
        stop("seccomp: ", "");
}

static void start(const run *r, int ready, char **argv)
{
    char c;
    if (read(ready, &c, 1) != 1) _exit(77);
    close(ready);
    filter_calls(r);
    execvp(*argv, argv);
    fprintf(stderr, "faults: %s: %s\n", *argv, strerror(errno));
    _exit(127);
}

/* ---- the tracer ---- */

static int is_of_program(const run *r, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)r->pid, (int)tid);
    return access(path, F_OK) == 0;
}

/* Set a breakpoint at the program's entry point. Calls are disturbed from there on; earlier calls
 * are the dynamic loader's. */
static void break_at_entry(run *r)
{
    Elf64_auxv_t a;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)r->pid);
    FILE *f = fopen(path, "re");
    if (!f) stop("auxv: ", "");
    while (fread(&a, sizeof a, 1, f) == 1 && a.a_type != AT_NULL)
        if (a.a_type == AT_ENTRY) r->entry = (long)a.a_un.a_val;
    fclose(f);
    errno = 0;
    r->text = ptrace(PTRACE_PEEKTEXT, r->pid, r->entry, 0);
    if (errno || ptrace(PTRACE_POKETEXT, r->pid, r->entry, (r->text & ~0xffl) | 0xcc) < 0)
        stop("entry: ", "");
}

static int came_to_entry(run *r, pid_t tid)
{
    struct user_regs_struct regs;
    if (r->began || tid != r->pid || ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0 ||
        (long)regs.rip - 1 != r->entry)
        return 0;
    ptrace(PTRACE_POKETEXT, tid, r->entry, r->text);
    regs.rip--;
    ptrace(PTRACE_SETREGS, tid, 0, &regs);
    r->began = 1;
    return 1;
}

/* Halve the size argument; keep whole pages if possible, because direct reads and writes require
 * them. */
static void ask_for_less(struct user_regs_struct *regs, int argument)
{
    unsigned long long *arguments[] = {&regs->rdi, &regs->rsi, &regs->rdx, &regs->r10, &regs->r8};
    unsigned long long *n = arguments[argument - 1];
    if (*n >= 8192) *n = *n / 2 / 4096 * 4096;
    else if (*n > 1) *n /= 2;
}

/* Handle the beginning of a call that the plan names. */
static void fail_call(run *r, pid_t tid)
{
    struct user_regs_struct regs;
    if (!r->began || !is_of_program(r, tid) || ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0) return;
    r->seen++;
    if (r->what == COUNT || !fault_is_at(&r->place, r->seen)) return;
    r->hits++;
    if (r->what == KILL) kill(r->pid, SIGKILL);
    if (r->what == SHORT)
        for (int i = 0; i < r->count; i++)
            if (r->calls[i]->number == (int)regs.orig_rax && r->calls[i]->size_of)
                ask_for_less(&regs, r->calls[i]->size_of);
    if (r->what == ERROR) { /* For call number -1, the kernel does nothing and keeps rax. */
        regs.orig_rax = (unsigned long long)-1;
        regs.rax = (unsigned long long)-r->error;
    }
    if (r->what != KILL) ptrace(PTRACE_SETREGS, tid, 0, &regs);
}

static void handle_stop(run *r, pid_t tid, int status)
{
    int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) fail_call(r, tid);
    else if (event == PTRACE_EVENT_EXEC && tid == r->pid) break_at_entry(r);
    if (event || (signal == SIGTRAP && came_to_entry(r, tid))) signal = 0;
    /* this fails if the thread was killed, which the next wait reports */
    ptrace(PTRACE_CONT, tid, 0, signal);
}

/* Start the program and trace it to its end; return its wait status. Processes that it leaves
 * running are killed when the tracer ends (PTRACE_O_EXITKILL). */
static int trace(run *r, char **argv)
{
    int ready[2], status;
    if (pipe2(ready, O_CLOEXEC) < 0) stop("pipe: ", "");
    if ((r->pid = fork()) < 0) stop("fork: ", "");
    if (!r->pid) start(r, ready[0], argv);
    if (ptrace(PTRACE_SEIZE, r->pid, 0,
               PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC) < 0)
        stop("ptrace: ", "");
    if (write(ready[1], "", 1) != 1) stop("pipe: ", "");
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR) continue;
        if (tid < 0) stop("wait: ", "");
        if (WIFSTOPPED(status)) handle_stop(r, tid, status);
        else if (tid == r->pid) return status;
    }
}

/* ---- calls that the shim catches ---- */

static int preload(run *r, const char *plan, char **argv)
{
    char path[PATH_MAX], text[PATH_MAX];
    int status, fd = memfd_create("faults", 0);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);
    if (fd < 0 || n < 0 || ftruncate(fd, sizeof(fault_counts)) < 0) stop("memory: ", "");
    fault_counts *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED) stop("memory: ", "");
    strcpy(path + n, ".so");
    snprintf(text, sizeof text, "%d:%s", fd, plan);
    setenv("LD_PRELOAD", path, 1);
    setenv("SGT_FAULTS", text, 1);
    if ((r->pid = fork()) < 0) stop("fork: ", "");
    if (!r->pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(*argv, argv);
        _exit(127);
    }
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    r->seen = counts->seen;
    r->hits = counts->hits;
    return status;
}

int main(int argc, char **argv)
{
    run r = {.pid = 0};
    const char *out = NULL;
    int at = 1, status;
    if (argc > 2 && !strcmp(argv[1], "-o")) out = argv[2], at = 3;
    if (argc < at + 2) stop("faults [-o FILE] CALLS:WHAT[:N] PROGRAM [ARGUMENT]...", "");
    char *plan = strdup(argv[at]), *names = strtok(plan, ":"), *does = strtok(NULL, ":");
    r.place = fault_place_of(strtok(NULL, ":"));
    errno = 0;
    if (!names || !does) stop("not CALLS:WHAT[:N]", argv[at]);
    if (is_shims(names)) status = preload(&r, argv[at], argv + at + 1);
    else {
        set_what(&r, does);
        for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) add_call(&r, name);
        status = trace(&r, argv + at + 1);
    }
    FILE *f = out ? fopen(out, "we") : NULL;
    if (f &&
        (fprintf(f, "%llu %llu\n", (unsigned long long)r.seen, (unsigned long long)r.hits) < 0 ||
         fclose(f)))
        stop("cannot be written: ", out);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
#endif
