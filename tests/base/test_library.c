/* Libraries that are looked for at run time, on one that every machine has. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "base/library.h"

Test(library, the_first_that_is_there_is_taken)
{
    const char *const names[] = {"libno-such-thing.so.9", "libm.so.6"};
    double (*cosine)(double) = NULL;
    char why[256];
    void *library = sgt_library_open(names, 2, why, sizeof why);
    cr_assert(library, "%s", why);
    const sgt_symbol symbols[] = {{"cos", &cosine}};
    cr_assert_null(sgt_library_look_up(library, symbols, 1));
    cr_expect_eq(cosine(0), 1);
    dlclose(library);
}

Test(library, what_is_missing_is_named)
{
    const char *const names[] = {"libno-such-thing.so.9", "libnor-this.so.9"};
    double (*cosine)(double) = NULL, (*none)(double) = NULL, (*sine)(double) = NULL;
    char why[256];
    cr_assert_null(sgt_library_open(names, 2, why, sizeof why));
    cr_expect(strstr(why, "libno-such-thing.so.9: cannot open shared object file"), "%s", why);
    const char *const m = "libm.so.6";
    void *library = sgt_library_open(&m, 1, why, sizeof why);
    const sgt_symbol symbols[] = {{"cos", &cosine}, {"no_such_function", &none}, {"sin", &sine}};
    cr_expect_str_eq(sgt_library_look_up(library, symbols, 3), "no_such_function");
    cr_expect(cosine && !none && !sine);
    dlclose(library);
}
