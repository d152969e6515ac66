// Work on all of XLA's threads, and what handlers of its foreign function interface have in common.

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "xla/ffi/api/c_api.h"

typedef void Run(void *data, int64_t begin, int64_t end);

// What is left of the work on items 0 to `items`. It outlives the call: a thread may come too late.
typedef struct {
  Run *run;
  void *data;
  int64_t items, chunk_items, num_chunks;
  atomic_llong next_chunk, finished_chunks;
  atomic_int references;
} Work;

static void work_off(Work *work) {
  for (;;) {
    const int64_t chunk = atomic_fetch_add(&work->next_chunk, 1);
    if (chunk >= work->num_chunks) return;
    const int64_t begin = chunk * work->chunk_items, end = begin + work->chunk_items;
    work->run(work->data, begin, end < work->items ? end : work->items);
    atomic_fetch_add(&work->finished_chunks, 1);
  }
}

static void release(Work *work) {
  if (atomic_fetch_sub(&work->references, 1) == 1) free(work);
}

static void help(void *work) {
  work_off(work);
  release(work);
}

// Asks other threads of XLA to help.
static void share(const XLA_FFI_CallFrame *frame, Work *work) {
  int64_t threads = 1;
  XLA_FFI_ThreadPool_NumThreads_Args asked = {
      .struct_size = sizeof asked, .ctx = frame->ctx, .num_threads = &threads};
  XLA_FFI_Error *error = frame->api->XLA_FFI_ThreadPool_NumThreads(&asked);
  const int64_t helpers = error ? 0 : (threads < work->num_chunks ? threads : work->num_chunks) - 1;
  for (int64_t k = 0; k < helpers && !error; k++) {
    XLA_FFI_ThreadPool_Schedule_Args task = {
        .struct_size = sizeof task, .ctx = frame->ctx, .task = help, .data = work};
    atomic_fetch_add(&work->references, 1);
    error = frame->api->XLA_FFI_ThreadPool_Schedule(&task);
    if (error) release(work);
  }
  if (error) {  // there are no other threads: this one does the work
    XLA_FFI_Error_Destroy_Args destroyed = {.struct_size = sizeof destroyed, .error = error};
    frame->api->XLA_FFI_Error_Destroy(&destroyed);
  }
}

// Runs `run(data, begin, end)` for chunks of the items, on all threads, and returns when all are done.
static void run_chunks(
    const XLA_FFI_CallFrame *frame, Run *run, void *data, int64_t items, int64_t chunk_items) {
  const int64_t num_chunks = (items + chunk_items - 1) / chunk_items;
  Work *work = num_chunks > 1 ? malloc(sizeof *work) : NULL;
  if (!work) {
    run(data, 0, items);
    return;
  }
  *work = (Work){.run = run, .data = data, .items = items, .chunk_items = chunk_items, .num_chunks = num_chunks};
  atomic_init(&work->next_chunk, 0);
  atomic_init(&work->finished_chunks, 0);
  atomic_init(&work->references, 1);
  share(frame, work);
  work_off(work);
  // What other threads have begun is finished soon, and there is nothing that they have not begun.
  while (atomic_load(&work->finished_chunks) < num_chunks) sched_yield();
  release(work);
}

static inline int64_t size_of(const XLA_FFI_Buffer *buffer, int64_t axis_from_end) {
  return buffer->dims[buffer->rank - axis_from_end];
}

// The product of all axes before the last `own_rank`: how many members a batch has.
static int64_t count_members(const XLA_FFI_Buffer *buffer, int64_t own_rank) {
  int64_t members = 1;
  for (int64_t k = 0; k < buffer->rank - own_rank; k++) members *= buffer->dims[k];
  return members;
}

// Whether XLA only asks which version of its interface this was compiled for.
static int tells_version(const XLA_FFI_CallFrame *frame) {
  if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata) return 0;
  XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return 1;
}

static inline XLA_FFI_Error *out_of_memory(const XLA_FFI_CallFrame *frame) {
  XLA_FFI_Error_Create_Args made = {
      .struct_size = sizeof made,
      .message = "there is no memory for a neighbor search",
      .errc = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED};
  return frame->api->XLA_FFI_Error_Create(&made);
}
