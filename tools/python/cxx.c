/* cxx.c: the part of C++'s runtime that Snappy's archive needs. libstdc++.a would need glibc 2.36 on
 * Debian 12 and add a megabyte to each program. Snappy throws no exceptions, and to unpack
 * into the caller's memory uses no std::string. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Weak: another version of Snappy may also need libstdc++.a, which then defines them, too. */
#define NAMED(symbol) __asm__(symbol) __attribute__((weak))

void *cxx_new(size_t size) NAMED("_Znwm");
void *cxx_new_array(size_t size) NAMED("_Znam");
void cxx_delete(void *memory) NAMED("_ZdlPv");
void cxx_delete_array(void *memory) NAMED("_ZdaPv");
int cxx_guard_acquire(uint8_t *guard) NAMED("__cxa_guard_acquire");
void cxx_guard_release(uint8_t *guard) NAMED("__cxa_guard_release");
_Noreturn void cxx_throw_length_error(void) NAMED("_ZSt20__throw_length_errorPKc");
_Noreturn void cxx_string_resize(void)
    NAMED("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6resizeEmc");
_Noreturn void cxx_string_append(void)
    NAMED("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm");

/* Only dynamic_cast and exceptions would read these tables. */
extern void *const cxx_class_info[11] NAMED("_ZTVN10__cxxabiv117__class_type_infoE");
extern void *const cxx_derived_class_info[11] NAMED("_ZTVN10__cxxabiv120__si_class_type_infoE");
void *const cxx_class_info[11];
void *const cxx_derived_class_info[11];

void *cxx_new(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) abort();
    return memory;
}

void *cxx_new_array(size_t size) { return cxx_new(size); }

void cxx_delete(void *memory) { free(memory); }

void cxx_delete_array(void *memory) { free(memory); }

/* Recursive: to initialize a variable may take initializing another one. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* Return whether the caller must initialize the guard's variable, and then release the guard. The
 * first byte says that it is done: code that the compiler makes reads it without the lock. */
int cxx_guard_acquire(uint8_t *guard)
{
    pthread_mutex_lock(&lock);
    if (!*guard) return 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

void cxx_guard_release(uint8_t *guard)
{
    __atomic_store_n(guard, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

void cxx_throw_length_error(void) { abort(); }

void cxx_string_resize(void) { abort(); }

void cxx_string_append(void) { abort(); }
