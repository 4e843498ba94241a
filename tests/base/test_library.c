/* test_library.c: libraries loaded at run time, tested with libm, which every machine has. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "loader/base/library.h"
#include "tests/expect.h"
#include "tests/scratch.h"

static double (*cosine)(double), (*sine)(double), (*none)(double);
static unsigned made_ready;
static int refuses;

static int ready(void *library, sgt_error *err)
{
    made_ready++;
    return !library || refuses ? sgt_fail(err, SGT_EIO, "cosines: not now") : SGT_OK;
}

static const char *const names[] = {"libno-such-thing.so.9", "libm.so.6", NULL};
static const char *const nowhere[] = {"libno-such-thing.so.9", "libnor-this.so.9", NULL};
static const sgt_symbol symbols[] = {{"cos", &cosine}, {NULL, NULL}};
static const sgt_symbol too_many[] = {
    {"sin", &sine}, {"no_such_function", &none}, {"cos", &cosine}, {NULL, NULL}};

static sgt_library library(void)
{
    return (sgt_library){.what = "cosines",
                         .names = names,
                         .symbols = symbols,
                         .install = "get one",
                         .version = "is it new?",
                         .ready = ready,
                         .lock = PTHREAD_MUTEX_INITIALIZER};
}

static const char *where_libm_is(void)
{
    static Dl_info at;
    void *found = dlsym(dlopen("libm.so.6", RTLD_NOW), "cos");
    return found && dladdr(found, &at) ? at.dli_fname : "";
}

Test(library, the_first_that_is_there_is_taken_once)
{
    sgt_library l = library();
    for (int i = 0; i < 3; i++) {
        must(sgt_library_load(&l, why));
        cr_expect_eq(cosine(0), 1);
    }
    cr_expect_eq(made_ready, 1);
    cr_expect_eq(l.loaded, 1);
}

static void *load(void *l)
{
    sgt_error err;
    return sgt_library_load(l, &err) == SGT_OK && cosine ? l : NULL;
}

Test(library, by_any_thread)
{
    pthread_t threads[8];
    sgt_library l = library();
    for (int i = 0; i < 8; i++) cr_assert_eq(pthread_create(&threads[i], NULL, load, &l), 0);
    for (int i = 0; i < 8; i++) {
        void *fine;
        pthread_join(threads[i], &fine);
        cr_expect(fine);
    }
    cr_expect_eq(made_ready, 1);
}

Test(library, what_is_missing_is_named)
{
    sgt_library l = library();
    l.names = nowhere;
    expect_failure(sgt_library_load(&l, why), SGT_EUNSUPPORTED,
                   "cosines: libno-such-thing.so.9 was not found (get one)");
    l.install = NULL;
    expect_failure(sgt_library_load(&l, why), SGT_EUNSUPPORTED,
                   "cosines: libno-such-thing.so.9 was not found");
    l.names = names;
    l.symbols = too_many;
    expect_failure(sgt_library_load(&l, why), SGT_EUNSUPPORTED,
                   "cosines: libm.so.6 has no function no_such_function (is it new?)");
    cr_expect(!none && !cosine && !made_ready && !l.loaded);
}

/* If one candidate is missing and another is not a library, the error names the latter, because
 * that tells the user more. */
Test(library, what_is_wrong_with_one_that_is_there)
{
    sgt_error err;
    char path[SCRATCH_SIZE], want[SCRATCH_SIZE + 64];
    int fd = scratch_template(path, "/tmp", "library") ? mkstemp(path) : -1;
    const char *const broken[] = {"libno-such-thing.so.9", path, "libnor-this.so.9", NULL};
    sgt_library l = library();
    l.names = broken;
    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(sgt_library_load(&l, &err), SGT_EUNSUPPORTED);
    snprintf(want, sizeof want, "cosines: %s: file too short (get one)", path);
    cr_expect_str_eq(err.text, want);
    unlink(path);
}

Test(library, the_next_call_tries_again)
{
    sgt_library l = library();
    refuses = 1;
    expect_failure(sgt_library_load(&l, why), SGT_EIO, "cosines: not now");
    refuses = 0;
    must(sgt_library_load(&l, why));
    cr_expect_eq(made_ready, 2);
}

/* The system's search does not find the library. A folder that is searched afterwards has it, as a
 * link to libm. */
Test(library, folders_come_after_the_system)
{
    char folder[SCRATCH_SIZE], path[SCRATCH_SIZE + 32], list[SCRATCH_SIZE + 32];
    const char *const only_there[] = {"/nowhere/libno.so", "libno-such-thing.so.9", NULL};
    sgt_library l = library();
    l.names = only_there;
    cr_assert(scratch_folder(folder, "/tmp", "library"), "%s", folder);
    snprintf(path, sizeof path, "%s/libno-such-thing.so.9", folder);
    snprintf(list, sizeof list, "/nowhere:%s:", folder);
    cr_assert_eq(symlink(where_libm_is(), path), 0);
    sgt_library_search("/nowhere:");
    expect_failure(sgt_library_load(&l, why), SGT_EUNSUPPORTED,
                   "cosines: /nowhere/libno.so was not found (get one)");
    sgt_library_search(list);
    must(sgt_library_load(&l, why));
    cr_expect_eq(cosine(0), 1);
    cr_expect_str_eq(sgt_library_searched(), list);
    sgt_library_search(NULL);
    unlink(path);
    rmdir(folder);
}

/* If the library that the system finds is unsuitable, the folders are searched too: the system may
 * have an old cuDNN, and a Python wheel a new one. */
Test(library, one_that_does_not_fit_is_passed_over)
{
    const char *const twice[] = {"libc.so.6", "libm.so.6", NULL};
    sgt_library l = library();
    l.names = twice;
    must(sgt_library_load(&l, why));
    cr_expect_eq(made_ready, 1);
    l = library();
    refuses = 1;
    l.names = twice;
    cr_assert_eq(sgt_library_load(&l, NULL), SGT_EUNSUPPORTED);
    expect_failure(sgt_library_load(&l, why), SGT_EUNSUPPORTED,
                   "cosines: libc.so.6 has no function cos (is it new?)");
}
