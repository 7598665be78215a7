"""A KDC of MIT Kerberos for the realm EXAMPLE.COM: one process of this user, with its database in a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess

REALM: Final = "EXAMPLE.COM"
PROGRAMS: Final = ("kdb5_util", "kadmin.local", "krb5kdc", "kinit")
PATH: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
"""Debian's packages put the programs of a KDC where only root's PATH leads."""
START_TIMEOUT_S: Final = 30
TICKET_LIFE: Final = "1h"


def program(name: str) -> str:
    """Its path. Raises AssertionError, with the name of the package."""
    found = shutil.which(name, path=PATH)
    assert found is not None, f"{name} is not there: install krb5-kdc, krb5-admin-server and krb5-user (Debian's names)"
    return found


class Kdc:
    """Principals are named without the realm."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._port = free_port()
        self.krb5_conf = directory / "krb5.conf"
        """For MIT Kerberos and for Java."""
        self.environment = {
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHEDIR": str(directory),
            "PATH": PATH,
        }
        command = [program("krb5kdc"), "-n", "-r", REALM]
        self._process = ManagedProcess(command, directory / "kdc.log", cwd=directory, env=self.environment)

    def start(self) -> None:
        # The name of a broker is "localhost" wherever the tests run: nobody asks a DNS server for another one.
        self.krb5_conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n udp_preference_limit = 1\n rdns = false\n"
            " dns_canonicalize_hostname = false\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n }}\n"
        )
        (self._directory / "kdc.conf").write_text(
            f"[realms]\n {REALM} = {{\n  database_name = {self._directory}/principal\n"
            f"  key_stash_file = {self._directory}/stash\n  acl_file = {self._directory}/acl\n"
            f'  kdc_listen = ""\n  kdc_tcp_listen = 127.0.0.1:{self._port}\n  max_life = {TICKET_LIFE}\n }}\n'
            "[logging]\n kdc = STDERR\n"
        )
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the tests")
        self._process.start()
        self._process.wait_for_line("commencing operation", START_TIMEOUT_S)

    def add(self, *principals: str, options: str = "") -> None:
        """New principals with random keys; `options` of kadmin's `addprinc`."""
        for principal in principals:
            self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {options} {principal}")

    def keytab(self, name: str, *principals: str) -> Path:
        """A file with the keys of some principals, added to those that it has already."""
        path = self._directory / f"{name}.keytab"
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -norandkey -k {path} {' '.join(principals)}")
        return path

    def change_keys(self, principal: str) -> None:
        """The keytabs of earlier have the old keys."""
        self.run("kadmin.local", "-r", REALM, "-q", f"cpw -randkey {principal}")

    def run(self, name: str, *arguments: str) -> str:
        """The output of one of MIT's programs."""
        done = subprocess.run(
            [program(name), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{name} {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def stop(self) -> None:
        if self._process.is_running:
            self._process.kill()
