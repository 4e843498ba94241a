/* test_allocations.c: neither the loop nor the backend, the loader's threads or the log allocates
 * memory during a step. This program replaces malloc and its like with functions that record their
 * callers while steps run. Allocations of the compiler's run-time libraries cannot be avoided:
 * these libraries are exempt. Sanitizers replace malloc themselves, so the test is skipped
 * there. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/folder.h"
#include "tests/train/run_fixture.h"
#include "train/sgt_train.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#if !defined(OWN_MALLOC) && defined(__GLIBC__)
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC
enum { CALLERS = 256 };
static int counting;           /* atomic */
static void *callers[CALLERS]; /* return addresses of the calls, each once; atomic */

static void note(void *caller)
{
    if (!__atomic_load_n(&counting, __ATOMIC_RELAXED)) return;
    for (int i = 0; i < CALLERS; i++) {
        void *was = NULL;
        if (__atomic_compare_exchange_n(&callers[i], &was, caller, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            was == caller)
            return;
    }
}

#define NOTE() note(__builtin_extract_return_addr(__builtin_return_address(0)))

/* glibc's own functions, under the names that it provides for replacements of malloc. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    NOTE();
    return __libc_malloc(n);
}

void *calloc(size_t count, size_t size)
{
    NOTE();
    return __libc_calloc(count, size);
}

void *realloc(void *p, size_t n)
{
    NOTE();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    NOTE();
    return __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    NOTE();
    return (*p = __libc_memalign(align, n)) ? 0 : ENOMEM;
}

static int is_left_out(const char *library)
{
    static const char *const names[] = {"libgomp.", "libomp.", "libgcc_s."};
    const char *slash = strrchr(library, '/'), *name = slash ? slash + 1 : library;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return 1;
    return 0;
}

/* Return the number of callers, without those of exempt libraries. Write one of them to `where`. */
static unsigned ours(char *where, size_t n)
{
    unsigned found = 0;
    cr_assert_null(callers[CALLERS - 1], "more callers than the table holds");
    for (size_t i = 0; callers[i]; i++) {
        Dl_info info = {0};
        if (!dladdr(callers[i], &info) || !info.dli_fname) info.dli_fname = "nowhere";
        if (is_left_out(info.dli_fname)) continue;
        snprintf(where, n, "%s+%#zx (%s)", info.dli_fname,
                 (size_t)((char *)callers[i] - (char *)info.dli_fbase),
                 info.dli_sname ? info.dli_sname : "?");
        found++;
    }
    return found;
}

/* Record from the end of step 3 to the end of step 7, because libraries still allocate in the first
 * steps. */
static void count_between(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first)
{
    uint64_t *counted = ctx;
    (void)steps;
    (void)first;
    if (m->step == 3) __atomic_store_n(&counting, 1, __ATOMIC_RELAXED);
    if (m->step == 7) __atomic_store_n(&counting, 0, __ATOMIC_RELAXED);
    *counted += m->step > 3 && m->step <= 7;
}
#endif

TestSuite(allocations, .init = make_data, .fini = remove_folder);

static void expect_none(const char *profile)
{
#if OWN_MALLOC
    char where[512] = "";
    uint64_t counted = 0;
    scoped(sgt_config) s = tiny(10);
    sgt_training_result r;
    sgt_train_options o = {
        .run = in_folder("r"), .progress = count_between, .ctx = &counted, .profile = profile};
    s.step.precision = SGT_DEFAULT_WORD; /* this CPU's */
    s.threads = 2;
    s.save_every = 0;
    must(sgt_train(&s, &o, &r, why));
    cr_expect_eq(counted, 4);
    sgt_training_result_free(&r);
    unsigned found = ours(where, sizeof where);
    cr_expect_eq(found, 0, "in four steps %u callers allocate, one of them %s", found, where);

    /* check that a call is recorded at all */
    counting = 1;
    char *volatile ours_own = malloc(10), *volatile through_libc = strdup(where);
    counting = 0;
    free(ours_own);
    free(through_libc);
    cr_expect_eq(ours(where, sizeof where), 2);
#else
    (void)profile;
    cr_skip("a sanitizer's malloc, or none of glibc's");
#endif
}

Test(allocations, none_inside_a_step) { expect_none(NULL); }

/* Ten steps, all of them traced. */
Test(allocations, none_inside_a_step_that_is_traced)
{
    expect_none(in_folder("t.json"));
    cr_expect(exists("t.json"));
}
