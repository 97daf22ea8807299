# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: a handful of Python files, so nothing needs to be fetched or compiled.

PEAL_WHEEL_COMMAND names a `peal` that needs no library, and PEAL_WHEEL_TAG says where it runs: the wheel then has the command,
too (scripts/dist). The same files give the same bytes.
"""
import base64
import hashlib
import os
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME, VERSION = "peal", "0.2.0"
METADATA = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"{NAME}-{VERSION}.dist-info"
    command, tag = os.environ.get("PEAL_WHEEL_COMMAND"), os.environ.get("PEAL_WHEEL_TAG", "py3-none-any")
    about = f"Wheel-Version: 1.0\nGenerator: peal\nRoot-Is-Purelib: {'false' if command else 'true'}\nTag: {tag}\n"
    files = {f"{info}/METADATA": METADATA.encode(), f"{info}/WHEEL": about.encode()}
    script = f"{NAME}-{VERSION}.data/scripts/{NAME}"
    if command:
        with open(command, "rb") as file:
            files[script] = file.read()
    inside = [name for folder in ("", "tiles") for name in (os.path.join(folder, one) for one in os.listdir(os.path.join(HERE, NAME, folder)))]
    for name in sorted(inside):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(HERE, NAME, name), "rb") as file:
                files[f"{NAME}/{name}"] = file.read()
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    record += f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    wheel = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path == script else 0o100644) << 16
            out.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    import tarfile
    base = f"{NAME}-{VERSION}"
    archive = f"{base}.tar.gz"
    with tarfile.open(os.path.join(sdist_directory, archive), "w:gz") as out:
        for name in ("pyproject.toml", "build_backend.py", NAME):
            out.add(os.path.join(HERE, name), f"{base}/{name}")
    return archive
