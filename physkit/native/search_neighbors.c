// A neighbor search by cells, as a handler of XLA's foreign function interface.
//
// Particles are sorted by cell. For the rows of a cell the candidates, which are all particles of the cells around
// it, are copied side by side, on this side of a periodic box; then each row tests all of them by vector
// instructions. Python replaces the words that begin with a dollar sign.

#define AXES $num_axes
#define MOST_NEAR $most_near  // cells around a cell
#define CHUNK_ROWS 128  // what a thread takes at a time, some thirty microseconds of work

typedef $number number;

typedef struct {
  int64_t members, particles, cells, capacity, shape[AXES], ranks[AXES];
  const int32_t *cell;             // [members particles]; `cells` for particles in no cell
  const number *position[AXES];    // [members particles], folded into the box
  const number *vectors;           // [members AXES AXES], of the box, as rows
  // For each axis [ranks shape]: a neighbor of each cell, how often a periodic box is crossed on the way there, and
  // whether it is beyond an open end.
  const int32_t *near_cell[AXES], *crossings[AXES], *is_outside[AXES];
  const int32_t *num_local;        // how many first particles have the first rows
  const void *constants[$num_constants + 1];
  int32_t *index, *order, *row_of_particle, *particle_of_row, *num_neighbors, *max_occupancy;
  // Made here: the first place of each cell, [members cells + 2]; by place, [members particles]: the position; by
  // row the place.
  int32_t *start, *place_of_row;
  number *sorted[AXES];
  atomic_int is_out_of_memory;
} Search;

typedef struct {
  int64_t count, room;
  number *position;  // [AXES room]
  int32_t *place;
  uint8_t *is_near;
} Candidates;

// Sorts the particles of a member by cell, those of one cell as they were, and gives them rows.
static void sort_particles(const Search *s, int64_t member) {
  const int64_t n = s->particles, offset = member * n;
  const int32_t *cell = s->cell + offset, num_local = s->num_local[member];
  int32_t *start = s->start + member * (s->cells + 2), *order = s->order + offset, most = 0;
  memset(start, 0, (s->cells + 2) * sizeof *start);
  for (int64_t i = 0; i < n; i++) start[cell[i] + 1]++;
  for (int64_t c = 0; c < s->cells; c++) most = start[c + 1] > most ? start[c + 1] : most;
  s->max_occupancy[member] = most;
  for (int64_t c = 0; c <= s->cells; c++) start[c + 1] += start[c];
  // Each place is counted up from the first of its cell, and back again.
  for (int64_t i = 0; i < n; i++) order[start[cell[i]]++] = i;
  memmove(start + 1, start, (s->cells + 1) * sizeof *start);
  start[0] = 0;
  for (int k = 0; k < AXES; k++) {
    for (int64_t p = 0; p < n; p++) s->sorted[k][offset + p] = s->position[k][offset + order[p]];
  }
  int64_t row = 0;
  for (int of_others = 0; of_others < 2; of_others++) {
    for (int64_t p = 0; p < n; p++) {
      if ((order[p] >= num_local) != of_others) continue;
      s->place_of_row[offset + row] = p;
      s->particle_of_row[offset + row] = order[p];
      s->row_of_particle[offset + order[p]] = row++;
    }
  }
}

static int make_room(Candidates *c, int64_t count) {
  if (count <= c->room) return 1;
  free(c->position), free(c->place), free(c->is_near);
  c->room = count + count / 2;
  c->position = malloc(AXES * c->room * sizeof(number));
  c->place = malloc(c->room * sizeof(int32_t));
  c->is_near = malloc(c->room);
  return c->position && c->place && c->is_near;
}

// All particles around a cell; 0 where there is no memory for them.
static int find_candidates(const Search *s, int64_t member, int64_t cell, Candidates *found) {
  const int32_t *start = s->start + member * (s->cells + 2);
  const number *vectors = s->vectors + member * AXES * AXES;
  struct { int64_t first, length; number shift[AXES]; } near[MOST_NEAR];
  int64_t at[AXES], rank[AXES] = {0}, count = 0, rest = cell;
  for (int a = AXES - 1; a >= 0; a--) at[a] = rest % s->shape[a], rest /= s->shape[a];
  int num_near = 0;
  for (int a = 0; a >= 0; num_near++) {
    int64_t other = 0;
    int is_outside = 0;
    number shift[AXES] = {0};
    for (a = 0; a < AXES; a++) {
      const int64_t entry = rank[a] * s->shape[a] + at[a];
      other = other * s->shape[a] + s->near_cell[a][entry];
      is_outside |= s->is_outside[a][entry];
      for (int k = 0; k < AXES; k++) shift[k] += s->crossings[a][entry] * vectors[a * AXES + k];
    }
    near[num_near].first = start[other];
    near[num_near].length = is_outside ? 0 : start[other + 1] - start[other];
    memcpy(near[num_near].shift, shift, sizeof shift);
    count += near[num_near].length;
    for (a = AXES - 1; a >= 0 && ++rank[a] == s->ranks[a]; a--) rank[a] = 0;
  }
  if (!make_room(found, count)) return 0;
  found->count = 0;
  for (int m = 0; m < num_near; m++) {
    const int64_t first = near[m].first, length = near[m].length, end = found->count;
    for (int k = 0; k < AXES; k++) {
      const number *from = s->sorted[k] + member * s->particles + first, shift = near[m].shift[k];
      number *to = found->position + k * found->room + end;
      for (int64_t c = 0; c < length; c++) to[c] = from[c] + shift;
    }
    for (int64_t c = 0; c < length; c++) found->place[end + c] = first + c;
    found->count += length;
  }
  return 1;
}

static void search_row(const Search *s, int64_t member, int64_t row, const Candidates *found) {
  const int64_t offset = member * s->particles, place = s->place_of_row[offset + row];
$read_constants
$read_row
$read_candidates
  const int64_t count = found->count;
  uint8_t *restrict is_near = found->is_near;
#pragma omp simd
  for (int64_t c = 0; c < count; c++) {
$read_candidate
$terms
    is_near[c] = $is_near ? 1 : 0;
  }
  int32_t *index = s->index + (offset + row) * s->capacity;
  int64_t length = 0, c = 0;
  // One more may be written than a row has: while there is room, without a branch.
  for (; c < count && length < s->capacity; c++) {
    index[length] = found->place[c];
    length += is_near[c] & (found->place[c] != place);
  }
  int64_t more = 0;
  for (; c < count; c++) more += is_near[c] & (found->place[c] != place);
  for (int64_t k = length; k < s->capacity; k++) index[k] = s->particles;
  s->num_neighbors[offset + row] = length + more;
}

static void search_chunk(void *data, int64_t begin, int64_t end) {
  Search *s = data;
  Candidates found = {0};
  int64_t last_member = -1, last_cell = -1;
  for (int64_t item = begin; item < end; item++) {
    const int64_t member = item / s->particles, row = item - member * s->particles;
    const int64_t cell = s->cell[member * s->particles + s->particle_of_row[item]];
    if (member != last_member || cell != last_cell) {
      found.count = 0;
      if (cell < s->cells && !find_candidates(s, member, cell, &found)) {
        atomic_store(&s->is_out_of_memory, 1);
        break;
      }
      last_member = member, last_cell = cell;
    }
    search_row(s, member, row, &found);
  }
  free(found.position), free(found.place), free(found.is_near);
}

XLA_FFI_Error *search_neighbors(XLA_FFI_CallFrame *frame) {
  if (tells_version(frame)) return NULL;
  XLA_FFI_Buffer *const *arguments = (XLA_FFI_Buffer *const *)frame->args.args;
  XLA_FFI_Buffer *const *results = (XLA_FFI_Buffer *const *)frame->rets.rets;
  Search s = {.cells = 1};
  int next = 0;
  s.cell = arguments[next++]->data;
  for (int k = 0; k < AXES; k++) s.position[k] = arguments[next++]->data;
  s.vectors = arguments[next++]->data;
  for (int a = 0; a < AXES; a++) {
    s.ranks[a] = size_of(arguments[next], 2), s.shape[a] = size_of(arguments[next], 1);
    s.cells *= s.shape[a];
    s.near_cell[a] = arguments[next++]->data;
    s.crossings[a] = arguments[next++]->data;
    s.is_outside[a] = arguments[next++]->data;
  }
  s.num_local = arguments[next++]->data;
  for (int k = 0; k < $num_constants; k++) s.constants[k] = arguments[next++]->data;
  int32_t **const outputs[] = {
      &s.index, &s.order, &s.row_of_particle, &s.particle_of_row, &s.num_neighbors, &s.max_occupancy};
  for (int k = 0; k < 6; k++) *outputs[k] = results[k]->data;
  s.particles = size_of(arguments[0], 1);
  s.capacity = size_of(results[0], 1);
  s.members = count_members(arguments[0], 1);
  const int64_t all = s.members * s.particles;
  s.start = malloc(s.members * (s.cells + 2) * sizeof(int32_t) + 1);
  s.place_of_row = malloc(all * sizeof(int32_t) + 1);
  number *sorted = malloc(AXES * all * sizeof(number) + 1);
  for (int k = 0; k < AXES; k++) s.sorted[k] = sorted + k * all;
  if (s.start && s.place_of_row && sorted) {
    for (int64_t member = 0; member < s.members; member++) sort_particles(&s, member);
    if (all > 0) run_chunks(frame, search_chunk, &s, all, CHUNK_ROWS);
  } else {
    s.is_out_of_memory = 1;
  }
  free(s.start), free(s.place_of_row), free(sorted);
  return s.is_out_of_memory ? out_of_memory(frame) : NULL;
}
