"""The base image of the Dockerfile, where no registry can be reached: Debian 12 with a copy of this Python.

As in the published image, `python` and `pip` are in /usr/local/bin; the library has no bytecode and no tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from tests.support.images.docker import run, succeeds
from tests.support.processes.apache.jvm import REPOSITORY

LIBRARIES: Final = "libssl3,libsqlite3-0,libffi8,libreadline8,libbz2-1.0,liblzma5,zlib1g,libuuid1,libncursesw6"
"""Debian's packages that the extension modules of Python are linked with."""

DEBOOTSTRAP_TIMEOUT_S: Final = 900
LEFT_OUT: Final = shutil.ignore_patterns("site-packages", "__pycache__", "test", "tests", "idle_test", "config-3*")
CERTIFICATES: Final = Path("etc/ssl/certs/ca-certificates.crt")


def provide_base_image() -> str:
    """The name of the image of FROM: from the engine, else from a registry, else made here, which takes minutes.

    Raises: AssertionError if it cannot be made, with the reason.
    """
    [name] = set(re.findall(r"^FROM (\S+:\S+)", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE))
    if not succeeds("docker", "image", "inspect", name) and not succeeds("docker", "pull", name):
        _make(name)
    return name


def _make(name: str) -> None:
    version = "{}.{}".format(*sys.version_info)
    assert f":{version}-" in name, f"{name} cannot be fetched, and this Python {version} is another one"
    assert os.geteuid() == 0, f"{name} cannot be fetched; only root can make one like it"
    assert shutil.which("debootstrap"), f"{name} cannot be fetched; to make one like it, apt-get install debootstrap"
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "root"
        options = ["--variant=minbase", f"--include=ca-certificates,netbase,tzdata,{LIBRARIES}"]
        run(["debootstrap", *options, "bookworm", str(root)], timeout_s=DEBOOTSTRAP_TIMEOUT_S)
        shutil.rmtree(root / "var" / "cache" / "apt")
        _copy_python(root / "usr" / "local", version)
        for tool in ("ldconfig", "python -m ensurepip", "rm -rf /root/.cache"):
            run(["chroot", str(root), *tool.split()])
        (root / "usr/local/bin/pip").symlink_to("pip3")
        # A network may have a certificate authority of its own, which this machine knows.
        shutil.copyfile(Path("/") / CERTIFICATES, root / CERTIFICATES)
        (root / "etc" / "pip.conf").write_text(f"[global]\ncert = /{CERTIFICATES}\n")
        for cached in [*root.glob("usr/local/lib/**/__pycache__")]:
            shutil.rmtree(cached)
        path = "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as archive:
            imported = ["docker", "import", "--change", path, "--change", "ENV LANG=C.UTF-8", "-", name]
            subprocess.run(imported, stdin=archive.stdout, check=True, timeout=DEBOOTSTRAP_TIMEOUT_S)


def _copy_python(prefix: Path, version: str) -> None:
    shutil.copytree(sysconfig.get_path("stdlib"), prefix / "lib" / f"python{version}", ignore=LEFT_OUT)
    shutil.copy(Path(sys.base_prefix) / "bin" / f"python{version}", prefix / "bin")
    for library in (Path(sys.base_prefix) / "lib").glob("libpython3*"):
        shutil.copy(library, prefix / "lib", follow_symlinks=False)
    for link in ("python3", "python"):
        (prefix / "bin" / link).symlink_to(f"python{version}")
