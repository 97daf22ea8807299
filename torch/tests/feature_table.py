# SPDX-License-Identifier: Apache-2.0
"""The table of features that feature_calls.py and feature_models.py fill, and their helpers: see features.py."""
import importlib

FEATURES = {}


class Absent(Exception):
    """This torch does not have it."""


def feature(function):
    FEATURES[function.__name__] = function
    return function


def have(module, *names):
    """The module's attributes by name, or Absent."""
    try:
        loaded = importlib.import_module(module)
        return [getattr(loaded, name) for name in names] if len(names) != 1 else getattr(loaded, names[0])
    except (ImportError, AttributeError) as error:
        raise Absent(str(error))


def whole(module):
    """The module itself, or Absent."""
    try:
        return importlib.import_module(module)
    except Exception as error:  # some modules of 1.13 cannot be imported on a newer Python
        raise Absent(str(error))


def total(world):
    return float(sum(range(world)))
