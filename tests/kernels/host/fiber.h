/* fiber.h: a stack for each CUDA thread, and switching between them. */
#ifndef SGT_HOST_FIBER_H
#define SGT_HOST_FIBER_H

#include "tests/kernels/host/host.h"

namespace host
{

void fiber_new(Thread *t);                   /* start t in fiber_main at its first switch */
void fiber_switch(Thread *from, Thread *to); /* `to` NULL: the stack of launch() */
void fiber_main();                           /* defined in run.cpp */

} /* namespace host */

#endif
