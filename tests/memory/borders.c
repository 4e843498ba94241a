/* borders.c: tells the memory sanitizer what libraries that it did not compile have written,
 * which it would take for uninitialized memory. Linked only into the programs of SAN=memory
 * (--wrap in the Makefile), so that all of sgt's own code is still checked.
 *
 *   jansson   its memory counts as written when it is allocated; calls of libc with its own buffers
 *             are not checked; what json_unpack and errors write into our variables counts as
 *             written
 *   pcre2     the ends that a match has found */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <sanitizer/msan_interface.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void *written(size_t n) { return calloc(1, n); }

__attribute__((constructor)) static void begin(void) { json_set_alloc_funcs(written, free); }

static void enter(void) { __msan_scoped_disable_interceptor_checks(); }

static void leave(void) { __msan_scoped_enable_interceptor_checks(); }

/* ---- jansson: texts ---- */

json_t *__real_json_loadb(const char *text, size_t n, size_t flags, json_error_t *why);
json_t *__real_json_loads(const char *text, size_t flags, json_error_t *why);
json_t *__real_json_load_file(const char *path, size_t flags, json_error_t *why);
size_t __real_json_dumpb(const json_t *j, char *text, size_t size, size_t flags);
json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *why);
json_t *__wrap_json_loads(const char *text, size_t flags, json_error_t *why);
json_t *__wrap_json_load_file(const char *path, size_t flags, json_error_t *why);
size_t __wrap_json_dumpb(const json_t *j, char *text, size_t size, size_t flags);

static json_t *loaded(json_t *j, json_error_t *why)
{
    leave();
    if (why) __msan_unpoison(why, sizeof *why);
    return j;
}

json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *why)
{
    /* our memory, read in the library, which is not checked */
    __msan_check_mem_is_initialized(text, n);
    enter();
    return loaded(__real_json_loadb(text, n, flags, why), why);
}

json_t *__wrap_json_loads(const char *text, size_t flags, json_error_t *why)
{
    __msan_check_mem_is_initialized(text, strlen(text) + 1);
    enter();
    return loaded(__real_json_loads(text, flags, why), why);
}

json_t *__wrap_json_load_file(const char *path, size_t flags, json_error_t *why)
{
    enter();
    return loaded(__real_json_load_file(path, flags, why), why);
}

size_t __wrap_json_dumpb(const json_t *j, char *text, size_t size, size_t flags)
{
    enter();
    size_t n = __real_json_dumpb(j, text, size, flags);
    leave();
    if (text) __msan_unpoison(text, n < size ? n : size);
    return n;
}

/* ---- jansson: many values in one call ---- */

json_t *__wrap_json_pack(const char *fmt, ...);
int __wrap_json_unpack(json_t *j, const char *fmt, ...);
int __wrap_json_unpack_ex(json_t *j, json_error_t *why, size_t flags, const char *fmt, ...);

json_t *__wrap_json_pack(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    enter();
    json_t *j = json_vpack_ex(NULL, 0, fmt, args);
    leave();
    va_end(args);
    return j;
}

/* Mark the variables that json_unpack has set by `fmt` as initialized. In an object, every second
 * item is a value; the items before them are keys, which json_unpack only reads. */
static void unpacked(const char *fmt, va_list args)
{
    int key = 0, depth = 0, object[16] = {0};
    for (; *fmt; fmt++) {
        if (*fmt == '{' || *fmt == '[') object[++depth] = key = *fmt == '{';
        else if (*fmt == '}' || *fmt == ']') key = object[--depth];
        else if (!strchr("sibIfFoOn", *fmt)) continue;
        else if (key) {
            (void)va_arg(args, const char *);
            key = 0;
        } else {
            size_t size = *fmt == 'i' || *fmt == 'b' ? sizeof(int) : 8;
            if (*fmt != 'n') __msan_unpoison(va_arg(args, void *), size);
            key = object[depth];
        }
    }
}

static int unpack(json_t *j, json_error_t *why, size_t flags, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    enter();
    int rc = json_vunpack_ex(j, why, flags, fmt, args);
    leave();
    if (why) __msan_unpoison(why, sizeof *why);
    if (rc == 0) unpacked(fmt, again);
    va_end(again);
    return rc;
}

int __wrap_json_unpack(json_t *j, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = unpack(j, NULL, 0, fmt, args);
    va_end(args);
    return rc;
}

int __wrap_json_unpack_ex(json_t *j, json_error_t *why, size_t flags, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = unpack(j, why, flags, fmt, args);
    va_end(args);
    return rc;
}

/* ---- pcre2 ---- */

int __real_pcre2_match_8(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE n, PCRE2_SIZE at,
                         uint32_t options, pcre2_match_data *data, pcre2_match_context *context);
int __wrap_pcre2_match_8(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE n, PCRE2_SIZE at,
                         uint32_t options, pcre2_match_data *data, pcre2_match_context *context);

int __wrap_pcre2_match_8(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE n, PCRE2_SIZE at,
                         uint32_t options, pcre2_match_data *data, pcre2_match_context *context)
{
    __msan_check_mem_is_initialized(text, n);
    int rc = __real_pcre2_match_8(code, text, n, at, options, data, context);
    __msan_unpoison(pcre2_get_ovector_pointer(data),
                    2 * sizeof(PCRE2_SIZE) * pcre2_get_ovector_count(data));
    return rc;
}
