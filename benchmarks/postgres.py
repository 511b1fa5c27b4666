"""A private PostgreSQL cluster on a free port, in a folder of its own; nothing of it is left behind."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

PLACES = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, ("/usr/bin", "/usr/local/bin")))
BINARIES = next((place for place in PLACES if (place / "initdb").exists() and (place / "postgres").exists()), None)
MISSING = "no PostgreSQL server is installed (Debian: apt-get install postgresql)"


def user() -> dict[str, str]:
    """The server refuses to run as root."""
    if os.getuid() != 0:
        return {}
    names = [entry.pw_name for entry in pwd.getpwall()]
    return {"user": "postgres" if "postgres" in names else "nobody"}


class Cluster:
    """A server of one's own."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        assert BINARIES is not None, MISSING
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-postgres-"))
        if user():
            shutil.chown(self.folder, user()["user"])
        with socket.socket() as probe:
            probe.bind((host, 0))
            self.host, self.port = host, probe.getsockname()[1]
        self.run("initdb", "-D", "data", "-U", "paceline", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        with open(self.folder / "data" / "pg_hba.conf", "a", encoding="utf-8") as rules:
            rules.write(f"host all all {host}/24 trust\n")
        self.address = f"postgresql://paceline@{host}:{self.port}/postgres"
        self.start()

    def run(self, program: str, *options: str) -> None:
        """Run one of its programs to the end."""
        assert BINARIES is not None
        command = [str(BINARIES / program), *options]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False, **user()
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        """Start the server, and wait until it answers; its output must not keep a pipe open."""
        options = f"-p {self.port} -c listen_addresses={self.host} -k {self.folder}"
        self.run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def restart(self) -> None:
        """Stop at once, as if the power had failed, and start again."""
        self.stop("immediate")
        self.start()

    def stop(self, mode: str = "fast") -> None:
        """Stop it."""
        self.run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def freeze(self) -> None:
        """Let it hang: connections and what is sent are taken by the machine, and nobody answers."""
        for process in self.processes():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        for process in reversed(self.processes()):
            os.kill(process, signal.SIGCONT)

    def processes(self) -> list[int]:
        """The server, and those that it has started."""
        server = int((self.folder / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])
        children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii").split()
        return [server, *map(int, children)]

    def remove(self) -> None:
        """Stop it, if it runs, and remove everything."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder)

    def empty_database(self, name: str) -> str:
        """The address of a new database."""
        self.run("createdb", "-h", self.host, "-p", str(self.port), "-U", "paceline", name)
        return f"postgresql://paceline@{self.host}:{self.port}/{name}"
