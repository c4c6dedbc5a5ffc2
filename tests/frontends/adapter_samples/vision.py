"""megengine.functional.vision."""

from .common import IMAGE, call

VISION = {
    "interpolate": [
        call(IMAGE, (3, 4)),
        call(IMAGE, scale_factor=2),
        call(IMAGE, scale_factor=2.0, mode="nearest"),
        call(IMAGE, (10, 3), mode="nearest"),
        call(IMAGE, [3, 4], align_corners=True),
    ],
}

SAMPLES = {f"megengine.functional.vision.{name}": calls for name, calls in VISION.items()}
