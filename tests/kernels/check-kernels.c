/* check-kernels.c: compares every kernel at every CPU level with kernels/ref, and ref with its
 * definition. It also runs benchmarks.
 *
 *     check-kernels [--list] [--bench] [--kernel NAME] [--level NAME] [--seed N]
 *
 * Prints one line per kernel and level: ok, FAIL (with the reasons above it), or SKIP (this machine
 * lacks the level). The last line is "N passed, N failed, N skipped". The exit status is 1 on any
 * failure and 2 on wrong usage. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/cpu.h"
#include "tests/kernels/amx.h"
#include "tests/kernels/run.h"

static const kernel_case *const all_cases[] = {
    cases_adamw,   cases_amx,     cases_attention, cases_bias, cases_cross_entropy, cases_decode,
    cases_dropout, cases_embed,   cases_gelu,      cases_gemm, cases_head,          cases_layernorm,
    cases_muon,    cases_normals, cases_round,     cases_sgd,  cases_vector};

typedef struct options {
    int list, bench;
    const char *kernel, *level;
    uint64_t seed;
} options;

typedef struct totals {
    int passed, failed, skipped;
} totals;

/* Where the signal handler jumps if a kernel accesses a guard page. Only the first thread can
 * jump. */
static sigjmp_buf crash_exit;
static pthread_t first_thread;

static void on_crash(int number)
{
    if (pthread_equal(pthread_self(), first_thread)) siglongjmp(crash_exit, number);
    static const char text[] =
        "check-kernels: a worker thread touched memory outside its buffers\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(1);
}

static void catch_crashes(void)
{
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
    first_thread = pthread_self();
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

static void run_placement(check *t, void (*body)(check *t), uint64_t seed, int placement)
{
    t->seed = seed;
    t->counter = 0;
    t->placement = placement;
    t->hash_next = 0;
    int crash = sigsetjmp(crash_exit, 1);
    if (crash == 0) body(t);
    else
        check_fail(t, "%s: touched memory outside its buffers",
                   crash == SIGSEGV ? "segmentation fault" : "bus error");
    amx_end(t);
    check_release(t);
}

static void verdict(check *t, totals *sum)
{
    const char *word = t->failures ? "FAIL" : t->skipped ? "SKIP" : "ok";
    printf("%-4s %s %s%s%s\n", word, t->which->name, t->level, t->skipped ? ": " : "",
           t->skipped ? t->why : "");
    fflush(stdout);
    if (t->failures) sum->failed++;
    else if (t->skipped) sum->skipped++;
    else sum->passed++;
}

/* If the case's only column has the name of a CPU level, limit the CPU to that level. */
static void limit_cpu(check *t, const sgt_kernels *table)
{
    int own = (int)sgt_cpu(), level = SGT_CPU_LEVELS;
    while (t->which->library && --level >= 0 && strcmp(t->level, sgt_cpu_names[level])) continue;
    if (!table || (t->which->library && level > own))
        check_skip(t, "this machine lacks that level");
    else if (t->which->library && level == own)
        check_skip(t, "this machine's own level, which is \"fast\" here");
    else if (t->which->library && level >= 0) sgt_cpu_limit(t->level, NULL);
}

/* Test one kernel at one level. Level 0 is ref, which is compared with its definition. Other levels
 * are compared with ref. */
static void run_case(const kernel_case *which, const char *name, const sgt_kernels *table,
                     int is_ref, const options *o, totals *sum)
{
    check t = {.k = table, .ref = sgt_kernels_ref(), .which = which, .level = name};
    void (*body)(check * t) = is_ref ? which->definition : which->against_ref;
    check_at(&t, "start");
    limit_cpu(&t, table);
    for (int p = 0; !o->bench && p < CHECK_PLACEMENTS && !t.failures && !t.skipped; p++)
        run_placement(&t, body, o->seed, p);
    if (o->bench && which->bench && !t.skipped)
        run_placement(&t, which->bench, o->seed, CHECK_AT_START);
    if (!o->bench || t.skipped || t.failures) verdict(&t, sum);
    sgt_cpu_limit("auto", NULL);
    free(t.hashes);
}

static int wanted(const char *filter, const char *name)
{
    return !filter || strcmp(filter, name) == 0;
}

static int run_levels(const kernel_case *which, const options *o, totals *sum)
{
    int found = 0;
    for (int level = -1; level < SGT_CPU_LEVELS; level++) {
        const char *name = level < 0        ? "ref"
                           : which->library ? which->library
                                            : sgt_cpu_names[level];
        if (which->library && level > (which->against_ref ? 0 : -1)) break;
        if (!wanted(o->level, name) || (level < 0 && !which->definition)) continue;
        found = 1;
        if (o->list) printf("%s %s\n", which->name, name);
        else
            run_case(which, name,
                     level < 0 ? sgt_kernels_ref() : sgt_kernels_level(which->library ? 0 : level),
                     level < 0, o, sum);
    }
    return found;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "check-kernels [--list] [--bench] [--kernel NAME] [--level NAME] [--seed N]";
    options o = {.seed = 1};
    const check_option all[] = {
        {"--list", &o.list, NULL, NULL},     {"--bench", &o.bench, NULL, NULL},
        {"--kernel", NULL, &o.kernel, NULL}, {"--level", NULL, &o.level, NULL},
        {"--seed", NULL, NULL, &o.seed},     {0}};
    totals sum = {0};
    int found = 0, code = check_parse(all, usage, argc, argv);
    if (code) return code;
    catch_crashes();
    if (!o.list)
        printf("%s, level %s, seed %llu\n", sgt_cpu_model(), sgt_cpu_name(),
               (unsigned long long)o.seed);
    for (size_t i = 0; i < sizeof all_cases / sizeof *all_cases; i++)
        for (const kernel_case *which = all_cases[i]; which->name; which++)
            if (wanted(o.kernel, which->name)) found |= run_levels(which, &o, &sum);
    if (!found)
        return check_usage(usage, "no such kernel or level (--list shows them)",
                           o.kernel ? o.kernel : o.level);
    if (!o.list && !o.bench)
        printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped);
    return sum.failed ? 1 : 0;
}
