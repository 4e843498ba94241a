/* expect.h: checks of calls that report failures through an sgt_error. In such a call's arguments, `why` is the
 * sgt_error *. */
#ifndef SGT_TESTS_EXPECT_H
#define SGT_TESTS_EXPECT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "tests/scoped.h"

/* Check that a call succeeds: it returns 0. */
#define must(call)                                                                   \
    do {                                                                             \
        sgt_error why_ = {0}, *why = &why_;                                          \
        int got_code = (call);                                                       \
        cr_assert_eq(got_code, 0, "%s returned %d: %s", #call, got_code, why->text); \
    } while (0)

/* Check that a call fails, with this code and exactly this message (a format and its values). */
#define expect_failure(call, wanted_code, ...)                                                   \
    do {                                                                                         \
        char wanted_text[1024];                                                                  \
        sgt_error why_ = {0}, *why = &why_;                                                      \
        int got_code = (call);                                                                   \
        snprintf(wanted_text, sizeof wanted_text, __VA_ARGS__);                                  \
        cr_assert_eq(got_code, (wanted_code), "%s returned %d: %s", #call, got_code, why->text); \
        cr_assert_str_eq(why->text, wanted_text);                                                \
        cr_assert_eq(why->code, (wanted_code));                                                  \
    } while (0)

/* Check that a call fails, with this code and a message that contains `text`. */
#define expect_failure_about(call, wanted_code, text_in_it)                                      \
    do {                                                                                         \
        sgt_error why_ = {0}, *why = &why_;                                                      \
        int got_code = (call);                                                                   \
        cr_assert_eq(got_code, (wanted_code), "%s returned %d: %s", #call, got_code, why->text); \
        cr_assert(strstr(why->text, (text_in_it)), "%s", why->text);                             \
    } while (0)

#endif
