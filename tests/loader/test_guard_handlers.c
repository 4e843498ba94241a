/* test_guard_handlers.c: SIGBUS at addresses outside the loader's maps: handlers that were
 * installed before the guard, and default actions. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/expect.h"
#include "tests/loader/guard.h"

TestSuite(guard_handlers, .init = enter_scratch, .fini = leave_scratch);

/* Map a file of the test's own and cut it to 0 bytes, so that every access to the map raises
 * SIGBUS. Return the map. */
static volatile char *own_map(void)
{
    put_bytes("own", "x", 1);
    int fd = open("own", O_RDONLY);
    volatile char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert(fd >= 0 && p != MAP_FAILED);
    close(fd);
    resize("own", 0);
    return p;
}

static __thread sigjmp_buf escape;
static void *volatile caught;
static volatile int times;

static void with_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = info->si_addr;
    times += number == SIGBUS;
    siglongjmp(escape, 1);
}

static void without_info(int number)
{
    times += number == SIGBUS;
    siglongjmp(escape, 1);
}

static void handle(void (*info)(int, siginfo_t *, void *), void (*plain)(int), int flags)
{
    struct sigaction a = {.sa_flags = flags};
    if (info) a.sa_sigaction = info;
    else a.sa_handler = plain;
    cr_assert_eq(sigaction(SIGBUS, &a, NULL), 0);
}

static int touch(volatile char *p)
{
    if (sigsetjmp(escape, 1)) return 1;
    (void)*p;
    return 0;
}

/* Check that a fault in a loader's map becomes an error, and that a fault at `theirs` reaches the
 * handler installed before the guard, repeatedly and also after the loader is closed.
 * wants_address: the handler stores the address. */
static void check_both(volatile char *theirs, int wants_address)
{
    uint16_t rows[B * (T + 1)];
    sgt_cursor *c;
    sgt_error err;
    uint64_t k = 0;
    cr_assert_eq(mkdir("d", 0777), 0);
    put_three();
    sgt_loader *l = open_mapped("d", SGT_SAMPLING_SHUFFLE);
    must(sgt_cursor_open(&c, l, why));
    cut(5 * PAGE, 1);
    while (!past(l, k, 1, 5 * PAGE)) k++;
    for (int again = 1; again <= 3; again++) {
        cr_assert_eq(touch(theirs + again), 1);
        cr_assert_eq(times, again);
        if (wants_address) cr_assert_eq(caught, (void *)(theirs + again));
        cr_assert_eq(read_rows(l, c, k, rows, &err), SGT_EIO);
        cr_assert_eq(times, again);
    }
    sgt_cursor_close(c);
    sgt_loader_close(l);
    cr_assert_eq(touch(theirs), 1);
    cr_assert_eq(times, 4);
}

Test(guard_handlers, the_handler_before)
{
    handle(with_info, NULL, SA_SIGINFO);
    guard();
    guard(); /* a second call does nothing */
    check_both(own_map(), 1);
}

Test(guard_handlers, the_plain_handler_before)
{
    handle(NULL, without_info, 0);
    guard();
    check_both(own_map(), 0);
}

/* In a child process, set `before` as the handler of SIGBUS, install the guard, and then access
 * memory that faults (`fault`), or send the signal twice. Return the signal that ended the child,
 * or 0. */
static int ended_by(void (*before)(int), int flags, int fault)
{
    int status;
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        volatile char *p = own_map();
        handle(NULL, before, flags);
        if (sgt_loader_guard_sigbus(NULL) < 0) _exit(1);
        /* a handler with SA_RESETHAND receives one signal, and the next one ends the process */
        if (flags && (!touch(p) || times != 1)) _exit(1);
        if (fault) (void)*p;
        for (int i = 0; i < 2 && !fault; i++) kill(getpid(), SIGBUS);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Test(guard_handlers, what_the_system_does_by_itself)
{
    cr_assert_eq(ended_by(SIG_DFL, 0, 1), SIGBUS);
    cr_assert_eq(ended_by(SIG_DFL, 0, 0), SIGBUS);
    cr_assert_eq(ended_by(SIG_IGN, 0, 1), SIGBUS);
    cr_assert_eq(ended_by(SIG_IGN, 0, 0), 0);
    cr_assert_eq(ended_by(without_info, (int)SA_RESETHAND, 1), SIGBUS);
}
