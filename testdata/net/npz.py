"""Writes arrays.npz beside it: one small array in every type and order that `net` reads, half of the entries
deflated, one of them as npy version 2, two that must be refused. Needs NumPy. Usage: python npz.py
"""
import io
import pathlib
import zipfile

import numpy as np

x = (20 * np.arange(12)).reshape(3, 2, 2)
arrays = {
    "uint8": (x.astype("u1"), None),
    "uint8_fortran": (np.asfortranarray(x.astype("u1")), None),
    "int64": (x.astype("<i8"), None),
    "int32_big": (x.astype(">i4"), None),
    "int16": (x.astype("<i2"), None),
    "float32": (x.astype("<f4"), None),
    "float32_fortran": (np.asfortranarray(x.astype("<f4")), None),
    "float64": (x.astype("<f8"), (2, 0)),
    "float64_big": (x.astype(">f8"), (3, 0)),
    "complex": (x.astype("<c8"), None),
    "strings": (np.array(["a", "b"]), None),
}
with zipfile.ZipFile(pathlib.Path(__file__).parent / "arrays.npz", "w") as file:
    for i, (name, (array, version)) in enumerate(arrays.items()):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version=version)
        info = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
        info.compress_type = zipfile.ZIP_DEFLATED if i % 2 else zipfile.ZIP_STORED
        with file.open(info, "w", force_zip64=i % 3 == 0) as out:
            out.write(buffer.getvalue())
