/* fiber.h: a stack for each CUDA thread, and switching between them. */
#ifndef SGT_HOST_FIBER_H
#define SGT_HOST_FIBER_H

#include "tests/kernels/host/host.h"

namespace host
{

void fiber_new(Thread *t);                   /* t will start in fiber_main */
void fiber_switch(Thread *from, Thread *to); /* NULL: launch's own stack */
void fiber_main();                           /* in run.cpp */

} /* namespace host */

#endif
