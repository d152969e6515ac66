// A function of the cells around each face, as a handler of XLA's foreign function interface.
//
// Arrays are [outer along inner]: `along` is the axis across the faces. Work is cut into columns of a few cells of
// `inner` and all faces, so that no two threads write one number, and the sums have one order. A block is some
// faces side by side in memory: of a column, or, where `inner` is 1, along the axis. Python replaces the words that
// begin with a dollar sign.

#define BLOCK $block  // numbers

typedef $number number;

typedef struct {
  const void *arguments[$num_arguments];
  void *results[$num_results];
  int64_t outer, faces, inner, columns;
} Map;

static void map_column(const Map *map, int64_t member, int64_t row, int64_t column) {
  const int64_t faces = map->faces, inner = map->inner, first = column * BLOCK;
  const int64_t line = member * map->outer + row;
$read_constants
$begin
  for (int64_t face = 0; face < faces; face += inner == 1 ? BLOCK : 1) {
    const int64_t left = inner == 1 ? faces - face : inner - first;
    const int64_t count = left < BLOCK ? left : BLOCK, begun = inner == 1 ? count : 1;
    const int64_t wide = inner == 1 ? 1 : count;
    (void)begun, (void)wide;
$declare
#pragma omp simd $reduction
    for (int64_t c = 0; c < count; c++) {
$read
$statements
    }
$spread
  }
$end
}

static void map_columns(void *data, int64_t begin, int64_t end) {
  const Map *map = data;
  for (int64_t item = begin; item < end; item++) {
    const int64_t line = item / map->columns;
    map_column(map, line / map->outer, line % map->outer, item % map->columns);
  }
}

XLA_FFI_Error *map_stencil(XLA_FFI_CallFrame *frame) {
  if (tells_version(frame)) return NULL;
  XLA_FFI_Buffer *const *arguments = (XLA_FFI_Buffer *const *)frame->args.args;
  XLA_FFI_Buffer *const *results = (XLA_FFI_Buffer *const *)frame->rets.rets;
  Map map;
  for (int64_t k = 0; k < $num_arguments; k++) map.arguments[k] = arguments[k]->data;
  for (int64_t k = 0; k < $num_results; k++) map.results[k] = results[k]->data;
  map.outer = size_of(arguments[0], 3), map.inner = size_of(arguments[0], 1);
  map.faces = size_of(arguments[0], 2) - ($first_cells - 1);
  map.columns = (map.inner + BLOCK - 1) / BLOCK;
  const int64_t items = count_members(arguments[0], 3) * map.outer * map.columns;
  if (items > 0 && map.faces > 0) run_chunks(frame, map_columns, &map, items, 1 + 512 / map.faces);
  return NULL;
}
