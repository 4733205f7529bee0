/* The compiled counterpart of kafka_assignors._wire.codec, where it stands what the functions mean.
 *
 * The bytes come from other members: nothing is read that was not first seen to be there. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_bytes.h"

/* Numbers that grow at the end. */
typedef struct {
    int64_t *items;
    Py_ssize_t size, room;
} Column;

static bool grow(Column *c, Py_ssize_t more)
{
    if (c->size + more <= c->room)
        return true;
    Py_ssize_t wanted = (c->size + more) * 2;
    int64_t *items = realloc(c->items, (size_t)wanted * sizeof(int64_t));
    if (items == NULL) {
        PyErr_NoMemory();
        return false;
    }
    c->items = items;
    c->room = wanted;
    return true;
}

static bool append(Column *c, int64_t value)
{
    if (!grow(c, 1))
        return false;
    c->items[c->size++] = value;
    return true;
}

static PyObject *column_bytes(const Column *c)
{
    return PyBytes_FromStringAndSize((const char *)c->items, c->size * (Py_ssize_t)sizeof(int64_t));
}

static PyObject *text(const unsigned char *bytes, Py_ssize_t size)
{
    return PyUnicode_DecodeUTF8((const char *)bytes, size, "strict");
}

/* Decode a string that was seen for the first time and add it to a list: 1; 0 if it is not UTF-8; -1. */
static int add_name(PyObject *names, const unsigned char *bytes, Py_ssize_t size)
{
    PyObject *name = text(bytes, size);
    if (name == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
            return -1;
        PyErr_Clear();
        /* It keeps its number; who has it is not read. */
        name = Py_NewRef(Py_None);
    }
    int result = PyList_Append(names, name) < 0 ? -1 : name != Py_None;
    Py_DECREF(name);
    return result;
}

enum { CLAIMANT, TOPIC, SIZE, IDS, LENGTH, TAIL, COLUMNS };

/* Read one array of (topic, ids): 1, or 0 if the bytes are no such array, or -1 with a Python exception. */
static int read_claim(Reader *r, int64_t claimant, Names *names, PyObject *texts, Column *column)
{
    int32_t topics;
    if (!read_int32(r, &topics) || topics < 0 || topics > (r->end - r->at) / 6)
        return 0;
    for (int32_t i = 0; i < topics; i++) {
        const unsigned char *name;
        int16_t size;
        int32_t count;
        if (!read_string(r, &name, &size) || size < 0 || !read_int32(r, &count) || count < 0 ||
            count > (r->end - r->at) / 4)
            return 0;
        bool is_new;
        int64_t number = number_of(names, name, size, &is_new);
        if (number < 0)
            return -1;
        if (is_new && add_name(texts, name, size) < 0)
            return -1;
        if (PyList_GetItem(texts, number) == Py_None)
            return 0;
        if (!append(&column[CLAIMANT], claimant) || !append(&column[TOPIC], number) ||
            !append(&column[SIZE], count) || !grow(&column[IDS], count))
            return -1;
        for (int32_t j = 0; j < count; j++) {
            int32_t id = 0;
            read_int32(r, &id);
            column[IDS].items[column[IDS].size++] = id;
        }
    }
    return 1;
}

PyDoc_STRVAR(read_partitions_doc, "read_partitions(blobs)\n--\n\nSee kafka_assignors._wire.codec.");

static PyObject *read_partitions(PyObject *module, PyObject *blobs)
{
    (void)module;
    if (!PyList_Check(blobs)) {
        PyErr_SetString(PyExc_TypeError, "blobs must be a list of bytes");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(blobs);
    Names names = {0};
    Column column[COLUMNS] = {{0}};
    PyObject *texts = PyList_New(0), *result = NULL;
    if (texts == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        char *bytes;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GetItem(blobs, i), &bytes, &size) < 0)
            goto done;
        Reader reader = {(unsigned char *)bytes, (unsigned char *)bytes + size};
        Py_ssize_t before[LENGTH];
        for (int c = 0; c < LENGTH; c++)
            before[c] = column[c].size;
        int read = read_claim(&reader, i, &names, texts, column);
        if (read < 0)
            goto done;
        if (!read) /* nothing of it counts */
            for (int c = 0; c < LENGTH; c++)
                column[c].size = before[c];
        if (!append(&column[LENGTH], read ? reader.at - (unsigned char *)bytes : -1))
            goto done;
        for (int j = 0; j < 2; j++) {
            int32_t tail = 0;
            if (read)
                read_int32(&reader, &tail);
            if (!append(&column[TAIL], tail))
                goto done;
        }
    }
    result = Py_BuildValue("(ONNNNNN)", texts, column_bytes(&column[CLAIMANT]), column_bytes(&column[TOPIC]),
                           column_bytes(&column[SIZE]), column_bytes(&column[IDS]), column_bytes(&column[LENGTH]),
                           column_bytes(&column[TAIL]));
done:
    Py_DECREF(texts);
    forget(&names);
    for (int c = 0; c < COLUMNS; c++)
        free(column[c].items);
    return result;
}

static unsigned char *put_int32(unsigned char *at, int64_t value)
{
    uint32_t bits = (uint32_t)value;
    at[0] = (unsigned char)(bits >> 24);
    at[1] = (unsigned char)(bits >> 16);
    at[2] = (unsigned char)(bits >> 8);
    at[3] = (unsigned char)bits;
    return at + 4;
}

static unsigned char *put(unsigned char *at, const char *bytes, Py_ssize_t size)
{
    memcpy(at, bytes, (size_t)size);
    return at + size;
}

PyDoc_STRVAR(write_partitions_doc,
             "write_partitions(names, topics, ids, bounds, head, tail)\n--\n\nSee kafka_assignors._wire.codec.");

static PyObject *write_partitions(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *names, *array[3], *result = NULL;
    const char *head, *tail, **name_bytes = NULL;
    Py_ssize_t head_size, tail_size, *name_sizes = NULL;
    if (!PyArg_ParseTuple(arguments, "O!OOOy#y#", &PyList_Type, &names, &array[0], &array[1], &array[2], &head,
                          &head_size, &tail, &tail_size))
        return NULL;
    Py_buffer view[3];
    int held = 0;
    for (; held < 3; held++)
        if (PyObject_GetBuffer(array[held], &view[held], PyBUF_CONTIG_RO) < 0)
            goto done;
    const int64_t *topics = view[0].buf, *ids = view[1].buf, *bounds = view[2].buf;
    Py_ssize_t size = view[0].len / 8, members = view[2].len / 8 - 1, known = PyList_Size(names);
    bool fits = view[1].len == view[0].len && members >= 0 && bounds[0] == 0 && bounds[members] == size;
    for (Py_ssize_t i = 0; fits && i < members; i++)
        fits = bounds[i] <= bounds[i + 1];
    for (Py_ssize_t i = 0; fits && i < size; i++)
        fits = topics[i] >= 0 && topics[i] < known;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "names, topics, ids and bounds do not fit each other");
        goto done;
    }
    name_bytes = malloc(((size_t)known + 1) * sizeof *name_bytes);
    name_sizes = malloc(((size_t)known + 1) * sizeof *name_sizes);
    if (name_bytes == NULL || name_sizes == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < known; i++) {
        char *bytes;
        if (PyBytes_AsStringAndSize(PyList_GetItem(names, i), &bytes, &name_sizes[i]) < 0)
            goto done;
        name_bytes[i] = bytes;
        if (name_sizes[i] > INT16_MAX) {
            PyErr_SetString(PyExc_ValueError, "a topic's name has more than 32767 bytes");
            goto done;
        }
    }
    PyObject *written = PyList_New(members);
    if (written == NULL)
        goto done;
    for (Py_ssize_t member = 0; member < members; member++) {
        Py_ssize_t first = bounds[member], last = bounds[member + 1], runs = 0;
        Py_ssize_t wanted = head_size + tail_size + 4 + 4 * (last - first);
        for (Py_ssize_t i = first; i < last; i++)
            if (i == first || topics[i] != topics[i - 1]) {
                runs++;
                wanted += 6 + name_sizes[topics[i]];
            }
        PyObject *bytes = PyBytes_FromStringAndSize(NULL, wanted);
        if (bytes == NULL || PyList_SetItem(written, member, bytes) < 0) {
            Py_DECREF(written);
            goto done;
        }
        unsigned char *at = put((unsigned char *)PyBytes_AsString(bytes), head, head_size);
        at = put_int32(at, runs);
        for (Py_ssize_t i = first, end; i < last; i = end) {
            int64_t topic = topics[i];
            for (end = i + 1; end < last && topics[end] == topic; end++)
                ;
            *at++ = (unsigned char)(name_sizes[topic] >> 8);
            *at++ = (unsigned char)name_sizes[topic];
            at = put(at, name_bytes[topic], name_sizes[topic]);
            at = put_int32(at, end - i);
            for (Py_ssize_t j = i; j < end; j++)
                at = put_int32(at, ids[j]);
        }
        put(at, tail, tail_size);
    }
    result = written;
done:
    free(name_bytes);
    free(name_sizes);
    while (held > 0)
        PyBuffer_Release(&view[--held]);
    return result;
}

/* Columns of all subscriptions: what the different lists of topics have, and where each of these ends; and which
 * list and which generation each subscription has. */
enum { BOUNDS, ENTRIES, SECTIONS, GENERATIONS, SUBSCRIPTION_COLUMNS };

/* Fields of one subscription: numbers, and places in its bytes. */
enum { SECTION, USER_DATA, USER_DATA_END, OWNED, OWNED_END, GENERATION, RACK, RACK_END, FIELDS };

/* Read one subscription: 1, or 0 if the bytes are none, or -1 with a Python exception. */
static int read_subscription(const unsigned char *bytes, Py_ssize_t size, Names *sections, Names *names,
                             PyObject *texts, Column *column, int64_t *field)
{
    Reader r = {bytes, bytes + size};
    int16_t version, length = 0;
    int32_t count, data = 0;
    const unsigned char *name = NULL;
    if (!read_int16(&r, &version) || version < 0)
        return 0;
    /* The topics: most members' are the same bytes as another's, so look at them only if they are not. */
    const unsigned char *from = r.at;
    if (sections->count > 0) {
        const struct Seen *last = &sections->seen[sections->last];
        if (r.end - from >= last->size && memcmp(last->bytes, from, (size_t)last->size) == 0) {
            r.at += last->size;
            field[SECTION] = sections->last;
        }
    }
    if (r.at == from) {
        if (!read_int32(&r, &count) || count < 0 || count > (r.end - r.at) / 2)
            return 0;
        for (int32_t i = 0; i < count; i++)
            if (!read_string(&r, &name, &length) || length < 0) /* of a null the Python version tells more */
                return 0;
        bool is_new;
        field[SECTION] = number_of(sections, from, r.at - from, &is_new);
        if (field[SECTION] < 0)
            return -1;
        if (is_new) {
            Reader again = {from + 4, r.at};
            for (int32_t i = 0; i < count; i++) {
                read_string(&again, &name, &length);
                int64_t number = number_of(names, name, length, &is_new);
                if (number < 0 || (is_new && add_name(texts, name, length) < 0) ||
                    !append(&column[ENTRIES], number))
                    return -1;
            }
            if (!append(&column[BOUNDS], column[ENTRIES].size))
                return -1;
        }
    }
    if (!read_int32(&r, &data) || data < -1 || (data > 0 && r.end - r.at < data))
        return 0;
    field[USER_DATA] = r.at - bytes;
    r.at += data > 0 ? data : 0;
    field[USER_DATA_END] = r.at - bytes;
    field[OWNED] = field[OWNED_END] = 0;
    field[GENERATION] = INT64_MIN; /* not said */
    field[RACK] = field[RACK_END] = 0;
    if (version >= 1) {
        field[OWNED] = r.at - bytes;
        /* Null lists, which Kafka does not write, are passed over as empty ones. */
        if (!read_int32(&r, &count) || count < -1 || count > (r.end - r.at) / 6)
            return 0;
        for (int32_t i = 0; i < count; i++) {
            if (!read_string(&r, &name, &length) || length < 0 || !read_int32(&r, &data) || data < -1 ||
                data > (r.end - r.at) / 4)
                return 0;
            r.at += data > 0 ? (Py_ssize_t)data * 4 : 0;
        }
        field[OWNED_END] = r.at - bytes;
    }
    if (version >= 2) {
        if (!read_int32(&r, &data))
            return 0;
        field[GENERATION] = data;
    }
    if (version >= 3) {
        if (!read_string(&r, &name, &length))
            return 0;
        field[RACK_END] = r.at - bytes;
        field[RACK] = field[RACK_END] - (length > 0 ? length : 0);
    }
    return 1; /* what newer versions append is not read */
}

static int set_part(PyObject *list, Py_ssize_t i, const char *bytes, int64_t from, int64_t to)
{
    PyObject *part = PyBytes_FromStringAndSize(bytes + from, (Py_ssize_t)(to - from));
    return part == NULL ? -1 : PyList_SetItem(list, i, part);
}

PyDoc_STRVAR(read_subscriptions_doc, "read_subscriptions(blobs)\n--\n\nSee kafka_assignors._wire.codec.");

static PyObject *read_subscriptions(PyObject *module, PyObject *blobs)
{
    (void)module;
    if (!PyList_Check(blobs)) {
        PyErr_SetString(PyExc_TypeError, "blobs must be a list of bytes");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(blobs);
    Names sections = {0}, names = {0};
    Column column[SUBSCRIPTION_COLUMNS] = {{0}};
    PyObject *texts = PyList_New(0), *user_data = PyList_New(count), *owned = PyList_New(count),
             *racks = PyList_New(count), *result = NULL;
    if (texts == NULL || user_data == NULL || owned == NULL || racks == NULL || !append(&column[BOUNDS], 0))
        goto done;
    for (Py_ssize_t i = 0; i < count; i++) {
        char *bytes;
        Py_ssize_t size;
        int64_t field[FIELDS] = {0};
        if (PyBytes_AsStringAndSize(PyList_GetItem(blobs, i), &bytes, &size) < 0)
            goto done;
        int read = read_subscription((unsigned char *)bytes, size, &sections, &names, texts, column, field);
        if (read < 0)
            goto done;
        if (!read) {
            memset(field, 0, sizeof field);
            field[SECTION] = -1;
        }
        if (!append(&column[SECTIONS], field[SECTION]) || !append(&column[GENERATIONS], field[GENERATION]) ||
            set_part(user_data, i, bytes, field[USER_DATA], field[USER_DATA_END]) < 0 ||
            set_part(owned, i, bytes, field[OWNED], field[OWNED_END]) < 0 ||
            set_part(racks, i, bytes, field[RACK], field[RACK_END]) < 0)
            goto done;
    }
    result = Py_BuildValue("(ONNNNOOO)", texts, column_bytes(&column[BOUNDS]), column_bytes(&column[ENTRIES]),
                           column_bytes(&column[SECTIONS]), column_bytes(&column[GENERATIONS]), user_data, owned,
                           racks);
done:
    Py_XDECREF(texts);
    Py_XDECREF(user_data);
    Py_XDECREF(owned);
    Py_XDECREF(racks);
    forget(&sections);
    forget(&names);
    for (int c = 0; c < SUBSCRIPTION_COLUMNS; c++)
        free(column[c].items);
    return result;
}

static PyMethodDef methods[] = {{"read_partitions", read_partitions, METH_O, read_partitions_doc},
                                {"read_subscriptions", read_subscriptions, METH_O, read_subscriptions_doc},
                                {"write_partitions", write_partitions, METH_VARARGS, write_partitions_doc},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
                                    .m_name = "_codec",
                                    .m_doc = "The consumer protocol's bytes in bulk, compiled.",
                                    .m_size = 0,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__codec(void) { return PyModuleDef_Init(&module); }
