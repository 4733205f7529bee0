/* The compiled counterpart of kafka_assignors.planners.flow: the same algorithm, step by step, so that both
 * give the same flow. What the functions mean stands there; the comments here are about C only.
 *
 * Places (cells, then nodes, then the pool) and arcs are numbered by int32_t, units are int64_t. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAR ((int64_t)1 << 62)

typedef struct {
    /* the arrays of Network, in the caller's memory */
    const int64_t *starts, *heads, *base, *extra, *free, *high;
    int64_t *supply, *flow, *load;
    int64_t pool;
    int32_t cells, nodes, arcs;
    /* the arcs that lead into each node, and the cell of each arc */
    int32_t *into_starts, *into, *tails;
    /* by place */
    int64_t *distance, *further;
    int32_t *level, *next_try, *queue, *path, *path_arcs;
    int64_t room_distance;
} Network;

/* One of the places next to a place, and the arc between; the pool is reached without an arc. */
typedef struct {
    int32_t there, arc;
} Step;

static inline int32_t the_pool(const Network *n) { return n->cells + n->nodes; }

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* How many places are next to a place, and which one is the i-th. */
static inline int32_t choices(const Network *n, int32_t place)
{
    if (place < n->cells)
        return (int32_t)(n->starts[place + 1] - n->starts[place]);
    if (place == the_pool(n))
        return n->nodes;
    int32_t node = place - n->cells;
    return n->into_starts[node + 1] - n->into_starts[node] + 1;
}

static inline Step choice(const Network *n, int32_t place, int32_t i)
{
    if (place < n->cells) {
        int32_t arc = (int32_t)n->starts[place] + i;
        return (Step){n->cells + (int32_t)n->heads[arc], arc};
    }
    if (place == the_pool(n))
        return (Step){n->cells + i, -1};
    int32_t number = n->into_starts[place - n->cells] + i;
    if (number == n->into_starts[place - n->cells + 1])
        return (Step){the_pool(n), -1};
    return (Step){n->tails[n->into[number]], n->into[number]};
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
    int64_t flow = n->flow[step.arc], free = n->free[step.arc];
    if (place < n->cells) {
        int64_t high = n->high[step.arc];
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

static bool rank(Network *n)
{
    int32_t first = 0, last = 0;
    for (int32_t place = 0; place <= the_pool(n); place++)
        n->level[place] = -1;
    for (int32_t cell = 0; cell < n->cells; cell++)
        if (n->supply[cell]) {
            n->level[cell] = 0;
            n->queue[last++] = cell;
        }
    bool found = false;
    for (int32_t depth = 1; first < last && !found; depth++)
        for (int32_t end = last; first < end; first++) {
            int32_t place = n->queue[first], count = choices(n, place);
            for (int32_t i = 0; i < count; i++) {
                Step step = choice(n, place, i);
                if (n->level[step.there] < 0 && is_cheapest(n, place, step)) {
                    n->level[step.there] = depth;
                    n->queue[last++] = step.there;
                    found = found || is_end(n, step.there);
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
        int32_t place = n->path[i - 1], there = n->path[i];
        if (there == the_pool(n))
            n->load[place - n->cells] += amount;
        else if (place == the_pool(n))
            n->load[there - n->cells] -= amount;
        else
            n->flow[n->path_arcs[i]] += place < n->cells ? amount : -amount;
    }
    n->supply[source] -= amount;
    if (n->load[last] >= n->base[last])
        n->pool -= amount;
    n->load[last] += amount;
}

static bool push_from(Network *n, int32_t cell)
{
    int32_t length = 1;
    n->path[0] = cell;
    n->path_arcs[0] = -1;
    while (length > 0) {
        int32_t place = n->path[length - 1];
        if (is_end(n, place)) {
            augment(n, length);
            return true;
        }
        int32_t count = choices(n, place), i = n->next_try[place];
        Step step = {-1, -1};
        for (; i < count; i++) {
            step = choice(n, place, i);
            if (n->level[step.there] == n->level[place] + 1 && is_cheapest(n, place, step))
                break;
        }
        n->next_try[place] = i;
        if (i == count) {
            n->level[place] = -1;
            length--;
        } else {
            n->path[length] = step.there;
            n->path_arcs[length++] = step.arc;
        }
    }
    return false;
}

static void push(Network *n)
{
    memset(n->next_try, 0, sizeof(int32_t) * (size_t)(the_pool(n) + 1));
    for (int32_t cell = 0; cell < n->cells; cell++)
        while (n->supply[cell] && push_from(n, cell))
            ;
}

/* The search of `lengthen` in place of buckets: since all lengths are small whole numbers, it goes over the
 * places of one length at a time, in a queue for this length and with marks for the later ones. */
typedef struct {
    int32_t *places, *next; /* entries, and the entry that follows in the same bucket */
    int32_t *first;         /* of each bucket, -1 if it is empty */
    int32_t size, room, buckets;
} Buckets;

static bool put(Buckets *b, int64_t length, int32_t place)
{
    if (length >= b->buckets) {
        int32_t wanted = (int32_t)length * 2 + 16;
        int32_t *first = realloc(b->first, sizeof(int32_t) * (size_t)wanted);
        if (first == NULL)
            return false;
        for (int32_t i = b->buckets; i < wanted; i++)
            first[i] = -1;
        b->first = first;
        b->buckets = wanted;
    }
    if (b->size == b->room) {
        int32_t wanted = b->room * 2 + 64;
        int32_t *places = realloc(b->places, sizeof(int32_t) * (size_t)wanted);
        if (places != NULL)
            b->places = places;
        int32_t *next = realloc(b->next, sizeof(int32_t) * (size_t)wanted);
        if (next != NULL)
            b->next = next;
        if (places == NULL || next == NULL)
            return false;
        b->room = wanted;
    }
    b->places[b->size] = place;
    b->next[b->size] = b->first[length];
    b->first[length] = b->size++;
    return true;
}

/* 1 if there is a cheapest path, 0 if there is none, -1 with a Python exception. */
static int lengthen(Network *n, Buckets *b)
{
    int64_t nearest = FAR;
    b->size = 0;
    for (int32_t i = 0; i < b->buckets; i++)
        b->first[i] = -1;
    for (int32_t place = 0; place <= the_pool(n); place++)
        n->further[place] = FAR;
    for (int32_t cell = 0; cell < n->cells; cell++)
        if (n->supply[cell]) {
            n->further[cell] = 0;
            if (!put(b, 0, cell)) {
                PyErr_NoMemory();
                return -1;
            }
        }
    for (int64_t length = 0; length < b->buckets && length < nearest; length++)
        while (b->first[length] >= 0) {
            int32_t entry = b->first[length], place = b->places[entry];
            b->first[length] = b->next[entry];
            if (n->further[place] != length)
                continue;
            if (room(n, place))
                nearest = min64(nearest, length + n->distance[place] - n->room_distance);
            int32_t count = choices(n, place);
            for (int32_t i = 0; i < count; i++) {
                Step step = choice(n, place, i);
                int64_t cost, units = capacity(n, place, step, &cost);
                int64_t longer = length + n->distance[place] + cost - n->distance[step.there];
                if (units > 0 && longer < min64(nearest, n->further[step.there])) {
                    if (longer < length) {
                        PyErr_SetString(PyExc_ValueError, "the flow given is not a cheapest one of its value");
                        return -1;
                    }
                    n->further[step.there] = longer;
                    if (!put(b, longer, step.there)) {
                        PyErr_NoMemory();
                        return -1;
                    }
                }
            }
        }
    if (nearest == FAR) {
        for (int32_t place = 0; place <= the_pool(n); place++)
            n->distance[place] = n->further[place] < FAR;
        return 0;
    }
    for (int32_t place = 0; place <= the_pool(n); place++)
        n->distance[place] += min64(n->further[place], nearest);
    n->room_distance += nearest;
    return 1;
}

static bool any_supply(const Network *n)
{
    for (int32_t cell = 0; cell < n->cells; cell++)
        if (n->supply[cell])
            return true;
    return false;
}

/* 0 if all was sent, 1 if stuck, -1 with a Python exception set. */
static int run(Network *n, PyObject *tick)
{
    Buckets buckets = {0};
    int stuck = 0;
    while (!stuck && any_supply(n)) {
        PyObject *nothing = PyObject_CallNoArgs(tick);
        if (nothing == NULL) {
            stuck = -1;
            break;
        }
        Py_DECREF(nothing);
        if (rank(n)) {
            push(n);
            continue;
        }
        int found = lengthen(n, &buckets);
        stuck = found < 0 ? -1 : !found;
    }
    free(buckets.places);
    free(buckets.next);
    free(buckets.first);
    return stuck;
}

enum { STARTS, HEADS, SUPPLY, BASE, EXTRA, FREE, HIGH, FLOW, LOAD, DISTANCE, ARRAYS };

/* The arcs by node, and memory for the search, all in one piece; NULL if there is none. */
static void *prepare(Network *n)
{
    size_t places = (size_t)n->cells + (size_t)n->nodes + 1, arcs = (size_t)n->arcs;
    char *memory = malloc(sizeof(int64_t) * places + sizeof(int32_t) * (6 * places + 2 * arcs + 1));
    if (memory == NULL)
        return NULL;
    n->further = (int64_t *)memory;
    int32_t *next = (int32_t *)(n->further + places);
    n->level = next, next += places;
    n->next_try = next, next += places;
    n->queue = next, next += places;
    n->path = next, next += places;
    n->path_arcs = next, next += places;
    n->into_starts = next, next += places + 1;
    n->into = next, next += arcs;
    n->tails = next;
    memset(n->into_starts, 0, sizeof(int32_t) * (places + 1));
    for (int32_t arc = 0; arc < n->arcs; arc++)
        n->into_starts[n->heads[arc] + 1]++;
    for (int32_t node = 0; node < n->nodes; node++)
        n->into_starts[node + 1] += n->into_starts[node];
    int32_t *at = n->level; /* not in use yet */
    memcpy(at, n->into_starts, sizeof(int32_t) * (size_t)n->nodes);
    for (int32_t cell = 0; cell < n->cells; cell++)
        for (int64_t arc = n->starts[cell]; arc < n->starts[cell + 1]; arc++) {
            n->tails[arc] = cell;
            n->into[at[n->heads[arc]]++] = (int32_t)arc;
        }
    return memory;
}

PyDoc_STRVAR(send_doc,
             "send(starts, heads, supply, base, extra, free, high, flow, load, distance, pool, tick)\n--\n\n"
             "Send all supply; see kafka_assignors.planners.flow. The arrays are contiguous and of int64.\n"
             "Returns whether it got stuck, and what is left of the pool.");

static PyObject *send_py(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *array[ARRAYS], *tick, *result = NULL;
    long long pool;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOOLO", &array[STARTS], &array[HEADS], &array[SUPPLY],
                          &array[BASE], &array[EXTRA], &array[FREE], &array[HIGH], &array[FLOW], &array[LOAD],
                          &array[DISTANCE], &pool, &tick))
        return NULL;
    Py_buffer view[ARRAYS];
    int held = 0;
    int64_t *data[ARRAYS];
    int64_t count[ARRAYS];
    for (; held < ARRAYS; held++) {
        bool written = held == SUPPLY || held >= FLOW;
        if (PyObject_GetBuffer(array[held], &view[held], written ? PyBUF_CONTIG : PyBUF_CONTIG_RO) < 0)
            goto done;
        data[held] = view[held].buf;
        count[held] = view[held].len / (Py_ssize_t)sizeof(int64_t);
    }
    int64_t cells = count[SUPPLY], nodes = count[BASE], arcs = count[HEADS];
    bool fits = count[STARTS] == cells + 1 && count[EXTRA] == nodes && count[LOAD] == nodes &&
                count[FREE] == arcs && count[HIGH] == arcs && count[FLOW] == arcs &&
                count[DISTANCE] == cells + nodes + 1 && cells + nodes + arcs < INT32_MAX / 2 &&
                data[STARTS][0] == 0 && data[STARTS][cells] == arcs;
    for (int64_t arc = 0; fits && arc < arcs; arc++)
        fits = data[HEADS][arc] >= 0 && data[HEADS][arc] < nodes;
    for (int64_t cell = 0; fits && cell < cells; cell++)
        fits = data[STARTS][cell] <= data[STARTS][cell + 1];
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the arrays of the network do not fit each other");
        goto done;
    }
    Network network = {
        .starts = data[STARTS],
        .heads = data[HEADS],
        .supply = data[SUPPLY],
        .base = data[BASE],
        .extra = data[EXTRA],
        .free = data[FREE],
        .high = data[HIGH],
        .flow = data[FLOW],
        .load = data[LOAD],
        .distance = data[DISTANCE],
        .pool = pool,
        .cells = (int32_t)cells,
        .nodes = (int32_t)nodes,
        .arcs = (int32_t)arcs,
    };
    void *memory = prepare(&network);
    if (memory == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    int stuck = run(&network, tick);
    free(memory);
    if (stuck >= 0)
        result = Py_BuildValue("(NL)", PyBool_FromLong(stuck), (long long)network.pool);
done:
    while (held > 0)
        PyBuffer_Release(&view[--held]);
    return result;
}

static PyMethodDef methods[] = {{"send", send_py, METH_VARARGS, send_doc}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_flow", .m_doc = "Cheapest flows, compiled.", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__flow(void) { return PyModuleDef_Init(&module); }
