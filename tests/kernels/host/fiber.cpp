/* fiber.cpp: see fiber.h. Stacks lie between guard pages. The switch saves the callee-saved
 * registers of the calling convention. */
#include "tests/kernels/host/fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Clear the address sanitizer's marks of frames on the stack. An ended fiber leaves them for the
 * next fiber that gets this stack. */
#if defined __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define UNPOISON(p, n) ((void)0)
#endif

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace host
{

constexpr size_t STACK = 256 << 10;

/* A stack grows down towards its first page, a guard page. */
static char *stack_of(int thread)
{
    static char *stacks;
    if (!stacks) {
        void *map = mmap(nullptr, MAX_THREADS * STACK, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) {
            perror("mmap");
            exit(1);
        }
        stacks = static_cast<char *>(map);
        for (size_t i = 0; i < MAX_THREADS; i++)
            mprotect(stacks + i * STACK, (size_t)getpagesize(), PROT_NONE);
    }
    return stacks + (size_t)thread * STACK;
}

#ifdef __x86_64__

extern "C" void sgt_fiber_swap(void **from, void *to);
__asm__(".text\n.globl sgt_fiber_swap\n.type sgt_fiber_swap,@function\nsgt_fiber_swap:\n"
        " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp,(%rdi)\n mov %rsi,%rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        ".size sgt_fiber_swap,.-sgt_fiber_swap\n");

static void *launch_sp;

/* Fill a stack as a switch would leave it: six registers, then the address to continue at, which is
 * fiber_main. The word above that would be fiber_main's return address, but it never returns. */
void fiber_new(Thread *t)
{
    char *stack = stack_of(t->index);
    size_t page = (size_t)getpagesize();
    UNPOISON(stack + page, STACK - page);
    (void)page;
    void **sp = reinterpret_cast<void **>(stack + STACK - 64);
    *--sp = nullptr;
    *--sp = reinterpret_cast<void *>(fiber_main);
    for (int i = 0; i < 6; i++) *--sp = nullptr;
    t->sp = sp;
}

void fiber_switch(Thread *from, Thread *to)
{
    sgt_fiber_swap(from ? &from->sp : &launch_sp, to ? to->sp : launch_sp);
}

#else

static ucontext_t contexts[MAX_THREADS], launch_context;

void fiber_new(Thread *t)
{
    ucontext_t *c = &contexts[t->index];
    size_t page = (size_t)getpagesize();
    getcontext(c);
    c->uc_stack.ss_sp = stack_of(t->index) + page;
    c->uc_stack.ss_size = STACK - page;
    UNPOISON(c->uc_stack.ss_sp, c->uc_stack.ss_size);
    makecontext(c, fiber_main, 0);
}

void fiber_switch(Thread *from, Thread *to)
{
    swapcontext(from ? &contexts[from->index] : &launch_context,
                to ? &contexts[to->index] : &launch_context);
}

#endif

} /* namespace host */
