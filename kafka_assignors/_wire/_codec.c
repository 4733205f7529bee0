/* The extension module. What its functions take and return stands in `codec.py` and, of the last one, in
 * `kafka_assignors.history._tables`. */

#include "_codec.h"

static PyMethodDef methods[] = {{"read_partitions", read_partitions, METH_O, "read_partitions(blobs)\n--\n\n"},
                                {"write_partitions", write_partitions, METH_VARARGS,
                                 "write_partitions(names, topics, ids, bounds, head, tail)\n--\n\n"},
                                {"read_subscriptions", read_subscriptions, METH_O, "read_subscriptions(blobs)\n--\n\n"},
                                {"read_assignments", read_assignments, METH_O, "read_assignments(blobs)\n--\n\n"},
                                {"decode", decode, METH_VARARGS, "decode(count, key, value)\n--\n\n"},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
                                    .m_name = "_codec",
                                    .m_doc = "Bytes to columns and back, compiled.",
                                    .m_size = 0,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__codec(void) { return PyModuleDef_Init(&module); }
