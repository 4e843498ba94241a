# kernels/cuda/gemm.c cublaslt_batch_bf16 0
s/rc = describe_matrix(&p->d, p, s->out, s->m, s->n, 0, s->ldd, s->stride_d)/rc = describe_matrix(\&p->d, p, s->out, s->m, s->n, 0, s->ldd, s->stride_a)/
