/* Columns that grow, and names by number: what all that is read becomes. */

#include "_codec.h"

bool grow(Column *c, size_t more)
{
    size_t wanted = (c->size + more) * 2;
    unsigned char *bytes = realloc(c->bytes, wanted);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return false;
    }
    c->bytes = bytes;
    c->room = wanted;
    return true;
}

void note_sizes(const Column *columns, size_t count, size_t *sizes)
{
    for (size_t c = 0; c < count; c++)
        sizes[c] = columns[c].size;
}

/* Take back what was put since. */
void cut_columns(Column *columns, size_t count, const size_t *sizes)
{
    for (size_t c = 0; c < count; c++)
        columns[c].size = sizes[c];
}

void free_columns(Column *columns, size_t count)
{
    for (size_t c = 0; c < count; c++)
        free(columns[c].bytes);
}

/* -1 with a Python exception if they are no list. */
Py_ssize_t count_blobs(PyObject *blobs)
{
    if (PyList_Check(blobs))
        return PyList_Size(blobs);
    PyErr_SetString(PyExc_TypeError, "blobs must be a list of bytes");
    return -1;
}

bool get_blob(PyObject *blobs, Py_ssize_t i, Reader *blob)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(PyList_GetItem(blobs, i), &bytes, &size) < 0)
        return false;
    *blob = (Reader){(unsigned char *)bytes, (unsigned char *)bytes + size};
    return true;
}

/* Put an item into a dict, which takes it; false with a Python exception, as there is if the item is NULL. */
bool add(PyObject *dict, const char *name, PyObject *item)
{
    bool added = item != NULL && PyDict_SetItemString(dict, name, item) == 0;
    Py_XDECREF(item);
    return added;
}

bool add_columns(PyObject *dict, const char *const *names, const Column *columns, size_t count)
{
    for (size_t c = 0; c < count; c++)
        if (!add(dict, names[c],
                 PyBytes_FromStringAndSize((const char *)columns[c].bytes, (Py_ssize_t)columns[c].size)))
            return false;
    return true;
}

static uint64_t hash_of(const unsigned char *bytes, Py_ssize_t size)
{
    /* Where the loader put this function is hard to guess for who would make up names that collide. */
    uint64_t hash = (uint64_t)size * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)&hash_of, word;
    for (; size >= 8; size -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0x9FB21C651E98DF25u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, bytes, (size_t)size);
    hash = (hash ^ word) * 0x9FB21C651E98DF25u;
    return hash ^ hash >> 29;
}

static bool make_room(Names *n)
{
    if (n->count < n->room)
        return true;
    int64_t room = n->room * 2 + 32;
    struct Seen *seen = realloc(n->seen, (size_t)room * sizeof *seen);
    if (seen != NULL)
        n->seen = seen;
    int64_t size = 64;
    while (size < room * 2)
        size *= 2;
    int64_t *table = calloc((size_t)size, sizeof *table);
    if (seen == NULL || table == NULL) {
        free(table);
        PyErr_NoMemory();
        return false;
    }
    free(n->table);
    n->table = table;
    n->mask = size - 1;
    n->room = room;
    for (int64_t number = 0; number < n->count; number++) {
        int64_t at = (int64_t)(n->seen[number].hash) & n->mask;
        while (table[at])
            at = (at + 1) & n->mask;
        table[at] = number + 1;
    }
    return true;
}

/* A str; None for what is not UTF-8; NULL with a Python exception. */
static PyObject *text_or_none(const unsigned char *bytes, Py_ssize_t size)
{
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes, size, "strict");
    if (text != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return text;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

/* TAKEN, LEFT if it is not UTF-8, or FAILED. */
static int check_utf8(Reader string)
{
    unsigned char all = 0;
    for (const unsigned char *at = string.at; at < string.end; at++)
        all |= *at;
    if (all < 0x80)
        return TAKEN;
    PyObject *text = text_or_none(string.at, left(&string));
    PUT(text != NULL);
    int outcome = text == Py_None ? LEFT : TAKEN;
    Py_DECREF(text);
    return outcome;
}

/* `number_of` a string that is not the one that came after the last before. */
int64_t find_number(Names *n, Reader string, bool is_text)
{
    if (!make_room(n))
        return -1;
    uint64_t hash = hash_of(string.at, left(&string));
    int64_t at = (int64_t)hash & n->mask;
    for (; n->table[at]; at = (at + 1) & n->mask) {
        int64_t number = n->table[at] - 1;
        if (n->seen[number].hash == hash && is_seen(n, number, string)) {
            n->seen[n->last].next = number;
            return n->last = number;
        }
    }
    int64_t mark = 0;
    if (is_text) {
        int outcome = check_utf8(string);
        if (outcome == FAILED)
            return -1;
        mark = outcome == TAKEN ? 0 : -1;
    }
    int64_t number = n->count++;
    n->table[at] = n->count;
    n->seen[number] = (struct Seen){string.at, left(&string), hash, number + 1, mark};
    if (number > 0)
        n->seen[n->last].next = number;
    return n->last = number;
}

/* A list of str; None for what is not UTF-8. */
bool add_texts(PyObject *dict, const char *name, const Names *n)
{
    PyObject *texts = PyList_New((Py_ssize_t)n->count);
    for (int64_t i = 0; texts != NULL && i < n->count; i++) {
        PyObject *text = text_or_none(n->seen[i].bytes, n->seen[i].size);
        if (text == NULL || PyList_SetItem(texts, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(texts);
    }
    return add(dict, name, texts);
}

/* As Arrow has them: where each begins, and all of them. One that is not UTF-8 is empty. */
bool add_arrow_texts(PyObject *dict, const char *name, const Names *n)
{
    Column bounds = {0}, texts = {0};
    PyObject *item = NULL;
    bool fits = put32(&bounds, 0);
    for (int64_t i = 0; fits && i < n->count; i++) {
        if (is_text(n, i))
            fits = put(&texts, n->seen[i].bytes, (size_t)n->seen[i].size);
        fits = fits && put32(&bounds, (int64_t)texts.size);
    }
    if (fits)
        item = Py_BuildValue("(y#y#)", (const char *)bounds.bytes, (Py_ssize_t)bounds.size,
                             texts.bytes ? (const char *)texts.bytes : "", (Py_ssize_t)texts.size);
    free(bounds.bytes);
    free(texts.bytes);
    return add(dict, name, item);
}

void forget(Names *n)
{
    free(n->seen);
    free(n->table);
}
