"""Builds the wheel of this folder: Python files and their list, nothing compiled.

`pip install ./python` calls it (PEP 517). It needs the standard library alone, so that
an installation reaches for no network.
"""
import base64
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _field(name):
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(rf'^{name} = "([^"]*)"$', file.read(), re.M).group(1)


def _metadata():
    return (f"Metadata-Version: 2.1\nName: stint\nVersion: {_field('version')}\n"
            f"Summary: {_field('description')}\n"
            f"Requires-Python: {_field('requires-python')}\n"
            "Requires-Dist: numpy>=1.22\nLicense: Apache-2.0\n")


def _files():
    package = os.path.join(HERE, "stint")
    for name in sorted(os.listdir(package)):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(package, name), "rb") as file:
                yield f"stint/{name}", file.read()


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Write the wheel into wheel_directory; its file name."""
    stem = f"stint-{_field('version')}"
    info = f"{stem}.dist-info"
    files = list(_files()) + [
        (f"{info}/METADATA", _metadata().encode()),
        (f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: stint_wheel\n"
                          b"Root-Is-Purelib: true\nTag: py3-none-any\n")]
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w",
                         zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:  # with one date, so that two wheels are the same bytes
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the sources are Stint's own tree."""
    raise NotImplementedError("make a wheel: pip wheel ./python")
