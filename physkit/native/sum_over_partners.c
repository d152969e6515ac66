// Sums over the partners of each particle, as a handler of XLA's foreign function interface.
//
// Python replaces the words that begin with a dollar sign by code that it makes from a JAX function: the body of
// the innermost loop, and what is read and written around it. Partners are first copied into blocks that stay in
// the first cache: on most processors that is faster than vector gathers.

#define BLOCK 256         // partners
#define WIDTH 16          // blocks are filled up to a multiple of it: vector registers are always full
#define CHUNK_PAIRS 8192  // what a thread takes at a time, some ten microseconds of work
#define CHUNK_ROWS $chunk_rows      // at least

typedef struct {
  const void *arguments[$num_arguments];
  void *results[$num_results];
  int64_t rows, partners, columns;
} Sums;

static void sum_rows(const Sums *sums, int64_t member, int64_t begin, int64_t end) {
  const int64_t rows = sums->rows, partners = sums->partners, columns = sums->columns;
  (void)rows, (void)columns;
$read_constants
#if $is_listed
  for (int64_t row = begin; row < end; row++) {  // each has partners of its own
    const int32_t *restrict listed = (const int32_t *)sums->arguments[0] + (member * rows + row) * columns;
    int64_t count = columns;
    while (count > 0 && (uint32_t)listed[count - 1] >= partners) count--;
#else
  {  // all have the same partners, and share a copy of each block
    const int64_t count = partners;
#endif
    // The first block may be empty: then it writes zeros.
    for (int64_t first = 0; first == 0 || first < count; first += BLOCK) {
      const int64_t length = count - first < BLOCK ? count - first : BLOCK;
      const int64_t padded = (length + WIDTH - 1) / WIDTH * WIDTH;
      // A number, not a truth value: with those, GCC makes no vector instructions of the loop.
      $number is_pair[BLOCK] __attribute__((aligned(64)));
$declare_block
      for (int64_t c = 0; c < length; c++) {
#if $is_listed
        const int64_t place = (uint32_t)listed[first + c], partner = place < partners ? place : partners - 1;
        is_pair[c] = place < partners ? 1 : 0;
        __asm__ volatile("");  // keeps the compiler from making vector gathers of this loop
#else
        const int64_t partner = first + c;
        is_pair[c] = 1;
#endif
$copy_partner
      }
      for (int64_t c = length; c < padded; c++) {
        is_pair[c] = 0;
$copy_last
      }
#if !$is_listed
      for (int64_t row = begin; row < end; row++)
#endif
      {
$read_row
$begin_sums
#if !$is_listed
        const int64_t itself = row - first;
        const int is_here = 0 <= itself && itself < length;
        if (is_here) is_pair[itself] = 0;
#endif
#pragma omp simd reduction(+ : $sums)
        for (int64_t c = 0; c < padded; c++) {
          const _Bool present = is_pair[c] > ($number)0.5;
$read_partner
$terms
        }
#if !$is_listed
        if (is_here) is_pair[itself] = 1;
#endif
$write_sums
      }
    }
  }
}

static void sum_chunk(void *data, int64_t begin, int64_t end) {
  const Sums *sums = data;
  while (begin < end) {  // member by member of a batch
    const int64_t member = begin / sums->rows, offset = member * sums->rows;
    const int64_t stop = end - offset < sums->rows ? end - offset : sums->rows;
    sum_rows(sums, member, begin - offset, stop);
    begin = offset + stop;
  }
}

XLA_FFI_Error *sum_over_partners(XLA_FFI_CallFrame *frame) {
  if (tells_version(frame)) return NULL;
  XLA_FFI_Buffer *const *arguments = (XLA_FFI_Buffer *const *)frame->args.args;
  XLA_FFI_Buffer *const *results = (XLA_FFI_Buffer *const *)frame->rets.rets;
  Sums sums;
  for (int64_t k = 0; k < $num_arguments; k++) sums.arguments[k] = arguments[k]->data;
  for (int64_t k = 0; k < $num_results; k++) sums.results[k] = results[k]->data;
  sums.rows = size_of(results[0], 1 + $result_rank);
  sums.partners = size_of(arguments[$partner_argument], 1 + $partner_rank);
  sums.columns = $is_listed ? size_of(arguments[0], 1) : sums.partners;
  const int64_t all_rows = count_members(results[0], 1 + $result_rank) * sums.rows;
  if (all_rows > 0) run_chunks(frame, sum_chunk, &sums, all_rows, CHUNK_ROWS + CHUNK_PAIRS / (sums.columns + 1));
  return NULL;
}
