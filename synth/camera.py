"""A pinhole camera before a flat dial: the homography, points through it, pictures through it.

Matrices are 3 x 3 and take pixels of a clock's own canvas to pixels of the picture; pixel k covers k to k+1 in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from PIL import Image

from synth.shapes import Point

Matrix = np.ndarray


def shift_and_scale(from_center: Point, to_center: Point, scale: float) -> Matrix:
    """No camera at all: scaled about `from_center`, which comes to lie on `to_center`."""
    (x, y), (u, v) = from_center, to_center
    return np.array([[scale, 0.0, u - scale * x], [0.0, scale, v - scale * y], [0.0, 0.0, 1.0]])


def tilted(tilt_deg: float, towards_deg: float, roll_deg: float, distance: float) -> Matrix:
    """The unit dial (centre 0, radius 1, y down) leaning away towards an angle, seen from `distance` radii, camera rolled."""
    tilt, towards, roll = math.radians(tilt_deg), math.radians(towards_deg), math.radians(roll_deg)
    away = np.array([math.sin(towards), -math.cos(towards)])
    turn = np.array([[math.cos(roll), -math.sin(roll)], [math.sin(roll), math.cos(roll)]])
    matrix = np.eye(3)
    matrix[:2, :2] = turn @ (np.eye(2) - (1 - math.cos(tilt)) * np.outer(away, away))
    matrix[2, :2] = math.sin(tilt) / distance * away
    return matrix


def framed(view: Matrix, center: Point, radius: float, outline: Sequence[Point], to_center: Point, to_radius: float) -> Matrix:
    """`view` of the dial with that centre and radius, so that its outline fills a square of half side `to_radius`."""
    matrix = view @ shift_and_scale(center, (0.0, 0.0), 1 / radius)
    seen = np.array(project(matrix, outline))
    low, high = seen.min(0), seen.max(0)
    middle = (low + high) / 2
    return shift_and_scale(tuple(middle), to_center, 2 * to_radius / float((high - low).max())) @ matrix


def project(matrix: Matrix, points: Iterable[Point]) -> list[Point]:
    x, y, w = matrix @ np.array([(x, y, 1.0) for x, y in points]).T
    return [(float(a), float(b)) for a, b in zip(x / w, y / w, strict=True)]


def warp(image: Image.Image, matrix: Matrix, box: tuple[int, int, int, int]) -> Image.Image:
    """What the camera sees of the image within a box of the picture."""
    left, top, right, bottom = box
    back = np.linalg.inv(matrix) @ np.array([[1.0, 0.0, left], [0.0, 1.0, top], [0.0, 0.0, 1.0]])
    coefficients = (back / back[2, 2]).ravel()[:8]
    return image.transform(
        (right - left, bottom - top), Image.Transform.PERSPECTIVE, tuple(coefficients), Image.Resampling.BILINEAR
    )
