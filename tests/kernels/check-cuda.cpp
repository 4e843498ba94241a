/* check-cuda.cpp: compares every CUDA kernel with kernels/ref, and each wrapper of device.cuh and
 * hopper.cuh with its description. There are two programs: check-cuda-device runs the cases on a
 * GPU, and check-cuda runs them on the host (host.h), where it has more cases.
 *
 *     check-cuda [--list] [--case NAME] [--seed N] [--exact] [--limit SECONDS] [--once]
 *                [--one-process]
 *
 * Each case runs in each of two placements of its buffers, with the same numbers; on a GPU, twice
 * in each. The final bits of the buffers must be equal in all runs. --exact omits the guard bytes
 * around buffers in a GPU's memory (harness.h). --once runs each case once, in one placement. On the
 * host, SGT_HOST_DEVICE=schedule=N in the environment chooses the order in which threads run, and
 * check-cuda-race is the same program with race mode on.
 *
 * Prints one line per case: "ok NAME HASH" (of these bits), "SKIP NAME: why", or "FAIL NAME" with
 * the reasons above it. The last line is "N passed, N failed, N skipped". Exits with 1 on any
 * failure, with 2 on wrong usage, with 77 if nothing could run.
 *
 * The cases run in a child process. If a case loses the device, crashes or takes more than --limit
 * (600) seconds, a new process continues with the next case. --one-process runs all cases in one
 * process, for debuggers and memory checkers, and ends at the first of these failures (exit code
 * 3). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/device/device.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/run.h"

enum { TURNS = 2, LOST = 3 /* exit code of a child that lost the device */ };

struct arguments {
    int list, exact, once, one_process;
    const char *only;
    uint64_t seed, limit;
};

/* State that the parent process and its children share. */
struct progress {
    unsigned next, passed, failed, skipped; /* next: index of the running case among all */
    bool told;                              /* the first line of output was printed */
};

static arguments args = {0, 0, 0, 0, nullptr, 1, 600};
static progress *done;
static device gpu;

static bool wanted(const cuda_case *c)
{
    if (args.only) return strcmp(args.only, c->name) == 0;
    if (strncmp(c->name, "planted_", 8) == 0) return false;
    return device_is_card || strncmp(c->name, "card_", 5) != 0;
}

static const cuda_case *case_at(unsigned place)
{
    const cuda_case *c = cuda_first_case();
    while (c && place--) c = c->next;
    return c;
}

/* Mark the case as over; the next process continues after it. */
static void count(unsigned *of)
{
    fflush(stdout);
    ++*of;
    ++done->next;
}

bool cuda_hopper(check *t)
{
    if (gpu.arch == 90) return true;
    check_skip(t, "it needs sm_90a");
    return false;
}

bool cuda_card(check *t)
{
    if (device_is_card) return true;
    check_skip(t, "its size needs a card");
    return false;
}

void *cuda_address(check *, void *p) { return device_address(p); }

/* After an error, nothing that the device does is reliable: continue in a new process. */
void cuda_sync(check *t)
{
    const char *why = device_wait();
    if (!why) return;
    check_fail(t, "%s", why);
    printf("FAIL %s\n", t->which->name);
    count(&done->failed);
    _exit(LOST);
}

static uint64_t all_bits(const check *t)
{
    uint64_t all = 14695981039346656037u;
    for (size_t i = 0; i < t->hash_count; i++) all = (all ^ t->hashes[i]) * 1099511628211u;
    return all;
}

static void run_turn(check *t, const cuda_case *c)
{
    t->seed = args.seed;
    t->counter = 0;
    t->hash_next = 0;
    c->body(t);
    if (!t->skipped) cuda_sync(t);
    check_release(t);
}

static void run_case(const cuda_case *c)
{
    kernel_case which = {};
    which.name = c->name;
    check t = {};
    t.ref = sgt_kernels_ref();
    t.which = &which;
    t.level = "device";
    t.device = gpu.memory.allocate ? &gpu.memory : nullptr;
    t.same_buffers = 1;
    check_at(&t, "start");
    const int placements = args.once ? 1 : CHECK_ONE_IN,
              turns = args.once || !device_is_card ? 1 : TURNS;
    for (t.placement = CHECK_AT_END; t.placement < placements && !t.skipped; t.placement++)
        for (t.turn = 0; t.turn < turns && !t.failures && !t.skipped; t.turn++) run_turn(&t, c);
    if (t.failures) printf("FAIL %s\n", c->name);
    else if (t.skipped) printf("SKIP %s: %s\n", c->name, t.why);
    else printf("ok   %s %016llx\n", c->name, (unsigned long long)all_bits(&t));
    count(t.failures ? &done->failed : t.skipped ? &done->skipped : &done->passed);
    free(t.hashes);
}

/* Run the cases from done->next to the end; return 77 if there is no device. */
static int run_cases()
{
    if (const char *why = device_open(&gpu)) {
        printf("SKIP: %s\n", why);
        fflush(stdout);
        return 77;
    }
    gpu.memory.exact = args.exact;
    if (!done->told)
        printf("CUDA kernels on %s, sm_%d, seed %llu\n", gpu.name, gpu.arch,
               (unsigned long long)args.seed);
    done->told = true;
    for (const cuda_case *c; (c = case_at(done->next));) {
        if (!wanted(c)) {
            done->next++;
            continue;
        }
        alarm((unsigned)args.limit);
        run_case(c);
        alarm(0);
    }
    return 0;
}

/* Report a child that was killed or crashed. */
static void tell_death(int status)
{
    const cuda_case *c = case_at(done->next);
    const char *name = c ? c->name : "the end";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("  %s: no end after %llu s\n", name, (unsigned long long)args.limit);
    else if (WIFSIGNALED(status)) printf("  %s: %s\n", name, strsignal(WTERMSIG(status)));
    else printf("  %s: exit %d\n", name, WEXITSTATUS(status));
    printf("FAIL %s\n", name);
    count(&done->failed);
}

/* Only children open the device, because CUDA's state does not survive a fork. */
static int run_in_children()
{
    for (int status;;) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) _exit(run_cases());
        if (child < 0 || waitpid(child, &status, 0) < 0) {
            perror("check-cuda");
            return 1;
        }
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code == 0 || (code == 77 && !done->told)) return code;
        if (code != LOST) tell_death(status);
        if (!case_at(done->next)) return 0;
    }
}

int main(int argc, char **argv)
{
    static const char usage[] = "check-cuda [--list] [--case NAME] [--seed N] [--exact] "
                                "[--limit SECONDS] [--once] [--one-process]";
    static const check_option all[] = {{"--list", &args.list, nullptr, nullptr},
                                       {"--case", nullptr, &args.only, nullptr},
                                       {"--seed", nullptr, nullptr, &args.seed},
                                       {"--exact", &args.exact, nullptr, nullptr},
                                       {"--limit", nullptr, nullptr, &args.limit},
                                       {"--once", &args.once, nullptr, nullptr},
                                       {"--one-process", &args.one_process, nullptr, nullptr},
                                       {nullptr, nullptr, nullptr, nullptr}};
    int code = check_parse(all, usage, argc, argv), cases = 0;
    if (code) return code;
    /* line-buffered, so that a child's output survives its crash */
    setvbuf(stdout, nullptr, _IOLBF, 0);
    for (const cuda_case *c = cuda_first_case(); c; c = c->next)
        if (wanted(c) && ++cases && args.list) printf("%s\n", c->name);
    if (!cases) return check_usage(usage, "no such case (--list shows them)", args.only);
    if (args.list) return 0;
    done = static_cast<progress *>(
        mmap(nullptr, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (done == MAP_FAILED) {
        perror("check-cuda");
        return 1;
    }
    code = args.one_process ? run_cases() : run_in_children();
    if (code) return code;
    printf("%u passed, %u failed, %u skipped\n", done->passed, done->failed, done->skipped);
    return done->failed ? 1 : done->passed ? 0 : 77;
}
