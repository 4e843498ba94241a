/* check-cuda.cpp: compares every CUDA kernel, run on the host (host.h), with kernels/ref, and tests
 * each wrapper of device.cuh.
 *
 *     check-cuda [--list] [--case NAME] [--schedule N] [--seed N]
 *
 * Prints one line per case: ok, or FAIL with the reasons above it. The last line is "N passed, N
 * failed, N skipped". Exits with 1 on any failure, with 2 on wrong usage. check-cuda-race is the
 * same program with race mode on. */
#include "tests/kernels/host/check-cuda.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/host/streams.h"
#include "tests/kernels/run.h"

static sigjmp_buf crash_exit;
enum { HOST_FAILED = 1000 }; /* value for a failure, above all signal numbers */

void cuda_sync(check *) { host::finish(nullptr); }

bool cuda_hopper(check *) { return true; }

bool cuda_card(check *t)
{
    check_skip(t, "its size needs a card");
    return false;
}

void *cuda_address(check *, void *p) { return p; }

static void on_crash(int number)
{
    host::current = nullptr;
    siglongjmp(crash_exit, number);
}

/* Run signal handlers on a stack of their own, because a kernel may have used up its fiber's. */
static void catch_crashes()
{
    static char stack[1 << 16];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_handler = on_crash;
    action.sa_flags = SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    host::options.on_failure = [] { siglongjmp(crash_exit, HOST_FAILED); };
}

static void run_placement(check *t, const cuda_case *c, uint64_t seed, int placement)
{
    t->seed = seed;
    t->counter = 0;
    t->placement = placement;
    t->hash_next = 0;
    host::counts = host::Counts{};
    int crash = sigsetjmp(crash_exit, 1);
    if (crash == 0) c->body(t);
    else if (crash == HOST_FAILED) check_fail(t, "the kernel did what a kernel may not do");
    else
        check_fail(t, "%s: touched memory outside its buffers",
                   crash == SIGSEGV ? "segmentation fault" : "bus error");
    if (crash) host::abandon();
    const host::Counts &n = host::counts;
    if (n.races || n.uninitialised || n.proxy_misses)
        check_fail(t, "%ld races, %ld reads of nothing, %ld missing proxy fences in shared memory",
                   n.races, n.uninitialised, n.proxy_misses);
    check_release(t);
}

static bool run_case(const cuda_case *c, uint64_t seed)
{
    kernel_case which = {};
    which.name = c->name;
    check t = {};
    t.ref = sgt_kernels_ref();
    t.which = &which;
    t.level = host::options.race ? "race" : "host";
    check_at(&t, "start");
    for (int p = 0; p < CHECK_ONE_IN && !t.failures; p++) run_placement(&t, c, seed, p);
    printf("%-4s %s %s\n", t.failures ? "FAIL" : "ok", c->name, t.level);
    fflush(stdout);
    free(t.hashes);
    return !t.failures;
}

int main(int argc, char **argv)
{
    static const char usage[] = "check-cuda [--list] [--case NAME] [--schedule N] [--seed N]";
    bool list = false;
    const char *only = nullptr;
    uint64_t seed = 1, schedule = 0;
    const cuda_option all[] = {{"--list", &list, nullptr, nullptr},
                               {"--case", nullptr, &only, nullptr},
                               {"--schedule", nullptr, nullptr, &schedule},
                               {"--seed", nullptr, nullptr, &seed},
                               {nullptr, nullptr, nullptr, nullptr}};
    int code = cuda_parse(all, usage, argc, argv), passed = 0, failed = 0;
    if (code) return code;
    catch_crashes();
    host::options.seed = (unsigned)schedule;
    host::options.race = host::instrumented;
    if (!list)
        printf("CUDA kernels on the host%s, schedule %u, seed %llu\n",
               host::options.race ? ", race mode" : "", host::options.seed,
               (unsigned long long)seed);
    for (const cuda_case *c = cuda_first_case(); c; c = c->next) {
        if (only && strcmp(only, c->name)) continue;
        /* these cases need a GPU's memory and speed; check-cuda-device runs them */
        if (strncmp(c->name, "card_", 5) == 0) continue;
        if (list) printf("%s\n", c->name);
        else (run_case(c, seed) ? passed : failed)++;
    }
    if (list) return 0;
    if (!passed && !failed)
        return cuda_usage(usage, "no such case (--list shows them)", only ? only : "check-cuda");
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
