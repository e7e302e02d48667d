"""Prints Class.method of every test in a module, one per line."""

import sys
import unittest

sys.dont_write_bytecode = True


def walk(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from walk(item)
        else:
            yield ".".join(item.id().split(".")[-2:])


for name in walk(unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])):
    print(name)
