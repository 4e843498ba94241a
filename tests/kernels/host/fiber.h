/* fiber.h: gives each CUDA thread a stack, and switches between the threads. */
#ifndef SGT_HOST_FIBER_H
#define SGT_HOST_FIBER_H

#include "tests/kernels/host/host.h"

namespace host
{

void fiber_new(Thread *t);                   /* the first switch to t starts fiber_main */
void fiber_switch(Thread *from, Thread *to); /* `to` NULL: the stack of launch() */
void fiber_main();                           /* defined in run.cpp */

} /* namespace host */

#endif
