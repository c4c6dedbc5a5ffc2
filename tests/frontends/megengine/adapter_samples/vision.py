"""megengine.functional.vision.interpolate in its modes."""

import numpy as np

from .common import IMAGE, Known, call, numbers

ROW = numbers(2, 3, 6)
VOLUME = numbers(1, 2, 3, 4, 5)
BYTES = np.arange(2 * 5 * 13, dtype=np.int64).reshape(1, 2, 5, 13) * 89 % 256
BYTES = BYTES.astype(np.uint8)

INTERPOLATE = [
    *(call(BYTES, (7, 9), mode=mode) for mode in ("bilinear", "bicubic")),
    *(call(BYTES, scale_factor=2.0, mode=mode) for mode in ("bilinear", "bicubic")),
    call(IMAGE, (3, 4)),
    call(IMAGE, scale_factor=2),
    call(IMAGE, scale_factor=2.0, mode="nearest"),
    call(IMAGE, (10, 3), mode="nearest"),
    call(IMAGE, [3, 4], align_corners=True),
    call(IMAGE, (8, 10), mode="bicubic"),
    call(IMAGE, (3, 4), mode="bicubic"),
    call(IMAGE, scale_factor=(2.0, 0.5), mode="BICUBIC"),
    call(IMAGE.astype(np.float16), (4, 9), mode="bicubic"),
    call(ROW, 9, mode="linear"),
    call(ROW, scale_factor=0.7, mode="linear"),
    call(ROW, scale_factor=2, mode="linear", align_corners=True),
    call(ROW, 4, None, "linear", True),
    call(VOLUME, scale_factor=2.0, mode="trilinear"),
    call(VOLUME, scale_factor=(2.0, 1.0, 0.5), mode="trilinear"),
    call(VOLUME, (4, 4, 4), mode="trilinear", align_corners=True),
    call(VOLUME, (4, 4, 4), mode="trilinear", align_corners=False),
    call(VOLUME, 4, mode="trilinear"),
    call(IMAGE, Known(6, 7)),
    call(IMAGE, (Known(6), 7)),
    call((np.abs(IMAGE) * 8).astype(np.uint8), (6, 9), mode="nearest"),
    call(IMAGE, scale_factor=[1.7, 2.3]),
]

SAMPLES = {"megengine.functional.vision.interpolate": INTERPOLATE}
