/* wheels.h: where Python's packages keep NVIDIA's libraries (cuDNN, cuBLASLt, NCCL, CUPTI beside
 * PyTorch): in site-packages/nvidia/NAME/lib, where the system does not look. */
#ifndef SGT_WHEELS_H
#define SGT_WHEELS_H

/* Such folders that there are, with colons between, malloc'd; "" where there are none, NULL: out of
 * memory. In order: the virtual environment's and Conda's that are active, those of the python3
 * that PATH finds, the user's, the system's. No Python is started. */
char *sgt_wheel_folders(void);

/* sgt_library_search of these. A program calls it first of all; the list is kept until its end. */
void sgt_search_wheels(void);

#endif
