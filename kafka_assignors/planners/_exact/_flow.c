/* The compiled counterpart of kafka_assignors.planners._exact.flow: the same algorithm, step by step, so that both
 * give the same flow. What the functions mean stands there; the comments here are about C only.
 *
 * Places (cells, then nodes, then the pool) and arcs are numbered by int32_t, units are int64_t.
 *
 * What is given is copied before it is looked at, and written back at the end: `tick` is Python code, and may
 * change any array. Units are so bounded that no sum or difference of two leaves 64 bits.
 *
 * Most networks that take long have nearly all arcs that there can be, and nearly all of them lead nowhere.
 * So arcs are looked at 64 at a time: those of a cell in blocks, one for each 64 nodes that it has arcs to,
 * against sets of nodes; those into a node in blocks of 64 cells, by a bit for each that carries anything.
 * With 5,000 cells and 500 nodes that makes a search a hundred times as fast as one arc after another. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAR ((int64_t)1 << 62)
#define MOST_UNITS ((int64_t)1 << 62)

static const char NOT_CHEAPEST[] = "the flow given is not a cheapest one of its value";

/* The arcs of a cell to those of 64 nodes that it has arcs to. */
typedef struct {
    uint64_t arcs;          /* a bit for each */
    uint64_t free, costing; /* those that can carry more, for nothing or at a cost of 1 */
    int32_t word;           /* the nodes are 64 * word and up */
    int32_t first;          /* the arc of the lowest bit */
} Block;

/* The arcs into a node from 64 cells of which it has arcs, those that carry anything. */
typedef struct {
    uint64_t carrying;
    int32_t word; /* the cells are 64 * word and up */
} IntoBlock;

/* Numbers by arc, or the same one for all. */
typedef struct {
    int64_t *all;
    int64_t same;
} Numbers;

/* Rows of bits, one a node. */
typedef struct {
    uint64_t *bits;
    int64_t rows, room;
} Sets;

typedef struct {
    int32_t cells, nodes, arcs;
    int32_t words;    /* of a bit for each node */
    int32_t carriers; /* arcs that carry something at the beginning */
    int64_t pool;
    int64_t *supply, *base, *extra, *load;
    /* by arc */
    int64_t *flow;
    Numbers free, high;
    /* the blocks of each cell, and of each node */
    int32_t *block_starts, *into_starts;
    Block *blocks;
    IntoBlock *into;
    /* by place */
    int64_t *distance, *further;
    int32_t *level, *next_try, *queue, *path, *path_arcs;
    int64_t room_distance;
    /* nodes by distance, by level (which is odd) and, in `lengthen`, those farther than some distance */
    Sets at_distance, at_level, beyond;
    uint64_t *unranked;
    PyObject *tick;
    int64_t steps, breath; /* since the last `tick`, and after how many to call it */
} Network;

/* One of the places next to a place, and the arc between; the pool is reached without an arc. */
typedef struct {
    int32_t there, arc;
} Step;

static const Step NOWHERE = {-1, -1};

static inline int32_t the_pool(const Network *n) { return n->cells + n->nodes; }

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

#if defined(__GNUC__) || defined(__clang__)
static inline int32_t lowest(uint64_t bits) { return __builtin_ctzll(bits); }
static inline int32_t count(uint64_t bits) { return __builtin_popcountll(bits); }
#else
static inline int32_t count(uint64_t bits)
{
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    return (int32_t)(((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}
static inline int32_t lowest(uint64_t bits) { return count(~bits & (bits - 1)); }
#endif

static inline uint64_t bit(int32_t number) { return (uint64_t)1 << (number & 63); }

/* -1 with a Python exception, if it is time to call `tick` and that raises. */
static int breathe(Network *n)
{
    if (n->steps < n->breath)
        return 0;
    n->steps = 0;
    PyObject *nothing = PyObject_CallNoArgs(n->tick);
    Py_XDECREF(nothing);
    return nothing == NULL ? -1 : 0;
}

/* The same after a look at all arcs. */
static int pause_for_arcs(Network *n)
{
    n->steps += n->arcs;
    return breathe(n);
}

/* Make room for a row and set all of its bits to the lowest one of `fill`; -1 with a Python exception. */
static int add_row(const Network *n, Sets *sets, int fill)
{
    if (sets->rows == sets->room) {
        int64_t room = sets->room * 2 + 4;
        uint64_t *bits = realloc(sets->bits, sizeof(uint64_t) * (size_t)n->words * (size_t)room);
        if (bits == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        sets->bits = bits;
        sets->room = room;
    }
    memset(sets->bits + sets->rows++ * n->words, fill ? 0xFF : 0, sizeof(uint64_t) * (size_t)n->words);
    return 0;
}

static inline uint64_t *row(const Network *n, const Sets *sets, int64_t number)
{
    return sets->bits + number * n->words;
}

static inline int64_t of_arc(const Numbers *numbers, int32_t arc)
{
    return numbers->all == NULL ? numbers->same : numbers->all[arc];
}

static inline int64_t room(const Network *n, int32_t place)
{
    if (place < n->cells || place >= the_pool(n))
        return 0;
    int32_t node = place - n->cells;
    int64_t left = n->base[node] - n->load[node];
    return left > 0 ? left : min64(n->pool, left + n->extra[node]);
}

static inline int64_t capacity(const Network *n, int32_t place, Step step, int64_t *cost)
{
    *cost = 0;
    if (step.there == the_pool(n)) {
        int32_t node = place - n->cells;
        int64_t over = n->load[node] - n->base[node];
        return n->pool <= 0 && over >= 0 ? n->extra[node] - over : 0;
    }
    if (place == the_pool(n))
        return n->load[step.there - n->cells] - n->base[step.there - n->cells];
    int64_t flow = n->flow[step.arc], free = of_arc(&n->free, step.arc);
    if (place < n->cells) {
        int64_t high = of_arc(&n->high, step.arc);
        if (flow < free)
            return min64(free, high) - flow;
        *cost = 1;
        return high - flow;
    }
    if (flow <= free)
        return flow;
    *cost = -1;
    return flow - free;
}

static inline bool is_cheapest(const Network *n, int32_t place, Step step)
{
    int64_t cost, units = capacity(n, place, step, &cost);
    return units > 0 && n->distance[place] + cost == n->distance[step.there];
}

static inline bool is_end(const Network *n, int32_t place)
{
    return n->distance[place] == n->room_distance && room(n, place) > 0;
}

/* The arcs of a block that can carry more and lie on a cheapest path. */
static inline uint64_t cheapest_of(const Network *n, const Block *block, int64_t distance)
{
    /* No node is farther than the room. */
    uint64_t found = block->free & row(n, &n->at_distance, distance)[block->word];
    if (distance < n->room_distance)
        found |= block->costing & row(n, &n->at_distance, distance + 1)[block->word];
    return found;
}

static inline int32_t node_of(const Block *block, uint64_t bits) { return block->word * 64 + lowest(bits); }

static inline int32_t arc_of(const Block *block, uint64_t bits)
{
    return block->first + count(block->arcs & ((bits & -bits) - 1));
}

/* The block of a cell with an arc to a node. */
static Block *block_of(const Network *n, int32_t cell, int32_t node)
{
    int32_t first = n->block_starts[cell], last = n->block_starts[cell + 1] - 1;
    while (first < last) {
        int32_t middle = first + (last - first) / 2;
        if (n->blocks[middle].word < node >> 6)
            first = middle + 1;
        else
            last = middle;
    }
    return &n->blocks[first];
}

/* The block of a node with an arc from a cell. */
static IntoBlock *into_of(const Network *n, int32_t node, int32_t cell)
{
    int32_t first = n->into_starts[node], last = n->into_starts[node + 1] - 1;
    while (first < last) {
        int32_t middle = first + (last - first) / 2;
        if (n->into[middle].word < cell >> 6)
            first = middle + 1;
        else
            last = middle;
    }
    return &n->into[first];
}

/* Back along an arc that carries something: the cell of the lowest bit. */
static inline Step back(const Network *n, int32_t node, const IntoBlock *block, uint64_t bits)
{
    int32_t cell = block->word * 64 + lowest(bits);
    return (Step){cell, arc_of(block_of(n, cell, node), bit(node))};
}

/* Note whether an arc can carry more. */
static inline void note_room(const Network *n, Block *block, uint64_t bit_of_node, int32_t arc)
{
    int64_t flow = n->flow[arc];
    block->free &= ~bit_of_node;
    block->costing &= ~bit_of_node;
    if (flow < of_arc(&n->high, arc))
        *(flow < of_arc(&n->free, arc) ? &block->free : &block->costing) |= bit_of_node;
}

static void carry(Network *n, int32_t cell, int32_t node, int32_t arc, int64_t amount)
{
    n->flow[arc] += amount;
    note_room(n, block_of(n, cell, node), bit(node), arc);
    IntoBlock *into = into_of(n, node, cell);
    if (n->flow[arc])
        into->carrying |= bit(cell);
    else
        into->carrying &= ~bit(cell);
}

static inline void reach(Network *n, int32_t place, int32_t depth, int32_t *last)
{
    n->level[place] = depth;
    n->queue[(*last)++] = place;
}

static inline bool reach_node(Network *n, int32_t node, int32_t depth, int32_t *last)
{
    n->unranked[node >> 6] &= ~bit(node);
    row(n, &n->at_level, depth / 2)[node >> 6] |= bit(node);
    reach(n, n->cells + node, depth, last);
    return is_end(n, n->cells + node);
}

/* 1 if paths end somewhere, 0 if not, -1 with a Python exception. */
static int rank(Network *n)
{
    int32_t first = 0, last = 0, pool = the_pool(n);
    memset(n->level, -1, sizeof(int32_t) * ((size_t)pool + 1));
    memset(n->unranked, 0xFF, sizeof(uint64_t) * (size_t)n->words);
    n->at_level.rows = 0;
    for (int32_t cell = 0; cell < n->cells; cell++)
        if (n->supply[cell])
            reach(n, cell, 0, &last);
    bool found = false;
    for (int32_t depth = 1; first < last && !found; depth++) {
        if (depth % 2 && add_row(n, &n->at_level, 0) < 0)
            return -1;
        for (int32_t end = last; first < end; first++) {
            int32_t place = n->queue[first];
            if (breathe(n) < 0)
                return -1;
            if (place < n->cells) {
                int32_t stop = n->block_starts[place + 1];
                for (int32_t i = n->block_starts[place]; i < stop; i++) {
                    const Block *block = &n->blocks[i];
                    n->steps++;
                    uint64_t bits = cheapest_of(n, block, n->distance[place]) & n->unranked[block->word];
                    for (; bits; bits &= bits - 1)
                        found |= reach_node(n, node_of(block, bits), depth, &last);
                }
            } else if (place == pool) {
                n->steps += n->nodes;
                for (int32_t node = 0; node < n->nodes; node++)
                    if (n->level[n->cells + node] < 0 && is_cheapest(n, pool, (Step){n->cells + node, -1}))
                        found |= reach_node(n, node, depth, &last);
            } else {
                int32_t node = place - n->cells;
                for (int32_t i = n->into_starts[node]; i < n->into_starts[node + 1]; i++) {
                    const IntoBlock *block = &n->into[i];
                    n->steps++;
                    for (uint64_t bits = block->carrying; bits; bits &= bits - 1) {
                        int32_t cell = block->word * 64 + lowest(bits);
                        n->steps++;
                        if (n->level[cell] < 0 && is_cheapest(n, place, back(n, node, block, bits)))
                            reach(n, cell, depth, &last);
                    }
                }
                if (n->level[pool] < 0 && is_cheapest(n, place, (Step){pool, -1}))
                    reach(n, pool, depth, &last);
            }
        }
    }
    return found;
}

static void augment(Network *n, int32_t length)
{
    int32_t source = n->path[0], end = n->path[length - 1], last = end - n->cells;
    int64_t amount = min64(n->supply[source], room(n, end)), cost;
    for (int32_t i = 1; i < length; i++) {
        Step step = {n->path[i], n->path_arcs[i]};
        amount = min64(amount, capacity(n, n->path[i - 1], step, &cost));
    }
    for (int32_t i = 1; i < length; i++) {
        int32_t place = n->path[i - 1], there = n->path[i], arc = n->path_arcs[i];
        if (there == the_pool(n))
            n->load[place - n->cells] += amount;
        else if (place == the_pool(n))
            n->load[there - n->cells] -= amount;
        else if (place < n->cells)
            carry(n, place, there - n->cells, arc, amount);
        else
            carry(n, there, place - n->cells, arc, -amount);
    }
    n->supply[source] -= amount;
    if (n->load[last] >= n->base[last])
        n->pool -= amount;
    n->load[last] += amount;
    n->steps += length;
}

/* The next place on a path. `next_try` is a block or, in the pool, a node. What was passed over does not come to
 * count again before the next `rank`. */
static Step next_step(Network *n, int32_t place)
{
    int32_t pool = the_pool(n), deeper = n->level[place] + 1, *at = &n->next_try[place];
    n->steps++;
    if (place < n->cells) {
        int32_t stop = n->block_starts[place + 1];
        if (deeper / 2 >= n->at_level.rows)
            *at = stop;
        for (; *at < stop; ++*at) {
            const Block *block = &n->blocks[*at];
            n->steps++;
            uint64_t bits = cheapest_of(n, block, n->distance[place]) &
                            row(n, &n->at_level, deeper / 2)[block->word];
            if (bits)
                return (Step){n->cells + node_of(block, bits), arc_of(block, bits)};
        }
        return NOWHERE;
    }
    if (place == pool) {
        for (; *at < n->nodes; ++*at) {
            Step step = {n->cells + *at, -1};
            n->steps++;
            if (n->level[step.there] == deeper && is_cheapest(n, pool, step))
                return step;
        }
        return NOWHERE;
    }
    int32_t node = place - n->cells;
    for (; *at < n->into_starts[node + 1]; ++*at) {
        const IntoBlock *block = &n->into[*at];
        n->steps++;
        for (uint64_t bits = block->carrying; bits; bits &= bits - 1) {
            n->steps++;
            if (n->level[block->word * 64 + lowest(bits)] != deeper)
                continue;
            Step step = back(n, node, block, bits);
            if (is_cheapest(n, place, step))
                return step;
        }
    }
    Step step = {pool, -1};
    return n->level[pool] == deeper && is_cheapest(n, place, step) ? step : NOWHERE;
}

/* 1 if something was sent, 0 if not, -1 with a Python exception. */
static int push_from(Network *n, int32_t cell)
{
    int32_t length = 1;
    n->path[0] = cell;
    n->path_arcs[0] = -1;
    while (length > 0) {
        int32_t place = n->path[length - 1];
        if (breathe(n) < 0)
            return -1;
        if (is_end(n, place)) {
            augment(n, length);
            return 1;
        }
        Step step = next_step(n, place);
        if (step.there >= 0) {
            n->path[length] = step.there;
            n->path_arcs[length++] = step.arc;
            continue;
        }
        if (place >= n->cells && place < the_pool(n)) {
            int32_t node = place - n->cells;
            row(n, &n->at_level, n->level[place] / 2)[node >> 6] &= ~bit(node);
        }
        n->level[place] = -1;
        length--;
    }
    return 0;
}

static int push(Network *n)
{
    memcpy(n->next_try, n->block_starts, sizeof(int32_t) * (size_t)n->cells);
    memcpy(n->next_try + n->cells, n->into_starts, sizeof(int32_t) * (size_t)n->nodes);
    n->next_try[the_pool(n)] = 0;
    for (int32_t cell = 0; cell < n->cells; cell++)
        while (n->supply[cell]) {
            int sent = push_from(n, cell);
            if (sent < 0)
                return -1;
            if (!sent)
                break;
        }
    return 0;
}

/* The search of `lengthen` in place of buckets: since all lengths are small whole numbers, it goes over the
 * places of one length at a time, in a queue for this length and with marks for the later ones. */
typedef struct {
    int32_t *places; /* entries, and the entry that follows in the same bucket */
    int64_t *next, *first;
    int64_t size, room, buckets;
} Buckets;

static int put(Buckets *b, int64_t length, int32_t place)
{
    if (length >= b->buckets) {
        int64_t wanted = length * 2 + 16;
        int64_t *first = realloc(b->first, sizeof(int64_t) * (size_t)wanted);
        if (first == NULL)
            goto failed;
        for (int64_t i = b->buckets; i < wanted; i++)
            first[i] = -1;
        b->first = first;
        b->buckets = wanted;
    }
    if (b->size == b->room) {
        int64_t wanted = b->room * 2 + 64;
        int32_t *places = realloc(b->places, sizeof(int32_t) * (size_t)wanted);
        if (places == NULL)
            goto failed;
        b->places = places;
        int64_t *next = realloc(b->next, sizeof(int64_t) * (size_t)wanted);
        if (next == NULL)
            goto failed;
        b->next = next;
        b->room = wanted;
    }
    b->places[b->size] = place;
    b->next[b->size] = b->first[length];
    b->first[length] = b->size++;
    return 0;
failed:
    PyErr_NoMemory();
    return -1;
}

/* Come to a place over an arc of a cost, from one at a length; -1 with a Python exception. */
static int come(Network *n, Buckets *b, int64_t length, int64_t to, int32_t there)
{
    int64_t longer = to - n->distance[there];
    if (longer >= n->further[there])
        return 0;
    if (longer < length) {
        PyErr_SetString(PyExc_ValueError, NOT_CHEAPEST);
        return -1;
    }
    if (there >= n->cells && there < the_pool(n)) {
        int32_t node = there - n->cells;
        int64_t stop = n->further[there] == FAR ? n->beyond.rows
                                                : min64(n->further[there] + n->distance[there], n->beyond.rows);
        for (int64_t i = to; i < stop; i++)
            row(n, &n->beyond, i)[node >> 6] &= ~bit(node);
    }
    n->further[there] = longer;
    return put(b, longer, there);
}

/* The nodes that are farther than a distance, as far as is known; NULL with a Python exception. */
static const uint64_t *farther(Network *n, int64_t distance)
{
    while (n->beyond.rows <= distance) {
        if (add_row(n, &n->beyond, 1) < 0)
            return NULL;
        n->steps += n->nodes;
        uint64_t *last = row(n, &n->beyond, n->beyond.rows - 1);
        for (int32_t node = 0; node < n->nodes; node++) {
            int32_t place = n->cells + node;
            if (n->further[place] < FAR && n->further[place] + n->distance[place] < n->beyond.rows)
                last[node >> 6] &= ~bit(node);
        }
    }
    return row(n, &n->beyond, distance);
}

/* Look at all places next to one; -1 with a Python exception. */
static int look_around(Network *n, Buckets *b, int32_t place, int64_t length)
{
    int32_t pool = the_pool(n);
    int64_t here = length + n->distance[place], cost;
    if (place < n->cells) {
        if (farther(n, here + 1) == NULL)
            return -1;
        int32_t stop = n->block_starts[place + 1];
        for (int32_t i = n->block_starts[place]; i < stop; i++) {
            const Block *block = &n->blocks[i];
            n->steps++;
            uint64_t bits = block->free & row(n, &n->beyond, here)[block->word];
            for (; bits; bits &= bits - 1)
                if (come(n, b, length, here, n->cells + node_of(block, bits)) < 0)
                    return -1;
            bits = block->costing & row(n, &n->beyond, here + 1)[block->word];
            for (; bits; bits &= bits - 1)
                if (come(n, b, length, here + 1, n->cells + node_of(block, bits)) < 0)
                    return -1;
        }
        return 0;
    }
    if (place == pool) {
        n->steps += n->nodes;
        for (int32_t node = 0; node < n->nodes; node++) {
            Step step = {n->cells + node, -1};
            if (capacity(n, pool, step, &cost) > 0 && come(n, b, length, here + cost, step.there) < 0)
                return -1;
        }
        return 0;
    }
    int32_t node = place - n->cells;
    for (int32_t i = n->into_starts[node]; i < n->into_starts[node + 1]; i++) {
        const IntoBlock *block = &n->into[i];
        n->steps++;
        for (uint64_t bits = block->carrying; bits; bits &= bits - 1) {
            Step step = back(n, node, block, bits);
            n->steps++;
            if (capacity(n, place, step, &cost) > 0 && come(n, b, length, here + cost, step.there) < 0)
                return -1;
        }
    }
    Step step = {pool, -1};
    return capacity(n, place, step, &cost) > 0 ? come(n, b, length, here + cost, pool) : 0;
}

/* Sort the nodes by distance; -1 with a Python exception. */
static int sort_nodes(Network *n)
{
    n->at_distance.rows = 0;
    while (n->at_distance.rows <= n->room_distance)
        if (add_row(n, &n->at_distance, 0) < 0)
            return -1;
    for (int32_t node = 0; node < n->nodes; node++)
        row(n, &n->at_distance, n->distance[n->cells + node])[node >> 6] |= bit(node);
    return 0;
}

/* 1 if there is a cheapest path, 0 if there is none, -1 with a Python exception. */
static int lengthen(Network *n, Buckets *b)
{
    int64_t nearest = FAR;
    int32_t pool = the_pool(n);
    b->size = 0;
    for (int64_t i = 0; i < b->buckets; i++)
        b->first[i] = -1;
    n->beyond.rows = 0;
    for (int32_t place = 0; place <= pool; place++)
        n->further[place] = FAR;
    for (int32_t cell = 0; cell < n->cells; cell++)
        if (n->supply[cell]) {
            n->further[cell] = 0;
            if (put(b, 0, cell) < 0)
                return -1;
        }
    for (int64_t length = 0; length < b->buckets && length < nearest; length++)
        while (b->first[length] >= 0) {
            int64_t entry = b->first[length];
            int32_t place = b->places[entry];
            b->first[length] = b->next[entry];
            if (n->further[place] != length)
                continue;
            if (room(n, place) > 0)
                nearest = min64(nearest, length + n->distance[place] - n->room_distance);
            if (breathe(n) < 0 || look_around(n, b, place, length) < 0)
                return -1;
        }
    if (nearest < 1) { /* then `rank` would have found it */
        PyErr_SetString(PyExc_ValueError, NOT_CHEAPEST);
        return -1;
    }
    if (nearest == FAR) {
        for (int32_t place = 0; place <= pool; place++)
            n->distance[place] = n->further[place] < FAR;
        return 0;
    }
    for (int32_t place = 0; place <= pool; place++)
        n->distance[place] += min64(n->further[place], nearest);
    n->room_distance += nearest;
    return sort_nodes(n) < 0 ? -1 : 1;
}

static bool any_supply(const Network *n)
{
    for (int32_t cell = 0; cell < n->cells; cell++)
        if (n->supply[cell])
            return true;
    return false;
}

/* 0 if all was sent, 1 if stuck, -1 with a Python exception set. */
static int run(Network *n)
{
    Buckets buckets = {0};
    int stuck = sort_nodes(n);
    while (!stuck && any_supply(n)) {
        n->steps = n->breath;
        if ((stuck = breathe(n)) < 0)
            break;
        int found = rank(n);
        if (found > 0) {
            stuck = push(n);
            continue;
        }
        if (found == 0)
            found = lengthen(n, &buckets);
        stuck = found < 0 ? -1 : !found;
    }
    free(buckets.places);
    free(buckets.next);
    free(buckets.first);
    return stuck;
}

enum { STARTS, HEADS, SUPPLY, BASE, EXTRA, FREE, HIGH, FLOW, LOAD, DISTANCE, ARRAYS };

static const char *const NAMES[ARRAYS] = {"starts", "heads", "supply", "base", "extra",
                                          "free",   "high",  "flow",   "load", "distance"};

/* The arrays of the caller. They stay where they are while they are held; what is in them may change. */
typedef struct {
    Py_buffer view[ARRAYS];
    int64_t size[ARRAYS];
    bool is_same[ARRAYS]; /* one number stands for all */
    int held;
} Given;

static void let_go(Given *given)
{
    while (given->held > 0)
        PyBuffer_Release(&given->view[--given->held]);
}

static int hold(Given *given, PyObject *const *arrays)
{
    for (int i = 0; i < ARRAYS; i++) {
        bool written = i == SUPPLY || i >= FLOW, may_be_same = i == FREE || i == HIGH;
        Py_buffer *view = &given->view[i];
        int kind = may_be_same ? PyBUF_STRIDED_RO : written ? PyBUF_CONTIG : PyBUF_CONTIG_RO;
        if (PyObject_GetBuffer(arrays[i], view, kind | PyBUF_FORMAT) < 0)
            return -1;
        given->held = i + 1;
        given->is_same[i] = false;
        if (may_be_same) {
            bool is_long = view->ndim == 1 && view->shape[0] > 1;
            given->is_same[i] = is_long && view->strides[0] == 0;
            if (view->ndim != 1 || (is_long && view->strides[0] != 0 && view->strides[0] != view->itemsize)) {
                PyErr_Format(PyExc_ValueError, "%s must be one contiguous array, or one number for all; copy it",
                             NAMES[i]);
                return -1;
            }
        }
        const char *format = view->format == NULL ? "B" : view->format;
        bool is_whole = strcmp(format, "q") == 0 || (strcmp(format, "l") == 0 && sizeof(long) == 8);
        if (view->itemsize != 8 || !is_whole) {
            PyErr_Format(PyExc_ValueError, "%s must be of int64, not of format '%s'; convert it", NAMES[i], format);
            return -1;
        }
        given->size[i] = view->len / 8;
    }
    return 0;
}

static int fit(const int64_t *size)
{
    int64_t cells = size[SUPPLY], nodes = size[BASE], arcs = size[HEADS];
    int64_t wanted[ARRAYS] = {cells + 1, arcs, cells, nodes, nodes, arcs, arcs, arcs, nodes, cells + nodes + 1};
    for (int i = 0; i < ARRAYS; i++)
        if (size[i] != wanted[i]) {
            PyErr_Format(PyExc_ValueError,
                         "the arrays of the network do not fit each other: with %lld cells (supply), %lld nodes "
                         "(base) and %lld arcs (heads), %s must have %lld entries, not %lld",
                         (long long)cells, (long long)nodes, (long long)arcs, NAMES[i], (long long)wanted[i],
                         (long long)size[i]);
            return -1;
        }
    if (cells > INT32_MAX / 8 || nodes > INT32_MAX / 8 || arcs > INT32_MAX / 8) {
        PyErr_Format(PyExc_ValueError,
                     "a network may have %d cells, nodes and arcs each, not %lld, %lld and %lld; plan fewer "
                     "topics or members in one group",
                     INT32_MAX / 8, (long long)cells, (long long)nodes, (long long)arcs);
        return -1;
    }
    return 0;
}

/* -1 with a Python exception that names the entry. */
static int outside(int array, int64_t i, int64_t value, int64_t least, int64_t most)
{
    PyErr_Format(PyExc_ValueError, "%s[%lld] must be from %lld to %lld, not %lld", NAMES[array], (long long)i,
                 (long long)least, (long long)most, (long long)value);
    return -1;
}

static inline int64_t entry(const Given *given, int array, int64_t i)
{
    int64_t value;
    memcpy(&value, (const char *)given->view[array].buf + 8 * i, 8);
    return value;
}

/* Copy an array of units, each of which is in bounds. */
static int copy_units(const Given *given, int array, int64_t *to)
{
    if (given->size[array])
        memcpy(to, given->view[array].buf, (size_t)given->view[array].len);
    for (int64_t i = 0; i < given->size[array]; i++)
        if (to[i] < 0 || to[i] > MOST_UNITS)
            return outside(array, i, to[i], 0, MOST_UNITS);
    return 0;
}

/* The same for numbers that are often all the same; these take no memory. */
static int copy_numbers(Network *n, const Given *given, int array, Numbers *to)
{
    int64_t first = n->arcs ? entry(given, array, 0) : 0;
    int32_t arc = given->is_same[array] ? n->arcs : 0;
    while (arc < n->arcs && entry(given, array, arc) == first)
        arc++;
    *to = (Numbers){.same = first};
    if (arc == n->arcs)
        return first < 0 || first > MOST_UNITS ? outside(array, 0, first, 0, MOST_UNITS) : 0;
    to->all = malloc(sizeof(int64_t) * (size_t)n->arcs);
    if (to->all == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return copy_units(given, array, to->all);
}

static int copy_all(Network *n, const Given *given)
{
    if (copy_units(given, SUPPLY, n->supply) < 0 || copy_units(given, BASE, n->base) < 0 ||
        copy_units(given, EXTRA, n->extra) < 0 || copy_units(given, LOAD, n->load) < 0 ||
        copy_numbers(n, given, FREE, &n->free) < 0 || copy_numbers(n, given, HIGH, &n->high) < 0)
        return -1;
    /* Of the flow, which is 0 on most arcs, no more memory is touched than must be. */
    for (int32_t arc = 0; arc < n->arcs; arc++) {
        int64_t flow = entry(given, FLOW, arc);
        if (!flow)
            continue;
        if (flow < 0 || flow > of_arc(&n->high, arc))
            return outside(FLOW, arc, flow, 0, of_arc(&n->high, arc));
        n->flow[arc] = flow;
        n->carriers++;
    }
    /* No load can come to more than all loads and all supply. */
    int64_t units = 0;
    for (int64_t i = 0; i < (int64_t)n->cells + n->nodes; i++) {
        units += i < n->cells ? n->supply[i] : n->load[i - n->cells];
        if (units > MOST_UNITS) {
            PyErr_Format(PyExc_ValueError, "supply and load must come to no more than %lld units in all",
                         (long long)MOST_UNITS);
            return -1;
        }
    }
    for (int32_t node = 0; node < n->nodes; node++)
        if (n->load[node] - n->base[node] > n->extra[node])
            return outside(LOAD, node, n->load[node], 0, n->base[node] + n->extra[node]);
    return 0;
}

/* The arcs of each cell, in blocks. */
static int copy_arcs(Network *n, const Given *given)
{
    int64_t arc = entry(given, STARTS, 0);
    if (arc != 0)
        return outside(STARTS, 0, arc, 0, 0);
    int32_t blocks = 0;
    for (int32_t cell = 0; cell < n->cells; cell++) {
        int64_t stop = entry(given, STARTS, (int64_t)cell + 1), before = -1;
        bool is_last = cell == n->cells - 1;
        if (stop < (is_last ? n->arcs : arc) || stop > n->arcs)
            return outside(STARTS, (int64_t)cell + 1, stop, is_last ? n->arcs : arc, n->arcs);
        n->block_starts[cell] = blocks;
        Block *block = NULL;
        for (; arc < stop; arc++) {
            int64_t node = entry(given, HEADS, arc);
            if (node <= before || node >= n->nodes)
                return outside(HEADS, arc, node, before + 1, (int64_t)n->nodes - 1);
            before = node;
            if (block == NULL || block->word != node >> 6) {
                block = &n->blocks[blocks++];
                *block = (Block){.word = (int32_t)(node >> 6), .first = (int32_t)arc};
            }
            block->arcs |= bit((int32_t)node);
        }
    }
    n->block_starts[n->cells] = blocks;
    return arc == n->arcs ? 0 : outside(STARTS, 0, 0, n->arcs, n->arcs); /* there are no cells */
}

/* Note of all arcs of a block whether they can carry more; the flags are known when this is compiled. */
static inline void note_block(const Network *n, Block *block, bool has_flow, bool has_free, bool has_high)
{
    int32_t arc = block->first;
    for (uint64_t bits = block->arcs; bits; bits &= bits - 1, arc++) {
        int64_t flow = has_flow ? n->flow[arc] : 0;
        bool fits = flow < (has_high ? n->high.all[arc] : n->high.same);
        bool is_free = flow < (has_free ? n->free.all[arc] : n->free.same);
        uint64_t lowest_bit = bits & -bits;
        block->free |= fits & is_free ? lowest_bit : 0;
        block->costing |= fits & !is_free ? lowest_bit : 0;
    }
}

static void note_rooms(Network *n)
{
    for (int32_t i = 0; i < n->block_starts[n->cells]; i++) {
        Block *block = &n->blocks[i];
        bool has_free = n->free.all != NULL, has_high = n->high.all != NULL;
        if (!n->carriers && !has_high && n->high.same > 0) {
            if (has_free)
                note_block(n, block, false, true, false);
            else /* then all arcs are alike */
                *(n->free.same > 0 ? &block->free : &block->costing) = block->arcs;
        } else if (has_free)
            note_block(n, block, true, true, has_high);
        else
            note_block(n, block, true, false, has_high);
    }
}

/* The arcs into each node, in blocks; -1 with a Python exception. */
static int turn_arcs(Network *n)
{
    int32_t *at = n->queue; /* not in use yet */
    uint64_t *any = n->unranked;
    memset(n->into_starts, 0, sizeof(int32_t) * ((size_t)n->nodes + 1));
    for (int round = 0; round < 2; round++) {
        for (int32_t first = 0; first < n->cells; first += 64) {
            int32_t end = n->cells - first < 64 ? n->cells : first + 64;
            memset(any, 0, sizeof(uint64_t) * (size_t)n->words);
            for (int32_t i = n->block_starts[first]; i < n->block_starts[end]; i++)
                any[n->blocks[i].word] |= n->blocks[i].arcs;
            for (int32_t word = 0; word < n->words; word++)
                for (uint64_t bits = any[word]; bits; bits &= bits - 1) {
                    int32_t node = word * 64 + lowest(bits);
                    if (round)
                        n->into[at[node]++] = (IntoBlock){.word = first / 64};
                    else
                        n->into_starts[node + 1]++;
                }
        }
        if (round)
            break;
        for (int32_t node = 0; node < n->nodes; node++)
            n->into_starts[node + 1] += n->into_starts[node];
        memcpy(at, n->into_starts, sizeof(int32_t) * (size_t)n->nodes);
        n->into = malloc(sizeof(IntoBlock) * ((size_t)n->into_starts[n->nodes] + 1));
        if (n->into == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    for (int32_t cell = 0; cell < n->cells && n->carriers; cell++)
        for (int32_t i = n->block_starts[cell]; i < n->block_starts[cell + 1]; i++) {
            int32_t arc = n->blocks[i].first;
            for (uint64_t bits = n->blocks[i].arcs; bits; bits &= bits - 1, arc++)
                if (n->flow[arc]) {
                    int32_t node = node_of(&n->blocks[i], bits);
                    into_of(n, node, cell)->carrying |= bit(cell);
                }
        }
    return 0;
}

/* Memory of a known size, in one piece; NULL if there is none. */
static void *make_room(Network *n)
{
    size_t cells = (size_t)n->cells, nodes = (size_t)n->nodes, arcs = (size_t)n->arcs, places = cells + nodes + 1;
    size_t wide = cells + 3 * nodes + 2 * places + (size_t)n->words;
    size_t narrow = (cells + 1) + (nodes + 1) + 5 * places;
    char *memory = malloc(8 * wide + sizeof(Block) * arcs + 4 * narrow);
    if (memory == NULL)
        return NULL;
    int64_t *next = (int64_t *)memory;
    n->supply = next, next += cells;
    n->base = next, next += nodes;
    n->extra = next, next += nodes;
    n->load = next, next += nodes;
    n->distance = next, next += places;
    n->further = next, next += places;
    n->unranked = (uint64_t *)next, next += n->words;
    n->blocks = (Block *)next;
    int32_t *small = (int32_t *)(n->blocks + arcs);
    n->block_starts = small, small += cells + 1;
    n->into_starts = small, small += nodes + 1;
    n->level = small, small += places;
    n->next_try = small, small += places;
    n->queue = small, small += places;
    n->path = small, small += places;
    n->path_arcs = small;
    memset(n->distance, 0, 8 * places);
    return memory;
}

static void put_back(const Given *given, int array, const int64_t *from)
{
    if (given->size[array])
        memcpy(given->view[array].buf, from, (size_t)given->view[array].len);
}

PyDoc_STRVAR(send_doc,
             "send(starts, heads, supply, base, extra, free, high, flow, load, distance, pool, tick, breath)\n--\n\n"
             "Send all supply; see kafka_assignors.planners._exact.flow. The arrays are contiguous and of int64.\n"
             "Returns whether it got stuck, and what is left of the pool. If anything is raised, the arrays are\n"
             "as they were. Within a long search tick is called after each `breath` steps.");

static PyObject *send_py(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *arrays[ARRAYS], *tick, *result = NULL;
    PyObject *left;
    long long breath;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOOO!OL", &arrays[STARTS], &arrays[HEADS], &arrays[SUPPLY],
                          &arrays[BASE], &arrays[EXTRA], &arrays[FREE], &arrays[HIGH], &arrays[FLOW], &arrays[LOAD],
                          &arrays[DISTANCE], &PyLong_Type, &left, &tick, &breath))
        return NULL;
    Given given = {.held = 0};
    Network network = {0};
    void *memory = NULL;
    if (hold(&given, arrays) < 0 || fit(given.size) < 0)
        goto done;
    int is_wide;
    long long pool = PyLong_AsLongLongAndOverflow(left, &is_wide);
    if (is_wide || pool < 0 || pool > MOST_UNITS) {
        PyErr_Format(PyExc_ValueError, "pool must be from 0 to %lld, not %S", (long long)MOST_UNITS, left);
        goto done;
    }
    network.cells = (int32_t)given.size[SUPPLY];
    network.nodes = (int32_t)given.size[BASE];
    network.arcs = (int32_t)given.size[HEADS];
    network.words = network.nodes / 64 + 1;
    network.pool = pool;
    network.tick = tick;
    network.breath = breath;
    memory = make_room(&network);
    network.flow = calloc((size_t)network.arcs + 1, sizeof(int64_t));
    if (memory == NULL || network.flow == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    /* Each of these takes some milliseconds for a million arcs. What is given is not read after the second. */
    if (copy_all(&network, &given) < 0 || copy_arcs(&network, &given) < 0 || pause_for_arcs(&network) < 0 ||
        turn_arcs(&network) < 0)
        goto done;
    note_rooms(&network);
    if (pause_for_arcs(&network) < 0)
        goto done;
    int stuck = run(&network);
    if (stuck < 0)
        goto done;
    put_back(&given, SUPPLY, network.supply);
    put_back(&given, FLOW, network.flow);
    put_back(&given, LOAD, network.load);
    put_back(&given, DISTANCE, network.distance);
    result = Py_BuildValue("(NL)", PyBool_FromLong(stuck), (long long)network.pool);
done:
    free(network.at_distance.bits);
    free(network.at_level.bits);
    free(network.beyond.bits);
    free(network.free.all);
    free(network.high.all);
    free(network.into);
    free(network.flow);
    free(memory);
    let_go(&given);
    return result;
}

static PyMethodDef methods[] = {{"send", send_py, METH_VARARGS, send_doc}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_flow", .m_doc = "Cheapest flows, compiled.", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__flow(void) { return PyModuleDef_Init(&module); }
