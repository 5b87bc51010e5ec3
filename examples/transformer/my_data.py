"""Text of its own making: sentences of a small made-up language.

Each sentence names somebody, what they do and to whom, and says at its end
what was said of the first one at its start, so that a model has to look back.
"""

import random

import numpy

LETTERS = " .abcdefghijklmnopqrstuvwxyz"
NAMES = ("ada", "boris", "chen", "dana", "emre", "fatou", "goran", "hana")
KINDS = ("quiet", "loud", "green", "early", "late", "brave", "small", "odd")
VERBS = ("meets", "follows", "forgets", "paints", "hears", "finds")


def sentences(rng):
    while True:
        kind, name, other = (rng.choice(words)
                             for words in (KINDS, NAMES, NAMES))
        yield (f"the {kind} {name} {rng.choice(VERBS)} {other} and"
               f" {name} is {kind}. ")


def windows(count, length, seed):
    """Stretches of text as numbers, and each letter's successor."""
    rng = random.Random(seed)
    text, wanted = "", count * length + 1
    for sentence in sentences(rng):
        text += sentence
        if len(text) >= wanted:
            break
    numbers = numpy.array([LETTERS.index(c) for c in text[:wanted]])
    return (numbers[:-1].reshape(count, length),
            numbers[1:].reshape(count, length))


def load(point):
    """The same text on every rank, whatever the seed of the run."""
    return windows(2048, 32, seed=1), windows(128, 32, seed=2)
