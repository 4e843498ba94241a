/* fault.cpp: faults that a test plants in the host run, with SGT_HOST_FAULT. Its value is words
 * NAME:HOW, separated by spaces. NAME is a part of the name of work on a stream, or a pattern for a
 * part: a kernel's name, "product_gelu" and the like, "cudnn", "all_reduce", "cupti", "copy". HOW
 * is one of
 *   wrong: the work does nothing
 *   first: of a kernel's grid, only the first row of blocks runs, which is all of it for few tokens
 *   crash: it prints a line and ends the process
 *   hang: it never ends. The self-check (train/paths.c) then waits only a second, not minutes.
 *   error: from then on the device reports an error
 *   refuse: its launch is refused */
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "tests/kernels/host/state.h"
#include "tests/kernels/host/streams.h"
#include "train/verdicts.h"

namespace host
{

enum { INVALID_VALUE = 1, ILLEGAL_ADDRESS = 700 }; /* CUDA's error code */
int refused_launch, failed_device;

enum Fault { NONE, WRONG, CRASH, HANG, ERROR, REFUSE, FIRST };

/* Return the fault of a launch. DEV_LAUNCH gives it a name such as "norm_kernel" or
 * "(norm_kernel<T, 4>)". */
static Fault fault_of(const char *launch)
{
    static const char *const hows[] = {"",       ":wrong",  ":crash", ":hang",
                                       ":error", ":refuse", ":first"};
    const char *text = getenv("SGT_HOST_FAULT");
    if (!text) return NONE;
    launch += strspn(launch, "(");
    std::string name(launch, strcspn(launch, "<)")), words = text;
    for (char *save, *word = strtok_r(&words[0], " ", &save); word;
         word = strtok_r(nullptr, " ", &save)) {
        char *colon = strrchr(word, ':');
        if (!colon || fnmatch(("*" + std::string(word, colon) + "*").c_str(), name.c_str(), 0))
            continue;
        for (int how = WRONG; how <= FIRST; how++)
            if (strcmp(colon, hows[how]) == 0) return (Fault)how;
    }
    return NONE;
}

bool refused(const char *name)
{
    if (fault_of(name) != REFUSE) return false;
    refused_launch = INVALID_VALUE;
    return true;
}

bool first_only(const char *kernel) { return fault_of(kernel) == FIRST; }

static void crash()
{
    fputs("before\na planted crash\n\n", stderr);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void hang()
{
    const sgt_check_message limit = {1, "", ""};
    if (write(SGT_CHECK_PIPE, &limit, sizeof limit) < 0) crash();
    for (;;) pause();
}

std::function<void()> faulty(std::function<void()> work, const char *name)
{
    switch (fault_of(name)) {
    case WRONG: return [] {};
    case CRASH: return crash;
    case HANG: return hang;
    case ERROR: return [] { failed_device = ILLEGAL_ADDRESS; };
    default: return work;
    }
}

} /* namespace host */
