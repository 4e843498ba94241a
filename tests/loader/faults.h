/* faults.h: inject faults that a healthy machine does not show, for the tests of the readers. The
 * linker replaces the calls that fail by those of faults.c (tests/rules.mk, READER_WRAPS), so the
 * library needs no code for it. */
#ifndef SGT_TEST_FAULTS_H
#define SGT_TEST_FAULTS_H

#include <stddef.h>
#include <stdint.h>

/* Zero: no fault. */
typedef struct reader_fault {
    /* errno with which creating an io_uring fails, after rings_first successes */
    int ring_error;
    unsigned rings_first;
    int enter_error; /* errno with which using an io_uring fails, after enters_first successes */
    unsigned enters_first;
    int direct_error; /* errno with which opening with O_DIRECT fails */
    /* maximum bytes that a read returns; 0: no limit. A direct read returns whole units of its
     * alignment, and at least one. */
    size_t most_bytes;
    int first_error; /* errno with which the first try of each read fails */
    int read_error;  /* errno with which every read fails, after reads_first successes */
    unsigned reads_first;
    /* file that is cut to `left` bytes after reads_first successes; NULL: none */
    const char *cut;
    long left;
    int no_cachestat; /* the kernel has no cachestat */
    /* folder whose proc/ and sys/ describe free memory; NULL: the machine's own */
    const char *memory;
    /* number of queries of free memory after which `later` replaces `memory`; 0: never */
    unsigned looks;
    const char *later;
    /* tokens per block and blocks per pool of sampling `block`, which change the order of windows;
     * 0: the normal sizes */
    uint32_t block_tokens, pool_blocks;
} reader_fault;

/* Inject these faults (NULL: none) from now on, and count successes from 0. Call it while no read is
 * in flight. */
void set_faults(const reader_fault *fault);

/* Return how many blocks the readers have begun to read since set_faults. */
unsigned count_blocks(void);

#endif
