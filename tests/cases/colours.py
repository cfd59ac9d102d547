"""How different colors are, with every kind of color vision, and how well text can be read."""

import numpy as np

# Machado, Oliveira, Fernandes 2009: linear RGB as seen without one kind of cones (severity 1).
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Oklab (Ottosson 2020), in which distances are about as large as they look.
TO_CONES = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
TO_CONES += [[0.0883024619, 0.2817188376, 0.6299787005]]
TO_LAB = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099]]
TO_LAB += [[0.0259040371, 0.7827717662, -0.8086757660]]


def linear(color):
    """Linear RGB of a colour like '#0072B2'."""
    srgb = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def contrast(one, two):
    """The contrast of WCAG 2: from 1 to 21."""
    light = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] for color in (one, two))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(rgb):
    return TO_LAB @ np.cbrt(TO_CONES @ np.clip(rgb, 0, 1))


def apart(one, two):
    """The distance of two colours for whoever sees the least of it."""
    return min(
        np.linalg.norm(lab(sight @ linear(one)) - lab(sight @ linear(two)))
        for sight in map(np.array, SIGHTS.values())
    )
