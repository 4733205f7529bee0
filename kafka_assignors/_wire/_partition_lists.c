/* The layouts of partition lists, which user data and subscriptions have in them, and of assignments. */

#include "_codec.h"

/* Read one into columns. Of one that is left nothing is in them. A topic that comes twice has two rows. */
int read_partition_list(Reader *r, int64_t whose, Names *topics, Column *list, bool *has_twice)
{
    int32_t count, ids;
    Reader name;
    size_t before[LIST_COLUMNS];
    int outcome = LEFT;
    *has_twice = false;
    NEED(read_topic_count(r, 0, &count));
    note_sizes(list, LIST_COLUMNS, before);
    int64_t mark = ++topics->lists;
    for (int32_t i = 0; i < count; i++) {
        if (!read_topic(r, 0, &name, &ids))
            goto left;
        outcome = put_text(&list[TOPIC], topics, name);
        if (outcome != TAKEN)
            goto left;
        struct Seen *seen = &topics->seen[topics->last];
        *has_twice = *has_twice || seen->mark == mark;
        seen->mark = mark;
        PUT(room_for(&list[IDS], (size_t)ids * 4));
        const unsigned char *from = r->at; /* not `r` in the loop: for all that the compiler knows it is in `to` */
        unsigned char *to = list[IDS].bytes + list[IDS].size;
        for (int32_t j = 0; j < ids; j++) {
            int32_t id = big32(from + 4 * (size_t)j);
            memcpy(to + 4 * (size_t)j, &id, 4);
        }
        r->at += 4 * (Py_ssize_t)ids;
        list[IDS].size += (size_t)ids * 4;
        PUT(put32(&list[WHOSE], whose) && put32(&list[BOUNDS], count32(&list[IDS])));
        outcome = LEFT;
    }
    return TAKEN;
left:
    cut_columns(list, LIST_COLUMNS, before);
    return outcome;
}

/* Pass over one without looking at the names; null lists count as empty ones. */
bool pass_partition_list(Reader *r)
{
    int32_t count, ids;
    Reader name;
    if (!read_topic_count(r, -1, &count))
        return false;
    for (int32_t i = 0; i < count; i++) {
        if (!read_topic(r, -1, &name, &ids))
            return false;
        r->at += ids > 0 ? (Py_ssize_t)ids * 4 : 0;
    }
    return true;
}

/* A ConsumerProtocolAssignment; `listed` are the bytes of its partition list. No bytes give nothing. */
int read_assignment(Reader *r, int64_t whose, Names *topics, Column *list, Reader *listed, bool *has_twice)
{
    int16_t version;
    int32_t size;
    Reader user_data;
    *listed = *r;
    *has_twice = false;
    if (left(r) == 0)
        return TAKEN;
    NEED(read_int16(r, &version) && version >= 0);
    listed->at = r->at;
    CHECK(read_partition_list(r, whose, topics, list, has_twice));
    listed->end = r->at;
    NEED(read_int32(r, &size) && size >= -1 && take(r, size, &user_data));
    return TAKEN;
}

/* Of each list its columns and length (int64, -1 if it cannot be read), and the two int32 behind it. */
static PyObject *read_lists(PyObject *blobs, bool in_assignments)
{
    enum { LENGTH = LIST_COLUMNS, TAIL, COLUMNS };
    static const char *const column_names[COLUMNS] = {"claimant", "topic", "bounds", "ids", "lengths", "tails"};
    Py_ssize_t count = count_blobs(blobs);
    if (count < 0)
        return NULL;
    Names names = {0};
    Column column[COLUMNS] = {{0}};
    PyObject *result = NULL;
    if (!put32(&column[BOUNDS], 0))
        goto done;
    for (Py_ssize_t i = 0; i < count; i++) {
        Reader r;
        bool has_twice;
        size_t before[COLUMNS];
        if (!get_blob(blobs, i, &r))
            goto done;
        Reader listed = r;
        note_sizes(column, LIST_COLUMNS, before);
        int outcome = in_assignments ? read_assignment(&r, i, &names, column, &listed, &has_twice)
                                     : read_partition_list(&r, i, &names, column, &has_twice);
        if (outcome == LEFT)
            cut_columns(column, LIST_COLUMNS, before);
        int64_t length = outcome == TAKEN ? r.at - listed.at : -1;
        if (outcome == FAILED || !put(&column[LENGTH], &length, sizeof length))
            goto done;
        for (int j = 0; j < 2; j++) {
            int32_t tail = 0;
            if (outcome == TAKEN)
                read_int32(&r, &tail);
            if (!put32(&column[TAIL], tail))
                goto done;
        }
    }
    result = PyDict_New();
    if (result != NULL && !(add_texts(result, "names", &names) && add_columns(result, column_names, column, COLUMNS)))
        Py_CLEAR(result);
done:
    forget(&names);
    free_columns(column, COLUMNS);
    return result;
}

PyObject *read_partitions(PyObject *module, PyObject *blobs)
{
    (void)module;
    return read_lists(blobs, false);
}

PyObject *read_assignments(PyObject *module, PyObject *blobs)
{
    (void)module;
    return read_lists(blobs, true);
}

static unsigned char *set(unsigned char *at, const char *bytes, Py_ssize_t size)
{
    memcpy(at, bytes, (size_t)size);
    return at + size;
}

static unsigned char *set32(unsigned char *at, int64_t value)
{
    set_big32(at, (size_t)value);
    return at + 4;
}

/* Names come with their lengths. */
PyObject *write_partitions(PyObject *module, PyObject *arguments)
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
                wanted += name_sizes[topics[i]] + 4;
            }
        PyObject *bytes = PyBytes_FromStringAndSize(NULL, wanted);
        if (bytes == NULL || PyList_SetItem(written, member, bytes) < 0) {
            Py_DECREF(written);
            goto done;
        }
        unsigned char *at = set((unsigned char *)PyBytes_AsString(bytes), head, head_size);
        at = set32(at, runs);
        for (Py_ssize_t i = first, end; i < last; i = end) {
            int64_t topic = topics[i];
            for (end = i + 1; end < last && topics[end] == topic; end++)
                ;
            at = set(at, name_bytes[topic], name_sizes[topic]);
            at = set32(at, end - i);
            for (Py_ssize_t j = i; j < end; j++)
                at = set32(at, ids[j]);
        }
        set(at, tail, tail_size);
    }
    result = written;
done:
    free(name_bytes);
    free(name_sizes);
    while (held > 0)
        PyBuffer_Release(&view[--held]);
    return result;
}
