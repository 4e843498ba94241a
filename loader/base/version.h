/* version.h: the version of all of sgt. */
#ifndef SGT_BASE_VERSION_H
#define SGT_BASE_VERSION_H

#define SGT_VERSION "0.1.0"

#endif
