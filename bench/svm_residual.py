#!/usr/bin/env python3
"""The true residual of a least-squares machine of two classes, from its model file alone:
|y - b - (K + 1 / C) alpha| / |y|, kernel rbf. usage: svm_residual.py MODEL C"""
import sys

import numpy as np


def read(path):
    head, points = open(path).read().split("\nSV\n")
    head = {line.split()[0]: line.split()[1:] for line in head.splitlines() if line.strip()}
    rows = [line.split() for line in points.splitlines()]
    x = np.zeros((len(rows), 1 + max(int(w.split(":")[0]) for r in rows for w in r[1:])))
    for i, row in enumerate(rows):
        for word in row[1:]:
            column, value = word.split(":")
            x[i, int(column)] = float(value)
    return head, np.array([float(r[0]) for r in rows]), x


head, alpha, x = read(sys.argv[1])
count = int(head["nr_sv"][0])
y = np.where(np.arange(len(alpha)) < count, 1.0, -1.0)
square = (x * x).sum(1)
k = np.exp(-float(head["gamma"][0]) *
           np.maximum(square[:, None] + square[None] - 2 * x @ x.T, 0))
r = y + float(head["rho"][0]) - k @ alpha - alpha / float(sys.argv[2])
print("%.3g" % (np.linalg.norm(r) / np.linalg.norm(y)))
