/* The seam between the SDK and a backend plug-in: a table of C functions (ddp_backend_v1).
 *
 * A plug-in is a shared object that exports one symbol, `ddp_backend_v1_entry`, of type ddp_backend_v1_entry_fn.
 * No exception, no C++ object and no owned memory crosses this line. Every struct begins with its own size, so
 * that members can be added at the end: read a member only if `size` covers it.
 *
 * Thread safety: calls on one group come from one thread at a time, except `abort`, which may come from any
 * thread at any time and makes a pending call on that group return DDP_ABORTED soon.
 */
#ifndef DDP_BACKEND_H
#define DDP_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_BACKEND_ABI_VERSION 1u

typedef enum ddp_status {
  DDP_OK = 0,
  DDP_TIMEOUT = 1,     /* retry or rebuild: nobody is known to be dead */
  DDP_PEER_LOST = 2,   /* rebuild: a rank died; error.rank says which, -1 if unknown */
  DDP_MISMATCH = 3,    /* bug: ranks called different operations, types or counts */
  DDP_INVALID_USE = 4, /* bug: a bad argument or a call out of order */
  DDP_UNAVAILABLE = 5, /* this backend cannot run here; the message says why */
  DDP_ABORTED = 6,     /* abort() was called */
  DDP_IN_PROGRESS = 7  /* only from poll() */
} ddp_status;

typedef enum ddp_dtype {
  DDP_UINT8 = 0, DDP_INT8 = 1, DDP_INT32 = 2, DDP_UINT32 = 3, DDP_INT64 = 4, DDP_UINT64 = 5,
  DDP_FLOAT16 = 6, DDP_FLOAT32 = 7, DDP_FLOAT64 = 8, DDP_BFLOAT16 = 9, DDP_BOOL = 10, DDP_INT16 = 11
} ddp_dtype;

typedef enum ddp_reduce_op {
  DDP_SUM = 0, DDP_AVG = 1, DDP_PRODUCT = 2, DDP_MIN = 3, DDP_MAX = 4,
  DDP_BAND = 5, DDP_BOR = 6, DDP_BXOR = 7, DDP_PREMUL_SUM = 8
} ddp_reduce_op;

/* Where an error is written. `message` is NUL-terminated and always filled when the status is not DDP_OK. */
typedef struct ddp_error_v1 {
  size_t size;
  int32_t rank; /* the rank that is to blame, -1 if unknown */
  char message[1024];
} ddp_error_v1;

/* The store of the group, lent by the SDK for as long as the group lives. Keys already carry the group's prefix. */
typedef struct ddp_store_v1 {
  size_t size;
  void* self;
  ddp_status (*set)(void* self, const char* key, const void* value, size_t length, ddp_error_v1* error);
  /* Waits up to timeout_ms for the key. On DDP_OK calls sink(context, data, length) once, before returning. */
  ddp_status (*get)(void* self, const char* key, int64_t timeout_ms,
                    void (*sink)(void* context, const void* data, size_t length), void* context,
                    ddp_error_v1* error);
} ddp_store_v1;

typedef struct ddp_group_options_v1 {
  size_t size;
  int32_t rank;
  int32_t world_size;
  int32_t local_rank;
  int32_t local_world_size;
  int32_t device;          /* index of the GPU, -1 on CPU backends */
  int64_t timeout_ms;      /* for set-up and for each call that brings none of its own */
  const char* local_address; /* literal address to bind, or NULL: the plug-in chooses */
  const ddp_store_v1* store;
} ddp_group_options_v1;

typedef struct ddp_group ddp_group; /* opaque, owned by the plug-in between create and destroy */

typedef struct ddp_call_v1 {
  size_t size;
  ddp_dtype dtype;
  ddp_reduce_op op;
  int32_t root;       /* broadcast, reduce, gather, scatter; peer of send and recv */
  const void* input;  /* may equal output (in place) */
  void* output;
  size_t count;       /* elements of input, per rank */
  double premul;      /* factor of DDP_PREMUL_SUM */
  void* stream;       /* cudaStream_t / CUstream: enqueue there and return. NULL: the result is there on return */
  int64_t timeout_ms; /* -1: the group's */
} ddp_call_v1;

typedef struct ddp_backend_v1 {
  size_t size;
  uint32_t abi_version; /* DDP_BACKEND_ABI_VERSION */
  const char* name;     /* "gloo", "nccl", … */
  /* Can it run in this process? DDP_OK or DDP_UNAVAILABLE with the reason. Must not create a GPU context. */
  ddp_status (*available)(ddp_error_v1* error);
  ddp_status (*create)(const ddp_group_options_v1* options, ddp_group** group, ddp_error_v1* error);
  ddp_status (*all_reduce)(ddp_group* group, const ddp_call_v1* call, ddp_error_v1* error);
  ddp_status (*broadcast)(ddp_group* group, const ddp_call_v1* call, ddp_error_v1* error);
  ddp_status (*barrier)(ddp_group* group, const ddp_call_v1* call, ddp_error_v1* error);
  /* State of what was enqueued on streams: DDP_OK, DDP_IN_PROGRESS or an error. CPU backends: always DDP_OK. */
  ddp_status (*poll)(ddp_group* group, ddp_error_v1* error);
  void (*abort)(ddp_group* group);
  void (*destroy)(ddp_group* group);
} ddp_backend_v1;

typedef const ddp_backend_v1* (*ddp_backend_v1_entry_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
